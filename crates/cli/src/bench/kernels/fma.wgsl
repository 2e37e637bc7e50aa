@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f32>>;
struct Params {
    steps: u32,
    factor: f32,
    addend: f32,
}
@group(0) @binding(1) var<uniform> params: Params;

// x = factor * x + addend, in eight chains that do not wait for each other; a chain is of type T,
// which stands above. Factor and addend come from outside, so that no compiler knows the result.
@compute @workgroup_size(256, 1, 1)
fn bench_fma(@builtin(global_invocation_id) gid: vec3<u32>) {
    let scale: T = T(params.factor);
    let shift: T = T(params.addend);
    let seed: f32 = f32(gid.x % 256u);
    var x0: T = T(seed + 0.0f);
    var x1: T = T(seed + 1.0f);
    var x2: T = T(seed + 2.0f);
    var x3: T = T(seed + 3.0f);
    var x4: T = T(seed + 4.0f);
    var x5: T = T(seed + 5.0f);
    var x6: T = T(seed + 6.0f);
    var x7: T = T(seed + 7.0f);
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
    dst[gid.x] = vec4<f32>(x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
}
