//# C = f(alpha * op(A) * op(B) + beta * C): tile[1] rows by tile[0] groups of four columns per
//# invocation, straight from global memory. Rows and columns beyond the edge are computed from the
//# last one and not stored. A transposed operand is one whose two steps are exchanged.
${constants}

__kernel void gemm_micro(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = 4u * TILE_X * gid.x;
    const uint row = TILE_Y * gid.y;
    if (column >= n || row >= m || gid.z >= batch) {
        return;
    }
    //% for r in range(tile[1])
    const uint a${r} = a_batch * gid.z + a_row * min(row + ${r}u, m - 1u);
    //% endfor
    //% for c in range(4 * tile[0])
    const uint b${c} = b_batch * gid.z + b_column * min(column + ${c}u, n - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ${acc4} sum${r}_${c} = ${zero4};
    //% endfor
    //% endfor
    for (uint term = 0u; term < k; term++) {
        const uint a_term = a_step * term;
        const uint b_term = b_step * term;
        //% for c in range(tile[0])
        const ${acc4} v${c} = ${splat(load("mat_b", "b" ~ (4 * c) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 1) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 2) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 3) ~ " + b_term"))};
        //% endfor
        //% for r in range(tile[1])
        const ${acc} u${r} = ${load("mat_a", "a" ~ r ~ " + a_term")};
        //% for c in range(tile[0])
        sum${r}_${c} = ${fma4(splat("u" ~ r), "v" ~ c, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    if (row + ${r}u < m) {
        const uint c${r} = c_batch * gid.z + c_row * (row + ${r}u) + column;
        //% for c in range(tile[0])
        sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
        //% for lane in ["x", "y", "z", "w"]
        //% if BETA
        if (column + ${4 * c + loop.index0}u < n) {
            sum${r}_${c}.${lane} += ${param("beta")} * ${load("mat_c", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u")};
        }
        //% endif
        //% endfor
        //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column / 4u + " ~ c ~ "u", "0u")
        ${line}
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        if (column + ${4 * c + loop.index0}u < n) {
            //% if residual
            sum${r}_${c}.${lane} += ${load("residual", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u")};
            //% endif
            ${store("mat_c", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u", "sum" ~ r ~ "_" ~ c ~ "." ~ lane)}
        }
        //% endfor
        //% endfor
    }
    //% endfor
}
