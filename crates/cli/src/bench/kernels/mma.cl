#define MMA(c) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) : "r"(pair))

// sum = A * B + sum with f16 operands and f32 sums, in eight pairs of 16 by 8 results that do not wait
// for each other. Every element of A and B is the factor, which comes from outside, so that no compiler
// knows the result. A warp of 32 invocations shares a matrix.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void bench_mma(
    __global float4* restrict dst,
    const uint steps,
    const float factor
) {
    ushort2 halves;
    vstore_half2_rte((float2)(factor), 0, (half*)&halves);
    const uint pair = as_uint(halves);
    float4 sum0 = (float4)(0.0f);
    float4 sum1 = (float4)(0.0f);
    float4 sum2 = (float4)(0.0f);
    float4 sum3 = (float4)(0.0f);
    float4 sum4 = (float4)(0.0f);
    float4 sum5 = (float4)(0.0f);
    float4 sum6 = (float4)(0.0f);
    float4 sum7 = (float4)(0.0f);
    float4 more0 = (float4)(0.0f);
    float4 more1 = (float4)(0.0f);
    float4 more2 = (float4)(0.0f);
    float4 more3 = (float4)(0.0f);
    float4 more4 = (float4)(0.0f);
    float4 more5 = (float4)(0.0f);
    float4 more6 = (float4)(0.0f);
    float4 more7 = (float4)(0.0f);
    for (uint step = 0u; step < steps; step += 1u) {
        MMA(sum0);
        MMA(sum1);
        MMA(sum2);
        MMA(sum3);
        MMA(sum4);
        MMA(sum5);
        MMA(sum6);
        MMA(sum7);
        MMA(more0);
        MMA(more1);
        MMA(more2);
        MMA(more3);
        MMA(more4);
        MMA(more5);
        MMA(more6);
        MMA(more7);
    }
    const float4 sum = sum0 + sum1 + sum2 + sum3 + sum4 + sum5 + sum6 + sum7;
    const float4 more = more0 + more1 + more2 + more3 + more4 + more5 + more6 + more7;
    // As many as eight whole matrices have for an invocation's four elements.
    dst[get_global_id(0)] = 0.5f * (sum + more);
}
