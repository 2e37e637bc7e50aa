//! The text of small kernels, and what is refused. What written kernels compute is tested on devices, in diptych's
//! `tests/opencl_writer.rs`.

use super::{Kernel, Options, write};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Writes `wgsl`; an error comes with its line.
fn print(wgsl: &str, entry: &str, options: Options) -> Result<Kernel, String> {
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| error.emit_to_string(wgsl))?;
    let capabilities = Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::COOPERATIVE_MATRIX;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities);
    let info = validator.validate(&module).map_err(|error| error.emit_to_string(wgsl))?;
    write(&module, &info, entry, options).map_err(|error| error.in_source(wgsl))
}

const UNCHECKED: Options = Options { checked: false, halves: false, fixed_work_group: true };

fn printed(wgsl: &str, options: Options) -> Kernel {
    print(wgsl, "scale", options).unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel of one buffer that is read and one that is written.
fn kernel(items: &str, body: &str) -> String {
    format!(
        "struct Params {{ count: u32, factor: f32 }}
@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> params: Params;
{items}
@compute @workgroup_size(8, 4, 1)
fn scale(@builtin(global_invocation_id) gid: vec3<u32>) {{
{body}
}}
"
    )
}

#[test]
fn a_kernel_reads_as_one_written_by_hand() {
    let items = "const STEPS: u32 = 3u;";
    let body = "
    if (gid.x >= params.count || gid.y > 0u) {
        return;
    }
    var sum: vec4<f32> = vec4<f32>(0.0);
    for (var step: u32 = 0u; step < STEPS; step++) {
        let v: vec4<f32> = src[gid.x * STEPS + step];
        sum = fma(v, vec4<f32>(params.factor), sum);
    }
    dst[gid.x] = sum * 2.0 + src[gid.x];";
    let text = printed(&kernel(items, body), UNCHECKED).text;
    assert_eq!(
        text,
        "\
#define STEPS 3u

__kernel __attribute__((reqd_work_group_size(8, 4, 1)))
void scale(
    __global const float4* restrict src,
    __global float4* restrict dst,
    const uint count,
    const float factor
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= count || gid.y > 0u) {
        return;
    }
    float4 sum = (float4)(0.0f);
    for (uint step_ = 0u; step_ < STEPS; step_ += 1u) {
        const float4 v = src[gid.x * STEPS + step_];
        sum = mad(v, (float4)(factor), sum);
    }
    dst[gid.x] = sum * 2.0f + src[gid.x];
}
"
    );
}

#[test]
fn values_are_read_before_the_next_statement_writes() {
    let body = "
    var a: array<u32, 2>;
    let old = a[gid.y];
    a[0] = 7u;
    let both = old + a[0];
    dst[both] = src[a[1]];
    dst[0] = src[1] + dst[both];";
    let text = printed(&kernel("", body), UNCHECKED).text;
    let body = text.split(") {\n").nth(1).expect("a body");
    assert_eq!(
        body,
        "    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    array2_uint a = (array2_uint){ { 0u } };
    const uint old = a.e[gid.y];
    a.e[0u] = 7u;
    const uint both = old + a.e[0u];
    dst[both] = src[a.e[1u]];
    dst[0u] = src[1u] + dst[both];
}
"
    );
}

#[test]
fn checks_clamp_indices_and_guard_divisions() {
    let items = "var<workgroup> staged: array<u32, 32>;";
    let body = "
    staged[gid.x] = gid.y / params.count;
    workgroupBarrier();
    dst[gid.x + 1u] = src[staged[31]][gid.y] * vec4<f32>(params.factor);";
    let Kernel { text, lengths, entry } = printed(&kernel(items, body), Options::checked());
    assert_eq!((&lengths[..], entry.as_str()), (&[0, 1][..], "scale"));
    for wanted in [
        "const float factor,\n    const uint src_length,\n    const uint dst_length\n",
        "byte < sizeof(staged)",
        "staged[min(gid.x, 31u)] = wgsl_divide_uint(gid.y, count);",
        "dst[min(gid.x + 1u, dst_length - 1u)] =",
        "((__global const float*)src)[4u * (min(staged[31u], src_length - 1u)) + min(gid.y, 3u)]",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn packed_halves_are_loaded_and_stored_at_once() {
    let text = "
@group(0) @binding(0) var<storage, read> src: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec2<u32>>;
@compute @workgroup_size(8)
fn scale(@builtin(global_invocation_id) gid: vec3<u32>) {
    let bits = src[gid.x];
    let v = 2.0 * vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y));
    dst[gid.x] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}";
    let one = "
@group(0) @binding(0) var<storage, read> src: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;
@compute @workgroup_size(8)
fn scale(@builtin(global_invocation_id) gid: vec3<u32>) {
    let lane = gid.x % 4u;
    dst[gid.x] = unpack2x16float(src[gid.x / 4u][lane / 2u])[lane % 2u];
    dst[gid.y] = unpack2x16float(src[gid.y].x)[gid.z];
}";
    let of_one = printed(one, UNCHECKED).text;
    let wanted = "dst[gid.x] = vload_half(4u * (gid.x / 4u) + lane, (__global const half*)src);";
    assert!(of_one.contains(wanted), "{of_one}");
    let wanted = "dst[gid.y] = wgsl_lane_float2(wgsl_unpack_half2(src[gid.y].x), gid.z);";
    assert!(of_one.contains(wanted), "{of_one}");
    let any = Options { fixed_work_group: false, ..UNCHECKED };
    let text = printed(text, any).text;
    assert!(text.contains("const float4 v = 2.0f * wgsl_unpack_half4(bits);"), "{text}");
    assert!(text.contains("dst[gid.x] = wgsl_pack_half4(v);"), "{text}");
    assert!(text.contains("__kernel void scale(") && !text.contains("reqd_work_group_size"), "{text}");
}

#[test]
fn halves_are_computed_with_only_where_the_device_can() {
    let of = |statement: &str| {
        format!(
            "enable f16;
@group(0) @binding(0) var<storage, read> src: array<f16>;
@group(0) @binding(1) var<storage, read_write> dst: array<f16>;
@compute @workgroup_size(8)
fn scale(@builtin(global_invocation_id) gid: vec3<u32>) {{
    {statement}
}}"
        )
    };
    let stored = of("dst[gid.x] = f16(f32(src[gid.x]) * 2.0);");
    for halves in [false, true] {
        let text = printed(&stored, Options { halves, ..UNCHECKED }).text;
        assert!(text.contains("vstore_half_rte(vload_half(gid.x, src) * 2.0f, gid.x, dst);"), "{text}");
    }
    let computed = of("dst[gid.x] = src[gid.x] * 2.0h;");
    let text = printed(&computed, Options { halves: true, ..UNCHECKED }).text;
    assert!(text.contains("dst[gid.x] = src[gid.x] * 2.0h;"), "{text}");
    let error = print(&computed, "scale", UNCHECKED).expect_err("no half arithmetic");
    assert!(error.contains("line 6") && error.contains("a half"), "{error}");
}

#[test]
fn what_cannot_be_said_is_refused_with_its_line() {
    let texture = "@group(0) @binding(3) var t: texture_2d<f32>;";
    let checked = Options::checked();
    for (items, body, options, line, wanted) in [
        (texture, "dst[0] = textureLoad(t, vec2<u32>(0u), 0);", checked, 5, "texture"),
        ("override N: u32 = 3u;", "dst[N] = vec4<f32>();", UNCHECKED, 5, "override"),
        ("", "dst[0] = vec4<f32>(f32(subgroupAdd(gid.x)));", UNCHECKED, 8, "subgroup"),
        (
            "struct Row { at: vec3<f32>, next: f32 }
@group(0) @binding(3) var<storage, read> rows: array<Row>;",
            "dst[0].x = rows[0].next;",
            UNCHECKED,
            6,
            "vec3",
        ),
        (
            "struct List { count: u32, values: array<u32> }
@group(0) @binding(3) var<storage, read> list: List;",
            "dst[0].x = f32(list.values[0]);",
            UNCHECKED,
            6,
            "run-time length",
        ),
        (
            "@group(0) @binding(3) var<uniform> tint: vec4<f32>;",
            "dst[0] = tint;",
            UNCHECKED,
            5,
            "uniform tint",
        ),
        ("var<workgroup> a: atomic<u32>;", "if (gid.x > 9u) { discard_it(); }", UNCHECKED, 0, "discard_it"),
    ] {
        let text = kernel(items, body);
        let error = print(&text, "scale", options).expect_err(wanted);
        let head: String = error.lines().take(8).collect::<Vec<_>>().join("\n");
        assert!(head.contains(wanted), "{wanted}: {error}");
        assert!(line == 0 || head.contains(&format!("line {line}:")), "{wanted}: {error}");
    }
    let error = print(&kernel("", ""), "other", UNCHECKED).expect_err("no such entry");
    assert!(error.contains("other") && error.contains("scale"), "{error}");
}

#[test]
fn a_kernel_may_be_called_main() {
    let text = kernel("", "dst[0] = src[0];").replace("fn scale", "fn main");
    let Kernel { text, entry, .. } = print(&text, "main", UNCHECKED).expect("a text");
    assert_eq!(entry, "main_");
    assert!(text.contains("void main_("), "{text}");
}

#[test]
fn a_variable_that_only_the_next_conditional_writes_is_declared() {
    let body = "
    for (var i: u32 = 0u; i < params.count; i++) {
        var unread: vec4<f32> = vec4<f32>(0.0);
        if (i > gid.x) {
            unread = src[i];
        }
        dst[i] = src[i];
    }";
    let text = printed(&kernel("", body), UNCHECKED).text;
    let declared = text.find("float4 unread = (float4)(0.0f);").unwrap_or_else(|| panic!("{text}"));
    let written = text.find("    unread = src[i];").unwrap_or_else(|| panic!("{text}"));
    assert!(declared < written, "{text}");
}
