//# C = f(alpha * A * B + beta * C) with f32 operands of ten bits of mantissa and f32 sums, by Hopper's
//# `wgmma`. For tf32 the unit reads one operand from local memory in rows along the terms, as A lies,
//# and the other from registers: so C^T = B^T * A^T is computed. A warp group of 128 invocations
//# multiplies 64 columns of B, rounded to tf32 on their way from local memory to registers, with all
//# ROWS rows of A, which the unit cuts to tf32. A step of 32 terms of A lies in lines of 128 bytes whose
//# chunks of sixteen are permuted by the line (the PTX ISA's 128-byte swizzle); the chunks of B are
//# permuted so that a warp reads different banks. `cp.async` brings AHEAD steps while one is
//# multiplied. A warp passes its sums through local memory to its invocations, which finish four
//# columns each. Rows and columns beyond the edge are computed from the last and not stored; terms
//# beyond it are zero. What stands in a comment that begins with an architecture's name is put in when
//# the program is made for that. Solo: WGSL has no inline assembly.
${constants}
#define COPY(to, from, bytes) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define ROUND(to, from) asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(from))
//% set last = ROWS // 2
//% macro sums()
/*% for i in range(last) %*/${ ", " if i else "" }"+f"(sum${i})/*% endfor %*/
//% endmacro
#define MULTIPLY(b0, b1, b2, b3, a) asm volatile("/*sm_90a { .reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n${ROWS}k8.f32.tf32.tf32 {/*% for i in range(last) %*/${ ", " if i else "" }%${i}/*% endfor %*/}, {%${last}, %${last + 1}, %${last + 2}, %${last + 3}}, %${last + 4}, add, 1, 1; } */" : ${sums() | trim} : "r"(b0), "r"(b1), "r"(b2), "r"(b3), "l"(a))
#define WAIT() asm volatile("/*sm_90a wgmma.wait_group.sync.aligned 0; */" : ${sums() | trim} :: "memory")
// Where a matrix lies in local memory: 1024 bytes from one group of eight lines to the next.
#define DESCRIBE_A(at) (0x4000004000010000ul + ((at) >> 4))

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_wgmma_tf32(
    ${arguments}
) {
    __local uint4 staged[STAGED] __attribute__((aligned(1024)));
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint lane = lid % 32u;
    const uint warp = lid / 32u;
    const uint column = COLUMNS * group.x;
    const uint row = ROWS * group.y;
    const uint base = (uint)(size_t)staged;
    const uint a_chunk = lid % 8u;
    const uint a_line = lid / 8u;
    const uint a_to = base + 128u * a_line + 16u * (a_chunk ^ a_line % 8u);
    __global const float4* a_from = mat_a + ${apart("a_batch4", "group.z")} + a_chunk;
    //% for l in range(ROWS // LINES)
    const uint a_row${l} = lda4 * min(row + a_line + ${l}u * LINES, m - 1u);
    //% endfor
    const uint b_chunk = lid % (COLUMNS / 4u);
    const uint b_line = lid / (COLUMNS / 4u);
    const uint b_to = base + B_FIRST + 4u * COLUMNS * b_line + 16u * (b_chunk ^ 2u * (b_line % 4u));
    __global const float4* b_from = mat_b + ${apart("b_batch4", "group.z")} + min(column / 4u + b_chunk, n4 - 1u);
    float /*% for i in range(last) %*/${ ", " if i else "" }sum${i} = 0.0f/*% endfor %*/;
    //% macro fetch(term4, at)
    if (${term4} < k4) {
        const uint inside = ${term4} + a_chunk < k4 ? 16u : 0u;
        const uint term4 = inside == 0u ? 0u : ${term4};
        //% for l in range(ROWS // LINES)
        COPY(a_to + ${at} + ${l}u * 128u * LINES, a_from + (a_row${l} + term4), inside);
        //% endfor
        //% for p in range(4)
        {
            const uint term = 4u * ${term4} + b_line + 8u * ${p}u;
            COPY(b_to + ${at} + ${p}u * 32u * COLUMNS, b_from + (term < 4u * k4 ? ldb4 * term : 0u), term < 4u * k4 ? 16u : 0u);
        }
        //% endfor
    }
    COMMIT();
    //% endmacro
    //% for s in range(AHEAD)
    ${fetch(s ~ "u * (STEP / 4u)", s ~ "u * STAGE") | trim}
    //% endfor
    // A lane's values of B: columns 8 apart in two chunks, terms 4 apart in lines.
    const uint held = 16u * warp + lane / 4u;
    const uint chunk = held / 4u ^ 2u * (lane % 4u);
    __local const float* b_low = (__local const float*)staged + B_FIRST / 4u + COLUMNS * (lane % 4u) + 4u * chunk + held % 4u;
    __local const float* b_high = b_low - 4u * chunk + 4u * (chunk ^ 2u);
    uint now = 0u;
    uint next = AHEAD * STAGE;
    for (uint first4 = 0u; first4 < k4; first4 += STEP / 4u) {
        asm volatile("cp.async.wait_group ${AHEAD - 1};" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        ${barrier};
        //% for t in range(4)
        uint b${t}_0, b${t}_1, b${t}_2, b${t}_3;
        ROUND(b${t}_0, b_low[now / 4u + ${8 * t}u * COLUMNS]);
        ROUND(b${t}_1, b_high[now / 4u + ${8 * t}u * COLUMNS]);
        ROUND(b${t}_2, b_low[now / 4u + ${8 * t + 4}u * COLUMNS]);
        ROUND(b${t}_3, b_high[now / 4u + ${8 * t + 4}u * COLUMNS]);
        //% endfor
        asm volatile("/*sm_90a wgmma.fence.sync.aligned; */" ::: "memory");
        const ulong a_now = DESCRIBE_A(base + now);
        //% for t in range(4)
        MULTIPLY(b${t}_0, b${t}_1, b${t}_2, b${t}_3, a_now + ${2 * t}ul);
        //% endfor
        asm volatile("/*sm_90a wgmma.commit_group.sync.aligned; */" ::: "memory");
        const uint ahead4 = first4 + AHEAD * (STEP / 4u);
        ${fetch("ahead4", "next") | trim | indent(4)}
        WAIT();
        now = now == (STAGES - 1u) * STAGE ? 0u : now + STAGE;
        next = next == (STAGES - 1u) * STAGE ? 0u : next + STAGE;
    }
    ${barrier};
    __local float* passed = (__local float*)staged + 64u * PITCH * warp;
    //% for part in range(ROWS // 64)
    //% for j in range(8)
    //% for e in range(4)
    passed[PITCH * (${8 * j + e % 2}u + 2u * (lane % 4u)) + lane / 4u + ${e // 2 * 8}u] = sum${32 * part + 4 * j + e};
    //% endfor
    //% endfor
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    for (uint i = lane; i < 256u; i += 32u) {
        const uint to_row = row + ${64 * part}u + i / 4u;
        const uint to4 = column / 4u + 4u * warp + i % 4u;
        if (to_row < m && to4 < n4) {
            const uint c_at = ${apart("c_batch4", "group.z")} + ldc4 * to_row + to4;
            ${acc4} sum = ((__local float4*)passed)[PITCH / 4u * (i / 4u) + i % 4u] * ${splat(param("alpha"))};
            //% if BETA
            sum = sum + ${splat(param("beta"))} * ${load4("mat_c", "c_at")};
            //% endif
            //% for line in epilogue("sum", "to4", "c_at")
            ${line}
            //% endfor
            ${store4("mat_c", "c_at", "sum")}
        }
    }
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    //% endfor
}
