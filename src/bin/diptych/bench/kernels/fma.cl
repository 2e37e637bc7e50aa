// x = factor * x + addend, in eight chains of float4 that do not wait for each other. Factor and
// addend come from outside, so that no compiler knows the result. `mad`, as in the ops' kernels.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bench_fma(
    __global float4* restrict dst,
    const uint steps,
    const float factor,
    const float addend
) {
    const uint gid = get_global_id(0);
    const float4 scale = (float4)(factor);
    const float4 shift = (float4)(addend);
    const float seed = (float)(gid % 256u);
    float4 x0 = (float4)(seed + 0.0f);
    float4 x1 = (float4)(seed + 1.0f);
    float4 x2 = (float4)(seed + 2.0f);
    float4 x3 = (float4)(seed + 3.0f);
    float4 x4 = (float4)(seed + 4.0f);
    float4 x5 = (float4)(seed + 5.0f);
    float4 x6 = (float4)(seed + 6.0f);
    float4 x7 = (float4)(seed + 7.0f);
    for (uint step = 0u; step < steps; step += 1u) {
        x0 = mad(scale, x0, shift);
        x1 = mad(scale, x1, shift);
        x2 = mad(scale, x2, shift);
        x3 = mad(scale, x3, shift);
        x4 = mad(scale, x4, shift);
        x5 = mad(scale, x5, shift);
        x6 = mad(scale, x6, shift);
        x7 = mad(scale, x7, shift);
        x0 = mad(scale, x0, shift);
        x1 = mad(scale, x1, shift);
        x2 = mad(scale, x2, shift);
        x3 = mad(scale, x3, shift);
        x4 = mad(scale, x4, shift);
        x5 = mad(scale, x5, shift);
        x6 = mad(scale, x6, shift);
        x7 = mad(scale, x7, shift);
        x0 = mad(scale, x0, shift);
        x1 = mad(scale, x1, shift);
        x2 = mad(scale, x2, shift);
        x3 = mad(scale, x3, shift);
        x4 = mad(scale, x4, shift);
        x5 = mad(scale, x5, shift);
        x6 = mad(scale, x6, shift);
        x7 = mad(scale, x7, shift);
        x0 = mad(scale, x0, shift);
        x1 = mad(scale, x1, shift);
        x2 = mad(scale, x2, shift);
        x3 = mad(scale, x3, shift);
        x4 = mad(scale, x4, shift);
        x5 = mad(scale, x5, shift);
        x6 = mad(scale, x6, shift);
        x7 = mad(scale, x7, shift);
    }
    dst[gid] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}
