// A picture as an input: one invocation computes a pixel of the network's, by bilinear interpolation between the four
// samples around the place that the framing gives it. Beyond the picture it is the border's colour.
struct Params {
    PARAMS
}

BINDINGS
FUNCTIONS
// A place among the centres of the samples along an axis: the sample before it, the one behind it, and how far it is.
fn before(place: f32, extent: u32) -> u32 {
    // Within the samples, whatever the numbers are.
    return min(u32(clamp(place, 0.0, f32(extent) - 1.0)), extent - 1u);
}

fn part(place: f32, extent: u32) -> f32 {
    return clamp(place, 0.0, f32(extent) - 1.0) - f32(before(place, extent));
}

@compute @workgroup_size(8, 8, 1)
fn picture(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.width || gid.y >= params.height) {
        return;
    }
    let x: f32 = f32(gid.x) + 0.5;
    let y: f32 = f32(gid.y) + 0.5;
    let u: f32 = params.x_of_x * x + params.x_of_y * y + params.x_of_one;
    let v: f32 = params.y_of_x * x + params.y_of_y * y + params.y_of_one;
    // Samples' centres lie at halves, and the outermost ones reach to the edge.
    let x0: u32 = before(u - 0.5, params.source_width);
    let y0: u32 = before(v - 0.5, params.source_height);
    let x1: u32 = min(x0 + 1u, params.source_width - 1u);
    let y1: u32 = min(y0 + 1u, params.source_height - 1u);
    let fx: f32 = part(u - 0.5, params.source_width);
    let fy: f32 = part(v - 0.5, params.source_height);
    SAMPLE
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
