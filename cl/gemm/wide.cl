//# C = f(alpha * A * B + beta * C): tile[1] rows by tile[0] vectors of sixteen columns per invocation,
//# straight from memory, for drivers that run kernels on a CPU with vectors as long. Rows and columns
//# beyond the edge are computed from the last ones and not stored.
${constants}

__kernel void gemm_wide(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column4 = 4u * TILE_X * gid.x;
    const uint row = TILE_Y * gid.y;
    if (column4 >= n4 || row >= m || gid.z >= batch) {
        return;
    }
    //% for r in range(tile[1])
    const uint a${r} = ${apart("a_batch4", "gid.z")} + lda4 * min(row + ${r}u, m - 1u);
    //% endfor
    //% for c in range(tile[0])
    __global const float* b${c} = (__global const float*)(mat_b + ${apart("b_batch4", "gid.z")} + min(column4 + ${4 * c}u, n4 - 4u));
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    float16 sum${r}_${c} = (float16)(0.0f);
    //% endfor
    //% endfor
    for (uint term4 = 0u; term4 < k4; term4++) {
        //% for r in range(tile[1])
        const float4 u${r} = mat_a[a${r} + term4];
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        const uint b_row_${lane} = ldb4 * (4u * term4 + ${loop.index0}u);
        //% for c in range(tile[0])
        const float16 v${c}_${lane} = vload16(0, b${c} + 4u * b_row_${lane});
        //% endfor
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        sum${r}_${c} = mad((float16)(u${r}.${lane}), v${c}_${lane}, sum${r}_${c});
        //% endfor
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    if (row + ${r}u < m) {
        const uint c${r} = ${apart("c_batch4", "gid.z")} + ldc4 * (row + ${r}u) + column4;
        //% for c in range(tile[0])
        if (column4 + ${4 * c}u < n4) {
            //% for quarter in ["s0123", "s4567", "s89ab", "scdef"]
            //% set q = 4 * c + loop.index0
            float4 y${r}_${q} = sum${r}_${c}.${quarter} * ${splat(param("alpha"))};
            //% if BETA
            y${r}_${q} = y${r}_${q} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ " + " ~ q ~ "u")};
            //% endif
            //% for line in epilogue("y" ~ r ~ "_" ~ q, "column4 + " ~ q ~ "u", "c" ~ r ~ " + " ~ q ~ "u")
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ " + " ~ q ~ "u", "y" ~ r ~ "_" ~ q)}
            //% endfor
        }
        //% endfor
    }
    //% endfor
}
