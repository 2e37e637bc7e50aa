// Four float4s per invocation, a whole grid apart, so that neighbours read and write neighbours.
// The grid covers the buffers exactly.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bench_copy(
    __global const float4* restrict src,
    __global float4* restrict dst,
    const uint stride
) {
    const uint gid = get_global_id(0);
    const float4 v0 = src[gid];
    const float4 v1 = src[gid + stride];
    const float4 v2 = src[gid + 2u * stride];
    const float4 v3 = src[gid + 3u * stride];
    dst[gid] = v0;
    dst[gid + stride] = v1;
    dst[gid + 2u * stride] = v2;
    dst[gid + 3u * stride] = v3;
}
