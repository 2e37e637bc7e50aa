@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<f32>>;
struct Params {
    stride: u32,
}
@group(0) @binding(2) var<uniform> params: Params;

// Four vec4s per invocation, a whole grid apart, so that neighbours read and write neighbours. The
// grid covers the buffers exactly.
@compute @workgroup_size(256, 1, 1)
fn bench_copy(@builtin(global_invocation_id) gid: vec3<u32>) {
    let v0: vec4<f32> = src[gid.x];
    let v1: vec4<f32> = src[gid.x + params.stride];
    let v2: vec4<f32> = src[gid.x + 2u * params.stride];
    let v3: vec4<f32> = src[gid.x + 3u * params.stride];
    dst[gid.x] = v0;
    dst[gid.x + params.stride] = v1;
    dst[gid.x + 2u * params.stride] = v2;
    dst[gid.x + 3u * params.stride] = v3;
}
