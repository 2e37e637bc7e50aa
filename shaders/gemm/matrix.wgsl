//# C = f(alpha * A * B + beta * C) with f32 sums, by cooperative matrices of halves: a work-group stages STEP
//# terms of its rows of A and columns of B; while they are multiplied, the next terms travel into registers.
//# A wave of 32 invocations sums TILE_Y by TILE_X matrices of 16 by 16 and passes them through local memory
//# to its invocations, which finish four columns each. Of operands in f32 (PARTS is 2) it stages the nearest
//# halves and, LOW further on, 2048 times what they leave; a product is then the sum of three, the two small
//# ones summed by themselves. Rows and columns beyond the edge are computed from the last one and not stored;
//# terms beyond it are zero. Layers of the work-group along z have stages of their own and sum a part of the terms each;
//# their sums are added up where they pass through local memory. Solo: OpenCL C has no cooperative matrices.
//# One buffer for a step, not two: NVIDIA's Vulkan has 50 kB of local memory for all work-groups of a
//# multiprocessor, and a second work-group there is worth more than a barrier less.
enable wgpu_cooperative_matrix;
${constants}

${interface}
var<workgroup> staged: array<vec4<f16>, STAGED>;
var<workgroup> passed: array<vec4<f32>, PASSED>;

//% set operand4 = "vec4<f32>" if PARTS == 2 else "vec4<f16>"
fn put(at: u32, value: ${operand4}) {
    //% if PARTS == 2
    // Rounded by its bits: a compiler may take a conversion to f16 and back for nothing.
    let high: vec4<f32> = bitcast<vec4<f32>>((bitcast<vec4<u32>>(value) + 0x1000u) & vec4<u32>(0xffffe000u));
    staged[at] = vec4<f16>(high);
    staged[at + LOW] = vec4<f16>((value - high) * 2048.0);
    //% else
    staged[at] = value;
    //% endif
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_matrix(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let lane: u32 = lid % 32u;
    let place: u32 = ${"lid % THREADS" if LAYERS > 1 else "lid"};
    let wave: u32 = place / 32u;
    let x: u32 = wave % WAVES_X;
    let y: u32 = wave / WAVES_X;
    //% if LAYERS > 1
    let layer: u32 = lid / THREADS;
    let terms4: u32 = STEP / 4u * ((params.k4 + STEP / 4u * LAYERS - 1u) / (STEP / 4u * LAYERS));
    let first4: u32 = terms4 * layer;
    let own: u32 = LAYER * layer;
    //% endif
    let column4: u32 = COLUMNS4 * group.x;
    let row: u32 = ROWS * group.y;
    //% for l in range(LOADS_A)
    let a_row${l}: u32 = (place + ${l}u * THREADS) / (STEP / 4u);
    let a_term${l}: u32 = (place + ${l}u * THREADS) % (STEP / 4u)${" + first4" if LAYERS > 1};
    let a_from${l}: u32 = ${apart("a_batch4", "group.z")} + params.lda4 * min(row + a_row${l}, params.m - 1u);
    let a_to${l}: u32 = A_ROW * a_row${l} + a_term${l}${" - first4 + own" if LAYERS > 1};
    var a_next${l}: ${operand4};
    //% endfor
    //% for l in range(LOADS_B)
    let b_term${l}: u32 = (place + ${l}u * THREADS) / COLUMNS4${" + 4u * first4" if LAYERS > 1};
    let b_column${l}: u32 = (place + ${l}u * THREADS) % COLUMNS4;
    let b_from${l}: u32 = ${apart("b_batch4", "group.z")} + min(column4 + b_column${l}, params.n4 - 1u);
    let b_to${l}: u32 = B_FIRST + B_ROW * ${"(b_term" ~ l ~ " - 4u * first4)" if LAYERS > 1 else "b_term" ~ l} + b_column${l}${" + own" if LAYERS > 1};
    var b_next${l}: ${operand4};
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    //% if PARTS == 2
    var low${r}_${c}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    //% endif
    //% endfor
    //% endfor
    //% macro fetch(ahead4)
    //% for l in range(LOADS_A)
    a_next${l} = mat_a[a_from${l} + ${"min(a_term" ~ l ~ " + " ~ ahead4 ~ ", params.k4 - 1u)" if RAGGED else "a_term" ~ l ~ " + " ~ ahead4}];
    //% endfor
    //% for l in range(LOADS_B)
    b_next${l} = mat_b[b_from${l} + params.ldb4 * ${"min(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ", 4u * params.k4 - 1u)" if RAGGED else "(b_term" ~ l ~ " + 4u * " ~ ahead4 ~ ")"}];
    //% endfor
    //% for l in range(LOADS_A) if RAGGED
    if (a_term${l} + ${ahead4} >= params.k4) {
        a_next${l} = ${operand4}();
    }
    //% endfor
    //% for l in range(LOADS_B) if RAGGED
    if (b_term${l} + 4u * ${ahead4} >= 4u * params.k4) {
        b_next${l} = ${operand4}();
    }
    //% endfor
    //% endmacro
    //% macro stage()
    //% for l in range(LOADS_A)
    put(a_to${l}, a_next${l});
    //% endfor
    //% for l in range(LOADS_B)
    put(b_to${l}, b_next${l});
    //% endfor
    ${barrier};
    //% endmacro
    ${fetch("0u") | trim}
    ${stage() | trim}
    let a_at: u32 = 16u * TILE_Y * A_ROW * y${" + own" if LAYERS > 1};
    let b_at: u32 = B_FIRST + 4u * TILE_X * x${" + own" if LAYERS > 1};
    //% if LAYERS == 1
    let terms4: u32 = STEP / 4u * ((params.k4 + STEP / 4u - 1u) / (STEP / 4u));
    //% endif
    for (var done4: u32 = STEP / 4u; done4 <= terms4; done4 += STEP / 4u) {
        let ahead4: u32 = min(done4, terms4 - STEP / 4u);
        ${fetch("ahead4") | trim | indent(4)}
        //% for t in range(STEP // 16)
        //% for r in range(tile[1])
        //% for p in range(PARTS)
        let a${t}_${r}_${p}: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&staged[a_at + ${4 * t}u + ${16 * r}u * A_ROW + ${p}u * LOW], A_ROW);
        //% endfor
        //% endfor
        //% for c in range(tile[0])
        //% for p in range(PARTS)
        let b${t}_${c}_${p}: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&staged[b_at + ${16 * t}u * B_ROW + ${4 * c}u + ${p}u * LOW], B_ROW);
        //% endfor
        //% for sum, p, q in [("low", 0, 1), ("low", 1, 0), ("sum", 0, 0)] if sum == "sum" or PARTS == 2
        //% for r in range(tile[1])
        ${sum}${r}_${c} = coopMultiplyAdd(a${t}_${r}_${p}, b${t}_${c}_${q}, ${sum}${r}_${c});
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
        ${stage() | trim | indent(4)}
    }
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    coopStoreT(${"sum" ~ r ~ "_" ~ c}${" + low" ~ r ~ "_" ~ c ~ " * (1.0 / 2048.0)" if PARTS == 2 else ""}, &passed[${"64u * (lid / 32u)" if LAYERS > 1 else "64u * wave"}], 4u);
    ${barrier};
    for (var i: u32 = lane${" + 32u * layer" if LAYERS > 1}; i < 64u; i += ${"32u * LAYERS" if LAYERS > 1 else "32u"}) {
        let to_row: u32 = row + 16u * (TILE_Y * y + ${r}u) + i / 4u;
        let to4: u32 = column4 + 4u * (TILE_X * x + ${c}u) + i % 4u;
        if (to_row < params.m && to4 < params.n4) {
            let c_at: u32 = ${apart("c_batch4", "group.z")} + params.ldc4 * to_row + to4;
            //% if LAYERS > 1
            var sum: ${acc4} = passed[64u * wave + i];
            //% for l in range(1, LAYERS)
            sum = sum + passed[64u * wave + i + ${2 * l}u * THREADS];
            //% endfor
            sum = sum * ${splat(param("alpha"))};
            //% else
            var sum: ${acc4} = passed[64u * wave + i] * ${splat(param("alpha"))};
            //% endif
            //% if BETA
            sum = sum + ${splat(param("beta"))} * ${load4("mat_c", "c_at")};
            //% endif
            //% for line in epilogue("sum", "to4", "c_at")
            ${line}
            //% endfor
            ${store4("mat_c", "c_at", "sum")}
        }
    }
    ${barrier};
    //% endfor
    //% endfor
}
