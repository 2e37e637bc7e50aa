//# C = f(alpha * op(A) * op(B) + beta * C) for few elements of C, from operands as they lie: an invocation
//# sums tile[1] rows by tile[0] groups of four columns over every SPLITS-th term; the SPLITS slices of the
//# work-group along z are added up at the end. Rows and columns beyond the edge are computed from the last one
//# and not stored. A transposed operand is one whose two steps are exchanged.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_split(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid.x + WG_X * lid.y;
    let slice: u32 = lid.z;
    let batch: u32 = group.z;
    let column: u32 = 4u * TILE_X * (WG_X * group.x + lid.x);
    let row: u32 = TILE_Y * (WG_Y * group.y + lid.y);
    //% for r in range(tile[1])
    let a${r}: u32 = ${apart("a_batch", "batch")} + params.a_row * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(4 * tile[0])
    let b${c}: u32 = ${apart("b_batch", "batch")} + params.b_column * min(column + ${c}u, params.n - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var term: u32 = slice; term < params.k; term += SPLITS) {
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
    //% include "shared/add_splits"
    if (slice > 0u || column >= params.n) {
        return;
    }
    //% include "shared/store_columns"
}
