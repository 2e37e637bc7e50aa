//# Rows of a product C = f(alpha * A * B) of halves, by cooperative matrices with f32 sums, and what a nest makes of each: a work-group
//# has ROWS rows with all of their columns. A wave of 32 invocations sums TILE_Y by TILE_X matrices of 16 by 16, WAVES_X matrices of
//# columns apart. Layers of the work-group along z sum a part of the terms each; a layer stages STEP terms, and while they are multiplied,
//# the next ones travel into registers. The sums of all layers are added up in local memory, and then LANES invocations
//# compute the nest's row of each. Rows beyond the edge are computed from the last one and not kept; terms beyond it are zero. Solo:
//# OpenCL C has no cooperative matrices.
enable wgpu_cooperative_matrix;
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
//% include "shared/searches"
var<workgroup> operands: array<vec4<f16>, OPERANDS>;
var<workgroup> staged: array<vec4<f32>, STAGED>;
//% if LANES > 1
var<workgroup> partial: array<${element}, 2 * SLOTS>;
//% if "larger" in calls or "smaller" in calls
var<workgroup> places: array<${floats}, 2 * SLOTS>;
//% endif
//% endif

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_rows_matrix(@builtin(local_invocation_index) slot: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = slot % THREADS;
    let layer: u32 = slot / THREADS;
    let column4: u32 = 4u * (place / 32u);
    let first_row: u32 = ROWS * group.y;
    let terms4: u32 = STEP / 4u * ((params.k4 + STEP / 4u * LAYERS - 1u) / (STEP / 4u * LAYERS));
    let first4: u32 = terms4 * layer;
    let a_stage: u32 = LAYER * layer;
    let b_stage: u32 = a_stage + ROWS * A_ROW;
    //% for l in range(LOADS_A)
    let a_place${l}: u32 = place + ${l}u * THREADS;
    let a_term${l}: u32 = first4 + a_place${l} % (STEP / 4u);
    let a_from${l}: u32 = params.lda4 * min(first_row + a_place${l} / (STEP / 4u), params.m - 1u);
    let a_to${l}: u32 = a_stage + A_ROW * (a_place${l} / (STEP / 4u)) + a_place${l} % (STEP / 4u);
    var a_next${l}: vec4<f16>;
    //% endfor
    //% for l in range(LOADS_B)
    let b_place${l}: u32 = place + ${l}u * THREADS;
    let b_term${l}: u32 = 4u * first4 + b_place${l} / COLUMNS4;
    let b_from${l}: u32 = b_place${l} % COLUMNS4;
    let b_to${l}: u32 = b_stage + B_ROW * (b_place${l} / COLUMNS4) + b_place${l} % COLUMNS4;
    var b_next${l}: vec4<f16>;
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    //% endfor
    //% endfor
    //% macro fetch(ahead4)
    //% for l in range(LOADS_A)
    a_next${l} = mat_a[a_from${l} + ${"min(a_term" ~ l ~ " + " ~ ahead4 ~ ", params.k4 - 1u)" if RAGGED else "a_term" ~ l ~ " + " ~ ahead4}];
    //% if RAGGED
    if (a_term${l} + ${ahead4} >= params.k4) {
        a_next${l} = vec4<f16>();
    }
    //% endif
    //% endfor
    //% for l in range(LOADS_B)
    b_next${l} = mat_b[b_from${l} + params.ldb4 * ${"min(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ", 4u * params.k4 - 1u)" if RAGGED or B_UNEVEN else "(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ")"}];
    //% if RAGGED
    if (b_term${l} + 4u * ${ahead4} >= 4u * params.k4) {
        b_next${l} = vec4<f16>();
    }
    //% endif
    //% endfor
    //% endmacro
    //% macro stage()
    //% for l in range(LOADS_A)
    //% if loop.last and A_UNEVEN
    if (a_place${l} < ROWS * STEP / 4u) {
        operands[a_to${l}] = a_next${l};
    }
    //% else
    operands[a_to${l}] = a_next${l};
    //% endif
    //% endfor
    //% for l in range(LOADS_B)
    //% if loop.last and B_UNEVEN
    if (b_place${l} < STEP * COLUMNS4) {
        operands[b_to${l}] = b_next${l};
    }
    //% else
    operands[b_to${l}] = b_next${l};
    //% endif
    //% endfor
    ${barrier};
    //% endmacro
    ${fetch("0u") | trim}
    ${stage() | trim}
    for (var done4: u32 = STEP / 4u; done4 <= terms4; done4 += STEP / 4u) {
        let ahead4: u32 = min(done4, terms4 - STEP / 4u);
        ${fetch("ahead4") | trim | indent(4)}
        //% for t in range(STEP // 16)
        //% for r in range(tile[1])
        let a${t}_${r}: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&operands[a_stage + ${16 * r}u * A_ROW + ${4 * t}u], A_ROW);
        //% endfor
        //% for c in range(tile[0])
        let b${t}_${c}: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&operands[b_stage + ${16 * t}u * B_ROW + column4 + ${4 * c}u * WAVES_X], B_ROW);
        //% for r in range(tile[1])
        sum${r}_${c} = coopMultiplyAdd(a${t}_${r}, b${t}_${c}, sum${r}_${c});
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
        ${stage() | trim | indent(4)}
    }
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    coopStoreT(sum${r}_${c}, &staged[(ROWS * layer + ${16 * r}u) * COLUMNS4 + column4 + ${4 * c}u * WAVES_X], COLUMNS4);
    //% endfor
    //% endfor
    ${barrier};
    for (var i: u32 = slot; i < ROWS * COLUMNS4; i += THREADS * LAYERS) {
        let c_row: u32 = min(first_row + i / COLUMNS4, params.m - 1u);
        var sum: ${acc4} = staged[i];
        //% for l in range(1, LAYERS)
        sum = sum + staged[i + ${l}u * ROWS * COLUMNS4];
        //% endfor
        sum = sum * ${splat(param("alpha"))};
        //% for line in epilogue("sum", "i % COLUMNS4", "COLUMNS4 * c_row + i % COLUMNS4")
        ${line}
        //% endfor
        staged[i] = sum;
    }
    ${barrier};
    let lane: u32 = slot % LANES;
    let own_row: u32 = min(slot / LANES, ROWS - 1u);
    let first: u32 = select(params.m, first_row + own_row, slot / LANES < ROWS);
    //% for statement in statements
    ${statement}
    //% endfor
}
