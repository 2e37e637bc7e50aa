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

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_tiled(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint place = lid % THREADS;
    const uint slice = lid / THREADS;
    const uint lane = place % (LANES_X * LANES_Y);
    const uint x = lane / PAIRED % LANES_X + LANES_X * (place / (LANES_X * LANES_Y) % (WG_X / LANES_X));
    const uint y = lane % PAIRED + PAIRED * (lane / (PAIRED * LANES_X)) + LANES_Y * (place / (LANES_Y * WG_X));
    const uint column4 = TILE_X * WG_X * group.x;
    const uint row = TILE_Y * WG_Y * group.y;
    const uint own = SLICE * slice;
    const uint terms4 = STEP / 4u * ((k4 + STEP / 4u * SPLITS - 1u) / (STEP / 4u * SPLITS));
    const uint first4 = STEP / 4u * slice;
    //% for l in range(LOADS_A)
    const uint a_row${l} = (place + ${l}u * THREADS) / (STEP / 4u);
    const uint a_term${l} = first4 + (place + ${l}u * THREADS) % (STEP / 4u);
    const uint a_from${l} = a_batch4 * group.z + lda4 * min(row + a_row${l}, m - 1u);
    const uint a_to${l} = own + 4u * A_ROW * ((place + ${l}u * THREADS) % (STEP / 4u)) + a_row${l} / 4u;
    //% endfor
    //% for l in range(LOADS_B)
    const uint b_term${l} = 4u * first4 + (place + ${l}u * THREADS) / B_ROW;
    const uint b_from${l} = b_batch4 * group.z + min(column4 + (place + ${l}u * THREADS) % B_ROW, n4 - 1u);
    const uint b_to${l} = own + B_FIRST + place + ${l}u * THREADS;
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ${acc4} sum${r}_${c} = ${zero4};
    //% endfor
    //% endfor
    //% set lanes = ["x", "y", "z", "w"]
    //% macro fetch(ahead4)
    //% for l in range(LOADS_A)
    a_next${l} = ${load4("mat_a", "a_from" ~ l ~ " + min(a_term" ~ l ~ " + SPLITS * " ~ ahead4 ~ ", k4 - 1u)" if RAGGED else "a_from" ~ l ~ " + a_term" ~ l ~ " + SPLITS * " ~ ahead4)};
    //% endfor
    //% for l in range(LOADS_B)
    b_next${l} = ${load4("mat_b", "b_from" ~ l ~ " + ldb4 * min(b_term" ~ l ~ " + 4u * SPLITS * " ~ ahead4 ~ ", 4u * k4 - 1u)" if RAGGED else "b_from" ~ l ~ " + ldb4 * (b_term" ~ l ~ " + 4u * SPLITS * " ~ ahead4 ~ ")")};
    //% endfor
    //% for l in range(LOADS_A) if RAGGED
    if (a_term${l} + SPLITS * ${ahead4} >= k4) {
        a_next${l} = ${zero4};
    }
    //% endfor
    //% for l in range(LOADS_B) if RAGGED
    if (b_term${l} + 4u * SPLITS * ${ahead4} >= 4u * k4) {
        b_next${l} = ${zero4};
    }
    //% endfor
    //% endmacro
    //% macro fetch_ahead(steps)
    //% if GUARDED
    const uint ahead4 = done4 + ${steps}u * STEP / 4u;
    if (ahead4 < terms4) {
        ${fetch("ahead4") | trim | indent(4)}
    }
    //% else
    const uint ahead4 = min(done4 + ${steps}u * STEP / 4u, terms4 - STEP / 4u);
    ${fetch("ahead4") | trim}
    //% endif
    //% endmacro
    //% macro stage(to)
    //% for l in range(LOADS_A)
    const uint a_put${l} = (a_to${l} + ${to}) & MASK;
    //% for lane in lanes
    ${set_lane("staged", "a_put" ~ l ~ " + " ~ loop.index0 ~ "u * A_ROW", "a_row" ~ l ~ " % 4u", "a_next" ~ l ~ "." ~ lane)}
    //% endfor
    //% endfor
    //% for l in range(LOADS_B)
    staged[b_to${l} + ${to}] = b_next${l};
    //% endfor
    //% endmacro
    //% for l in range(LOADS_A)
    ${acc4} a_next${l} = ${zero4};
    //% endfor
    //% for l in range(LOADS_B)
    ${acc4} b_next${l} = ${zero4};
    //% endfor
    ${fetch("0u") | trim}
    ${stage("0u") | trim}
    //% if not EARLY
    ${fetch("min(STEP / 4u, terms4 - STEP / 4u)") | trim}
    //% endif
    ${barrier};
    uint side = 0u;
    //% for r in range(tile[1] // 4)
    ${acc4} a0_${r} = staged[own + y + ${r}u * WG_Y];
    //% endfor
    //% for c in range(tile[0])
    ${acc4} b0_${c} = staged[own + B_FIRST + x + ${c}u * WG_X];
    //% endfor
    for (uint done4 = STEP / 4u; done4 <= terms4; done4 += STEP / 4u) {
        //% if EARLY
        ${fetch_ahead(0) | trim | indent(4)}
        //% endif
        const uint a_at0 = (own + side + y) & MASK;
        const uint b_at0 = (own + side + B_FIRST + x) & MASK;
        side = SIDE - side;
        const uint a_at1 = (own + side + y) & MASK;
        const uint b_at1 = (own + side + B_FIRST + x) & MASK;
        //% for t in range(STEP)
        //% set last = 1 if t + 1 == STEP else 0
        //% if last
        ${stage("side") | trim | indent(4)}
        ${barrier};
        //% if not EARLY
        ${fetch_ahead(1) | trim | indent(4)}
        //% endif
        //% endif
        //% for r in range(tile[1] // 4)
        const ${acc4} a${t + 1}_${r} = staged[a_at${last} + ${(t + 1) % STEP}u * A_ROW + ${r}u * WG_Y];
        //% endfor
        //% for c in range(tile[0])
        const ${acc4} b${t + 1}_${c} = staged[b_at${last} + ${(t + 1) % STEP}u * B_ROW + ${c}u * WG_X];
        //% endfor
        //% include "shared/products"
        //% endfor
        //% for r in range(tile[1] // 4)
        a0_${r} = a${STEP}_${r};
        //% endfor
        //% for c in range(tile[0])
        b0_${c} = b${STEP}_${c};
        //% endfor
    }
    //% if SPLITS > 1
    ${barrier};
    //% endif
    //% include "shared/add_splits"
    if (slice > 0u) {
        return;
    }
    //% for r in range(tile[1])
    const uint row${r} = row + 4u * (y + ${r // 4}u * WG_Y) + ${r % 4}u;
    if (row${r} < m) {
        //% for c in range(tile[0])
        if (column4 + x + ${c}u * WG_X < n4) {
            const uint c${r}_${c} = c_batch4 * group.z + ldc4 * row${r} + column4 + x + ${c}u * WG_X;
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
