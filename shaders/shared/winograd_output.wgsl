//# Exchanges the sums of all positions, PHASE of each invocation's at a time, adds the stacks up and
//# transforms them back to pixels. Tiles and slices beyond the edge are not stored.
    //% set count = tile[0] * tile[1]
    //% for first in range(0, count, PHASE)
    //% for t in range(first, [first + PHASE, count] | min)
    staged[place + WG_X * WG_Y * (z + WG_Z * ${t - first}u)] = sum${t // tile[0]}_${t % tile[0]};
    //% endfor
    ${barrier};
    for (var t: u32 = ${first}u + z; t < ${[first + PHASE, count] | min}u; t += WG_Z) {
        let tile: u32 = first_tile + x + WG_X * (t % TILE_X);
        let out_slice: u32 = first_slice + y + WG_Y * (t / TILE_X);
        let part: u32 = place + WG_X * WG_Y * WG_Z * (t - ${first}u);
        if (tile < params.tiles && out_slice < params.dst_c4) {
            let column: u32 = tile % params.tiles_w * OUTPUT;
            let row: u32 = tile / params.tiles_w % params.tiles_h * OUTPUT;
            let dst_first: u32 = column + params.dst_w * (row + params.dst_h * (out_slice + params.dst_c4 * (tile / (params.tiles_w * params.tiles_h))));
            //% for c in range(PATCH)
            //% for r in range(PATCH)
            var m${c}_${r}: ${acc4} = staged[part + WG_X * WG_Y * ${r * PATCH + c}u];
            //% endfor
            //% if STACKS > 1
            for (var other: u32 = POSITIONS; other < WG_Z; other += POSITIONS) {
                //% for r in range(PATCH)
                m${c}_${r} = m${c}_${r} + staged[part + WG_X * WG_Y * (other + ${r * PATCH + c}u)];
                //% endfor
            }
            //% endif
            //% for i in range(OUTPUT)
            let h${i}_${c}: ${acc4} = ${transform("output", OUTPUT, i, "m" ~ c ~ "_")};
            //% endfor
            //% endfor
            //% for i in range(OUTPUT)
            //% for j in range(OUTPUT)
            if (row + ${i}u < params.dst_h && column + ${j}u < params.dst_w) {
                var y${i}_${j}: ${acc4} = ${transform("output", OUTPUT, j, "h" ~ i ~ "_")};
                let dst${i}_${j}: u32 = dst_first + ${j}u + params.dst_w * ${i}u;
                //% for line in epilogue("y" ~ i ~ "_" ~ j, "out_slice", "dst" ~ i ~ "_" ~ j)
                ${line}
                //% endfor
                ${store4("dst", "dst" ~ i ~ "_" ~ j, "y" ~ i ~ "_" ~ j)}
            }
            //% endfor
            //% endfor
        }
    }
    //% if first + PHASE < count
    ${barrier};
    //% endif
    //% endfor
