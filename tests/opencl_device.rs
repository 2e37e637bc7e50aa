//! The OpenCL device, with kernels written by hand: compile, record, run, time, map, and refusals.
//!
//! Without an OpenCL library or device each test prints that it skips; with
//! `DIPTYCH_REQUIRE_DEVICES=1` it fails instead.

#![cfg(feature = "opencl")]

use diptych::{DType, Error};
use diptych_device::device::opencl::{OpenClDevice, opencl3};
use diptych_device::device::{Buffer, Device, Dispatch, Memory, Pipeline, Resource};
use diptych_emit::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};

fn device() -> Option<OpenClDevice> {
    match OpenClDevice::open(None) {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// A device whose driver takes more than one thread.
fn device_for_threads() -> Option<OpenClDevice> {
    let device = device()?;
    if device.info().name.contains("Oclgrind") {
        println!("skipped: Oclgrind runs its commands in the threads that wait, one at a time only");
        return None;
    }
    Some(device)
}

const READ: Binding = Binding::new(Operand::Src, Element::Scalar(DType::F32), Access::Read);
const UPDATE: Binding = Binding::new(Operand::Dst, Element::Scalar(DType::F32), Access::ReadWrite);
const COUNT: Param = Param { name: "count", ty: ParamType::U32 };
const FACTOR: Param = Param { name: "factor", ty: ParamType::F32 };

const SAXPY: &str = "
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void saxpy(__global const float* src, __global float* dst, const uint count, const float factor) {
    uint i = get_global_id(0);
    if (i < count) dst[i] = fma(factor, src[i], dst[i]);
}";

fn saxpy() -> KernelSource {
    KernelSource {
        label: "saxpy_by_hand".into(),
        entry: "saxpy".into(),
        dialect: Dialect::OpenClC,
        text: SAXPY.into(),
        interface: Interface { bindings: vec![READ, UPDATE], params: vec![COUNT, FACTOR] },
        work_group: [16, 1, 1],
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
}

fn upload(device: &OpenClDevice, values: &[f32]) -> Buffer {
    let buffer = device.alloc(4 * values.len() as u64, Memory::Device).unwrap();
    device.write(&buffer.whole(), &bytes(values)).unwrap();
    buffer
}

fn saxpy_dispatch(pipeline: &Pipeline, src: Resource, dst: Resource, count: u32, factor: f32) -> Dispatch {
    Dispatch {
        pipeline: pipeline.clone(),
        resources: vec![src, dst],
        params: vec![Scalar::U32(count), Scalar::F32(factor)],
        groups: [count.div_ceil(16), 1, 1],
    }
}

/// Compiles a kernel of this file.
fn compile(device: &OpenClDevice, source: &KernelSource) -> diptych::Result<Pipeline> {
    // SAFETY: the kernels of this file compare their index with the count of elements, which the buffers
    // that they are dispatched with have, or stay within images, whose coordinates are clamped.
    unsafe { device.compile_unchecked(source) }
}

/// Two buffers of `count` values, `i` and 1, and the dispatch that adds `2 i` to the second.
fn saxpy_problem(device: &OpenClDevice, count: usize) -> (Buffer, Buffer, Dispatch) {
    let pipeline = compile(device, &saxpy()).unwrap();
    let src = upload(device, &(0..count).map(|i| i as f32).collect::<Vec<_>>());
    let dst = upload(device, &vec![1.0; count]);
    let dispatch = saxpy_dispatch(&pipeline, (&src).into(), (&dst).into(), count as u32, 2.0);
    (src, dst, dispatch)
}

#[test]
fn a_device_says_what_it_is() {
    let Some(device) = device() else { return };
    let info = device.info();
    assert_eq!(info.api, "OpenCL");
    assert!(!info.name.is_empty() && !info.driver.is_empty() && info.timestamps);
    assert_eq!(info.limits.dialect, Dialect::OpenClC);
    assert!(info.limits.max_invocations > 0 && info.limits.local_memory > 0 && info.limits.max_binding > 0);
    assert!(info.limits.binding_alignment.is_power_of_two());
    let all = OpenClDevice::list().unwrap();
    println!("{} of {all:#?}", OpenClDevice::library().unwrap());
    assert!(all.contains(info));
    let upper = info.name.to_uppercase();
    assert_eq!(OpenClDevice::open(Some(&upper)).unwrap().info().name, info.name);
    match OpenClDevice::open(Some("no such device")) {
        Err(Error::NoDevice { tried, .. }) => assert!(tried[0].contains(&all[0].name), "{tried:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn saxpy_runs() {
    let Some(device) = device() else { return };
    let count = 1000;
    let (src, dst, dispatch) = saxpy_problem(&device, count);
    let recording = device.record(&[dispatch]).unwrap();
    assert_eq!(recording.labels(), ["saxpy_by_hand"]);
    device.submit(&recording).unwrap();
    device.wait().unwrap();
    let wanted: Vec<f32> = (0..count).map(|i| 1.0 + 2.0 * i as f32).collect();
    assert_eq!(floats(&device.read(&dst.whole()).unwrap())[..count], wanted);

    // The same recording again, with new inputs, in one call.
    let ones = bytes(&vec![1.0; count]);
    let zeros = bytes(&vec![0.0; count]);
    let outputs = device
        .run(
            &[(&src.whole(), &ones), (&dst.whole(), &zeros)],
            &recording,
            &[&dst.whole(), &src.slice(8, 4).unwrap()],
        )
        .unwrap();
    assert_eq!(floats(&outputs[0])[..count], vec![2.0; count]);
    assert_eq!(floats(&outputs[1]), [1.0]);
    // Without reads or writes it waits all the same.
    assert!(device.run(&[], &recording, &[]).unwrap().is_empty());
    assert_eq!(floats(&device.read(&dst.whole()).unwrap())[0], 4.0);
}

#[test]
fn each_of_a_hundred_dispatches_sees_the_one_before_and_is_timed() {
    let Some(device) = device() else { return };
    let pipeline = compile(&device, &saxpy()).unwrap();
    let (a, b) = (upload(&device, &[1.0; 64]), upload(&device, &[0.0; 64]));
    // Alternately b += a and a += b: the Fibonacci numbers, modulo float rounding.
    let dispatches: Vec<Dispatch> = (0..100)
        .map(|step| match step % 2 {
            0 => saxpy_dispatch(&pipeline, (&a).into(), (&b).into(), 64, 1.0),
            _ => saxpy_dispatch(&pipeline, (&b).into(), (&a).into(), 64, 1.0),
        })
        .collect();
    let (mut x, mut y) = (1.0f32, 0.0f32);
    for _ in 0..50 {
        y += x;
        x += y;
    }
    let recording = device.record(&dispatches).unwrap();
    device.submit(&recording).unwrap();
    assert_eq!(floats(&device.read(&a.whole()).unwrap()), [x; 64]);
    assert_eq!(floats(&device.read(&b.whole()).unwrap()), [y; 64]);

    let times = device.time(&recording).unwrap();
    assert_eq!(times.len(), 100);
    assert!(times.iter().all(|time| time.as_secs() < 10), "{times:?}");
    // Timing runs the kernels like any submission, in order with the rest.
    assert_ne!(floats(&device.read(&a.whole()).unwrap()), [x; 64]);
}

#[test]
fn images_are_written_and_read() {
    let Some(device) = device() else { return };
    if device.info().limits.max_image.is_none() {
        println!("skipped: {} has no images", device.info());
        return;
    }
    let image = |operand, access| Binding::new(operand, Element::Image2d(DType::F32), access);
    let vec4 = |operand, access| Binding::new(operand, Element::Vec4(DType::F32), access);
    let size =
        vec![Param { name: "width", ty: ParamType::I32 }, Param { name: "height", ty: ParamType::I32 }];
    let kernel = |entry: &str, bindings, text: &str| KernelSource {
        label: entry.into(),
        entry: entry.into(),
        dialect: Dialect::OpenClC,
        text: text.into(),
        interface: Interface { bindings, params: size.clone() },
        work_group: [4, 4, 1],
    };
    let store = kernel(
        "store",
        vec![vec4(Operand::Src, Access::Read), image(Operand::Dst, Access::Write)],
        "__kernel __attribute__((reqd_work_group_size(4, 4, 1))) void store(
            __global const float4* src, __write_only image2d_t dst, const int width, const int height) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < width && y < height) write_imagef(dst, (int2)(x, y), src[x + width * y]);
        }",
    );
    let load = kernel(
        "load",
        vec![image(Operand::Src, Access::Read), vec4(Operand::Dst, Access::Write)],
        "__constant sampler_t NEAREST =
            CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
        __kernel void load(
            __read_only image2d_t src, __global float4* dst, const int width, const int height) {
            int x = get_global_id(0), y = get_global_id(1);
            if (x < width && y < height)
                dst[x + width * y] = 2.0f * read_imagef(src, NEAREST, (int2)(x, y));
        }",
    );
    let (width, height) = (7usize, 5usize);
    for dtype in [DType::F32, DType::F16] {
        // Small integers: exact in both types.
        let values: Vec<f32> = (0..4 * width * height).map(|i| i as f32).collect();
        let src = upload(&device, &values);
        let dst = device.alloc(src.bytes(), Memory::Device).unwrap();
        let image = device.alloc_image(width, height, dtype).unwrap();
        assert_eq!(image.extent(), [width, height]);
        let dispatch = |source, resources| Dispatch {
            pipeline: compile(&device, source).unwrap(),
            resources,
            params: vec![Scalar::I32(width as i32), Scalar::I32(height as i32)],
            groups: [2, 2, 1],
        };
        let recording = device
            .record(&[
                dispatch(&store, vec![(&src).into(), (&image).into()]),
                dispatch(&load, vec![(&image).into(), (&dst).into()]),
            ])
            .unwrap();
        device.submit(&recording).unwrap();
        let wanted: Vec<f32> = values.iter().map(|value| 2.0 * value).collect();
        assert_eq!(floats(&device.read(&dst.whole()).unwrap()), wanted, "{dtype}");
    }
    assert!(device.alloc_image(0, 4, DType::F32).is_err());
    assert!(device.alloc_image(1 << 30, 4, DType::F32).is_err());
}

#[test]
fn a_compile_error_carries_the_log_and_the_numbered_source() {
    let Some(device) = device() else { return };
    let mut source = saxpy();
    source.text = source.text.replace("dst[i] = fma", "dst[i] = no_such_function");
    match compile(&device, &source) {
        Err(error @ Error::Compile { .. }) => {
            let text = error.to_string();
            println!("{text}");
            for part in ["saxpy_by_hand", "CL_BUILD_PROGRAM_FAILURE", "   5 |     if (i < count)"] {
                assert!(text.contains(part), "{part:?} in {text}");
            }
            assert!(text.matches("no_such_function").count() >= 2, "log and source: {text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kernel_that_is_not_its_interface_is_refused() {
    let Some(device) = device() else { return };
    let replaced = |from: &str, to: &str| {
        let mut source = saxpy();
        assert!(source.text.contains(from), "{from}");
        source.text = source.text.replace(from, to);
        source
    };
    let swapped = {
        let mut source = saxpy();
        source.interface.params.reverse();
        source
    };
    let missing = {
        let mut source = saxpy();
        source.interface.params.pop();
        source
    };
    let mut four_vectors = replaced("float* src", "float4* src");
    four_vectors.text = four_vectors.text.replace("src[i]", "src[i].x");
    let mut written_const = replaced("__global float* dst", "__global const float* dst");
    written_const.text = written_const.text.replace("dst[i] = fma(factor, src[i], dst[i])", "(void)dst[i]");
    let other_entry = KernelSource { entry: "sgemm".into(), ..saxpy() };
    let with_nul = KernelSource { entry: "sax\0py".into(), ..saxpy() };
    let too_large = KernelSource { work_group: [1 << 20, 1, 1], ..saxpy() };
    let other_group = KernelSource { work_group: [8, 1, 1], ..saxpy() };
    let empty_group = KernelSource { work_group: [0, 1, 1], ..saxpy() };
    let rows = [
        ("name", replaced("src", "weights"), "weights"),
        ("parameters swapped", swapped, "count"),
        ("one argument too many", missing, "4 arguments"),
        ("four-vectors", four_vectors, "float4*"),
        ("parameter type", replaced("const uint count", "const int count"), "type int"),
        ("const missing", replaced("const float* src", "float* src"), "without const"),
        ("const where it is written", written_const, "to const"),
        ("address space", replaced("__global const float* src", "__constant float* src"), "argument 0"),
        ("entry", other_entry, "sgemm"),
        ("NUL", with_nul, "NUL"),
        ("work-group too large", too_large, "1048576"),
        ("required work-group", other_group, "16"),
        ("empty work-group", empty_group, "[0, 1, 1]"),
    ];
    let mut failures = Vec::new();
    for (case, source, part) in rows {
        match compile(&device, &source) {
            Err(error) if matches!(error, Error::Compile { .. }) || !error.to_string().contains(part) => {
                failures.push(format!("{case}: {error}"));
            }
            Err(error) => println!("{case}: {error}"),
            Ok(_) => failures.push(format!("{case}: accepted")),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn dispatches_that_do_not_fit_are_refused() {
    let Some(device) = device() else { return };
    let (src, dst, dispatch) = saxpy_problem(&device, 64);
    let change = |change: &dyn Fn(&mut Dispatch)| {
        let mut dispatch = dispatch.clone();
        change(&mut dispatch);
        device.record(&[dispatch]).map(drop).unwrap_err().to_string()
    };
    println!("{}", change(&|dispatch| dispatch.groups = [0, 1, 1]));
    println!("{}", change(&|dispatch| drop(dispatch.resources.pop())));
    println!("{}", change(&|dispatch| dispatch.params = vec![Scalar::F32(1.0), Scalar::U32(1)]));
    let odd = change(&|dispatch| dispatch.resources[0] = src.slice(4, 16).unwrap().into());
    assert!(odd.contains("offset 4") && odd.contains("multiple of"), "{odd}");
    let tiny = change(&|dispatch| dispatch.resources[0] = src.slice(0, 2).unwrap().into());
    assert!(tiny.contains("src has 2 bytes, one element has 4"), "{tiny}");
    let aliased = change(&|dispatch| dispatch.resources[0] = (&dst).into());
    assert!(aliased.contains("src and dst overlap in one buffer, and one of them is written"), "{aliased}");

    let other = OpenClDevice::open(None).unwrap();
    assert!(other.record(std::slice::from_ref(&dispatch)).is_err());
    assert!(other.read(&dst.whole()).is_err());
    assert!(other.submit(&device.record(&[dispatch]).unwrap()).is_err());
    assert!(device.write(&src.slice(0, 8).unwrap(), &[0; 12]).is_err());
    device.write(&src.whole(), &[]).unwrap();
}

#[test]
fn sizes_that_cannot_be_had_are_refused() {
    let Some(device) = device() else { return };
    for bytes in [0, u64::MAX, u64::MAX - 3, 1 << 60] {
        let error = device.alloc(bytes, Memory::Device).unwrap_err().to_string();
        assert!(error.contains(&bytes.to_string()), "{error}");
    }
    assert_eq!(device.alloc(17, Memory::Device).unwrap().bytes(), 32);
}

#[test]
fn host_visible_memory_is_mapped() {
    let Some(device) = device() else { return };
    let pipeline = compile(&device, &saxpy()).unwrap();
    let shared = device.alloc(4 * 64, Memory::HostVisible).unwrap();
    let src = upload(&device, &[3.0; 64]);
    device
        .map(&shared, &mut |bytes| {
            bytes.copy_from_slice(bytemuck::cast_slice(&[1.0f32; 64]));
            // It would wait for itself.
            assert!(device.read(&src.whole()).is_err());
            assert!(device.map(&shared, &mut |_| ()).is_err());
        })
        .unwrap();
    let dispatch = saxpy_dispatch(&pipeline, (&src).into(), (&shared).into(), 64, 2.0);
    device.submit(&device.record(&[dispatch]).unwrap()).unwrap();
    let mut seen = Vec::new();
    device.map(&shared, &mut |bytes| seen = floats(bytes)).unwrap();
    assert_eq!(seen, [7.0; 64]);
    assert!(device.map(&src, &mut |_| ()).is_err());

    // A panic inside gives the buffer back all the same.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.map(&shared, &mut |_| panic!("on purpose")).unwrap();
    }));
    assert!(panicked.is_err());
    assert_eq!(floats(&device.read(&shared.whole()).unwrap()), [7.0; 64]);
}

#[test]
fn a_sub_range_is_bound() {
    let Some(device) = device() else { return };
    let step = device.info().limits.binding_alignment.max(64);
    let count = (step / 4) as usize;
    let pipeline = compile(&device, &saxpy()).unwrap();
    let values: Vec<f32> = (0..4 * count).map(|i| i as f32).collect();
    let buffer = upload(&device, &values);
    let part = |index: u64| buffer.slice(index * step, step).unwrap();
    // The second quarter plus the fourth; the last one twice, over the same sub-buffer.
    let add =
        |from, to| saxpy_dispatch(&pipeline, Resource::Buffer(from), Resource::Buffer(to), count as u32, 1.0);
    let recording = device.record(&[add(part(1), part(3)), add(part(0), part(3))]).unwrap();
    device.submit(&recording).unwrap();
    let mut wanted = values.clone();
    for i in 0..count {
        wanted[3 * count + i] += values[count + i] + values[i];
    }
    assert_eq!(floats(&device.read(&buffer.whole()).unwrap()), wanted);
    assert_eq!(floats(&device.read(&buffer.slice(4, 8).unwrap()).unwrap()), [1.0, 2.0]);
    device.write(&buffer.slice(4, 8).unwrap(), &bytes(&[-1.0, -2.0])).unwrap();
    assert_eq!(floats(&device.read(&buffer.slice(0, 16).unwrap()).unwrap()), [0.0, -1.0, -2.0, 3.0]);
}

#[test]
fn two_threads_share_a_device() {
    let Some(device) = device_for_threads() else { return };
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let device = device.clone();
            scope.spawn(move || {
                let (src, dst, dispatch) = saxpy_problem(&device, 256);
                let recording = device.record(&[dispatch.clone(), dispatch]).unwrap();
                for round in 0..50 {
                    let (x, y) = ((round + 100 * thread) as f32, thread as f32);
                    let outputs = device
                        .run(
                            &[
                                (&src.whole(), bytemuck::cast_slice(&[x; 256])),
                                (&dst.whole(), bytemuck::cast_slice(&[y; 256])),
                            ],
                            &recording,
                            &[&dst.whole()],
                        )
                        .unwrap();
                    assert_eq!(floats(&outputs[0]), [y + 4.0 * x; 256]);
                    if round % 10 == 0 {
                        assert_eq!(device.time(&recording).unwrap().len(), 2);
                    }
                }
            });
        }
    });
}

#[test]
fn two_threads_run_the_same_recording_one_after_the_other() {
    let Some(device) = device_for_threads() else { return };
    let (src, dst, dispatch) = saxpy_problem(&device, 256);
    let recording = device.record(&[dispatch]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (device, recording) = (device.clone(), recording.clone());
            let (src, dst) = (src.whole(), dst.whole());
            scope.spawn(move || {
                for round in 0..50 {
                    let x = (round + 100 * thread) as f32;
                    let (xs, zeros) = (bytes(&[x; 256]), bytes(&[0.0; 256]));
                    let outputs = device.run(&[(&src, &xs), (&dst, &zeros)], &recording, &[&dst]).unwrap();
                    assert_eq!(floats(&outputs[0]), [2.0 * x; 256]);
                }
            });
        }
    });
}

#[test]
fn a_run_can_be_awaited() {
    let Some(device) = device() else { return };
    let (src, dst, dispatch) = saxpy_problem(&device, 4096);
    let recording = device.record(&[dispatch]).unwrap();
    let (xs, ys) = (bytes(&[2.0; 4096]), bytes(&[1.0; 4096]));
    let (from, to) = (src.whole(), dst.whole());
    let (writes, reads) = ([(&from, xs.as_slice()), (&to, ys.as_slice())], [&to]);
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..20 {
        let outputs = pollster::block_on(sendable(device.run_async(&writes, &recording, &reads))).unwrap();
        assert_eq!(floats(&outputs[0]), [5.0; 4096]);
        assert!(pollster::block_on(device.run_async(&writes, &recording, &[])).unwrap().is_empty());
        // A future that was polled once and dropped leaves the device usable.
        {
            let mut future = std::pin::pin!(device.run_async(&writes, &recording, &reads));
            let _ = std::future::Future::poll(future.as_mut(), &mut context);
        }
        assert_eq!(floats(&device.run(&writes, &recording, &reads).unwrap()[0]), [5.0; 4096]);
    }
    let several: Vec<_> = (0..3).map(|_| device.run_async(&writes, &recording, &reads)).collect();
    for future in several {
        assert_eq!(floats(&pollster::block_on(future).unwrap()[0]), [5.0; 4096]);
    }
}

#[test]
fn everything_outlives_the_handle_of_the_device() {
    let Some(device) = device() else { return };
    let (_, dst, dispatch) = saxpy_problem(&device, 64);
    let recording = device.record(&[dispatch]).unwrap();
    let clone = device.clone();
    drop(device);
    clone.submit(&recording).unwrap();
    drop(recording);
    drop(clone);
    drop(dst);
}

#[test]
fn an_application_keeps_its_own_queue() {
    use opencl3::command_queue::{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CommandQueue};
    use opencl3::context::Context;
    use opencl3::device::{CL_DEVICE_TYPE_ALL, Device as ClDevice, get_all_devices};
    if device().is_none() {
        return;
    }
    let id = ClDevice::new(get_all_devices(CL_DEVICE_TYPE_ALL).unwrap()[0]);
    let context = Context::from_device(&id).unwrap();
    let queue = CommandQueue::create_default(&context, 0).unwrap();
    {
        let device = OpenClDevice::from_opencl(&context, &id, &queue).unwrap();
        let (_, dst, dispatch) = saxpy_problem(&device, 64);
        let recording = device.record(&[dispatch]).unwrap();
        assert_eq!(device.time(&recording).unwrap().len(), 1);
        assert_eq!(floats(&device.read(&dst.whole()).unwrap())[63], 127.0);
    }
    // Still the application's, and the other way round.
    queue.finish().unwrap();
    let device = OpenClDevice::from_opencl(&context, &id, &queue).unwrap();
    drop((queue, context));
    let (_, dst, dispatch) = saxpy_problem(&device, 64);
    device.submit(&device.record(&[dispatch]).unwrap()).unwrap();
    assert_eq!(floats(&device.read(&dst.whole()).unwrap())[1], 3.0);

    let context = Context::from_device(&id).unwrap();
    let other = Context::from_device(&id).unwrap();
    let foreign = CommandQueue::create_default(&other, 0).unwrap();
    println!("{}", OpenClDevice::from_opencl(&context, &id, &foreign).unwrap_err());
    match CommandQueue::create_default(&context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
        Ok(unordered) => {
            let error = OpenClDevice::from_opencl(&context, &id, &unordered).unwrap_err().to_string();
            assert!(error.contains("in order"), "{error}");
        }
        Err(error) => println!("no out-of-order queue here: {error}"),
    }
}

/// Runs this test binary again with one test and a variable set; returns what it printed.
fn again(test: &str, name: &str, value: &str) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("DIPTYCH_TEST_CHILD", "1")
        .env(name, value)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Not a test by itself: what `again` runs.
#[test]
fn child_opens_a_device() {
    if std::env::var_os("DIPTYCH_TEST_CHILD").is_some() {
        match OpenClDevice::open(None) {
            Ok(device) => println!("opened {} with {}", device.info(), OpenClDevice::library().unwrap()),
            Err(error) => println!("refused: {error}"),
        }
    }
}

#[test]
fn a_missing_library_lists_what_was_tried() {
    let output = again("child_opens_a_device", "DIPTYCH_OPENCL_LIBRARY", "/nonexistent/libOpenCL.so");
    assert!(output.contains("no OpenCL library: tried /nonexistent/libOpenCL.so: "), "{output}");

    // Another name of the usual library reaches the crate that makes the calls.
    if device().is_none() || !cfg!(target_os = "linux") {
        return;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(path) = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.rsplit('/').next().is_some_and(|file| file.starts_with("libOpenCL.so")))
    else {
        return;
    };
    let copy = std::env::temp_dir().join(format!("diptych-opencl-{}.so", std::process::id()));
    std::fs::copy(path, &copy).unwrap();
    let output = again("child_opens_a_device", "DIPTYCH_OPENCL_LIBRARY", copy.to_str().unwrap());
    std::fs::remove_file(&copy).unwrap();
    assert!(output.contains("opened ") && output.contains(copy.to_str().unwrap()), "{output}");
}

#[test]
fn the_variable_chooses_the_device() {
    let Some(device) = device() else { return };
    let output = again("child_opens_a_device", "DIPTYCH_OPENCL_DEVICE", &device.info().name.to_uppercase());
    assert!(output.contains("opened "), "{output}");
    let output = again("child_opens_a_device", "DIPTYCH_OPENCL_DEVICE", "no such device");
    assert!(
        output.contains(
            "no OpenCL device: wanted the best device whose name contains \"no such device\"; found "
        ),
        "{output}"
    );
}
