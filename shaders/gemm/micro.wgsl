//# C = f(alpha * op(A) * op(B) + beta * C): tile[1] rows by tile[0] groups of four columns per
//# invocation, straight from global memory. Rows and columns beyond the edge are computed from the
//# last one and not stored. A transposed operand is one whose two steps are exchanged.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_micro(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = 4u * TILE_X * gid.x;
    let row: u32 = TILE_Y * gid.y;
    if (column >= params.n || row >= params.m || gid.z >= params.batch) {
        return;
    }
    //% for r in range(tile[1])
    let a${r}: u32 = ${apart("a_batch", "gid.z")} + params.a_row * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(4 * tile[0])
    let b${c}: u32 = ${apart("b_batch", "gid.z")} + params.b_column * min(column + ${c}u, params.n - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    let batch: u32 = gid.z;
    for (var term: u32 = 0u; term < params.k; term++) {
        let a_term: u32 = params.a_step * term;
        let b_term: u32 = params.b_step * term;
        //% for c in range(tile[0])
        let v${c}: ${acc4} = ${splat(load("mat_b", "b" ~ (4 * c) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 1) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 2) ~ " + b_term") ~ ", " ~ load("mat_b", "b" ~ (4 * c + 3) ~ " + b_term"))};
        //% endfor
        //% for r in range(tile[1])
        let u${r}: ${acc} = ${load("mat_a", "a" ~ r ~ " + a_term")};
        //% for c in range(tile[0])
        sum${r}_${c} = ${fma4(splat("u" ~ r), "v" ~ c, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
    }
    //% include "shared/store_columns"
}
