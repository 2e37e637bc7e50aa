//# y = f(x W^T + bias) + residual from local memory: a work-group stages STEP terms of its rows of x and of its columns
//# of W, which it unpacks. An invocation sums tile[1] rows, WG_Y apart, by tile[0] groups of four columns, WG_X groups
//# apart. The next terms are on their way while these are multiplied. Staged columns lie so that neighbours along x
//# read neighbouring rows of PITCH vec4s. Rows and columns beyond the edge are computed from the last one and not
//# stored; where x ends within a step it is zero.
${constants}

${interface}
//% include "shared/quantized"
//% set lanes = ["x", "y", "z", "w"]
//% set step4 = STEP // 4
var<workgroup> rows: array<vec4<f32>, STAGED_ROWS>;
var<workgroup> columns: array<vec4<f32>, STAGED_COLUMNS>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_gemm_tiled(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid.x + WG_X * lid.y;
    let row: u32 = TILE_Y * WG_Y * group.y;
    let column: u32 = 4u * TILE_X * WG_X * group.x;
    //% for l in range(LOADS_X)
    let x_row${l}: u32 = (place + ${l}u * THREADS) / ${step4}u;
    let x_four${l}: u32 = (place + ${l}u * THREADS) % ${step4}u;
    let x_from${l}: u32 = params.k_row * min(row + x_row${l}, params.m - 1u);
    var x_next${l}: vec4<f32> = vec4<f32>(0.0f);
    //% endfor
    //% for l in range(LOADS_W)
    let w_column${l}: u32 = (place + ${l}u * THREADS) / STEP_WORDS;
    let w_word${l}: u32 = (place + ${l}u * THREADS) % STEP_WORDS;
    let w_from${l}: u32 = min(column + w_column${l}, params.n - 1u);
    let w_to${l}: u32 = PITCH * (TILE_X * WG_X * (w_column${l} % 4u) + w_column${l} / 4u) + PER_WORD / 4u * w_word${l};
    var w_next${l}: u32 = 0u;
    var w_scale${l}: f32 = 0.0f;
    var w_zero${l}: f32 = 0.0f;
    //% endfor
    //% macro fetch(step)
    //% for l in range(LOADS_X)
    x_next${l} = ${four("x_from" ~ l, "(STEP * " ~ step ~ " + 4u * x_four" ~ l ~ ")") | trim};
    //% endfor
    //% for l in range(LOADS_W)
    let at_${l}: u32 = min(STEP_WORDS * ${step} + w_word${l}, params.words - 1u);
    ${scale_and_zero("_" ~ l, "w_from" ~ l, "at_" ~ l) | trim | indent(4)}
    w_next${l} = ${stored("weights", "params.words * w_from" ~ l ~ " + at_" ~ l)};
    w_scale${l} = scale_${l};
    w_zero${l} = zero_${l};
    //% endfor
    //% endmacro
    //% for r in range(tile[1])
    //% for g in range(tile[0])
    var sum${r}_${g}: vec4<f32> = vec4<f32>(0.0f);
    //% endfor
    //% endfor
    {
        ${fetch("0u") | trim | indent(4)}
    }
    for (var step: u32 = 0u; step < params.steps; step += 1u) {
        //% for l in range(LOADS_X)
        rows[PITCH * x_row${l} + x_four${l}] = x_next${l};
        //% endfor
        //% for l in range(LOADS_W)
        //% for q in range(PER_WORD // 4)
        columns[w_to${l} + ${q}u] = w_scale${l} * (${unpacked("w_next" ~ l, q, "w_zero" ~ l) | trim});
        //% endfor
        //% endfor
        ${barrier};
        let next: u32 = min(step + 1u, params.steps - 1u);
        ${fetch("next") | trim | indent(4)}
        for (var four: u32 = 0u; four < ${step4}u; four += 1u) {
            //% for r in range(tile[1])
            let x${r}: vec4<f32> = rows[PITCH * (lid.y + ${r}u * WG_Y) + four];
            //% endfor
            //% for g in range(tile[0])
            //% for c in range(4)
            let w${g}_${c}: vec4<f32> = columns[PITCH * (${c}u * TILE_X * WG_X + lid.x + ${g}u * WG_X) + four];
            //% endfor
            //% for r in range(tile[1])
            //% for c in range(4)
            sum${r}_${g}.${lanes[c]} += dot(x${r}, w${g}_${c});
            //% endfor
            //% endfor
            //% endfor
        }
        ${barrier};
    }
    //% for r in range(tile[1])
    //% for g in range(tile[0])
    ${finish("sum" ~ r ~ "_" ~ g, "(row + lid.y + " ~ r ~ "u * WG_Y)", "(column + 4u * (lid.x + " ~ g ~ "u * WG_X))") | trim}
    //% endfor
    //% endfor
}
