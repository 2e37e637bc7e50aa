//# Finishes and stores the sums of a `tiled` convolution: the first slice of the work-group has them.
    if (slice > 0u) {
        return;
    }
    //% for r in range(tile[1])
    let pixel${r}: u32 = row + 4u * (y + ${r // 4}u * WG_Y) + ${r % 4}u;
    if (pixel${r} < pixels) {
        let place${r}: u32 = ${"pixel" ~ r ~ " + area * (params.dst_c4 - 1u) * (pixel" ~ r ~ " / area)" if BATCHED else "pixel" ~ r};
        //% for c in range(tile[0])
        if (column4 + x + ${c}u * WG_X < params.dst_c4) {
            let at${r}_${c}: u32 = place${r} + area * (column4 + x + ${c}u * WG_X);
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + x + " ~ c ~ "u * WG_X", "at" ~ r ~ "_" ~ c)
            ${line}
            //% endfor
            ${store4("dst", "at" ~ r ~ "_" ~ c, "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
