//# A convolution by cooperative matrices of halves with f32 sums: a work-group stages STEP terms of its ROWS
//# pixels and of its columns; while they are multiplied, the next terms travel into registers. A wave of 32
//# invocations sums TILE_Y by TILE_X matrices of 16 by 16. Layers of the work-group along z have stages of their
//# own and sum a part of the terms each. The sums pass through local memory, a row of matrices at a time, to
//# invocations that add the layers' up and finish four channels each. Pixels and channels beyond the last are
//# computed from it and not stored; terms beyond it are zero. Needs `pixels`, `area`, `total4` and macros
//# `place_of` for a pixel's place and `load_of` for its vec4 of a slice.
    let wave: u32 = lid / 32u;
    let lane: u32 = lid % 32u;
    let x: u32 = wave % WAVES_X;
    let y: u32 = wave / WAVES_X % WG_Y;
    let place: u32 = lid % THREADS;
    let layer: u32 = lid / THREADS;
    let own: u32 = LAYER * layer;
    let column4: u32 = COLUMNS4 * group.x;
    let row: u32 = ROWS * group.y;
    let terms4: u32 = STEP4 * ((total4 + STEP4 * LAYERS - 1u) / (STEP4 * LAYERS));
    let first4: u32 = terms4 * layer;
    //% for l in range(LOADS_A)
    let a_row${l}: u32 = (place + ${l}u * THREADS) % ROWS;
    let a_term${l}: u32 = first4 + (place + ${l}u * THREADS) / ROWS;
    let a_to${l}: u32 = own + A_ROW * a_row${l} + a_term${l} - first4;
    let pixel${l}: u32 = min(row + a_row${l}, pixels - 1u);
    ${place_of(l) | trim}
    var a_next${l}: vec4<f16>;
    //% endfor
    //% for l in range(LOADS_B)
    let b_term${l}: u32 = 4u * first4 + (place + ${l}u * THREADS) / COLUMNS4;
    let b_column${l}: u32 = (place + ${l}u * THREADS) % COLUMNS4;
    let b_from${l}: u32 = min(column4 + b_column${l}, params.dst_c4 - 1u);
    let b_to${l}: u32 = own + B_FIRST + B_ROW * (b_term${l} - 4u * first4) + b_column${l};
    var b_next${l}: vec4<f16>;
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    //% endfor
    //% endfor
    //% macro fetch(ahead4)
    //% for l in range(LOADS_B)
    b_next${l} = weights[b_from${l} + params.dst_c4 * ${"min(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ", 4u * total4 - 1u)" if RAGGED else "(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ")"}];
    //% endfor
    //% for l in range(LOADS_A)
    ${load_of(l, "a_term" ~ l ~ " + " ~ ahead4) | trim}
    //% if RAGGED
    if (a_term${l} + ${ahead4} >= total4) {
        a_next${l} = vec4<f16>();
    }
    //% endif
    //% endfor
    //% endmacro
    //% macro stage()
    //% for l in range(LOADS_A)
    staged[a_to${l}] = a_next${l};
    //% endfor
    //% for l in range(LOADS_B)
    staged[b_to${l}] = b_next${l};
    //% endfor
    ${barrier};
    //% endmacro
    ${fetch("0u") | trim}
    ${stage() | trim}
    let a_at: u32 = own + 16u * TILE_Y * A_ROW * y;
    let b_at: u32 = own + B_FIRST + 4u * TILE_X * x;
    for (var done4: u32 = STEP4; done4 <= terms4; done4 += STEP4) {
        let ahead4: u32 = min(done4, terms4 - STEP4);
        ${fetch("ahead4") | trim | indent(4)}
        //% for t in range(STEP4 // 4)
        //% for r in range(tile[1])
        let a${t}_${r}: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&staged[a_at + ${4 * t}u + ${16 * r}u * A_ROW], A_ROW);
        //% endfor
        //% for c in range(tile[0])
        let b${t}_${c}: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&staged[b_at + ${16 * t}u * B_ROW + ${4 * c}u], B_ROW);
        //% for r in range(tile[1])
        sum${r}_${c} = coopMultiplyAdd(a${t}_${r}, b${t}_${c}, sum${r}_${c});
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
        ${stage() | trim | indent(4)}
    }
    let passes: u32 = ${64 * tile[0]}u * wave;
    let shared_passes: u32 = ${64 * tile[0]}u * (wave % (THREADS / 32u));
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    coopStoreT(sum${r}_${c}, &passed[passes + ${64 * c}u], 4u);
    //% endfor
    ${barrier};
    for (var i: u32 = lane + 32u * layer; i < ${64 * tile[0]}u; i += 32u * LAYERS) {
        let to: u32 = row + 16u * (TILE_Y * y + ${r}u) + i % 16u;
        let slice: u32 = column4 + 4u * TILE_X * x + i / 16u;
        if (to < pixels && slice < params.dst_c4) {
            let at: u32 = to + area * (slice + (params.dst_c4 - 1u) * (to / area));
            let part: u32 = shared_passes + 64u * (i / 64u) + 4u * (i % 16u) + i / 16u % 4u;
            var sum: vec4<f32> = passed[part];
            //% for l in range(1, LAYERS)
            sum = sum + passed[part + ${2 * l * tile[0]}u * THREADS];
            //% endfor
            //% for line in epilogue("sum", "slice", "at")
            ${line}
            //% endfor
            ${store4("dst", "at", "sum")}
        }
    }
    //% if not loop.last
    ${barrier};
    //% endif
    //% endfor
