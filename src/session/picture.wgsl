// A picture as an input: one invocation computes a pixel of the network's, by bilinear interpolation between the four
// texels around the place that the framing gives it. Beyond the picture it is the border's colour.
struct Params {
    width: u32,
    height: u32,
    slot: u32,
    source_width: u32,
    source_height: u32,
    x_of_x: f32,
    x_of_y: f32,
    x_of_one: f32,
    y_of_x: f32,
    y_of_y: f32,
    y_of_one: f32,
    border_r: f32,
    border_g: f32,
    border_b: f32,
    border_a: f32,
    m00: f32, m01: f32, m02: f32, m03: f32, m04: f32,
    m10: f32, m11: f32, m12: f32, m13: f32, m14: f32,
    m20: f32, m21: f32, m22: f32, m23: f32, m24: f32,
    m30: f32, m31: f32, m32: f32, m33: f32, m34: f32,
}

@group(0) @binding(0) var src: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<ELEMENT>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(8, 8, 1)
fn picture(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.width || gid.y >= params.height) {
        return;
    }
    let x: f32 = f32(gid.x) + 0.5;
    let y: f32 = f32(gid.y) + 0.5;
    let u: f32 = params.x_of_x * x + params.x_of_y * y + params.x_of_one;
    let v: f32 = params.y_of_x * x + params.y_of_y * y + params.y_of_one;
    let right: f32 = f32(params.source_width) - 1.0;
    let bottom: f32 = f32(params.source_height) - 1.0;
    // Texel centres lie at halves, and the outermost ones reach to the edge.
    let s: f32 = clamp(u - 0.5, 0.0, right);
    let t: f32 = clamp(v - 0.5, 0.0, bottom);
    // Within what is bound, whatever the numbers are.
    let held: vec2<u32> = HELD;
    let x0: u32 = min(u32(s), held.x - 1u);
    let y0: u32 = min(u32(t), held.y - 1u);
    let x1: u32 = min(x0 + 1u, held.x - 1u);
    let y1: u32 = min(y0 + 1u, held.y - 1u);
    let fx: f32 = s - f32(x0);
    let fy: f32 = t - f32(y0);
    let a: vec4<f32> = textureLoad(src, vec2<u32>(x0, y0), 0);
    let b: vec4<f32> = textureLoad(src, vec2<u32>(x1, y0), 0);
    let c: vec4<f32> = textureLoad(src, vec2<u32>(x0, y1), 0);
    let d: vec4<f32> = textureLoad(src, vec2<u32>(x1, y1), 0);
    let above: vec4<f32> = a + (b - a) * fx;
    let below: vec4<f32> = c + (d - c) * fx;
    var p: vec4<f32> = above + (below - above) * fy;
    if (u < 0.0 || v < 0.0 || u > f32(params.source_width) || v > f32(params.source_height)) {
        p = vec4<f32>(params.border_r, params.border_g, params.border_b, params.border_a);
    }
    let v0: f32 = params.m00 * p.x + params.m01 * p.y + params.m02 * p.z + params.m03 * p.w + params.m04;
    let v1: f32 = params.m10 * p.x + params.m11 * p.y + params.m12 * p.z + params.m13 * p.w + params.m14;
    let v2: f32 = params.m20 * p.x + params.m21 * p.y + params.m22 * p.z + params.m23 * p.w + params.m24;
    let v3: f32 = params.m30 * p.x + params.m31 * p.y + params.m32 * p.z + params.m33 * p.w + params.m34;
    let pixel: u32 = gid.x + params.width * (gid.y + params.height * params.slot);
    STORE
}
