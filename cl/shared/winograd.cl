//# A work-group sums TILES = tile[0] * WG_X output tiles of OUTPUT x OUTPUT pixels, tile by tile along
//# the rows of all images, by SLICES = tile[1] * WG_Y slices of output channels. At each step it
//# brings the patches of DEPTH = tile[2] input slices, transforms them in local memory, along columns
//# and then along rows, and multiplies at each of the POSITIONS of a patch, which are its layers
//# along z: an invocation sums one position of tile[0] tiles by tile[1] slices, WG_X tiles and WG_Y
//# slices apart. STACKS of such layers sum every STACKS-th step. Steps beyond the last have zero
//# weights; what lies outside the input is zero.
    const uint place = lid % (WG_X * WG_Y);
    const uint own = lid % THREADS;
    const uint stack = lid / THREADS;
    const uint x = lid % WG_X;
    const uint y = lid / WG_X % WG_Y;
    const uint z = lid / (WG_X * WG_Y);
    const uint base = SIDE * stack;
    const uint first_tile = group.x * TILES;
    const uint first_slice = group.y * SLICES;
    const uint src_plane = src_w * src_h;
    //% for l in range(LOADS_V)
    const uint item${l} = own + ${l}u * THREADS;
    const uint line${l} = item${l} / TILES % PATCH;
    const uint depth${l} = item${l} / (TILES * PATCH);
    const uint patch${l} = min(first_tile + item${l} % TILES, tiles - 1u);
    const uint src_x${l} = patch${l} % tiles_w * OUTPUT + line${l} - before_w;
    const uint src_y${l} = patch${l} / tiles_w % tiles_h * OUTPUT - before_h;
    const uint from${l} = src_plane * src_c4 * (patch${l} / (tiles_w * tiles_h)) + src_w * src_y${l} + src_x${l};
    const bool on${l} = src_x${l} < src_w && item${l} < ITEMS_V;
    const uint column${l} = base + (line${l} * DEPTH + depth${l}) * TILES + item${l} % TILES;
    const uint row${l} = base + (line${l} * PATCH * DEPTH + depth${l}) * TILES + item${l} % TILES;
    //% for r in range(PATCH)
    ${acc4} next${l}_${r} = ${zero4};
    //% endfor
    //% endfor
    //% for l in range(LOADS_U)
    const uint weights${l} = dst_c4 * ((own + ${l}u * THREADS) / SLICES) + min(first_slice + (own + ${l}u * THREADS) % SLICES, dst_c4 - 1u);
    ${acc4} w${l} = ${zero4};
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    //% macro fetch(step)
    //% for l in range(LOADS_V)
    const uint src${l} = from${l} + src_plane * min(DEPTH * ${step} + depth${l}, src_c4 - 1u);
    //% for r in range(PATCH)
    if (on${l} && src_y${l} + ${r}u < src_h) {
        next${l}_${r} = ${load4("src", "src" ~ l ~ " + src_w * " ~ r ~ "u")};
    }
    //% endfor
    //% endfor
    //% for l in range(LOADS_U)
    if (own + ${l}u * THREADS < ITEMS_U) {
        w${l} = ${load4("weights", "weights" ~ l ~ " + dst_c4 * ROWS_U * " ~ step)};
    }
    //% endfor
    //% endmacro
    const uint step0 = min(stack, steps);
    ${fetch("step0") | trim}
    for (uint done = 0u; done < steps; done += STACKS) {
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
        const uint step = min(done + STACKS + stack, steps);
        ${fetch("step") | trim | indent(4)}
        ${barrier};
        //% for l in range(LOADS_V)
        if (item${l} < ITEMS_V) {
            //% for c in range(PATCH)
            const ${acc4} t${c} = staged[row${l} + ${c}u * DEPTH * TILES];
            //% endfor
            //% for c in range(PATCH)
            staged[row${l} + ${c}u * DEPTH * TILES] = ${transform("input", OUTPUT, c, "t")};
            //% endfor
        }
        //% endfor
        ${barrier};
        const uint v_at = base + z % POSITIONS * DEPTH * TILES + x;
        const uint u_at = base + FIRST_U + z % POSITIONS * DEPTH * 4u * SLICES + y;
        //% for d in range(DEPTH)
        //% for p in range(tile[0])
        const ${acc4} v${d}_${p} = staged[v_at + ${d}u * TILES + ${p}u * WG_X];
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        //% set term = 4 * d + loop.index0
        //% for s in range(tile[1])
        const ${acc4} u${term}_${s} = staged[u_at + ${term}u * SLICES + ${s}u * WG_Y];
        //% for p in range(tile[0])
        sum${s}_${p} = ${fma4("u" ~ term ~ "_" ~ s, splat("v" ~ d ~ "_" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
        //% endfor
        //% endfor
        //% endfor
        //% endfor
        ${barrier};
    }
