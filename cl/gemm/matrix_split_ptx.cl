//# C = f(alpha * A * B + beta * C) of f32 operands as sums of two halves, with f32 sums, by NVIDIA's `mma.sync`
//# of 16x8x16: a work-group stages STEP terms of its rows of A and columns of B, the nearest halves and, LOW
//# further on, 2048 times what they leave; while they are multiplied, the next terms travel into registers. A
//# warp of 32 invocations sums TILE_Y times 16 rows by TILE_X times 8 columns, three products for each, the two
//# small ones by themselves, and passes them through local memory to its invocations, which finish four columns
//# each. Rows are an odd number of 16 bytes long, so that `ldmatrix` finds eight in different banks. Rows and
//# columns beyond the edge are computed from the last one and not stored; terms beyond it are zero. Solo: WGSL
//# has no inline assembly.
${constants}
#define LDMATRIX(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define LDMATRIX_T(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define MMA(c, a0, a1, a2, a3, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define HALVES(halves, x, y) asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(halves) : "f"(x), "f"(y))
#define FLOATS(x, y, halves) asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(x), "=f"(y) : "r"(halves))

void put(__local uint2* staged, const uint at, const float4 value) {
    uint2 high, low;
    HALVES(high.x, value.x, value.y);
    HALVES(high.y, value.z, value.w);
    float4 rest;
    FLOATS(rest.x, rest.y, high.x);
    FLOATS(rest.z, rest.w, high.y);
    rest = (value - rest) * 2048.0f;
    HALVES(low.x, rest.x, rest.y);
    HALVES(low.y, rest.z, rest.w);
    staged[at] = high;
    staged[at + LOW] = low;
}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_matrix_split_ptx(
    ${arguments}
) {
    __local __attribute__((aligned(16))) uint2 staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint warp = lid / 32u;
    const uint lane = lid % 32u;
    const uint x = warp % WAVES_X;
    const uint y = warp / WAVES_X;
    const uint column4 = COLUMNS4 * group.x;
    const uint row = ROWS * group.y;
    const uint base = (uint)(size_t)staged;
    //% for l in range(LOADS_A)
    const uint a_row${l} = (lid + ${l}u * THREADS) / (STEP / 4u);
    const uint a_term${l} = (lid + ${l}u * THREADS) % (STEP / 4u);
    const uint a_from${l} = ${apart("a_batch4", "group.z")} + lda4 * min(row + a_row${l}, m - 1u);
    const uint a_to${l} = A_ROW * a_row${l} + a_term${l};
    float4 a_next${l};
    //% endfor
    //% for l in range(LOADS_B)
    const uint b_term${l} = (lid + ${l}u * THREADS) / COLUMNS4;
    const uint b_column${l} = (lid + ${l}u * THREADS) % COLUMNS4;
    const uint b_from${l} = ${apart("b_batch4", "group.z")} + min(column4 + b_column${l}, n4 - 1u);
    const uint b_to${l} = B_FIRST + B_ROW * b_term${l} + b_column${l};
    float4 b_next${l};
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    float4 sum${r}_${c} = (float4)(0.0f);
    float4 low${r}_${c} = (float4)(0.0f);
    //% endfor
    //% endfor
    //% macro fetch(ahead4)
    //% for l in range(LOADS_A)
    a_next${l} = mat_a[a_from${l} + ${"min(a_term" ~ l ~ " + " ~ ahead4 ~ ", k4 - 1u)" if RAGGED else "a_term" ~ l ~ " + " ~ ahead4}];
    //% endfor
    //% for l in range(LOADS_B)
    b_next${l} = mat_b[b_from${l} + ldb4 * ${"min(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ", 4u * k4 - 1u)" if RAGGED else "(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ")"}];
    //% endfor
    //% for l in range(LOADS_A) if RAGGED
    if (a_term${l} + ${ahead4} >= k4) {
        a_next${l} = (float4)(0.0f);
    }
    //% endfor
    //% for l in range(LOADS_B) if RAGGED
    if (b_term${l} + 4u * ${ahead4} >= 4u * k4) {
        b_next${l} = (float4)(0.0f);
    }
    //% endfor
    //% endmacro
    //% macro stage()
    //% for l in range(LOADS_A)
    put(staged, a_to${l}, a_next${l});
    //% endfor
    //% for l in range(LOADS_B)
    put(staged, b_to${l}, b_next${l});
    //% endfor
    ${barrier};
    //% endmacro
    ${fetch("0u") | trim}
    ${stage() | trim}
    const uint a_at = base + 8u * A_ROW * (16u * TILE_Y * y + lane % 16u) + 16u * (lane / 16u);
    const uint b_at = base + 8u * (B_FIRST + B_ROW * (lane % 16u) + 2u * TILE_X * x) + 16u * (lane / 16u);
    const uint terms4 = STEP / 4u * ((k4 + STEP / 4u - 1u) / (STEP / 4u));
    for (uint done4 = STEP / 4u; done4 <= terms4; done4 += STEP / 4u) {
        const uint ahead4 = min(done4, terms4 - STEP / 4u);
        ${fetch("ahead4") | trim | indent(4)}
        //% for t in range(STEP // 16)
        //% for r in range(tile[1])
        //% for p in range(2)
        uint a${t}_${r}_${p}_0, a${t}_${r}_${p}_1, a${t}_${r}_${p}_2, a${t}_${r}_${p}_3;
        LDMATRIX(a${t}_${r}_${p}_0, a${t}_${r}_${p}_1, a${t}_${r}_${p}_2, a${t}_${r}_${p}_3, a_at + ${32 * t}u + ${128 * r}u * A_ROW + ${8 * p}u * LOW);
        //% endfor
        //% endfor
        //% for c in range(tile[0] // 2)
        //% for p in range(2)
        uint b${t}_${c}_${p}_0, b${t}_${c}_${p}_1, b${t}_${c}_${p}_2, b${t}_${c}_${p}_3;
        LDMATRIX_T(b${t}_${c}_${p}_0, b${t}_${c}_${p}_1, b${t}_${c}_${p}_2, b${t}_${c}_${p}_3, b_at + ${128 * t}u * B_ROW + ${32 * c}u + ${8 * p}u * LOW);
        //% endfor
        //% for sum, p, q in [("low", 0, 1), ("low", 1, 0), ("sum", 0, 0)]
        //% for r in range(tile[1])
        //% for e in range(2)
        MMA(${sum}${r}_${2 * c + e}, a${t}_${r}_${p}_0, a${t}_${r}_${p}_1, a${t}_${r}_${p}_2, a${t}_${r}_${p}_3, b${t}_${c}_${q}_${2 * e}, b${t}_${c}_${q}_${2 * e + 1});
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
        ${stage() | trim | indent(4)}
    }
    __local float4* passed = (__local float4*)staged + warp * 32u * TILE_X;
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ((__local float2*)passed)[4u * TILE_X * (lane / 4u) + ${4 * c}u + lane % 4u] = sum${r}_${c}.xy + low${r}_${c}.xy * (1.0f / 2048.0f);
    ((__local float2*)passed)[4u * TILE_X * (lane / 4u + 8u) + ${4 * c}u + lane % 4u] = sum${r}_${c}.zw + low${r}_${c}.zw * (1.0f / 2048.0f);
    //% endfor
    ${barrier};
    for (uint i = lane; i < 32u * TILE_X; i += 32u) {
        const uint to_row = row + 16u * (TILE_Y * y + ${r}u) + i / (2u * TILE_X);
        const uint to4 = column4 + 2u * TILE_X * x + i % (2u * TILE_X);
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
