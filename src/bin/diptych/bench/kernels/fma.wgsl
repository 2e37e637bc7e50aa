@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f32>>;
struct Params {
    steps: u32,
    factor: f32,
    addend: f32,
}
@group(0) @binding(1) var<uniform> params: Params;

// x = factor * x + addend, in eight chains of vec4 that do not wait for each other. Factor and
// addend come from outside, so that no compiler knows the result.
@compute @workgroup_size(256, 1, 1)
fn bench_fma(@builtin(global_invocation_id) gid: vec3<u32>) {
    let scale: vec4<f32> = vec4<f32>(params.factor);
    let shift: vec4<f32> = vec4<f32>(params.addend);
    let seed: f32 = f32(gid.x % 256u);
    var x0: vec4<f32> = vec4<f32>(seed + 0.0f);
    var x1: vec4<f32> = vec4<f32>(seed + 1.0f);
    var x2: vec4<f32> = vec4<f32>(seed + 2.0f);
    var x3: vec4<f32> = vec4<f32>(seed + 3.0f);
    var x4: vec4<f32> = vec4<f32>(seed + 4.0f);
    var x5: vec4<f32> = vec4<f32>(seed + 5.0f);
    var x6: vec4<f32> = vec4<f32>(seed + 6.0f);
    var x7: vec4<f32> = vec4<f32>(seed + 7.0f);
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        x0 = fma(scale, x0, shift);
        x1 = fma(scale, x1, shift);
        x2 = fma(scale, x2, shift);
        x3 = fma(scale, x3, shift);
        x4 = fma(scale, x4, shift);
        x5 = fma(scale, x5, shift);
        x6 = fma(scale, x6, shift);
        x7 = fma(scale, x7, shift);
        x0 = fma(scale, x0, shift);
        x1 = fma(scale, x1, shift);
        x2 = fma(scale, x2, shift);
        x3 = fma(scale, x3, shift);
        x4 = fma(scale, x4, shift);
        x5 = fma(scale, x5, shift);
        x6 = fma(scale, x6, shift);
        x7 = fma(scale, x7, shift);
        x0 = fma(scale, x0, shift);
        x1 = fma(scale, x1, shift);
        x2 = fma(scale, x2, shift);
        x3 = fma(scale, x3, shift);
        x4 = fma(scale, x4, shift);
        x5 = fma(scale, x5, shift);
        x6 = fma(scale, x6, shift);
        x7 = fma(scale, x7, shift);
        x0 = fma(scale, x0, shift);
        x1 = fma(scale, x1, shift);
        x2 = fma(scale, x2, shift);
        x3 = fma(scale, x3, shift);
        x4 = fma(scale, x4, shift);
        x5 = fma(scale, x5, shift);
        x6 = fma(scale, x6, shift);
        x7 = fma(scale, x7, shift);
    }
    dst[gid.x] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}
