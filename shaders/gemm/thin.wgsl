//# C = f(alpha * A * B + beta * C) for few rows, where reading B is all the work: an invocation sums
//# tile[1] rows by tile[0] groups of four columns over every SPLITS-th group of four terms, several such
//# groups on their way at once; the SPLITS slices of the work-group along z are added up at the end.
//# Rows and columns beyond the edge are computed from the last one and not stored.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_thin(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid.x + WG_X * lid.y;
    let slice: u32 = lid.z;
    let column4: u32 = TILE_X * (WG_X * group.x + lid.x);
    let row: u32 = TILE_Y * (WG_Y * group.y + lid.y);
    //% for r in range(tile[1])
    let a${r}: u32 = params.a_batch4 * group.z + params.lda4 * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(tile[0])
    let b${c}: u32 = params.b_batch4 * group.z + min(column4 + ${c}u, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro multiply(q)
    let b_row${q}: u32 = 4u * params.ldb4 * (term4 + ${q}u * SPLITS);
    //% for c in range(tile[0])
    let v${q}_${c}_x: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q)};
    let v${q}_${c}_y: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + params.ldb4")};
    let v${q}_${c}_z: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + 2u * params.ldb4")};
    let v${q}_${c}_w: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + 3u * params.ldb4")};
    //% endfor
    //% for r in range(tile[1])
    let u${q}_${r}: ${acc4} = ${load4("mat_a", "a" ~ r ~ " + term4 + " ~ q ~ "u * SPLITS")};
    //% for c in range(tile[0])
    //% for lane in ["x", "y", "z", "w"]
    sum${r}_${c} = ${fma4(splat("u" ~ q ~ "_" ~ r ~ "." ~ lane), "v" ~ q ~ "_" ~ c ~ "_" ~ lane, "sum" ~ r ~ "_" ~ c)};
    //% endfor
    //% endfor
    //% endfor
    //% endmacro
    var term4: u32 = slice;
    for (; term4 + (AHEAD - 1u) * SPLITS < params.k4; term4 += AHEAD * SPLITS) {
        //% for q in range(AHEAD)
        ${multiply(q) | trim | indent(4)}
        //% endfor
    }
    for (; term4 < params.k4; term4 += SPLITS) {
        ${multiply(0) | trim | indent(4)}
    }
    //% include "shared/add_splits"
    if (slice > 0u) {
        return;
    }
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        //% for c in range(tile[0])
        if (column4 + ${c}u < params.n4) {
            let c${r}_${c}: u32 = params.c_batch4 * group.z + params.ldc4 * (row + ${r}u) + column4 + ${c}u;
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% if BETA
            sum${r}_${c} = sum${r}_${c} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ "_" ~ c)};
            //% endif
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + " ~ c ~ "u", "c" ~ r ~ "_" ~ c)
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ "_" ~ c, "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
