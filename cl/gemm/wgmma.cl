//# C = f(alpha * A * B + beta * C) with f16 operands and f32 sums, by Hopper's `wgmma`: a warp group of 128
//# invocations multiplies 64 rows by all COLUMNS at once, straight from local memory. A step of 64 terms
//# lies there as the unit reads it, in lines of 128 bytes whose chunks of sixteen are permuted by the
//# line (the PTX ISA's 128-byte swizzle): A a row per line, B a term per line of 64 columns. `cp.async`
//# brings AHEAD steps while OVERLAP + 1 are multiplied. A warp passes its sums through local memory to
//# its invocations, which finish four columns each. Rows and columns beyond the edge are computed from
//# the last and not stored; terms beyond it are zero. What stands in a comment that begins with an
//# architecture's name is put in when the program is made for that. Solo: WGSL has no inline assembly.
${constants}
#define COPY(to, from, bytes) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
//% set last = COLUMNS // 2
//% macro sums()
/*% for i in range(last) %*/${ ", " if i else "" }"+f"(sum${i})/*% endfor %*/
//% endmacro
#define MULTIPLY(a, b) asm volatile("/*sm_90a { .reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n${COLUMNS}k16.f32.f16.f16 {/*% for i in range(last) %*/${ ", " if i else "" }%${i}/*% endfor %*/}, %${last}, %${last + 1}, add, 1, 1, 0, 1; } */" : ${sums() | trim} : "l"(a), "l"(b))
#define WAIT() asm volatile("/*sm_90a wgmma.wait_group.sync.aligned 0; */" : ${sums() | trim} :: "memory")
// Where a matrix lies in local memory: 1024 bytes from one group of eight lines to the next; of B, 8192
// from one block of 64 columns to the next.
#define DESCRIBE_A(at) (0x4000004000010000ul + ((at) >> 4))
#define DESCRIBE_B(at) (0x4000004002000000ul + ((at) >> 4))

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_wgmma(
    ${arguments}
) {
    __local uint4 staged[STAGED] __attribute__((aligned(1024)));
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint lane = lid % 32u;
    const uint warp = lid / 32u;
    const uint column = COLUMNS * group.x;
    const uint row = ROWS * group.y;
    const uint k = 4u * k4;
    const uint ldb = 4u * ldb4;
    const uint base = (uint)(size_t)staged;
    const uint chunk = lid % 8u;
    const uint line = lid / 8u;
    const uint to = base + 128u * line + 16u * (chunk ^ line % 8u);
    __global const half* a_from = mat_a + 4u * ${apart("a_batch4", "group.z")} + 8u * chunk;
    //% for l in range(ROWS // LINES)
    const uint a_row${l} = 4u * lda4 * min(row + line + ${l}u * LINES, m - 1u);
    //% endfor
    __global const half* b_from = mat_b + 4u * ${apart("b_batch4", "group.z")};
    //% for q in range(COLUMNS // 64)
    const uint b_column${q} = min(column + ${64 * q}u + 8u * chunk, 4u * n4 - 8u);
    //% endfor
    float /*% for i in range(last) %*/${ ", " if i else "" }sum${i} = 0.0f/*% endfor %*/;
    //% macro fetch(term, at)
    if (${term} < k) {
        //% for l in range(ROWS // LINES)
        //% if RAGGED
        COPY(to + ${at} + ${l}u * 128u * LINES, a_from + (a_row${l} + (${term} + 8u * chunk < k ? ${term} : 0u)), ${term} + 8u * chunk < k ? 16u : 0u);
        //% else
        COPY(to + ${at} + ${l}u * 128u * LINES, a_from + (a_row${l} + ${term}), 16u);
        //% endif
        //% endfor
        //% for p in range(64 // LINES)
        {
            const uint term = ${term} + line + ${p}u * LINES;
            //% for q in range(COLUMNS // 64)
            //% if RAGGED
            COPY(to + ${at} + B_FIRST + ${8192 * q}u + ${p}u * 128u * LINES, b_from + ((term < k ? ldb * term : 0u) + b_column${q}), term < k ? 16u : 0u);
            //% else
            COPY(to + ${at} + B_FIRST + ${8192 * q}u + ${p}u * 128u * LINES, b_from + (ldb * term + b_column${q}), 16u);
            //% endif
            //% endfor
        }
        //% endfor
    }
    COMMIT();
    //% endmacro
    //% for s in range(AHEAD)
    ${fetch(s ~ "u * STEP", s ~ "u * STAGE") | trim}
    //% endfor
    uint now = 0u;
    uint next = AHEAD * STAGE;
    for (uint first = 0u; first < k; first += STEP) {
        asm volatile("cp.async.wait_group ${AHEAD - 1};" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        ${barrier};
        asm volatile("/*sm_90a wgmma.fence.sync.aligned; */" ::: "memory");
        const ulong a_now = DESCRIBE_A(base + now + 8192u * (lid / 128u));
        const ulong b_now = DESCRIBE_B(base + now + B_FIRST);
        //% for t in range(4)
        MULTIPLY(a_now + ${2 * t}ul, b_now + ${128 * t}ul);
        //% endfor
        asm volatile("/*sm_90a wgmma.commit_group.sync.aligned; */" ::: "memory");
        const uint ahead = first + AHEAD * STEP;
        ${fetch("ahead", "next") | trim | indent(4)}
        asm volatile("/*sm_90a wgmma.wait_group.sync.aligned ${OVERLAP}; */" ::: "memory");
        now = now == (STAGES - 1u) * STAGE ? 0u : now + STAGE;
        next = next == (STAGES - 1u) * STAGE ? 0u : next + STAGE;
    }
    WAIT();
    ${barrier};
    __local float4* passed = (__local float4*)staged + warp * 16u * PITCH;
    const uint first_row = row + 16u * warp;
    //% for part in range(COLUMNS // PART)
    //% for j in range(PART // 8)
    //% set i = part * PART // 2 + 4 * j
    ((__local float2*)passed)[2u * PITCH * (lane / 4u) + ${4 * j}u + lane % 4u] = (float2)(sum${i}, sum${i + 1});
    ((__local float2*)passed)[2u * PITCH * (lane / 4u + 8u) + ${4 * j}u + lane % 4u] = (float2)(sum${i + 2}, sum${i + 3});
    //% endfor
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    for (uint i = lane; i < 4u * PART; i += 32u) {
        const uint to_row = first_row + i / (PART / 4u);
        const uint to4 = column / 4u + ${part}u * (PART / 4u) + i % (PART / 4u);
        if (to_row < m && to4 < n4) {
            const uint c_at = ${apart("c_batch4", "group.z")} + ldc4 * to_row + to4;
            ${acc4} sum = passed[PITCH * (i / (PART / 4u)) + i % (PART / 4u)] * ${splat(param("alpha"))};
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
