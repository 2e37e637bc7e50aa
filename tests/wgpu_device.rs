//! The wgpu device, driven by handwritten kernels.
//!
//! Without an adapter the tests print that they skip; `DIPTYCH_REQUIRE_DEVICES=1` makes that a failure.
#![cfg(feature = "wgpu")]

use diptych::{
    Colours, Context, Custom, DType, Error, Framing, Function, Graph, Pictures, Session, SessionOptions,
    Shape,
};
use diptych_device::device::wgpu::WgpuDevice;
use diptych_device::device::{Buffer, Device, Dispatch, Memory, Pipeline, Slice};
use diptych_emit::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use std::sync::atomic::Ordering::SeqCst;

/// Set for processes that a test starts.
const CHILD: &str = "DIPTYCH_TEST_CHILD";

/// `dst = factor * src + dst` over the first `n` elements.
const SAXPY: &str = "
struct Params { n: u32, factor: f32 }
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.n) { return; }
    dst[id.x] = params.factor * src[id.x] + dst[id.x];
}
";

/// `dst = dst + 1`, no parameters.
const INCREMENT: &str = "
@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f32>>;
@compute @workgroup_size(16)
fn increment(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&dst)) { return; }
    dst[id.x] = dst[id.x] + vec4<f32>(1.0);
}
";

fn device() -> Option<WgpuDevice> {
    match WgpuDevice::open(None) {
        Ok(device) => Some(device),
        Err(error) if std::env::var("DIPTYCH_REQUIRE_DEVICES").is_ok_and(|value| value == "1") => {
            panic!("{error}")
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn saxpy() -> KernelSource {
    let f32s = Element::Scalar(DType::F32);
    KernelSource {
        label: "saxpy_wg64".to_owned(),
        entry: "saxpy".to_owned(),
        dialect: Dialect::Wgsl,
        text: SAXPY.to_owned(),
        interface: Interface {
            bindings: vec![
                Binding::new(Operand::Src, f32s, Access::Read),
                Binding::new(Operand::Dst, f32s, Access::ReadWrite),
            ],
            params: vec![
                Param { name: "n", ty: ParamType::U32 },
                Param { name: "factor", ty: ParamType::F32 },
            ],
        },
        work_group: [64, 1, 1],
    }
}

fn increment() -> KernelSource {
    KernelSource {
        label: "increment_wg16".to_owned(),
        entry: "increment".to_owned(),
        dialect: Dialect::Wgsl,
        text: INCREMENT.to_owned(),
        interface: Interface {
            bindings: vec![Binding::new(Operand::Dst, Element::Vec4(DType::F32), Access::ReadWrite)],
            params: vec![],
        },
        work_group: [16, 1, 1],
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|word| f32::from_ne_bytes(*word)).collect()
}

fn upload(device: &WgpuDevice, values: &[f32]) -> Buffer {
    let buffer = device.alloc(4 * values.len() as u64, Memory::Device).unwrap();
    device.write(&buffer.whole(), &bytes(values)).unwrap();
    buffer
}

fn saxpy_dispatch(pipeline: &Pipeline, src: Slice, dst: Slice, n: u32, factor: f32) -> Dispatch {
    Dispatch {
        pipeline: pipeline.clone(),
        resources: vec![src.into(), dst.into()],
        params: vec![Scalar::U32(n), Scalar::F32(factor)],
        groups: [n.div_ceil(64), 1, 1],
    }
}

fn increment_dispatch(pipeline: &Pipeline, dst: &Buffer) -> Dispatch {
    let groups = (dst.bytes() / 16).div_ceil(16) as u32;
    Dispatch {
        pipeline: pipeline.clone(),
        resources: vec![dst.into()],
        params: vec![],
        groups: [groups, 1, 1],
    }
}

/// Runs saxpy over 1000 elements on `device` and checks every element and the canaries after it.
fn run_saxpy(device: &WgpuDevice) {
    let n = 1000;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let mut y = vec![0.5; n];
    y.extend([f32::NAN; 24]);
    let pipeline = device.compile(&saxpy()).unwrap();
    let src = device.alloc(4 * n as u64, Memory::Device).unwrap();
    let dst = upload(device, &y);
    let dispatch = saxpy_dispatch(&pipeline, src.whole(), dst.whole(), n as u32, 2.0);
    let recording = device.record(&[dispatch]).unwrap();
    assert_eq!(recording.labels(), ["saxpy_wg64"]);
    let tail = dst.slice(4 * 996, 4 * 8).unwrap();
    let outputs = device.run(&[(&src.whole(), &bytes(&x))], &recording, &[&dst.whole(), &tail]).unwrap();
    let whole = floats(&outputs[0]);
    assert_eq!(outputs.len(), 2);
    for (i, value) in whole[..n].iter().enumerate() {
        assert_eq!(*value, 2.0 * i as f32 + 0.5, "element {i}");
    }
    assert!(whole[n..].iter().all(|canary| canary.is_nan()));
    let tail = floats(&outputs[1]);
    assert_eq!(tail[..4], [1992.5, 1994.5, 1996.5, 1998.5]);
    assert!(tail[4..].iter().all(|canary| canary.is_nan()));
}

#[test]
fn a_kernel_computes_and_keeps_its_edges() {
    let Some(device) = device() else { return };
    println!("{} {:?}", device.info(), device.info().limits);
    run_saxpy(&device);
    assert!(!WgpuDevice::list().is_empty());
}

#[test]
fn each_dispatch_sees_those_before_it() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &[0.0; 400]);
    let recording = device.record(&vec![increment_dispatch(&pipeline, &buffer); 100]).unwrap();
    device.submit(&recording).unwrap();
    device.wait().unwrap();
    assert_eq!(floats(&device.read(&buffer.whole()).unwrap()), [100.0; 400]);
    // A recording is submitted as often as wanted.
    let outputs = device.run(&[], &recording, &[&buffer.whole()]).unwrap();
    assert_eq!(floats(&outputs[0]), [200.0; 400]);
    assert!(device.run(&[], &recording, &[]).unwrap().is_empty());
    assert_eq!(floats(&device.read(&buffer.whole()).unwrap()), [300.0; 400]);
}

#[test]
fn dispatches_are_timed_one_by_one() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let small = upload(&device, &[0.0; 64]);
    let large = upload(&device, &vec![0.0; 1 << 20]);
    let mut dispatches = vec![increment_dispatch(&pipeline, &small); 2100];
    dispatches.push(increment_dispatch(&pipeline, &large));
    let recording = device.record(&dispatches).unwrap();
    if !device.info().timestamps {
        assert!(matches!(device.time(&recording), Err(Error::Unsupported { .. })));
        return;
    }
    let times = device.time(&recording).unwrap();
    assert_eq!(times.len(), 2101);
    let mut fast = times[..2100].to_vec();
    fast.sort();
    assert!(times[2100] > fast[1050], "{:?} for 4 MiB, {:?} for 256 bytes", times[2100], fast[1050]);
    assert_eq!(floats(&device.read(&small.whole()).unwrap()), [2100.0; 64]);
    assert!(device.time(&device.record(&[]).unwrap()).unwrap().is_empty());
}

#[test]
fn a_compile_error_has_log_and_numbered_source() {
    let Some(device) = device() else { return };
    for (from, to, wanted) in [
        ("params.factor *", "params.factors *", "factors"),
        ("n: u32, factor: f32", "factor: f32, n: u32", "n: u32 at 4"),
        ("fn saxpy", "fn saxpy(", "expected"),
        ("binding(1) var<storage, read_write>", "binding(5) var<storage, read_write>", "dst"),
    ] {
        let mut source = saxpy();
        source.text = SAXPY.replace(from, to);
        match device.compile(&source) {
            Err(Error::Compile { kernel, log, source_text, .. }) => {
                assert_eq!(kernel, "saxpy_wg64");
                assert!(log.contains(wanted), "{log}");
                assert!(source_text.contains("   2 | struct Params"), "{source_text}");
            }
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
    // The device is as good as before.
    run_saxpy(&device);
}

#[test]
fn bad_allocations_are_errors() {
    let Some(device) = device() else { return };
    for size in [0, u64::MAX, u64::MAX / 2, 1 << 50] {
        assert!(matches!(device.alloc(size, Memory::Device), Err(Error::Input { .. })), "{size}");
    }
    assert_eq!(device.alloc(17, Memory::Device).unwrap().bytes(), 32);
    assert!(matches!(device.alloc_image(4, 4, DType::F32), Err(Error::Unsupported { .. })));
}

#[test]
fn writes_and_reads_of_odd_lengths() {
    let Some(device) = device() else { return };
    let buffer = device.alloc(16, Memory::Device).unwrap();
    device.write(&buffer.whole(), &[7; 16]).unwrap();
    device.write(&buffer.slice(4, 6).unwrap(), &[1, 2, 3, 4, 5]).unwrap();
    let whole = device.read(&buffer.whole()).unwrap();
    assert_eq!(whole, [7, 7, 7, 7, 1, 2, 3, 4, 5, 0, 0, 0, 7, 7, 7, 7]);
    assert_eq!(device.read(&buffer.slice(4, 5).unwrap()).unwrap(), [1, 2, 3, 4, 5]);
    assert!(device.write(&buffer.slice(0, 4).unwrap(), &[0; 5]).is_err());
    assert!(device.write(&buffer.slice(2, 4).unwrap(), &[0; 4]).is_err());
    assert!(device.read(&buffer.slice(2, 4).unwrap()).is_err());
}

#[test]
fn a_host_visible_buffer_is_mapped_in_place() {
    let Some(device) = device() else { return };
    let buffer = match device.alloc(64, Memory::HostVisible) {
        Ok(buffer) => buffer,
        Err(error) => return println!("skipped: {error}"),
    };
    device.map(&buffer, &mut |bytes| assert_eq!(bytes, [0; 64])).unwrap();
    device.map(&buffer, &mut |view| view.copy_from_slice(&bytes(&[2.0; 16]))).unwrap();
    let pipeline = device.compile(&increment()).unwrap();
    let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
    device.submit(&recording).unwrap();
    device
        .map(&buffer, &mut |view| {
            assert_eq!(floats(view), [3.0; 16]);
            view[..4].copy_from_slice(&8.0f32.to_ne_bytes());
        })
        .unwrap();
    let outputs = device.run(&[], &recording, &[&buffer.whole()]).unwrap();
    assert_eq!(floats(&outputs[0])[..2], [9.0, 4.0]);
    // A write is seen by a mapping after it, and a panic inside does not leave the buffer mapped.
    device.write(&buffer.whole(), &bytes(&[5.0; 16])).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.map(&buffer, &mut |_| panic!("planted"))
    }));
    assert!(panicked.is_err());
    device.map(&buffer, &mut |view| assert_eq!(floats(view), [5.0; 16])).unwrap();

    let plain = device.alloc(64, Memory::Device).unwrap();
    assert!(matches!(device.map(&plain, &mut |_| ()), Err(Error::Input { .. })));
}

#[test]
fn a_slice_binds_a_part_of_a_buffer() {
    let Some(device) = device() else { return };
    let alignment = device.info().limits.binding_alignment;
    let src = upload(&device, &vec![1.0; 3 * alignment as usize / 4]);
    let dst = upload(&device, &vec![0.0; 3 * alignment as usize / 4]);
    let pipeline = device.compile(&saxpy()).unwrap();
    let slice = |buffer: &Buffer| buffer.slice(alignment, 12).unwrap();
    let dispatch = saxpy_dispatch(&pipeline, slice(&src), slice(&dst), 3, 4.0);
    let recording = device.record(&[dispatch]).unwrap();
    let output = floats(&device.run(&[], &recording, &[&dst.whole()]).unwrap()[0]);
    let first = alignment as usize / 4;
    for (i, value) in output.iter().enumerate() {
        assert_eq!(*value, if (first..first + 3).contains(&i) { 4.0 } else { 0.0 }, "element {i}");
    }
}

#[test]
fn what_does_not_fit_is_refused_when_recorded() {
    let Some(device) = device() else { return };
    let (x, y) = (upload(&device, &[1.0; 1024]), upload(&device, &[1.0; 1024]));
    let pipeline = device.compile(&saxpy()).unwrap();
    let good = || saxpy_dispatch(&pipeline, x.whole(), y.whole(), 1024, 1.0);
    let part = |offset, bytes| y.slice(offset, bytes).unwrap();
    let alignment = device.info().limits.binding_alignment;

    let mut groups = good();
    groups.groups = [1, u32::MAX, 1];
    let mut misaligned = good();
    misaligned.resources[1] = part(alignment + 4, 64).into();
    let mut tiny = good();
    tiny.resources[0] = x.slice(0, 2).unwrap().into();
    let mut aliased = good();
    aliased.resources[0] = part(2048, 64).into();
    for (dispatch, wanted) in [
        (groups, "work-groups along axis 1"),
        (misaligned, "wanted a multiple of"),
        (tiny, "src has 2 bytes, one element has 4"),
        (aliased, "src and dst are parts of one buffer, and only one of them is written"),
    ] {
        match device.record(&[good(), dispatch]) {
            Err(Error::Reject { kernel, reason }) => {
                assert_eq!(kernel, "saxpy_wg64");
                assert!(reason.contains(wanted), "{reason}");
            }
            other => panic!("{wanted}: {other:?}"),
        }
    }
    let mut missing = good();
    missing.resources.pop();
    let mut wrong = good();
    wrong.params.swap(0, 1);
    assert!(matches!(device.record(&[missing]), Err(Error::Input { .. })));
    assert!(matches!(device.record(&[wrong]), Err(Error::Input { .. })));
    device.record(&[good()]).unwrap();
}

#[test]
fn threads_share_a_device() {
    let Some(device) = device() else { return };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let device = device.clone();
            scope.spawn(move || {
                for _ in 0..8 {
                    run_saxpy(&device);
                }
            });
        }
    });
}

#[test]
fn handles_may_be_dropped_while_work_is_in_flight() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &vec![0.0; 1 << 18]);
    let recording = device.record(&vec![increment_dispatch(&pipeline, &buffer); 50]).unwrap();
    device.submit(&recording).unwrap();
    drop((recording, buffer, pipeline, device));
}

#[test]
fn a_run_can_be_awaited() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &vec![0.0; 1 << 16]);
    let whole = buffer.whole();
    let recording = device.record(&vec![increment_dispatch(&pipeline, &buffer); 20]).unwrap();
    let input = bytes(&[3.0]);
    let (writes, reads) = ([(&whole, input.as_slice())], [&whole]);
    for _ in 0..3 {
        let future = device.run_async(&writes, &recording, &reads);
        fn sendable<T: Send>(value: T) -> T {
            value
        }
        let outputs = pollster::block_on(sendable(future)).unwrap();
        assert_eq!(floats(&outputs[0])[0], 23.0);
    }
    assert_eq!(floats(&device.read(&whole).unwrap())[1], 60.0);
    assert!(pollster::block_on(device.run_async(&[], &recording, &[])).unwrap().is_empty());
    // A future that was polled once and dropped leaves the device usable.
    {
        let mut future = std::pin::pin!(device.run_async(&[], &recording, &reads));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = std::future::Future::poll(future.as_mut(), &mut context);
    }
    assert_eq!(floats(&device.read(&whole).unwrap())[1], 100.0);
}

/// A device made as an application makes it.
fn application_device() -> Option<(wgpu::Adapter, wgpu::Device, wgpu::Queue)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter =
        pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok()?;
    let (required_features, required_limits) = WgpuDevice::requirements(&adapter);
    let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
    Some((adapter, device, queue))
}

#[test]
fn an_application_lends_its_device_and_encoder() {
    if device().is_none() {
        return;
    }
    let (adapter, app_device, queue) = application_device().unwrap();
    let device = WgpuDevice::from_wgpu(&adapter, app_device.clone(), queue.clone()).unwrap();
    run_saxpy(&device);

    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &[0.0; 64]);
    let recording = device.record(&vec![increment_dispatch(&pipeline, &buffer); 3]).unwrap();
    let mut encoder = app_device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    device.encode(&recording, &mut encoder).unwrap();
    device.encode(&recording, &mut encoder).unwrap();
    queue.submit([encoder.finish()]);
    assert_eq!(floats(&device.read(&buffer.whole()).unwrap()), [6.0; 64]);

    // A second device is not the first: its recordings and buffers are refused, not run.
    let (adapter, app_device, queue) = application_device().unwrap();
    let other = WgpuDevice::from_wgpu(&adapter, app_device, queue).unwrap();
    assert!(matches!(other.submit(&recording), Err(Error::Input { .. })));
    assert!(matches!(other.read(&buffer.whole()), Err(Error::Input { .. })));
    let own = upload(&other, &[0.0; 64]);
    let own_pipeline = other.compile(&increment()).unwrap();
    for (pipeline, buffer) in [(&pipeline, &own), (&own_pipeline, &buffer)] {
        let mixed = increment_dispatch(pipeline, buffer);
        assert!(matches!(other.record(&[mixed]), Err(Error::Input { .. })));
    }
    run_saxpy(&other);
}

#[test]
fn a_network_with_a_node_on_the_cpu_is_not_encoded() {
    if device().is_none() {
        return;
    }
    let (adapter, app_device, queue) = application_device().unwrap();
    let context = Context::from_wgpu(&adapter, app_device.clone(), queue).unwrap();
    let copy = Custom::host(
        "copy",
        |inputs| Ok(inputs.to_vec()),
        |inputs, outputs| {
            outputs[0].copy_from_slice(inputs[0]);
            Ok(())
        },
    );
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 2, 3, 4)).unwrap();
    let y = graph.custom("by hand", &copy, &[x]).unwrap();
    graph.output(y[0]).unwrap();
    let mut session = Session::new(&context, &graph, SessionOptions::default()).unwrap();
    let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let [from, to] = [0, 1].map(|_| {
        let descriptor = wgpu::BufferDescriptor { label: None, size: 96, usage, mapped_at_creation: false };
        app_device.create_buffer(&descriptor)
    });
    let mut encoder = app_device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let output = session.outputs()[0].name.clone();
    let refused = session.encode(&mut encoder, &[("x", &from)], &[(&output, &to)]);
    let error = refused.expect_err("nothing waits for an encoder").to_string();
    assert!(error.contains("the CPU computes \"by hand\""), "{error}");
}

/// A view does not say of which level it is, and a framing is of the texture's size: what lies beyond the level is its
/// edge, and nothing else is read.
#[test]
fn a_view_of_a_smaller_level_is_read_within_it() {
    if device().is_none() {
        return;
    }
    let (adapter, app_device, queue) = application_device().unwrap();
    let context = Context::from_wgpu(&adapter, app_device.clone(), queue.clone()).unwrap();
    let extent = |side| wgpu::Extent3d { width: side, height: side, depth_or_array_layers: 1 };
    let texture = app_device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: extent(8),
        mip_level_count: 2,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    });
    for (mip_level, side, value) in [(0, 8, 0), (1, 4, 255)] {
        let place = wgpu::TexelCopyTextureInfo { mip_level, ..texture.as_image_copy() };
        let rows =
            wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * side), rows_per_image: None };
        queue.write_texture(place, &vec![value; (4 * side * side) as usize], rows, extent(side));
    }
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 8, 8, 4)).unwrap();
    let y = graph.elementwise("y", Function::Maximum, &[x.into(), x.into()]).unwrap();
    graph.output(y).unwrap();
    let mut session = Session::new(&context, &graph, SessionOptions::default()).unwrap();
    let view = wgpu::TextureViewDescriptor { base_mip_level: 1, ..Default::default() };
    let pictures = [(&texture.create_view(&view), Framing::new([8, 8], [8, 8]).unwrap())];
    let pictures = Pictures::new(&pictures, Colours::default());
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let descriptor = wgpu::BufferDescriptor { label: None, size: 1024, usage, mapped_at_creation: false };
    let seen = app_device.create_buffer(&descriptor);
    let mut encoder = app_device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    session.encode(&mut encoder, &[("x", pictures)], &[("y", &seen)]).unwrap();
    queue.submit([encoder.finish()]);
    seen.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    app_device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    assert_eq!(floats(&seen.get_mapped_range(..).unwrap()), [1.0; 256]);
}

#[test]
fn a_device_without_features_does_without() {
    if device().is_none() {
        return;
    }
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter =
        pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    let (app_device, queue) =
        pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    let device = WgpuDevice::from_wgpu(&adapter, app_device, queue).unwrap();
    assert!(!device.info().timestamps && !device.info().limits.native_half);
    run_saxpy(&device);
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &[0.0; 64]);
    let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
    assert!(matches!(device.time(&recording), Err(Error::Unsupported { .. })));
    assert!(matches!(device.alloc(64, Memory::HostVisible), Err(Error::Unsupported { .. })));
    // wgpu's own refusal: the text is valid, the device cannot run it.
    let mut half = increment();
    half.text = format!("enable f16;\n{INCREMENT}");
    match device.compile(&half) {
        Err(Error::Compile { api, log, source_text, .. }) => {
            assert_eq!(api, device.info().api);
            assert!(log.contains("f16"), "{log}");
            assert!(source_text.contains("   1 | enable f16;"), "{source_text}");
        }
        other => panic!("{other:?}"),
    }
    run_saxpy(&device);
}

#[test]
fn no_adapter_of_that_name_lists_those_seen() {
    let Some(device) = device() else { return };
    match WgpuDevice::open(Some("no such adapter")) {
        Err(Error::NoDevice { tried, .. }) => {
            assert!(tried.iter().any(|line| line.contains(&device.info().name)), "{tried:?}");
        }
        other => panic!("{other:?}"),
    }
    let name = device.info().name.to_uppercase();
    assert_eq!(WgpuDevice::open(Some(&name)).unwrap().info().name, device.info().name);
}

#[test]
fn halves_packed_in_pairs_and_native_halves_agree() {
    let Some(device) = device() else { return };
    // dst = 2 * dst on four halves per element.
    let packed = "
@group(0) @binding(0) var<storage, read_write> dst: array<vec2<u32>>;
@compute @workgroup_size(16)
fn increment(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&dst)) { return; }
    let v = vec4<f32>(unpack2x16float(dst[id.x].x), unpack2x16float(dst[id.x].y)) * 2.0;
    dst[id.x] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}
";
    let native = "
enable f16;
@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f16>>;
@compute @workgroup_size(16)
fn increment(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&dst)) { return; }
    dst[id.x] = dst[id.x] * 2.0h;
}
";
    for text in [packed, native] {
        if text == native && !device.info().limits.native_half {
            println!("skipped: no native halves");
            continue;
        }
        let mut source = increment();
        source.text = text.to_owned();
        source.interface.bindings[0].element = Element::Vec4(DType::F16);
        let pipeline = device.compile(&source).unwrap();
        let halves: Vec<half::f16> = (0..64).map(|i| half::f16::from_f32(i as f32 / 8.0)).collect();
        let buffer = device.alloc(128, Memory::Device).unwrap();
        let input = bytemuck::cast_slice(&halves);
        let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
        let whole = buffer.whole();
        let outputs = device.run(&[(&whole, input)], &recording, &[&whole]).unwrap();
        let found: Vec<half::f16> = bytemuck::pod_collect_to_vec(&outputs[0]);
        for (i, value) in found.iter().enumerate() {
            assert_eq!(value.to_f32(), i as f32 / 4.0, "element {i}");
        }
    }
}

#[test]
fn a_lost_device_gives_errors() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &[0.0; 64]);
    let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
    device.submit(&recording).unwrap();
    device.wgpu_device().destroy();
    // As in WebGPU, what needs no answer of a lost device may be silent; what does says so.
    let _ = device.submit(&recording);
    let _ = device.alloc(64, Memory::Device);
    let _ = device.compile(&saxpy());
    let _ = device.record(&[increment_dispatch(&pipeline, &buffer)]);
    for _ in 0..2 {
        assert!(device.wait().is_err());
        assert!(device.run(&[], &recording, &[&buffer.whole()]).is_err());
        assert!(device.read(&buffer.whole()).is_err());
        let whole = buffer.whole();
        assert!(pollster::block_on(device.run_async(&[], &recording, &[&whole])).is_err());
        assert!(!device.info().timestamps || device.time(&recording).is_err());
    }
}

/// Not a test by itself: what `processes_that_awaited_a_run_exit_cleanly` runs.
#[test]
fn child_awaits_a_run_and_exits() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for _ in 0..4 {
        let device = device().unwrap();
        let pipeline = device.compile(&increment()).unwrap();
        let buffer = upload(&device, &vec![0.0; 1 << 16]);
        let whole = buffer.whole();
        let recording = device.record(&vec![increment_dispatch(&pipeline, &buffer); 20]).unwrap();
        let read = pollster::block_on(device.run_async(&[], &recording, &[&whole])).unwrap();
        assert_eq!(floats(&read[0])[0], 20.0);
        drop((recording, whole, buffer, pipeline, device));
        assert_eq!(waiting_threads(), 0, "a thread outlived its device");
    }
    println!("awaited");
    std::process::exit(0);
}

/// Threads of this process that wait for a device, where the system reports them.
fn waiting_threads() -> usize {
    let names = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    names
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.starts_with("diptych"))
        .count()
}

/// A driver that is unloaded while a thread is inside it takes the process with it, most often where
/// its cache of shaders is empty and the machine is busy. `DIPTYCH_EXIT_RUNS` sets the number of
/// processes.
#[test]
fn processes_that_awaited_a_run_exit_cleanly() {
    if device().is_none() {
        return;
    }
    let runs = std::env::var("DIPTYCH_EXIT_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(24);
    let left = std::sync::atomic::AtomicUsize::new(runs);
    let run_some = || {
        while left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            let caches = tempfile::tempdir().unwrap();
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child_awaits_a_run_and_exits", "--nocapture"])
                .env(CHILD, "1")
                .env("MESA_SHADER_CACHE_DIR", caches.path())
                .env("DIPTYCH_CACHE_DIR", caches.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("awaited"), "{}: {output:?}", output.status);
        }
    };
    std::thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(run_some))));
}

/// A driver that leaves something behind in a thread must not be unloaded before the thread ends.
#[test]
fn threads_end_after_the_devices_that_they_used() {
    if device().is_none() {
        return;
    }
    for _ in 0..4 {
        let all_closed = std::sync::Barrier::new(4);
        let use_a_device = || {
            let device = device().unwrap();
            let pipeline = device.compile(&increment()).unwrap();
            let buffer = upload(&device, &[0.0; 64]);
            let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
            device.submit(&recording).unwrap();
            assert_eq!(floats(&device.read(&buffer.whole()).unwrap()), [1.0; 64]);
            drop((recording, buffer, pipeline, device));
            all_closed.wait();
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(use_a_device))));
    }
}

#[test]
fn a_run_after_an_awaited_one_was_dropped_is_right() {
    let Some(device) = device() else { return };
    let pipeline = device.compile(&increment()).unwrap();
    let buffer = upload(&device, &vec![0.0; 1 << 16]);
    let whole = buffer.whole();
    let recording = device.record(&[increment_dispatch(&pipeline, &buffer)]).unwrap();
    let reads = [&whole];
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for round in 0..50 {
        {
            let mut future = std::pin::pin!(device.run_async(&[], &recording, &reads));
            let _ = std::future::Future::poll(future.as_mut(), &mut context);
        }
        let outputs = device.run(&[], &recording, &[&whole]).unwrap();
        assert_eq!(floats(&outputs[0]), vec![2.0 * (round + 1) as f32; 1 << 16]);
    }
}
