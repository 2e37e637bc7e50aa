//# C = f(alpha * A * B + beta * C) from local memory: a work-group stages STEP terms of its rows of A
//# (transposed) and of its columns of B, twice over: while one side is multiplied, the next terms
//# travel through registers into the other. An invocation sums tile[1] rows by tile[0] groups of four
//# columns, four rows or columns together, WG_Y or WG_X such groups apart. The slices of the
//# work-group along z take turns at the steps and are added up at the end. Rows and columns beyond
//# the edge are computed from the last one and not stored; terms beyond it are zero.
//# What a step's first products read is loaded before the last ones of the step before, across the
//# barrier. The masks are true of every index: with them a compiler knows that no sum overflows and
//# folds what is constant into the addresses.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_tiled(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid % THREADS;
    let slice: u32 = lid / THREADS;
    let lane: u32 = place % (LANES_X * LANES_Y);
    let x: u32 = lane / PAIRED % LANES_X + LANES_X * (place / (LANES_X * LANES_Y) % (WG_X / LANES_X));
    let y: u32 = lane % PAIRED + PAIRED * (lane / (PAIRED * LANES_X)) + LANES_Y * (place / (LANES_Y * WG_X));
    let column4: u32 = TILE_X * WG_X * group.x;
    let row: u32 = TILE_Y * WG_Y * group.y;
    let own: u32 = SLICE * slice;
    let terms4: u32 = STEP / 4u * ((params.k4 + STEP / 4u * SPLITS - 1u) / (STEP / 4u * SPLITS));
    let first4: u32 = STEP / 4u * slice;
    //% for l in range(LOADS_A)
    let a_row${l}: u32 = (place + ${l}u * THREADS) / (STEP / 4u);
    let a_term${l}: u32 = first4 + (place + ${l}u * THREADS) % (STEP / 4u);
    let a_from${l}: u32 = ${apart("a_batch4", "group.z")} + params.lda4 * min(row + a_row${l}, params.m - 1u);
    let a_to${l}: u32 = own + 4u * A_ROW * ((place + ${l}u * THREADS) % (STEP / 4u)) + a_row${l} / 4u;
    //% endfor
    //% for l in range(LOADS_B)
    let b_term${l}: u32 = 4u * first4 + (place + ${l}u * THREADS) / B_ROW;
    let b_from${l}: u32 = ${apart("b_batch4", "group.z")} + min(column4 + (place + ${l}u * THREADS) % B_ROW, params.n4 - 1u);
    let b_to${l}: u32 = own + B_FIRST + place + ${l}u * THREADS;
    //% endfor
    //% set lanes = ["x", "y", "z", "w"]
    //% macro fetch(s, ahead4)
    //% for l in range(LOADS_A)
    a_next${s}_${l} = ${load4("mat_a", "a_from" ~ l ~ " + min(a_term" ~ l ~ " + SPLITS * " ~ ahead4 ~ ", params.k4 - 1u)" if RAGGED else "a_from" ~ l ~ " + a_term" ~ l ~ " + SPLITS * " ~ ahead4)};
    //% endfor
    //% for l in range(LOADS_B)
    b_next${s}_${l} = ${load4("mat_b", "b_from" ~ l ~ " + params.ldb4 * min(b_term" ~ l ~ " + 4u * SPLITS * " ~ ahead4 ~ ", 4u * params.k4 - 1u)" if RAGGED else "b_from" ~ l ~ " + params.ldb4 * (b_term" ~ l ~ " + 4u * SPLITS * " ~ ahead4 ~ ")")};
    //% endfor
    //% for l in range(LOADS_A) if RAGGED
    if (a_term${l} + SPLITS * ${ahead4} >= params.k4) {
        a_next${s}_${l} = ${zero4};
    }
    //% endfor
    //% for l in range(LOADS_B) if RAGGED
    if (b_term${l} + 4u * SPLITS * ${ahead4} >= 4u * params.k4) {
        b_next${s}_${l} = ${zero4};
    }
    //% endfor
    //% endmacro
    //% macro stage(s, to)
    //% for l in range(LOADS_A)
    let a_put${l}: u32 = (a_to${l} + ${to}) & MASK;
    //% for lane in lanes
    ${set_lane("staged", "a_put" ~ l ~ " + " ~ loop.index0 ~ "u * A_ROW", "a_row" ~ l ~ " % 4u", "a_next" ~ s ~ "_" ~ l ~ "." ~ lane)}
    //% endfor
    //% endfor
    //% for l in range(LOADS_B)
    staged[b_to${l} + ${to}] = b_next${s}_${l};
    //% endfor
    //% endmacro
    //% set loaded = acc4
    //% set none = zero4
    //% include "shared/product_loop"
    //% for r in range(tile[1])
    let row${r}: u32 = row + 4u * (y + ${r // 4}u * WG_Y) + ${r % 4}u;
    if (row${r} < params.m) {
        //% for c in range(tile[0])
        if (column4 + x + ${c}u * WG_X < params.n4) {
            let c${r}_${c}: u32 = ${apart("c_batch4", "group.z")} + params.ldc4 * row${r} + column4 + x + ${c}u * WG_X;
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% if BETA
            sum${r}_${c} = sum${r}_${c} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ "_" ~ c)};
            //% endif
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + x + " ~ c ~ "u * WG_X", "c" ~ r ~ "_" ~ c)
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ "_" ~ c, "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
