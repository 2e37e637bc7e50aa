//# A work-group sums TILES = tile[0] * WG_X output tiles of OUTPUT x OUTPUT pixels, tile by tile along
//# the rows of all images, by SLICES = tile[1] * WG_Y slices of output channels. At each step it
//# brings the patches of DEPTH = tile[2] input slices, transforms them in local memory, along columns
//# and then along rows, and multiplies at each of the POSITIONS of a patch, which are its layers
//# along z: an invocation sums one position of tile[0] tiles by tile[1] slices, WG_X tiles and WG_Y
//# slices apart. STACKS of such layers sum every STACKS-th step. Steps beyond the last have zero
//# weights; what lies outside the input is zero.
    let place: u32 = lid % (WG_X * WG_Y);
    let own: u32 = lid % THREADS;
    let stack: u32 = lid / THREADS;
    let x: u32 = lid % WG_X;
    let y: u32 = lid / WG_X % WG_Y;
    let z: u32 = lid / (WG_X * WG_Y);
    let base: u32 = SIDE * stack;
    let first_tile: u32 = group.x * TILES;
    let first_slice: u32 = group.y * SLICES;
    let src_plane: u32 = params.src_w * params.src_h;
    //% for l in range(LOADS_V)
    let item${l}: u32 = own + ${l}u * THREADS;
    let line${l}: u32 = item${l} / TILES % PATCH;
    let depth${l}: u32 = item${l} / (TILES * PATCH);
    let patch${l}: u32 = min(first_tile + item${l} % TILES, params.tiles - 1u);
    let src_x${l}: u32 = patch${l} % params.tiles_w * OUTPUT + line${l} - params.before_w;
    let src_y${l}: u32 = patch${l} / params.tiles_w % params.tiles_h * OUTPUT - params.before_h;
    let from${l}: u32 = src_plane * params.src_c4 * (patch${l} / (params.tiles_w * params.tiles_h)) + params.src_w * src_y${l} + src_x${l};
    let on${l}: bool = src_x${l} < params.src_w && item${l} < ITEMS_V;
    let column${l}: u32 = base + (line${l} * DEPTH + depth${l}) * TILES + item${l} % TILES;
    let row${l}: u32 = base + (line${l} * PATCH * DEPTH + depth${l}) * TILES + item${l} % TILES;
    //% for r in range(PATCH)
    var next${l}_${r}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% for l in range(LOADS_U)
    let weights${l}: u32 = params.dst_c4 * ((own + ${l}u * THREADS) / SLICES) + min(first_slice + (own + ${l}u * THREADS) % SLICES, params.dst_c4 - 1u);
    var w${l}: ${acc4} = ${zero4};
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro fetch(step)
    //% for l in range(LOADS_V)
    let src${l}: u32 = from${l} + src_plane * min(DEPTH * ${step} + depth${l}, params.src_c4 - 1u);
    //% for r in range(PATCH)
    if (on${l} && src_y${l} + ${r}u < params.src_h) {
        next${l}_${r} = ${load4("src", "src" ~ l ~ " + params.src_w * " ~ r ~ "u")};
    }
    //% endfor
    //% endfor
    //% for l in range(LOADS_U)
    if (own + ${l}u * THREADS < ITEMS_U) {
        w${l} = ${load4("weights", "weights" ~ l ~ " + params.dst_c4 * ROWS_U * " ~ step)};
    }
    //% endfor
    //% endmacro
    let step0: u32 = min(stack, params.steps);
    ${fetch("step0") | trim}
    for (var done: u32 = 0u; done < params.steps; done += STACKS) {
        //% for l in range(LOADS_V)
        if (item${l} < ITEMS_V) {
            //% for r in range(PATCH)
            staged[column${l} + ${r}u * PATCH * DEPTH * TILES] = ${transform("input", OUTPUT, r, "next" ~ l ~ "_")};
            //% endfor
        }
        //% endfor
        //% for l in range(LOADS_U)
        if (own + ${l}u * THREADS < ITEMS_U) {
            staged[base + FIRST_U + own + ${l}u * THREADS] = w${l};
        }
        //% endfor
        let step: u32 = min(done + STACKS + stack, params.steps);
        ${fetch("step") | trim | indent(4)}
        ${barrier};
        //% for l in range(LOADS_V)
        if (item${l} < ITEMS_V) {
            //% for c in range(PATCH)
            let t${c}: ${acc4} = staged[row${l} + ${c}u * DEPTH * TILES];
            //% endfor
            //% for c in range(PATCH)
            staged[row${l} + ${c}u * DEPTH * TILES] = ${transform("input", OUTPUT, c, "t")};
            //% endfor
        }
        //% endfor
        ${barrier};
        let v_at: u32 = base + z % POSITIONS * DEPTH * TILES + x;
        let u_at: u32 = base + FIRST_U + z % POSITIONS * DEPTH * 4u * SLICES + y;
        //% for d in range(DEPTH)
        //% for p in range(tile[0])
        let v${d}_${p}: ${acc4} = staged[v_at + ${d}u * TILES + ${p}u * WG_X];
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        //% set term = 4 * d + loop.index0
        //% for s in range(tile[1])
        let u${term}_${s}: ${acc4} = staged[u_at + ${term}u * SLICES + ${s}u * WG_Y];
        //% for p in range(tile[0])
        sum${s}_${p} = ${fma4("u" ~ term ~ "_" ~ s, splat("v" ~ d ~ "_" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
    }
