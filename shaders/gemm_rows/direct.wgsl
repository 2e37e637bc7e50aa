//# Rows of a product C = f(alpha * A * B), and what a nest makes of each: a work-group sums TILE_Y rows with all of their columns,
//# keeps them in local memory, and then LANES invocations compute the nest's row of each. An invocation sums the rows by TILE_X groups
//# of four columns, WG_X groups apart, over every SPLITS-th group of four terms, AHEAD such groups at a time; the slices of the
//# work-group along z are added up. Rows and columns beyond the edge are computed from the last one and not kept.
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
//% include "shared/searches"
var<workgroup> staged: array<vec4<f32>, STAGED>;
//% if LANES > 1
var<workgroup> partial: array<${element}, 2 * SLOTS>;
//% if "larger" in calls or "smaller" in calls
var<workgroup> places: array<${floats}, 2 * SLOTS>;
//% endif
//% endif

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_rows_direct(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid.x;
    let slice: u32 = lid.z;
    let first_row: u32 = TILE_Y * group.y;
    //% for r in range(tile[1])
    let row${r}: u32 = min(first_row + ${r}u, params.m - 1u);
    let a_from${r}: u32 = params.lda4 * row${r};
    //% endfor
    //% for c in range(tile[0])
    let column${c}: u32 = place + ${c}u * WG_X;
    let b_from${c}: u32 = min(column${c}, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro load(q)
    let b_row${q}: u32 = 4u * params.ldb4 * (term4 + ${q}u * SPLITS);
    //% for c in range(tile[0])
    //% for i in range(4)
    let v${q}_${c}_${i}: ${acc4} = ${load4("mat_b", "b_from" ~ c ~ " + b_row" ~ q ~ " + " ~ i ~ "u * params.ldb4")};
    //% endfor
    //% endfor
    //% for r in range(tile[1])
    let u${q}_${r}: ${acc4} = ${load4("mat_a", "a_from" ~ r ~ " + term4 + " ~ q ~ "u * SPLITS")};
    //% endfor
    //% endmacro
    //% macro multiply(q)
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    //% for lane in ["x", "y", "z", "w"]
    sum${r}_${c} = ${fma4(splat("u" ~ q ~ "_" ~ r ~ "." ~ lane), "v" ~ q ~ "_" ~ c ~ "_" ~ loop.index0, "sum" ~ r ~ "_" ~ c)};
    //% endfor
    //% endfor
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
    //% if AHEAD > 1
    for (; term4 < params.k4; term4 += SPLITS) {
        ${load(0) | trim | indent(4)}
        ${multiply(0) | trim | indent(4)}
    }
    //% endif
    //% include "shared/add_splits"
    if (slice == 0u) {
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        if (column${c} < params.n4) {
            let c${r}_${c}: u32 = params.n4 * row${r} + column${c};
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column" ~ c, "c" ~ r ~ "_" ~ c)
            ${line}
            //% endfor
            staged[${r}u * params.n4 + column${c}] = sum${r}_${c};
        }
        //% endfor
        //% endfor
    }
    ${barrier};
    let slot: u32 = place + THREADS * slice;
    let lane: u32 = slot % LANES;
    let own_row: u32 = min(slot / LANES, TILE_Y - 1u);
    let first: u32 = select(params.m, first_row + own_row, slot / LANES < TILE_Y);
    //% for statement in statements
    ${statement}
    //% endfor
}
