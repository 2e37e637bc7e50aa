//! What an application can do to the process without `unsafe`: nothing.
#![forbid(unsafe_code)]

use crate::machine::gpus;
use diptych::{
    Custom, DType, Dialect, Gemm, Graph, Memory, Pointwise, Precision, Session, SessionOptions, Shape,
};
use diptych_device::device::{Buffer, Device, Dispatch, Resource};
use diptych_emit::emit::{
    Access, Binding, Element, Interface, KernelSource, Least, Operand, Param, ParamType, Scalar,
};
use diptych_kernels::ops::gemm::GemmOp;
use diptych_kernels::ops::pointwise::PointwiseOp;
use diptych_kernels::ops::{Choice, Op};

/// A kernel that reads and writes wherever `at` says: in its operands, in work-group memory and in an
/// array of its own.
const STRAY: &str = "
struct Params { at: u32 }
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> shared_by_group: array<f32, 16>;
@compute @workgroup_size(16)
fn stray(@builtin(global_invocation_id) id: vec3<u32>) {
    var own: array<f32, 4>;
    own[params.at + id.x] = 7.0;
    shared_by_group[params.at + id.x] = 7.0;
    workgroupBarrier();
    let found = src[params.at + id.x] + own[3u * params.at] + shared_by_group[2u * params.at + id.x];
    dst[params.at + id.x] = found + 7.0;
    dst[params.at * 4u] = found;
}
";

fn kernel(dialect: Dialect, text: &str) -> KernelSource {
    let binding = |operand, access| Binding::new(operand, Element::Scalar(DType::F32), access);
    KernelSource {
        label: "stray".to_owned(),
        entry: "stray".to_owned(),
        dialect,
        text: text.to_owned(),
        interface: Interface {
            bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::ReadWrite)],
            params: vec![Param { name: "at", ty: ParamType::U32 }],
        },
        work_group: [16, 1, 1],
    }
}

fn filled(device: &dyn Device, value: f32) -> Buffer {
    let buffer = device.alloc(4 * 64, Memory::Device).expect("a buffer");
    device.write(&buffer.whole(), bytemuck::cast_slice(&[value; 64])).expect("a write");
    buffer
}

fn floats(device: &dyn Device, buffer: &Buffer) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(&device.read(&buffer.whole()).expect("a read"))
}

#[test]
fn an_index_out_of_bounds_is_harmless() {
    for context in gpus() {
        let device = context.device().expect("a GPU");
        let pipeline = device.compile(&kernel(Dialect::Wgsl, STRAY));
        let pipeline = pipeline.unwrap_or_else(|error| panic!("{}: {error}", context.info()));
        let before = filled(device, 1.0);
        let (src, dst) = (filled(device, 2.0), filled(device, 3.0));
        let after = filled(device, 4.0);
        for at in [0u32, 15, 63, 64, 1 << 10, 1 << 20, 1 << 28, u32::MAX / 4, u32::MAX - 20] {
            let dispatch = Dispatch {
                pipeline: pipeline.clone(),
                resources: vec![(&src).into(), (&dst).into()],
                params: vec![Scalar::U32(at)],
                groups: [64, 1, 1],
            };
            device.submit(&device.record(&[dispatch]).expect("a recording")).expect("submitted");
            device.wait().expect("the device goes on");
        }
        assert_eq!(floats(device, &before), [1.0; 64], "{}", context.info());
        assert_eq!(floats(device, &src), [2.0; 64], "{}", context.info());
        assert_eq!(floats(device, &after), [4.0; 64], "{}", context.info());
        // What lies beyond an array is not read: only what the kernel and this test have written.
        let sums = [3.0, 2.0, 7.0, 9.0, 14.0, 16.0, 21.0, 23.0];
        let found = floats(device, &dst);
        assert!(found.iter().all(|value| sums.contains(value)), "{}: {found:?}", context.info());
        assert!(found.iter().any(|&value| value != 3.0), "{}: nothing ran", context.info());
    }
}

#[test]
fn a_kernel_that_needs_too_much_memory_is_refused() {
    for (from, to) in [
        ("var own: array<f32, 4>", "var own: array<f32, 4000000>"),
        ("array<f32, 16>", "array<f32, 400000000>"),
    ] {
        assert!(STRAY.contains(from), "{from}");
        let source = kernel(Dialect::Wgsl, &STRAY.replace(from, to));
        for context in gpus() {
            let device = context.device().expect("a GPU");
            let error = device.compile(&source).expect_err("too much memory").to_string();
            assert!(error.contains("bytes, wanted at most"), "{}: {error}", context.info());
        }
    }
}

#[test]
fn work_group_memory_that_was_not_written_is_zero() {
    // What another kernel has left there is not this one's to see.
    let text = "
struct Params { at: u32 }
@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> staged: array<f32, 1024>;
@compute @workgroup_size(16)
fn stray(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    if (params.at > 0u) {
        for (var i: u32 = lid; i < 1024u; i += 16u) { staged[i] = src[i % 64u]; }
    }
    workgroupBarrier();
    var sum: f32 = 0.0;
    for (var i: u32 = 0u; i < 1024u; i += 1u) { sum += abs(staged[i]); }
    dst[id.x % 64u] = sum;
}
";
    for context in gpus() {
        let device = context.device().expect("a GPU");
        let pipeline = device.compile(&kernel(Dialect::Wgsl, text));
        let pipeline = pipeline.unwrap_or_else(|error| panic!("{}: {error}", context.info()));
        let (src, dst) = (filled(device, 2.0), filled(device, 3.0));
        for (at, wanted) in [(1, 2048.0), (0, 0.0)] {
            let dispatch = Dispatch {
                pipeline: pipeline.clone(),
                resources: vec![(&src).into(), (&dst).into()],
                params: vec![Scalar::U32(at)],
                groups: [4, 1, 1],
            };
            device.submit(&device.record(&[dispatch]).expect("a recording")).expect("submitted");
            assert_eq!(floats(device, &dst), [wanted; 64], "{}", context.info());
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused_with_their_sizes() {
    for context in gpus() {
        let device = context.device().expect("a GPU");
        let pipeline = device.compile(&kernel(Dialect::Wgsl, STRAY)).expect("WGSL");
        let (src, dst) = (filled(device, 2.0), filled(device, 3.0));
        let refused = |resources: Vec<Resource>| {
            let dispatch = Dispatch {
                pipeline: pipeline.clone(),
                resources,
                params: vec![Scalar::U32(0)],
                groups: [1; 3],
            };
            device.record(&[dispatch]).expect_err("it does not fit").to_string()
        };
        let tiny = refused(vec![src.slice(0, 2).expect("two bytes").into(), (&dst).into()]);
        assert!(tiny.contains("src has 2 bytes, one element has 4"), "{}: {tiny}", context.info());
        let aliased = refused(vec![(&dst).into(), (&dst).into()]);
        assert!(aliased.contains("src and dst"), "{}: {aliased}", context.info());
        let missing = refused(vec![(&src).into()]);
        assert!(missing.contains("1 resources"), "{}: {missing}", context.info());
    }
}

#[test]
fn a_kernel_of_the_crate_refuses_operands_too_small_for_its_parameters() {
    let product = GemmOp::new(9, 7, 5, 2, &Gemm::default(), true, false, Precision::F32).expect("extents");
    let (x, w) = (Shape::nhwc(1, 6, 5, 7), Shape::nhwc(3, 1, 1, 7));
    let pointwise = PointwiseOp::new(x, w, &Pointwise::default(), true, false, Precision::F32);
    let ops: [(Box<dyn Op>, Choice); 2] = [
        (Box::new(product), Choice::new("micro", [1, 4, 1], [4, 4, 1])),
        (Box::new(pointwise.expect("shapes")), Choice::new("direct", [1, 1, 1], [4, 4, 1])),
    ];
    for context in gpus() {
        let device = context.device().expect("a GPU");
        for (op, choice) in &ops {
            let launch = op.plan(choice, &device.info().limits).expect("a plan");
            let source = launch.spec.render(Dialect::Wgsl).expect("WGSL");
            let pipeline = device.compile(&source).expect("a kernel");
            let bindings = &pipeline.interface().bindings;
            let record = |short: Option<usize>| {
                let resources = bindings.iter().enumerate().map(|(index, binding)| {
                    let Least::Bytes(least) = binding.least else { panic!("{binding:?}") };
                    let bytes = if short == Some(index) { least - 4 } else { least };
                    let buffer = device.alloc(least, Memory::Device).expect("a buffer");
                    Resource::from(buffer.slice(0, bytes).expect("its beginning"))
                });
                let (resources, params) = (resources.collect(), launch.params.clone());
                device.record(&[Dispatch {
                    pipeline: pipeline.clone(),
                    resources,
                    params,
                    groups: launch.groups(),
                }])
            };
            device.submit(&record(None).expect("what it reaches")).expect("submitted");
            device.wait().expect("run");
            for (index, binding) in bindings.iter().enumerate() {
                let error = record(Some(index)).expect_err("too small").to_string();
                let name = binding.operand.name();
                assert!(error.contains(name) && error.contains("the kernel reaches"), "{error}");
            }
        }
    }
}

#[test]
fn a_kernel_that_is_not_its_interface_is_refused() {
    // What a device knows of a kernel decides what it passes on.
    let changes: [(&str, &str, &str); 5] = [
        ("src: array<f32>", "src: array<vec4<f32>>", "src"),
        ("struct Params { at: u32 }", "struct Params { at: u32, more: u32 }", "params"),
        ("struct Params { at: u32 }", "struct Params { at: i32 }", "at"),
        ("var<storage, read_write> dst", "var<storage, read> dst", "dst"),
        ("@workgroup_size(16)", "@workgroup_size(32)", "32"),
    ];
    for context in gpus() {
        let device = context.device().expect("a GPU");
        for (from, to, named) in changes {
            assert!(STRAY.contains(from), "{from}");
            let text = STRAY.replace(from, to);
            let error = device.compile(&kernel(Dialect::Wgsl, &text)).expect_err(to).to_string();
            assert!(error.contains(named), "{}: {to}: {error}", context.info());
        }
    }
}

#[test]
fn text_that_cannot_be_checked_is_refused() {
    let text = "__kernel void stray(__global const float* src, __global float* dst, const uint at) {
        dst[at] = src[at];
    }";
    for context in gpus() {
        let device = context.device().expect("a GPU");
        let error = device.compile(&kernel(Dialect::OpenClC, text)).expect_err("it has pointers").to_string();
        assert!(error.contains("stray") && error.contains("OpenCL C"), "{}: {error}", context.info());
    }
}

#[test]
fn a_buffer_begins_as_zeros() {
    for context in gpus() {
        let device = context.device().expect("a GPU");
        for round in 0..4 {
            let bytes = 1 << 20;
            let buffer = device.alloc(bytes, Memory::Device).expect("a buffer");
            let found = device.read(&buffer.whole()).expect("a read");
            assert!(found.iter().all(|&byte| byte == 0), "{} round {round}", context.info());
            // For the next round to find, if its buffer lies where this one lay.
            device.write(&buffer.whole(), &vec![0xa5; bytes as usize]).expect("a write");
            device.wait().expect("written");
        }
    }
}

/// A shader with so many operators, brackets or blocks within one another.
fn nested(kind: &str, count: usize) -> String {
    let all = |part: &str| part.repeat(count);
    let body = match kind {
        "!" => format!("y[i] = select(0.0, 1.0, {}true);", all("!")),
        "-" => format!("y[i] = {}x[i];", all("- ")),
        "+" => format!("y[i] = 0.0{};", all("+x[i]")),
        "||" => format!("y[i] = select(0.0, 1.0, true{});", all("||(x[i]>0.0)")),
        "else if" => {
            let more = (1..count).map(|k| format!(" else if i == {k}u {{ y[i] = {k}.0; }}"));
            format!("if i == 0u {{ y[i] = 0.0; }}{}", more.collect::<String>())
        }
        "[0]" => format!("var a = mat2x2<f32>(); y[i] = a{}.x;", all("[0]")),
        "^" => format!("y[i] = f32(i{});", all("^i")),
        "*&" => format!("var a = 1.0; y[i] = {}a;", all("*&")),
        "(" => format!("y[i] = {}x[i]{};", all("("), all(")")),
        "{" => format!("{} y[i] = 1.0; {}", all("{"), all("}")),
        "f(" => format!("y[i] = {}x[i]{};", all("sqrt("), all(")")),
        "array<" => format!("var a: {}f32{}; y[i] = 1.0;", all("array<"), all(",1>")),
        "let" => {
            let more = (1..count).map(|k| format!("let v{k} = v{} + 1.0;", k - 1)).collect::<String>();
            format!("let v0 = x[i];{more}y[i] = v{};", count - 1)
        }
        other => panic!("{other}"),
    };
    format!(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    )
}

const KINDS: [&str; 13] = ["!", "-", "+", "||", "else if", "[0]", "^", "*&", "(", "{", "f(", "array<", "let"];

#[test]
fn no_text_is_too_deep_for_the_stack() {
    for kind in KINDS {
        for count in [2_000, 20_000] {
            match Custom::new("deep", &nested(kind, count)) {
                // Statements side by side are not deep, however many there are.
                Ok(_) => assert_eq!(kind, "let"),
                Err(error) => assert_ne!(kind, "let", "{error}"),
            }
        }
    }
    for depth in [100, 3000] {
        let chain: String = (0..depth).map(|k| format!("const c{k} = c{};", k + 1)).collect();
        let calls: String =
            (0..depth).map(|k| format!("fn call{k}() -> f32 {{ return call{}(); }}", k + 1)).collect();
        let text = nested("let", 1);
        for more in [
            format!("{chain} const c{depth} = 1.0;"),
            format!("{calls} fn call{depth}() -> f32 {{ return 1.0; }}"),
        ] {
            Custom::new("declared", &format!("{more}{text}")).expect("any order");
        }
    }
}

#[test]
fn what_is_as_deep_as_may_be_is_compiled_or_refused() {
    // A thread as the standard library makes them.
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let run = || {
        for (kind, count) in
            [("!", 1000), ("-", 1000), ("+", 1000), ("||", 200), ("else if", 120), ("*&", 500), ("(", 60)]
        {
            let kernel =
                Custom::new("deep", &nested(kind, count)).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let mut graph = Graph::new();
            let x = graph.input("x", Shape::nhwc(1, 4, 4, 4)).expect("an input");
            let y = graph.custom("deep", &kernel, &[x]).expect("a node");
            graph.output(y[0]).expect("an output");
            for context in crate::machine::gpus() {
                let start = std::time::Instant::now();
                let made = Session::new(&context, &graph, SessionOptions::default());
                let said = made.map_or_else(
                    |error| error.to_string().chars().take(300).collect(),
                    |_| "a session".to_owned(),
                );
                println!("{kind} {count} on {}: {said} in {:?}", context.info().backend, start.elapsed());
            }
        }
    };
    small.spawn(run).expect("a thread").join().expect("no panic");
}
