//! OpenCL C printed from WGSL does what the WGSL does: the same shader, through the writer on an OpenCL
//! device and through wgpu, over random values and those at the edges.

#![cfg(all(feature = "wgpu", feature = "opencl"))]

use diptych::{DType, Error, Memory};
use diptych_device::device::opencl::OpenClDevice;
use diptych_device::device::wgpu::WgpuDevice;
use diptych_device::device::{Buffer, Device, Dispatch, Pipeline};
use diptych_emit::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar, opencl,
};

const INVOCATIONS: u32 = 512;
const WORK_GROUP: u32 = 64;
/// Values that each invocation reads.
const INPUTS: usize = 4;

struct Devices {
    wgpu: WgpuDevice,
    opencl: OpenClDevice,
}

fn devices() -> Option<Devices> {
    match (WgpuDevice::open(None), OpenClDevice::open(None)) {
        (Ok(wgpu), Ok(opencl)) => Some(Devices { wgpu, opencl }),
        (wgpu, opencl) => {
            let errors: Vec<Error> = [wgpu.err(), opencl.err()].into_iter().flatten().collect();
            assert!(std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_none(), "{errors:?}");
            println!("skipped: {errors:?}");
            None
        }
    }
}

fn source(text: &str, dialect: Dialect) -> KernelSource {
    let binding = |operand, access| Binding::new(operand, Element::Scalar(DType::F32), access);
    KernelSource {
        label: "written".to_owned(),
        entry: "main".to_owned(),
        dialect,
        text: text.to_owned(),
        interface: Interface {
            bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::ReadWrite)],
            params: vec![Param { name: "count", ty: ParamType::U32 }],
        },
        work_group: [WORK_GROUP, 1, 1],
    }
}

/// A shader of `items` and a function `run` of `body`, which stores `outputs` values by `put(k, value)`.
fn shader(items: &str, body: &str, outputs: usize) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
struct Params {{
    count: u32,
}}
@group(0) @binding(2) var<uniform> params: Params;
{items}
@compute @workgroup_size({WORK_GROUP}, 1, 1)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{
    let i = gid.x;
    let x = src[{INPUTS}u * i];
    let y = src[{INPUTS}u * i + 1u];
    let z = src[{INPUTS}u * i + 2u];
    let w = src[{INPUTS}u * i + 3u];
    let a = bitcast<i32>(x);
    let b = bitcast<i32>(y);
    let c = bitcast<i32>(z);
    let ua = bitcast<u32>(x);
    let ub = bitcast<u32>(y);
    let uc = bitcast<u32>(z);
    let first = {outputs}u * i;
{body}}}
"
    )
}

/// One store for each expression, of its type.
fn stores(expressions: &[&str], ty: &str) -> String {
    expressions
        .iter()
        .enumerate()
        .map(|(at, expression)| match ty {
            "f32" => format!("    dst[first + {at}u] = {expression};\n"),
            _ => format!("    dst[first + {at}u] = bitcast<f32>({expression});\n"),
        })
        .collect()
}

fn pipeline(device: &dyn Device, source: &KernelSource) -> diptych::Result<Pipeline> {
    // SAFETY: each invocation stays within its own values, which the buffers hold.
    unsafe { device.compile_unchecked(source) }
}

fn run(device: &dyn Device, pipeline: &Pipeline, inputs: &[u32], outputs: usize) -> Vec<u32> {
    let src = device.alloc(4 * inputs.len() as u64, Memory::Device).unwrap();
    device.write(&src.whole(), bytemuck::cast_slice(inputs)).unwrap();
    let count = INVOCATIONS as usize * outputs;
    let dst: Buffer = device.alloc(4 * count as u64, Memory::Device).unwrap();
    device.write(&dst.whole(), &vec![0xa5; dst.bytes() as usize]).unwrap();
    let dispatch = Dispatch {
        pipeline: pipeline.clone(),
        resources: vec![(&src).into(), (&dst).into()],
        params: vec![Scalar::U32(INVOCATIONS)],
        groups: [INVOCATIONS / WORK_GROUP, 1, 1],
    };
    device.submit(&device.record(&[dispatch]).unwrap()).unwrap();
    let mut read: Vec<u32> = bytemuck::pod_collect_to_vec(&device.read(&dst.whole()).unwrap());
    read.truncate(count);
    read
}

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32 ^ (self.0 >> 17) as u32
    }

    fn one_of(&mut self, values: &[u32]) -> u32 {
        values[self.next() as usize % values.len()]
    }
}

const INTEGER_EDGES: [u32; 14] =
    [0, 1, 2, 3, 7, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 0xffff_fffe, 0x0001_0000];

fn integers() -> Vec<u32> {
    let mut numbers = Numbers(1);
    (0..INVOCATIONS as usize * INPUTS)
        .map(|_| match numbers.next() % 3 {
            0 => numbers.next(),
            1 => numbers.next() % 40,
            _ => numbers.one_of(&INTEGER_EDGES),
        })
        .collect()
}

const FLOAT_EDGES: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    1e-20,
    1e20,
    65504.0,
    65520.0,
    16777217.0,
    2147483648.0,
    -2147483648.0,
    4294967296.0,
    2147483520.0,
    3e9,
    -3e9,
    1e-5,
];

fn floats() -> Vec<u32> {
    let mut numbers = Numbers(2);
    (0..INVOCATIONS as usize * INPUTS)
        .map(|_| match numbers.next() % 3 {
            0 => FLOAT_EDGES[numbers.next() as usize % FLOAT_EDGES.len()].to_bits(),
            1 => ((numbers.next() % 4096) as f32 / 64.0 - 32.0).to_bits(),
            _ => ((numbers.next() as f32 / u32::MAX as f32 - 0.5) * 8.0).to_bits(),
        })
        .collect()
}

/// Whether two results are the same within `tolerance`, relative to the larger.
fn close(ours: f32, theirs: f32, tolerance: f32) -> bool {
    let (small, large) = (f32::MIN_POSITIVE, ours.abs().max(theirs.abs()));
    ours.to_bits() == theirs.to_bits()
        || (ours.is_nan() && theirs.is_nan())
        || ours == theirs
        || (ours - theirs).abs() <= tolerance * large
        // Either may take a number below the normal ones for zero.
        || large <= small
}

/// Runs a shader on wgpu, and on OpenCL as it is printed with and without checks.
fn compare(
    devices: &Devices,
    name: &[&str],
    text: &str,
    inputs: &[u32],
    outputs: usize,
    tolerance: Option<f32>,
) {
    let theirs = devices.wgpu.compile(&source(text, Dialect::Wgsl)).unwrap_or_else(|error| panic!("{error}"));
    let theirs = run(&devices.wgpu, &theirs, inputs, outputs);
    let checked =
        devices.opencl.compile(&source(text, Dialect::Wgsl)).unwrap_or_else(|error| panic!("{error}"));
    let options = opencl::Options { checked: false, halves: false, fixed_work_group: true };
    let printed = opencl::print("written", text, "main", options).unwrap_or_else(|error| panic!("{error}"));
    assert!(printed.lengths.is_empty());
    let printed_source = KernelSource { entry: printed.entry, ..source(&printed.text, Dialect::OpenClC) };
    let unchecked = pipeline(&devices.opencl, &printed_source);
    let unchecked = unchecked.unwrap_or_else(|error| panic!("{error}"));
    // Without checks a division by zero may do anything.
    let divides = text.contains("may divide by zero");
    let ways = [("checked", Some(&checked)), ("unchecked", (!divides).then_some(&unchecked))];
    for (way, pipeline) in ways.into_iter().filter_map(|(way, one)| Some((way, one?))) {
        let ours = run(&devices.opencl, pipeline, inputs, outputs);
        let mut failures = Vec::new();
        for (at, (&ours, &theirs)) in ours.iter().zip(&theirs).enumerate() {
            let same = match tolerance {
                None => ours == theirs,
                Some(tolerance) => close(f32::from_bits(ours), f32::from_bits(theirs), tolerance),
            };
            if !same {
                let (row, column) = (at / outputs, at % outputs);
                let given = &inputs[INPUTS * row..][..INPUTS];
                let [x, y, z] = [0, 1, 2].map(|k| f32::from_bits(given[k]));
                failures.push(format!(
                    "{}: {given:x?} ({x:?} {y:?} {z:?}) gives {ours:#x} ({:?}), wgpu {theirs:#x} ({:?})",
                    name.get(column).copied().unwrap_or("a value"),
                    f32::from_bits(ours),
                    f32::from_bits(theirs)
                ));
            }
        }
        failures.sort();
        failures.dedup_by_key(|text| text.split(": ").next().map(str::to_owned));
        assert!(
            failures.is_empty(),
            "{way}, {} kinds:\n{}\n{}",
            failures.len(),
            failures.join("\n"),
            printed.text
        );
        let distinct: std::collections::BTreeSet<u32> = ours.into_iter().collect();
        assert!(distinct.len() > 1, "every result is the same");
    }
}

fn compare_expressions(expressions: &[&str], ty: &str, inputs: &[u32], tolerance: Option<f32>, note: &str) {
    let Some(devices) = devices() else { return };
    // A few at a time: an error names fewer, and compilers are quicker.
    for some in expressions.chunks(24) {
        let text = shader(note, &stores(some, ty), some.len());
        compare(&devices, some, &text, inputs, some.len(), tolerance);
    }
}

#[test]
fn integers_are_computed_as_wgsl_says() {
    let signed = [
        "a + b",
        "a - b",
        "a * b",
        "-a",
        "-(-a)",
        "a - -b",
        "~a",
        "a & b | 12",
        "(a | b) ^ (a & c)",
        "a << (ub % 32u)",
        "a >> (ub % 32u)",
        "abs(a)",
        "min(a, b)",
        "max(a, b)",
        "clamp(a, min(b, c), max(b, c))",
        "sign(a)",
        "a - (b - c)",
        "a - b - c",
        "a * (b + c)",
        "(a + b) * (a - c)",
        "a + b * c",
        "a / 7",
        "a % 7",
        "a / -3",
        "-7 / (b | 1)",
        "a % (b | 1)",
        "countOneBits(a)",
        "countLeadingZeros(a)",
        "countTrailingZeros(a)",
        "firstLeadingBit(a)",
        "firstTrailingBit(a)",
        "reverseBits(a)",
        "extractBits(a, ub % 33u, uc % 33u)",
        "insertBits(a, b, uc % 33u, ub % 33u)",
        "select(a, b, a < b)",
        "i32(ua)",
        "i32(a < b)",
        "i32(a <= b && b != c || !(a == c))",
        "i32(f32(a % 1000))",
        "dot(vec3<i32>(a, b, 3), vec3<i32>(b, c, -1))",
        "(vec4<i32>(a, b, c, 5) + vec4<i32>(b, c, a, -5)).z",
        "(vec2<i32>(a, b) * -3).y",
        "(-vec2<i32>(a, b)).x",
        "select(vec2<i32>(a, b), vec2<i32>(c, 1), vec2<bool>(a < b, b < c)).y",
        "i32(all(vec3<i32>(a, b, c) < vec3<i32>(b, c, a)))",
        "i32(any(vec2<i32>(a, b) == vec2<i32>(b, 3)))",
        "i32((vec2<i32>(a, b) < vec2<i32>(b, c)).y)",
        "abs(vec2<i32>(a, b)).x",
        "clamp(vec2<i32>(a, b), vec2<i32>(-3), vec2<i32>(9)).y",
        "vec3<i32>(a, b, c)[ub % 3u]",
        "vec4<i32>(a, b, c, 4).wzyx.y",
        "vec3<i32>(vec3<bool>(a < b, b < c, c < a)).z",
        "a + 2147483647 - b",
        "(a * 65537) >> 3u",
    ];
    compare_expressions(&signed, "i32", &integers(), None, "");
    let unsigned = [
        "ua + ub * uc",
        "ua - ub",
        "ua / 7u",
        "ua % 7u",
        "ua / (ub | 1u)",
        "ua % (ub | 1u)",
        "ua << (ub % 32u)",
        "ua >> (ub % 32u)",
        "ua & ub ^ uc",
        "~ua",
        "min(ua, ub)",
        "clamp(ua, min(ub, uc), max(ub, uc))",
        "countLeadingZeros(ua)",
        "countTrailingZeros(ua)",
        "firstLeadingBit(ua)",
        "firstTrailingBit(ua)",
        "reverseBits(ua)",
        "extractBits(ua, ub % 33u, uc % 33u)",
        "insertBits(ua, ub, uc % 33u, ub % 33u)",
        "u32(a)",
        "u32(a < b)",
        "dot(vec4<u32>(ua, ub, uc, 2u), vec4<u32>(uc, ub, 1u, ua))",
        "(vec4<u32>(ua, ub, uc, 3u) >> vec4<u32>(1u, 2u, 3u, 31u)).z",
        "(vec2<u32>(ua, ub) << vec2<u32>(3u)).y",
        "(vec2<u32>(ua, ub) / vec2<u32>(3u, 5u)).y",
        "firstLeadingBit(vec2<u32>(ua, ub)).y",
        "firstTrailingBit(vec2<u32>(ua, ub)).y",
        "countOneBits(vec3<u32>(ua, ub, uc)).z",
        "reverseBits(vec2<u32>(ua, ub)).y",
        "vec4<u32>(ua, ub, uc, 9u)[ua % 4u]",
        "pack4xI8(vec4<i32>(a, b, c, 7))",
        "pack4xU8(vec4<u32>(ua, ub, uc, 7u))",
        "pack4xI8Clamp(vec4<i32>(a, b, c, 7))",
        "pack4xU8Clamp(vec4<u32>(ua, ub, uc, 7u))",
        "u32(unpack4xI8(ua).w)",
        "unpack4xU8(ua).z",
        "dot4U8Packed(ua, ub)",
        "u32(dot4I8Packed(ua, ub))",
        "select(ua, ub, ua > ub && ub > uc)",
        "ua - (ub - uc) - 1u",
    ];
    compare_expressions(&unsigned, "u32", &integers(), None, "");
}

#[test]
fn divisions_by_zero_and_of_the_least_integer_are_defined() {
    let note = "// may divide by zero";
    compare_expressions(
        &[
            "a / b",
            "a % b",
            "(vec2<i32>(a, b) / vec2<i32>(b, c)).y",
            "(vec3<i32>(a) % vec3<i32>(c, b, a)).x",
            "b / (a - a)",
            "a / (b - b - 1)",
        ],
        "i32",
        &integers(),
        None,
        note,
    );
    compare_expressions(
        &["ua / ub", "ua % ub", "(vec2<u32>(ua, ub) / uc).x", "(uc % vec2<u32>(ua, ub)).y"],
        "u32",
        &integers(),
        None,
        note,
    );
}

#[test]
fn floats_are_computed_as_wgsl_says() {
    let exact = [
        "x + y",
        "x - y - z",
        "x - (y - z)",
        "x * y",
        "-x",
        "abs(x)",
        "floor(x)",
        "ceil(x)",
        "trunc(x)",
        "round(x)",
        "sign(x)",
        "min(x, y)",
        "max(x, y)",
        "clamp(x, min(y, z), max(y, z))",
        "saturate(x)",
        "step(x, y)",
        "select(x, y, x < z)",
        "f32(x <= y)",
        "f32(i32(x))",
        "f32(u32(x))",
        "f32(i32(y) / 3)",
        "f32(vec2<i32>(vec2<f32>(x, y)).y)",
        "f32(vec3<u32>(vec3<f32>(x, y, z)).z)",
        "f32(bool(x))",
        "modf(x).whole",
        "modf(x).fract",
        "modf(vec2<f32>(x, y)).fract.y",
        "frexp(x).fract",
        "f32(frexp(x).exp)",
        "ldexp(x, 3)",
        "quantizeToF16(select(x, 0.0, abs(x) < 1e-4 || abs(x) > 60000.0))",
        "quantizeToF16(clamp(vec2<f32>(x, y), vec2<f32>(0.001), vec2<f32>(9.0))).y",
        "unpack2x16float(pack2x16float(clamp(vec2<f32>(x, y), vec2<f32>(0.001), vec2<f32>(60000.0)))).y",
        "bitcast<f32>(pack4x8snorm(vec4<f32>(floor(x), floor(y) * 2.0, -0.25, 2.0)))",
        "bitcast<f32>(pack4x8unorm(vec4<f32>(floor(x) * 0.2, floor(y) * 0.4, 0.4, 2.0)))",
        "bitcast<f32>(pack2x16snorm(vec2<f32>(floor(x) / 7.0, 1.0)))",
        "bitcast<f32>(pack2x16unorm(vec2<f32>(floor(x) * 0.2, 0.4)))",
        "vec4<f32>(x, y, z, w)[u32(abs(x)) % 4u]",
        "(vec3<f32>(x, y, z) * 2.0 - 1.0).y",
        "(2.0 * vec3<f32>(x, y, z)).zyx.x",
        "faceForward(vec2<f32>(x, y), vec2<f32>(1.0, 2.0), vec2<f32>(y, x)).y",
        "x * 0.5 + 0.0",
        "-(x + y)",
        "-(-x)",
    ];
    compare_expressions(&exact, "f32", &floats(), Some(0.0), "");
    let rounded = [
        "x / y",
        "clamp(x, -9.0, 9.0) % 2.5",
        "fma(x, y, z)",
        "x * y + z * w",
        "mix(x, y, 0.25)",
        "mix(vec2<f32>(x, y), vec2<f32>(z, w), 0.75).y",
        "mix(vec2<f32>(x, y), vec2<f32>(z, w), vec2<f32>(0.5, 0.25)).y",
        "smoothstep(-1.0, 2.0, clamp(x, -9.0, 9.0))",
        "fract(clamp(x, 0.0, 100.0))",
        "sqrt(abs(x))",
        "inverseSqrt(abs(x) + 1e-3)",
        "exp(clamp(x, -20.0, 20.0))",
        "exp2(clamp(x, -20.0, 20.0))",
        "log(abs(x) + 1.5)",
        "log2(abs(x) + 1.5)",
        "pow(clamp(abs(x), 0.5, 8.0), clamp(y, -4.0, 4.0))",
        "sin(clamp(x, 0.1, 3.0))",
        "cos(clamp(x, 0.1, 1.5))",
        "tan(clamp(x, 0.1, 1.2))",
        "tanh(clamp(x, 0.1, 9.0))",
        "sinh(clamp(x, 0.1, 9.0))",
        "cosh(clamp(x, -9.0, 9.0))",
        "radians(x)",
        "degrees(x)",
        "length(vec3<f32>(clamp(x, -9.0, 9.0), 1.0, 2.0))",
        "distance(clamp(x, -9.0, 9.0), 20.0)",
        "normalize(vec3<f32>(clamp(x, -9.0, 9.0), 1.0, 2.0)).y",
        "dot(abs(vec3<f32>(x, y, z)), vec3<f32>(0.5, 1.0, 2.0))",
        "cross(vec3<f32>(1.0, 2.0, 3.0), vec3<f32>(clamp(x, 5.0, 9.0), 1.0, 2.0)).y",
        "reflect(vec2<f32>(1.0, 2.0), vec2<f32>(0.0, clamp(x, -9.0, -1.0))).y",
        "refract(vec2<f32>(0.6, -0.8), vec2<f32>(0.0, 1.0), clamp(x, 0.1, 0.9)).x",
        "unpack4x8snorm(bitcast<u32>(x)).y",
        "unpack4x8unorm(bitcast<u32>(x)).z",
        "unpack2x16snorm(bitcast<u32>(x)).y",
        "unpack2x16unorm(bitcast<u32>(x)).x",
    ];
    compare_expressions(&rounded, "f32", &floats(), Some(2e-5), "");
    // WGSL allows 4096 units in the last place.
    let coarse = ["atan(x + 40.0)", "atan2(abs(y) + 0.1, abs(x) + 0.1)", "asin(clamp(x, 0.1, 0.9))"];
    compare_expressions(&coarse, "f32", &floats(), Some(5e-4), "");
}

#[test]
fn matrices_are_values() {
    let items = "
fn turned(m: mat2x3<f32>) -> mat3x2<f32> {
    return transpose(m);
}";
    let body = "
    let t = clamp(x, -4.0, 4.0);
    let m = mat3x3<f32>(vec3<f32>(1.0, 2.0, t), vec3<f32>(0.5, -1.0, 3.0), vec3<f32>(2.0, 0.25, -2.0));
    var n = mat3x3<f32>(m[2], m[0], m[1]);
    n[1] = vec3<f32>(t, 1.0, 0.0);
    n[2].y = 7.0;
    let k = u32(abs(t)) % 3u;
    n[k].x = 3.0;
    let v = vec3<f32>(t, 1.0, -2.0);
    dst[first] = (m * v).y;
    dst[first + 1u] = (v * m).z;
    dst[first + 2u] = (m * n)[1].z;
    dst[first + 3u] = (m + n * 2.0)[k].x;
    dst[first + 4u] = determinant(m);
    dst[first + 5u] = turned(mat2x3<f32>(t, 2.0, 3.0, 4.0, 5.0, 6.0))[0].y;
    dst[first + 6u] = determinant(mat2x2<f32>(t, 2.0, 3.0, 4.0));
    dst[first + 7u] = determinant(mat4x4<f32>(vec4<f32>(t, 2.0, 3.0, 4.0), vec4<f32>(1.0, 1.0, 3.0, 2.0), vec4<f32>(0.0, 2.0, 5.0, 4.0), vec4<f32>(7.0, 2.0, 1.0, 1.0)));
    dst[first + 8u] = (mat2x2<f32>(t, 1.0, 2.0, 3.0) - mat2x2<f32>())[0].x;
";
    let Some(devices) = devices() else { return };
    let text = shader(items, body, 9);
    let name: Vec<String> = (0..9).map(|at| format!("value {at}")).collect();
    let name: Vec<&str> = name.iter().map(String::as_str).collect();
    compare(&devices, &name, &text, &floats(), 9, Some(1e-4));
}

/// Kernels of control flow, variables and memory: their items, their bodies, and how many values each
/// invocation stores. All are of integers, so that results are equal to the bit.
const PROGRAMS: &[(&str, &str, &str, usize)] = &[
    (
        "loops",
        "",
        "
    var sum = 0u;
    for (var i = 0u; i < ua % 20u; i++) {
        if (i == 5u) { continue; }
        if (i == 11u) { break; }
        for (var k = i; k < 12u; k += 3u) { sum += k * i; }
    }
    var n = ub % 9u;
    while (n > 0u && sum < 100000u) {
        n -= 1u;
        sum = sum * 3u + n;
        if (n == 3u) { continue; }
        sum ^= 5u;
    }
    var down = i32(uc % 7u);
    loop {
        if (down == 4) { down -= 2; continue; }
        sum += 7u;
        continuing {
            down -= 1;
            break if down < 0;
        }
    }
    var steps = 0u;
    loop {
        let twice = 2u * steps;
        if (twice > ua % 30u) { break; }
        if (twice == 8u) { steps += 5u; continue; }
        sum += twice;
        continuing {
            var extra = twice;
            if (extra > 6u) { extra = 6u; }
            steps += 1u + extra / 6u;
        }
    }
    put(first, sum);
    put(first + 1u, steps);
",
        2,
    ),
    (
        "switches",
        "",
        "
    var r = 0u;
    switch (ua % 8u) {
        case 0u: { r = 10u; }
        case 1u, 2u: { r = 20u; if (ub > 9u) { break; } r += 1u; }
        case 5u: { for (var k = 0u; k < 4u; k++) { if (k == 2u) { continue; } if (k == uc % 5u) { break; } r += k + 1u; } }
        case 6u, default: { r = 77u; }
    }
    for (var k = 0u; k < 6u; k++) {
        switch (i32(k + ub % 3u) - 2) {
            case -2: { continue; }
            case 1: { r += 100u; continue; }
            case 3: { r *= 3u; break; }
            default: { r ^= k; }
        }
        r += 1000u;
    }
    put(first, r);
",
        1,
    ),
    (
        "order of evaluation",
        "
var<private> calls: u32 = 3u;
fn bump(p: ptr<function, u32>, by: u32) -> u32 {
    *p += by;
    calls += 1u;
    return *p;
}
fn yes(p: ptr<private, u32>) -> bool {
    *p *= 2u;
    return *p % 3u != 0u;
}",
        "
    var v = ua % 16u;
    let before = v;
    v = v * 2u + 1u;
    let sum = bump(&v, 2u) + v * 10u + bump(&v, 5u) * 100u;
    var pair = vec2<u32>(ua, ub);
    let old = pair.x;
    pair.x = pair.y;
    pair.y = old;
    var three = array<u32, 3>(ua, ub, uc);
    let t = three[0];
    three[0] = three[2];
    three[2] = t;
    let both = ua < ub && yes(&calls) || uc < 5u && yes(&calls);
    put(first, before);
    put(first + 1u, sum);
    put(first + 2u, pair.x ^ (pair.y << 1u));
    put(first + 3u, three[0] + 3u * three[1] + 5u * three[2]);
    put(first + 4u, calls + select(0u, 100u, both));
",
        5,
    ),
    (
        "arrays, structs and pointers",
        "
struct Inner { v: vec3<u32>, n: u32, flags: vec2<bool> }
struct Outer { inner: array<Inner, 3>, total: u32 }
const TABLE = array<u32, 5>(2u, 3u, 5u, 7u, 11u);
const PAIRS = array<vec2<u32>, 2>(vec2<u32>(1u, 2u), vec2<u32>(3u, 4u));
var<private> seen: array<u32, 4>;
fn fill(p: ptr<function, array<u32, 6>>, start: u32) {
    for (var k = 0u; k < 6u; k++) { (*p)[k] = start + k * k; }
}
fn sum_of(values: array<u32, 6>) -> u32 {
    var copy = values;
    copy[1] += 1u;
    var sum = 0u;
    for (var k = 0u; k < 6u; k++) { sum = sum * 3u + copy[k]; }
    return sum;
}
fn made(n: u32) -> Outer {
    var out: Outer;
    for (var k = 0u; k < 3u; k++) {
        out.inner[k] = Inner(vec3<u32>(n, k, n + k), n * k, vec2<bool>(k == 1u, n > 4u));
    }
    out.total = 6u;
    return out;
}",
        "
    var six: array<u32, 6>;
    fill(&six, ua % 100u);
    var o = made(ub % 10u);
    let k = uc % 3u;
    o.inner[k].v.y += 40u;
    o.inner[k].v[ua % 3u] += 5u;
    o.inner[k].flags.x = !o.inner[k].flags.x;
    o.inner[k].flags[ub % 2u] = ua > ub;
    let copy = o.inner[k];
    o.inner[k].n = 1u;
    seen[k] = 9u;
    seen[3] += k;
    put(first, sum_of(six) + six[ua % 6u]);
    put(first + 1u, copy.v.x + 7u * copy.v.y + 49u * copy.v.z + copy.n);
    put(first + 2u, u32(copy.flags.x) + 2u * u32(copy.flags.y) + 4u * u32(any(copy.flags)));
    put(first + 3u, TABLE[ub % 5u] * 10u + PAIRS[k % 2u].y + o.total);
    put(first + 4u, seen[0] + 2u * seen[1] + 4u * seen[2] + 8u * seen[3]);
",
        5,
    ),
    (
        "the work-group's memory",
        "
var<workgroup> shared_values: array<u32, 64>;
var<workgroup> total: atomic<u32>;
var<workgroup> largest: atomic<i32>;
var<workgroup> chosen: u32;
var<workgroup> grid: array<array<vec2<u32>, 8>, 8>;
fn neighbour(at: u32) -> u32 { return shared_values[(at + 1u) % 64u]; }",
        "
    shared_values[lid] = ua % 1000u;
    grid[lid / 8u][lid % 8u] = vec2<u32>(lid, ub);
    if (lid == 17u) { chosen = uc; }
    if (lid == 3u) { atomicStore(&total, 0u); atomicStore(&largest, -5); }
    workgroupBarrier();
    atomicAdd(&total, ua % 7u);
    atomicMax(&largest, a);
    workgroupBarrier();
    let next = neighbour(lid);
    let uniform_value = workgroupUniformLoad(&chosen);
    for (var step = 32u; step > 0u; step /= 2u) {
        if (lid < step) { shared_values[lid] += shared_values[lid + step]; }
        workgroupBarrier();
    }
    put(first, shared_values[0]);
    put(first + 1u, next ^ uniform_value);
    put(first + 2u, atomicLoad(&total));
    put(first + 3u, u32(atomicLoad(&largest)));
    put(first + 4u, grid[lid % 8u][lid / 8u].x + grid[7u - lid / 8u][3].y);
",
        5,
    ),
    (
        "atomic exchanges",
        "
var<workgroup> turns: atomic<u32>;
var<workgroup> bits: atomic<u32>;",
        "
    if (lid == 0u) { atomicStore(&turns, 5u); atomicStore(&bits, 0u); }
    workgroupBarrier();
    if (lid == 3u) {
        let missed = atomicCompareExchangeWeak(&turns, 4u, 9u);
        let old = atomicExchange(&turns, missed.old_value + select(100u, 200u, missed.exchanged));
        atomicSub(&turns, old);
    }
    atomicOr(&bits, 1u << (ua % 32u));
    workgroupBarrier();
    if (lid == 9u) { atomicXor(&bits, ub); atomicAnd(&bits, 0xffffu); atomicMin(&turns, 103u); }
    workgroupBarrier();
    put(first, atomicLoad(&turns));
    put(first + 1u, atomicLoad(&bits) + lid);
",
        2,
    ),
    (
        "names of OpenCL C's",
        "
struct half { float4: u32, kernel: u32 }
fn mad(global: u32, local: u32) -> u32 { return global + 2u * local; }
fn clz(float: half) -> u32 { return float.float4 * float.kernel; }
const uint4 = 6u;",
        "
    let half_ = half(ua, 3u);
    var int = mad(ub, uint4);
    let constant = clz(half_);
    { let int = constant + 1u; put(first + 1u, int); }
    for (var step = 0u; step < 3u; step++) { let int = step; dst[first] = 0.0; }
    int += 1u;
    put(first, int * uint4);
",
        2,
    ),
    (
        "conditions",
        "fn odd(v: u32) -> bool { return v % 2u == 1u; }",
        "
    var r = 0u;
    if (ua < ub) { r = 1u; } else if (ub < uc) { r = 2u; } else { r = 3u; }
    if (ua > 5u && (ub > 5u || uc > 5u) && !(ua == ub)) { r += 10u; }
    if (odd(ua) || odd(ub) && odd(uc)) { r += 100u; }
    let m = max(ua, ub) - min(ua, ub);
    let inside = m < 50u && m > 2u;
    var held = !inside || r == 1u;
    held = held && inside;
    r += select(0u, 1000u, held) + select(0u, 5000u, inside != held);
    put(first, r);
    if (ua == 7u) { return; }
    put(first + 1u, r + 1u);
    return;
",
        2,
    ),
];

#[test]
fn programs_do_the_same() {
    let Some(devices) = devices() else { return };
    for (name, items, body, outputs) in PROGRAMS {
        println!("{name}");
        let put = "fn put(at: u32, value: u32) {\n    dst[at] = bitcast<f32>(value);\n}";
        let text = shader(&format!("{put}\n{items}"), body, *outputs);
        compare(&devices, &[*name; 8], &text, &integers(), *outputs, None);
    }
}
