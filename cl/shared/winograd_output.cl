//# Exchanges the sums of all positions, PHASE of each invocation's at a time, adds the stacks up and
//# transforms them back to pixels. Tiles and slices beyond the edge are not stored.
    //% set count = tile[0] * tile[1]
    //% for first in range(0, count, PHASE)
    //% for t in range(first, [first + PHASE, count] | min)
    staged[place + WG_X * WG_Y * (z + WG_Z * ${t - first}u)] = sum${t // tile[0]}_${t % tile[0]};
    //% endfor
    ${barrier};
    for (uint t = ${first}u + z; t < ${[first + PHASE, count] | min}u; t += WG_Z) {
        const uint tile = first_tile + x + WG_X * (t % TILE_X);
        const uint out_slice = first_slice + y + WG_Y * (t / TILE_X);
        const uint part = place + WG_X * WG_Y * WG_Z * (t - ${first}u);
        if (tile < tiles && out_slice < dst_c4) {
            const uint column = tile % tiles_w * OUTPUT;
            const uint row = tile / tiles_w % tiles_h * OUTPUT;
            const uint dst_first = column + dst_w * (row + dst_h * (out_slice + dst_c4 * (tile / (tiles_w * tiles_h))));
            //% for c in range(PATCH)
            //% for r in range(PATCH)
            ${acc4} m${c}_${r} = staged[part + WG_X * WG_Y * ${r * PATCH + c}u];
            //% endfor
            //% if STACKS > 1
            for (uint other = POSITIONS; other < WG_Z; other += POSITIONS) {
                //% for r in range(PATCH)
                m${c}_${r} = m${c}_${r} + staged[part + WG_X * WG_Y * (other + ${r * PATCH + c}u)];
                //% endfor
            }
            //% endif
            //% for i in range(OUTPUT)
            const ${acc4} h${i}_${c} = ${transform("output", OUTPUT, i, "m" ~ c ~ "_")};
            //% endfor
            //% endfor
            //% for i in range(OUTPUT)
            //% for j in range(OUTPUT)
            if (row + ${i}u < dst_h && column + ${j}u < dst_w) {
                ${acc4} y${i}_${j} = ${transform("output", OUTPUT, j, "h" ~ i ~ "_")};
                const uint dst${i}_${j} = dst_first + ${j}u + dst_w * ${i}u;
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
