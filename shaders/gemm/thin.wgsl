//# C = f(alpha * A * B + beta * C) for few rows, where reading B is all the work: an invocation sums
//# tile[1] rows by tile[0] groups of four columns over every SPLITS-th group of four terms, AHEAD such
//# groups at a time; the SPLITS slices of the work-group along z are added up at the end. With SHARED
//# the work-group stages its part of A in local memory, twice over, and the next of B is on its way
//# while this one is multiplied; terms beyond the last are zero.
//# Rows and columns beyond the edge are computed from the last one and not stored.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_thin(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid.x + WG_X * lid.y;
    let slice: u32 = lid.z;
    //% if SHARED
    let own: u32 = place + WG_X * WG_Y * slice;
    //% endif
    let column4: u32 = TILE_X * (WG_X * group.x + lid.x);
    let row: u32 = TILE_Y * (WG_Y * group.y + lid.y);
    //% if not SHARED
    //% for r in range(tile[1])
    let a${r}: u32 = ${apart("a_batch4", "group.z")} + params.lda4 * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% endif
    //% for c in range(tile[0])
    let b${c}: u32 = ${apart("b_batch4", "group.z")} + min(column4 + ${c}u, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro multiply(q)
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    //% for lane in ["x", "y", "z", "w"]
    sum${r}_${c} = ${fma4(splat("u" ~ q ~ "_" ~ r ~ "." ~ lane), "v" ~ q ~ "_" ~ c ~ "_" ~ loop.index0, "sum" ~ r ~ "_" ~ c)};
    //% endfor
    //% endfor
    //% endfor
    //% endmacro
    //% if SHARED
    //% macro fetch(first4)
    //% for q in range(AHEAD)
    let b_row${q}: u32 = 4u * params.ldb4 * min(${first4} + slice + ${q}u * SPLITS, params.k4 - 1u);
    //% for c in range(tile[0])
    //% for i in range(4)
    next${q}_${c}_${i} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + " ~ i ~ "u * params.ldb4")};
    //% endfor
    //% endfor
    //% endfor
    //% for l in range(LOADS_A)
    let a_at${l}: u32 = ${first4} + (own + ${l}u * THREADS * SPLITS) % WINDOW;
    a_next${l} = ${load4("mat_a", "a_from" ~ l ~ " + min(a_at" ~ l ~ ", params.k4 - 1u)")};
    if (a_at${l} >= params.k4) {
        a_next${l} = ${zero4};
    }
    //% endfor
    //% endmacro
    //% macro stage(to)
    //% for l in range(LOADS_A)
    if (own + ${l}u * THREADS * SPLITS < WINDOW * TILE_Y) {
        staged[${to} + own + ${l}u * THREADS * SPLITS] = a_next${l};
    }
    //% endfor
    //% endmacro
    //% for l in range(LOADS_A)
    let a_from${l}: u32 = ${apart("a_batch4", "group.z")} + params.lda4 * min(TILE_Y * group.y + (own + ${l}u * THREADS * SPLITS) / WINDOW, params.m - 1u);
    var a_next${l}: ${acc4} = ${zero4};
    //% endfor
    //% for q in range(AHEAD)
    //% for c in range(tile[0])
    //% for i in range(4)
    var next${q}_${c}_${i}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% endfor
    var side: u32 = 0u;
    {
        ${fetch("0u") | trim | indent(4)}
        ${stage("0u") | trim | indent(4)}
    }
    ${barrier};
    for (var first4: u32 = WINDOW; first4 < params.k4 + WINDOW; first4 += WINDOW) {
        //% for q in range(AHEAD)
        //% for c in range(tile[0])
        //% for i in range(4)
        let v${q}_${c}_${i}: ${acc4} = next${q}_${c}_${i};
        //% endfor
        //% endfor
        //% endfor
        ${fetch("first4") | trim | indent(4)}
        //% for q in range(AHEAD)
        //% for r in range(tile[1])
        let u${q}_${r}: ${acc4} = staged[side + slice + ${q}u * SPLITS + ${r}u * WINDOW];
        //% endfor
        ${multiply(q) | trim | indent(4)}
        //% endfor
        side = WINDOW * TILE_Y - side;
        ${stage("side") | trim | indent(4)}
        ${barrier};
    }
    //% else
    //% macro load(q)
    let b_row${q}: u32 = 4u * params.ldb4 * (term4 + ${q}u * SPLITS);
    //% for c in range(tile[0])
    //% for i in range(4)
    let v${q}_${c}_${i}: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + " ~ i ~ "u * params.ldb4")};
    //% endfor
    //% endfor
    //% for r in range(tile[1])
    let u${q}_${r}: ${acc4} = ${load4("mat_a", "a" ~ r ~ " + term4 + " ~ q ~ "u * SPLITS")};
    //% endfor
    //% endmacro
    var term4: u32 = slice;
    for (; term4 + (AHEAD - 1u) * SPLITS < params.k4; term4 += AHEAD * SPLITS) {
        //% for q in range(AHEAD)
        ${load(q) | trim | indent(4)}
        //% endfor
        //% for q in range(AHEAD)
        ${multiply(q) | trim | indent(4)}
        //% endfor
    }
    for (; term4 < params.k4; term4 += SPLITS) {
        ${load(0) | trim | indent(4)}
        ${multiply(0) | trim | indent(4)}
    }
    //% endif
    //% include "shared/add_splits"
    if (slice > 0u) {
        return;
    }
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        //% for c in range(tile[0])
        if (column4 + ${c}u < params.n4) {
            let c${r}_${c}: u32 = ${apart("c_batch4", "group.z")} + params.ldc4 * (row + ${r}u) + column4 + ${c}u;
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
