//# y = f(x W^T + bias) + residual of few rows, where reading W is all the work. Of a work-group SHARING invocations
//# along x have GROUPS groups of four columns and ROWS rows: each reads every SHARING-th unit of their weights, UNIT
//# words at once, multiplies it with x, and at the end their sums are added up. Along y are other columns. Rows and
//# columns beyond the edge are computed from the last one and not stored; where x ends within a unit it is zero.
${constants}

${interface}
//% include "shared/quantized"
//% set lanes = ["x", "y", "z", "w"]
var<workgroup> kept: array<vec4<f32>, KEPT>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_gemm_row(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let own: u32 = lid.x + SHARING * lid.y;
    let column: u32 = 4u * GROUPS * (WG_Y * group.y + lid.y);
    let row: u32 = ROWS * group.z;
    //% for r in range(tile[1])
    let x${r}: u32 = params.k_row * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(4 * tile[0])
    let column${c}: u32 = min(column + ${c}u, params.n - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for g in range(tile[0])
    var sum${r}_${g}: vec4<f32> = vec4<f32>(0.0f);
    //% endfor
    //% endfor
    for (var unit: u32 = lid.x; unit < params.words; unit += SHARING) {
        //% for c in range(4 * tile[0])
        let word${c} = ${stored("weights", "params.words * column" ~ c ~ " + unit") if UNIT == 1 else "weights[params.words * column" ~ c ~ " + unit]"};
        //% endfor
        //% for c in range(4 * tile[0])
        ${scale_and_zero(c, "column" ~ c, "(UNIT * unit)") | trim | indent(8)}
        //% for r in range(tile[1])
        var part${r}_${c}: f32 = 0.0f;
        //% endfor
        //% endfor
        //% for w in range(UNIT)
        //% for q in range(PER_WORD // 4)
        //% for r in range(tile[1])
        let x${r}_${w}_${q}: vec4<f32> = ${four("x" ~ r, "(UNIT * PER_WORD * unit + " ~ (PER_WORD * w + 4 * q) ~ "u)") | trim | indent(8)};
        //% endfor
        //% for c in range(4 * tile[0])
        let w${c}_${w}_${q}: vec4<f32> = ${unpacked("word" ~ c ~ ("." ~ lanes[w] if UNIT == 4 else ""), q, "zero" ~ c) | trim};
        //% for r in range(tile[1])
        part${r}_${c} += dot(x${r}_${w}_${q}, w${c}_${w}_${q});
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        //% for g in range(tile[0])
        let scales${g}: vec4<f32> = vec4<f32>(scale${4 * g}, scale${4 * g + 1}, scale${4 * g + 2}, scale${4 * g + 3});
        //% for r in range(tile[1])
        sum${r}_${g} = fma(scales${g}, vec4<f32>(part${r}_${4 * g}, part${r}_${4 * g + 1}, part${r}_${4 * g + 2}, part${r}_${4 * g + 3}), sum${r}_${g});
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    //% for g in range(tile[0])
    kept[${r * tile[0] + g}u * SIZE + own] = sum${r}_${g};
    //% endfor
    //% endfor
    for (var step: u32 = SHARING / 2u; step > 0u; step = step / 2u) {
        ${barrier};
        if (lid.x < step) {
            //% for i in range(tile[0] * tile[1])
            kept[${i}u * SIZE + own] += kept[${i}u * SIZE + own + step];
            //% endfor
        }
    }
    ${barrier};
    //% for r in range(tile[1])
    //% for g in range(tile[0])
    //% set i = r * tile[0] + g
    if (lid.x == ${i}u % SHARING) {
        var y${i}: vec4<f32> = kept[${i}u * SIZE + SHARING * lid.y];
        ${finish("y" ~ i, "(row + " ~ r ~ "u)", "(column + " ~ 4 * g ~ "u)") | trim | indent(8)}
    }
    //% endfor
    //% endfor
}
