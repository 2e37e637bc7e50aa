// x = factor * x + addend, in eight chains that do not wait for each other; a chain is of type T,
// which stands above. Factor and addend come from outside, so that no compiler knows the result. It is
// `mad`, as in the ops' kernels.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bench_fma(
    __global float4* restrict dst,
    const uint steps,
    const float factor,
    const float addend
) {
    const uint gid = get_global_id(0);
    const T scale = (T)(factor);
    const T shift = (T)(addend);
    const float seed = (float)(gid % 256u);
    T x0 = (T)(seed + 0.0f);
    T x1 = (T)(seed + 1.0f);
    T x2 = (T)(seed + 2.0f);
    T x3 = (T)(seed + 3.0f);
    T x4 = (T)(seed + 4.0f);
    T x5 = (T)(seed + 5.0f);
    T x6 = (T)(seed + 6.0f);
    T x7 = (T)(seed + 7.0f);
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
    dst[gid] = (float4)(x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
}
