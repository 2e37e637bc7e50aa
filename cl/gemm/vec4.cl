//# C = f(alpha * A * B + beta * C): tile[1] rows by tile[0] groups of four columns per invocation,
//# straight from global memory, four terms at a time. k, n and the leading dimensions are whole
//# vec4s and nothing is transposed. Rows and columns beyond the edge are computed from the last
//# one and not stored.
${constants}

__kernel void gemm_vec4(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column4 = TILE_X * gid.x;
    const uint row = TILE_Y * gid.y;
    if (column4 >= n4 || row >= m || gid.z >= batch) {
        return;
    }
    //% for r in range(tile[1])
    const uint a${r} = a_batch4 * gid.z + lda4 * min(row + ${r}u, m - 1u);
    //% endfor
    //% for c in range(tile[0])
    const uint b${c} = b_batch4 * gid.z + min(column4 + ${c}u, n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ${acc4} sum${r}_${c} = ${zero4};
    //% endfor
    //% endfor
    for (uint term4 = 0u; term4 < k4; term4++) {
        const uint b_row = 4u * ldb4 * term4;
        //% for c in range(tile[0])
        const ${acc4} v${c}_x = ${load4("mat_b", "b" ~ c ~ " + b_row")};
        const ${acc4} v${c}_y = ${load4("mat_b", "b" ~ c ~ " + b_row + ldb4")};
        const ${acc4} v${c}_z = ${load4("mat_b", "b" ~ c ~ " + b_row + 2u * ldb4")};
        const ${acc4} v${c}_w = ${load4("mat_b", "b" ~ c ~ " + b_row + 3u * ldb4")};
        //% endfor
        //% for r in range(tile[1])
        const ${acc4} u${r} = ${load4("mat_a", "a" ~ r ~ " + term4")};
        //% for c in range(tile[0])
        //% for lane in ["x", "y", "z", "w"]
        sum${r}_${c} = ${fma4(splat("u" ~ r ~ "." ~ lane), "v" ~ c ~ "_" ~ lane, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    if (row + ${r}u < m) {
        const uint c${r} = c_batch4 * gid.z + ldc4 * (row + ${r}u) + column4;
        //% for c in range(tile[0])
        if (column4 + ${c}u < n4) {
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% if BETA
            sum${r}_${c} = sum${r}_${c} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ " + " ~ c ~ "u")};
            //% endif
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + " ~ c ~ "u", "c" ~ r ~ " + " ~ c ~ "u")
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ " + " ~ c ~ "u", "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
