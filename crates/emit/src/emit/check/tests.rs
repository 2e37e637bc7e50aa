//! A kernel that keeps its contract, and one planted fault at a time.

use super::*;
use crate::emit::{Operand, Param};

const GOOD: &str = "
struct Params { n: u32, bias: f32, shift: i32 }
@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> dst: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;
const TAPS: u32 = 3u;
@compute @workgroup_size(8, 4, 1)
fn kernel(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.n) { return; }
    var sum: array<vec4<f32>, 4>;
    sum[0] = src[id.x] * weights[id.y];
    sum[TAPS] = sum[0] + vec4<f32>(params.bias + f32(params.shift));
    let last = TAPS - 1u;
    sum[last + 1u] += sum[TAPS - 3u];
    dst[id.x] = sum[3];
}
";

fn source(text: &str) -> KernelSource {
    let binding = |operand, element, access| Binding::new(operand, element, access);
    let param = |name, ty| Param { name, ty };
    KernelSource {
        label: "probe_wg8x4x1".to_owned(),
        entry: "kernel".to_owned(),
        dialect: Dialect::Wgsl,
        text: text.to_owned(),
        interface: Interface {
            bindings: vec![
                binding(Operand::Src, Element::Vec4(DType::F32), Access::Read),
                binding(Operand::Weights, Element::Scalar(DType::F32), Access::Read),
                binding(Operand::Dst, Element::Vec4(DType::F32), Access::Write),
            ],
            params: vec![
                param("n", ParamType::U32),
                param("bias", ParamType::F32),
                param("shift", ParamType::I32),
            ],
        },
        work_group: [8, 4, 1],
    }
}

/// The log of the refusal of `source`.
fn log(source: &KernelSource) -> String {
    match check(source) {
        Err(Error::Compile { kernel, api, log, source_text }) => {
            assert_eq!(kernel, source.label);
            assert_eq!(api, "naga");
            assert!(source_text.starts_with("   1 | "), "{source_text}");
            log
        }
        other => panic!("wanted a compile error, found {other:?}"),
    }
}

#[test]
fn a_kernel_that_keeps_its_contract_passes() {
    check(&source(GOOD)).unwrap();
}

#[test]
fn each_planted_fault_is_named() {
    // (what is replaced, by what, what the log must say)
    let faults = [
        ("fn kernel(", "fn kernel_(", "entry point: found [\"kernel_\"], wanted \"kernel\""),
        ("@workgroup_size(8, 4, 1)", "@workgroup_size(4, 8)", "found work-group [4, 8, 1], wanted [8, 4, 1]"),
        (
            "var<storage, read> src",
            "var<storage, read_write> src",
            "(src): found address space storage, read_write, wanted storage, read",
        ),
        (
            "var<storage, read> weights: array<f32>",
            "var<uniform> weights: array<vec4<f32>, 2>",
            "(weights): found address space uniform",
        ),
        ("weights: array<f32>", "weights: array<f32, 64>", "found array<f32, 64>, wanted array<f32>"),
        ("binding(2) var<storage, read_write> dst", "binding(7) var<storage, read_write> dst", "wanted dst"),
        ("binding(2) var<storage, read_write> dst", "binding(7) var<storage, read_write> dst", "binding 7"),
        ("n: u32, bias: f32, shift: i32", "bias: f32, n: u32, shift: i32", "found [bias: f32 at 0, n: u32"),
        ("n: u32, bias: f32, shift: i32", "n: u32, bias: f32, shift: i32, m: u32", "m: u32 at 12"),
        ("bias: f32,", "@align(8) bias: f32,", "bias: f32 at 8"),
        ("params", "parameters", "found parameters, wanted params"),
        ("fn kernel(", "fn kernel[", "kernel["),
        ("id.x >= params.n", "id.x >= params.bias", "Entry point kernel at Compute is invalid"),
        ("sum[0] = src", "sum[id.y] = src", "sum[id.y] in kernel indexes the array sum dynamically"),
    ];
    for (from, to, wanted) in faults {
        assert!(GOOD.contains(from), "{from}");
        let found = log(&source(&GOOD.replace(from, to)));
        assert!(found.contains(wanted), "{from} -> {to}:\n{found}\nwanted {wanted}");
    }
}

#[test]
fn swapped_bindings_are_refused() {
    let text = GOOD
        .replace("binding(0) var<storage, read> src", "binding(1) var<storage, read> src")
        .replace("binding(1) var<storage, read> weights", "binding(0) var<storage, read> weights");
    let found = log(&source(&text));
    assert!(found.contains("binding 0: found weights, wanted src"), "{found}");
    assert!(found.contains("binding 0 (src): found array<f32>, wanted array<vec4<f32>>"), "{found}");
    assert!(found.contains("binding 1: found src, wanted weights"), "{found}");
}

#[test]
fn a_missing_or_unwanted_parameter_block_is_refused() {
    let mut without = source(GOOD);
    without.interface.params.clear();
    assert!(log(&without).contains("group 0 binding 3: found params, wanted nothing"));

    let text = "
@group(0) @binding(0) var<storage, read_write> dst: array<f32>;
@compute @workgroup_size(8, 4, 1)
fn kernel(@builtin(global_invocation_id) id: vec3<u32>) { dst[id.x] = 1.0; }
";
    let mut plain = source(text);
    plain.interface.bindings =
        vec![Binding::new(Operand::Dst, Element::Scalar(DType::F32), Access::ReadWrite)];
    assert!(log(&plain).contains("binding 1: found nothing, wanted the uniform block params"));
    plain.interface.params.clear();
    check(&plain).unwrap();
}

#[test]
fn half_vectors_are_f16_or_packed_pairs() {
    let native = "
enable f16;
@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f16>>;
@compute @workgroup_size(1)
fn kernel(@builtin(global_invocation_id) id: vec3<u32>) { dst[id.x] = vec4<f16>(1.0h); }
";
    let packed = "
@group(0) @binding(0) var<storage, read_write> dst: array<vec2<u32>>;
@compute @workgroup_size(1)
fn kernel(@builtin(global_invocation_id) id: vec3<u32>) {
    dst[id.x] = vec2<u32>(pack2x16float(unpack2x16float(dst[id.x].x)), 0u);
}
";
    for text in [native, packed] {
        let mut source = source(text);
        source.work_group = [1, 1, 1];
        source.interface.params.clear();
        let element = |element| vec![Binding::new(Operand::Dst, element, Access::ReadWrite)];
        source.interface.bindings = element(Element::Vec4(DType::F16));
        check(&source).unwrap();
        source.interface.bindings = element(Element::Vec4(DType::F32));
        assert!(log(&source).contains("wanted array<vec4<f32>>"));
        source.interface.bindings = element(Element::Image2d(DType::F16));
        assert!(log(&source).contains("images are arguments in OpenCL C only"));
    }
}

#[test]
fn dynamic_indices_into_own_arrays_are_found() {
    // (body, the array's name, or None where nothing is wrong)
    let cases = [
        (
            "var a: array<f32, 4>; for (var i = 0u; i < 4u; i++) { a[i] = 1.0; } dst[id.x].x = a[1];",
            Some("a"),
        ),
        ("var a: array<array<f32, 2>, 2>; a[1][id.x] = 1.0; dst[id.x].x = a[0][0];", Some("a")),
        ("var a: array<f32, 4>; fill(&a, id.x); dst[id.x].x = a[1];", Some("p")),
        ("own[id.x] = 1.0; dst[id.x].x = own[0];", Some("own")),
        ("dst[id.x].x = TABLE[id.x];", Some("TABLE")),
        ("shared_tile[id.x] = 1.0; dst[id.x].x = shared_tile[id.y];", None),
        ("var v = src[id.x]; dst[id.x].x = v[id.y];", None),
        ("var a: array<f32, 4>; a[2] = 1.0; dst[id.x].x = a[LAST - 1u];", None),
    ];
    for (body, wanted) in cases {
        let helper = match body.contains("fill") {
            true => "fn fill(p: ptr<function, array<f32, 4>>, at: u32) { (*p)[at] = 1.0; }",
            false => "",
        };
        let globals = "const LAST: u32 = 3u; const TABLE = array<f32, 4>(1.0, 2.0, 3.0, 4.0);
            var<private> own: array<f32, 4>; var<workgroup> shared_tile: array<f32, 64>;";
        let head = GOOD.split("@compute").next().unwrap();
        let text = format!(
            "{head}{globals}\n{helper}\n@compute @workgroup_size(8, 4, 1)
fn kernel(@builtin(global_invocation_id) id: vec3<u32>) {{\n{body}\n}}"
        );
        match (check(&source(&text)), wanted) {
            (Ok(()), None) => {}
            (Err(Error::Compile { log, .. }), Some(name)) => {
                assert!(log.contains(&format!("indexes the array {name} dynamically")), "{body}\n{log}");
                assert!(log.contains("line 1"), "{body}\n{log}");
            }
            (found, wanted) => panic!("{body}: found {found:?}, wanted {wanted:?}"),
        }
    }
}

#[test]
fn another_language_is_refused() {
    let mut other = source(GOOD);
    other.dialect = Dialect::OpenClC;
    assert!(log(&other).contains("the source is OpenCL C"));
}
