//# C = f(alpha * A * B + beta * C) for few rows, where reading B is all the work: an invocation sums
//# tile[1] rows by tile[0] groups of four columns over every SPLITS-th group of four terms, AHEAD such
//# groups at a time; the SPLITS slices of the work-group along z are added up at the end. With SHARED
//# the work-group stages its part of A in local memory, twice over, and the next of B is on its way
//# while this one is multiplied; terms beyond the last are zero.
//# Rows and columns beyond the edge are computed from the last one and not stored.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void gemm_thin(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint3 lid = (uint3)(get_local_id(0), get_local_id(1), get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint place = lid.x + WG_X * lid.y;
    const uint slice = lid.z;
    //% if SHARED
    const uint own = place + WG_X * WG_Y * slice;
    //% endif
    const uint column4 = TILE_X * (WG_X * group.x + lid.x);
    const uint row = TILE_Y * (WG_Y * group.y + lid.y);
    //% if not SHARED
    //% for r in range(tile[1])
    const uint a${r} = a_batch4 * group.z + lda4 * min(row + ${r}u, m - 1u);
    //% endfor
    //% endif
    //% for c in range(tile[0])
    const uint b${c} = b_batch4 * group.z + min(column4 + ${c}u, n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    ${acc4} sum${r}_${c} = ${zero4};
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
    const uint b_row${q} = 4u * ldb4 * min(${first4} + slice + ${q}u * SPLITS, k4 - 1u);
    //% for c in range(tile[0])
    //% for i in range(4)
    next${q}_${c}_${i} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + " ~ i ~ "u * ldb4")};
    //% endfor
    //% endfor
    //% endfor
    //% for l in range(LOADS_A)
    const uint a_at${l} = ${first4} + (own + ${l}u * THREADS * SPLITS) % WINDOW;
    a_next${l} = ${load4("mat_a", "a_from" ~ l ~ " + min(a_at" ~ l ~ ", k4 - 1u)")};
    if (a_at${l} >= k4) {
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
    const uint a_from${l} = a_batch4 * group.z + lda4 * min(TILE_Y * group.y + (own + ${l}u * THREADS * SPLITS) / WINDOW, m - 1u);
    ${acc4} a_next${l} = ${zero4};
    //% endfor
    //% for q in range(AHEAD)
    //% for c in range(tile[0])
    //% for i in range(4)
    ${acc4} next${q}_${c}_${i} = ${zero4};
    //% endfor
    //% endfor
    //% endfor
    uint side = 0u;
    {
        ${fetch("0u") | trim | indent(4)}
        ${stage("0u") | trim | indent(4)}
    }
    ${barrier};
    for (uint first4 = WINDOW; first4 < k4 + WINDOW; first4 += WINDOW) {
        //% for q in range(AHEAD)
        //% for c in range(tile[0])
        //% for i in range(4)
        const ${acc4} v${q}_${c}_${i} = next${q}_${c}_${i};
        //% endfor
        //% endfor
        //% endfor
        ${fetch("first4") | trim | indent(4)}
        //% for q in range(AHEAD)
        //% for r in range(tile[1])
        const ${acc4} u${q}_${r} = staged[side + slice + ${q}u * SPLITS + ${r}u * WINDOW];
        //% endfor
        ${multiply(q) | trim | indent(4)}
        //% endfor
        side = WINDOW * TILE_Y - side;
        ${stage("side") | trim | indent(4)}
        ${barrier};
    }
    //% else
    //% macro load(q)
    const uint b_row${q} = 4u * ldb4 * (term4 + ${q}u * SPLITS);
    //% for c in range(tile[0])
    //% for i in range(4)
    const ${acc4} v${q}_${c}_${i} = ${load4("mat_b", "b" ~ c ~ " + b_row" ~ q ~ " + " ~ i ~ "u * ldb4")};
    //% endfor
    //% endfor
    //% for r in range(tile[1])
    const ${acc4} u${q}_${r} = ${load4("mat_a", "a" ~ r ~ " + term4 + " ~ q ~ "u * SPLITS")};
    //% endfor
    //% endmacro
    uint term4 = slice;
    for (; term4 + (AHEAD - 1u) * SPLITS < k4; term4 += AHEAD * SPLITS) {
        //% for q in range(AHEAD)
        ${load(q) | trim | indent(4)}
        //% endfor
        //% for q in range(AHEAD)
        ${multiply(q) | trim | indent(4)}
        //% endfor
    }
    for (; term4 < k4; term4 += SPLITS) {
        ${load(0) | trim | indent(4)}
        ${multiply(0) | trim | indent(4)}
    }
    //% endif
    //% include "shared/add_splits"
    if (slice > 0u) {
        return;
    }
    //% for r in range(tile[1])
    if (row + ${r}u < m) {
        //% for c in range(tile[0])
        if (column4 + ${c}u < n4) {
            const uint c${r}_${c} = c_batch4 * group.z + ldc4 * (row + ${r}u) + column4 + ${c}u;
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
