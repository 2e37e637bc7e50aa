//# C = f(alpha * A * B + beta * C) with f16 operands and f32 sums, by NVIDIA's `mma.sync` of 16x8x16: a
//# work-group keeps STAGES steps of its rows of A and columns of B in local memory, brought there by
//# `cp.async` while earlier ones are multiplied; chunks of eight halves are permuted so that `ldmatrix`
//# finds eight rows in different banks. A warp of 32 invocations sums TILE_Y times 16 rows by TILE_X
//# times 8 columns and passes them through local memory to its invocations, which finish four columns
//# each. The copies pass through the first-level cache, where two work-groups on one multiprocessor
//# find each other's operands. Rows and columns beyond the edge are computed from the last and not stored; terms beyond it
//# are zero. Solo: WGSL has no inline assembly.
${constants}
#define LDMATRIX(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define LDMATRIX_T(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define MMA(c, a0, a1, a2, a3, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define COPY(to, from, bytes) asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_matrix_ptx(
    ${arguments}
) {
    __local uint4 staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint warp = lid / 32u;
    const uint lane = lid % 32u;
    const uint x = warp % WARPS_X;
    const uint y = warp / WARPS_X;
    const uint column = COLUMNS * group.x;
    const uint row = ROWS * group.y;
    const uint k = 4u * k4;
    const uint base = (uint)(size_t)staged;
    //% for l in range(LOADS_A)
    const uint a_row${l} = (lid + ${l}u * THREADS) / (STEP / 8u);
    const uint a_chunk${l} = (lid + ${l}u * THREADS) % (STEP / 8u);
    __global const half* a_from${l} = mat_a + 4u * (${apart("a_batch4", "group.z")} + lda4 * min(row + a_row${l}, m - 1u)) + 8u * a_chunk${l};
    const uint a_to${l} = base + 2u * STEP * a_row${l} + 16u * (a_chunk${l} ^ (a_row${l} / A_TURN % (STEP / 8u)));
    //% endfor
    //% for l in range(LOADS_B)
    const uint b_term${l} = (lid + ${l}u * THREADS) / (COLUMNS / 8u);
    const uint b_chunk${l} = (lid + ${l}u * THREADS) % (COLUMNS / 8u);
    __global const half* b_from${l} = mat_b + 4u * (${apart("b_batch4", "group.z")} + ldb4 * b_term${l}) + min(column + 8u * b_chunk${l}, 4u * n4 - 8u);
    const uint b_to${l} = base + B_FIRST + 2u * COLUMNS * b_term${l} + 16u * (b_chunk${l} ^ (b_term${l} / B_TURN % B_CHUNKS));
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    float4 sum${r}_${c} = (float4)(0.0f);
    //% endfor
    //% endfor
    //% macro fetch(term, to)
    //% for l in range(LOADS_A)
    COPY(a_to${l} + ${to}, a_from${l} + (${term} + 8u * a_chunk${l} < k ? ${term} : 0u), ${term} + 8u * a_chunk${l} < k ? 16u : 0u);
    //% endfor
    //% for l in range(LOADS_B)
    COPY(b_to${l} + ${to}, b_from${l} + (${term} + b_term${l} < k ? 4u * ldb4 * ${term} : 0u), ${term} + b_term${l} < k ? 16u : 0u);
    //% endfor
    COMMIT();
    //% endmacro
    //% for s in range(STAGES - 1)
    ${fetch(s ~ "u * STEP", s ~ "u * STAGE") | trim}
    //% endfor
    const uint a_lane = 16u * TILE_Y * y + lane % 16u;
    const uint a_turn = a_lane / A_TURN % (STEP / 8u);
    const uint b_turn = lane % 16u / B_TURN % B_CHUNKS;
    const uint a_at = base + 2u * STEP * a_lane;
    const uint b_at = base + B_FIRST + 2u * COLUMNS * (lane % 16u);
    uint now = 0u;
    uint next = (STAGES - 1u) * STAGE;
    for (uint term = 0u; term < k; term += STEP) {
        asm volatile("cp.async.wait_group ${STAGES - 2};" ::: "memory");
        ${barrier};
        const uint ahead = term + (STAGES - 1u) * STEP;
        ${fetch("ahead", "next") | trim | indent(4)}
        //% for t in range(STEP // 16)
        //% for r in range(tile[1])
        uint a${t}_${r}_0, a${t}_${r}_1, a${t}_${r}_2, a${t}_${r}_3;
        LDMATRIX(a${t}_${r}_0, a${t}_${r}_1, a${t}_${r}_2, a${t}_${r}_3, now + a_at + ${32 * r}u * STEP + 16u * ((${2 * t}u + lane / 16u) ^ a_turn));
        //% endfor
        //% for c in range(tile[0] // 2)
        uint b${t}_${c}_0, b${t}_${c}_1, b${t}_${c}_2, b${t}_${c}_3;
        LDMATRIX_T(b${t}_${c}_0, b${t}_${c}_1, b${t}_${c}_2, b${t}_${c}_3, now + b_at + ${32 * t}u * COLUMNS + 16u * ((TILE_X * x + ${2 * c}u + lane / 16u) ^ b_turn));
        //% endfor
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        MMA(sum${r}_${c}, a${t}_${r}_0, a${t}_${r}_1, a${t}_${r}_2, a${t}_${r}_3, b${t}_${c // 2}_${c % 2 * 2}, b${t}_${c // 2}_${c % 2 * 2 + 1});
        //% endfor
        //% endfor
        //% endfor
        now = now == (STAGES - 1u) * STAGE ? 0u : now + STAGE;
        next = next == (STAGES - 1u) * STAGE ? 0u : next + STAGE;
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    ${barrier};
    __local float4* passed = (__local float4*)staged + warp * 32u * TILE_X;
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ((__local float2*)passed)[4u * TILE_X * (lane / 4u) + ${4 * c}u + lane % 4u] = sum${r}_${c}.xy;
    ((__local float2*)passed)[4u * TILE_X * (lane / 4u + 8u) + ${4 * c}u + lane % 4u] = sum${r}_${c}.zw;
    //% endfor
    ${barrier};
    for (uint i = lane; i < 32u * TILE_X; i += 32u) {
        const uint to_row = row + 16u * (TILE_Y * y + ${r}u) + i / (2u * TILE_X);
        const uint to4 = column / 4u + 2u * TILE_X * x + i % (2u * TILE_X);
        if (to_row < m && to4 < n4) {
            const uint c_at = ${apart("c_batch4", "group.z")} + ldc4 * to_row + to4;
            ${acc4} sum = passed[i] * ${splat(param("alpha"))};
            //% if BETA
            sum = sum + ${splat(param("beta"))} * ${load4("mat_c", "c_at")};
            //% endif
            //% for line in epilogue("sum", "to4", "c_at")
            ${line}
            //% endfor
            ${store4("mat_c", "c_at", "sum")}
        }
    }
    ${barrier};
    //% endfor
}
