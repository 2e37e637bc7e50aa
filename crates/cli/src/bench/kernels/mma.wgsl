enable f16;
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> dst: array<vec4<f32>>;
struct Params {
    steps: u32,
    factor: f32,
}
@group(0) @binding(1) var<uniform> params: Params;
var<workgroup> staged: array<vec4<f16>, 64>;
var<workgroup> passed: array<vec4<f32>, 512>;

// sum = A * B + sum with f16 operands and f32 sums, in eight matrices of 16 by 16 that do not wait for
// each other. Every element of A and B is the factor, which comes from outside, so that no compiler
// knows the result. A wave of 32 invocations shares a matrix.
@compute @workgroup_size(256, 1, 1)
fn bench_mma(@builtin(local_invocation_index) lid: u32, @builtin(global_invocation_id) gid: vec3<u32>) {
    let wave: u32 = lid / 32u;
    let lane: u32 = lid % 32u;
    if (lid < 64u) {
        staged[lid] = vec4<f16>(f16(params.factor));
    }
    workgroupBarrier();
    let a: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&staged[0], 4u);
    let b: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&staged[0], 4u);
    var sum0: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum1: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum2: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum3: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum4: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum5: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum6: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    var sum7: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        sum0 = coopMultiplyAdd(a, b, sum0);
        sum1 = coopMultiplyAdd(a, b, sum1);
        sum2 = coopMultiplyAdd(a, b, sum2);
        sum3 = coopMultiplyAdd(a, b, sum3);
        sum4 = coopMultiplyAdd(a, b, sum4);
        sum5 = coopMultiplyAdd(a, b, sum5);
        sum6 = coopMultiplyAdd(a, b, sum6);
        sum7 = coopMultiplyAdd(a, b, sum7);
    }
    var total: vec4<f32> = vec4<f32>(0.0f);
    coopStoreT(sum0, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum1, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum2, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum3, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum4, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum5, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum6, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    workgroupBarrier();
    coopStoreT(sum7, &passed[64u * wave], 4u);
    workgroupBarrier();
    total = total + passed[64u * wave + lane];
    dst[gid.x] = total;
}
