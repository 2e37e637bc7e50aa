//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): a matrix product of pixels and output channels. An
//# invocation sums tile[0] pixels by tile[1] slices; those of a work-group lie WG_X pixels and WG_Y
//# slices apart, so that neighbours load neighbours. The sum over the input channels is split
//# between the work-group's tile[2] layers along z, for maps too small to fill the device
//# otherwise; the layers share the work of adding the parts up. Pixels and slices beyond the edge
//# are computed from the last one and not stored; input slices beyond the last have zero weights.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void pointwise_split(
    ${arguments}
) {
    //% if SPLITS > 1
    __local ${acc4} partial[PARTIALS];
    //% endif
    const uint3 lid = (uint3)(get_local_id(0), get_local_id(1), get_local_id(2));
    const uint3 wid = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint pixel = wid.x * WG_X * TILE_X + lid.x;
    const uint slice = wid.y * WG_Y * TILE_Y + lid.y;
    const uint n = gid.z / SPLITS;
    const uint src_first = plane * src_c4 * n;
    //% for p in range(tile[0])
    const uint src${p} = src_first + min(pixel + WG_X * ${p}u, plane - 1u);
    //% endfor
    //% for s in range(tile[1])
    const uint weights${s} = min(slice + WG_Y * ${s}u, dst_c4 - 1u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    for (uint i = lid.z; i < src_c4; i += SPLITS * UNROLL) {
        //% for u in range(UNROLL)
        const uint offset${u} = plane * min(i + SPLITS * ${u}u, src_c4 - 1u);
        const uint row${u} = 4u * dst_c4 * (i + SPLITS * ${u}u);
        //% for p in range(tile[0])
        const ${acc4} x${u}_${p} = ${load4("src", "src" ~ p ~ " + offset" ~ u)};
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        //% set term = loop.index0
        //% for s in range(tile[1])
        const ${acc4} w${u}_${s}_${lane} = ${load4("weights", "row" ~ u ~ " + weights" ~ s ~ " + dst_c4 * " ~ term ~ "u")};
        //% endfor
        //% endfor
        //% endfor
        //% for u in range(UNROLL)
        //% for lane in ["x", "y", "z", "w"]
        //% for s in range(tile[1])
        //% for p in range(tile[0])
        sum${s}_${p} = ${fma4("w" ~ u ~ "_" ~ s ~ "_" ~ lane, splat("x" ~ u ~ "_" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
        //% endfor
        //% endfor
        //% endfor
        //% endfor
    }
    //% if SPLITS > 1
    const uint place = lid.x + WG_X * lid.y;
    //% set count = tile[0] * tile[1]
    //% for first in range(0, count, PHASE)
    //% for t in range(first, [first + PHASE, count] | min)
    partial[place + WG_X * WG_Y * (lid.z + SPLITS * ${t - first}u)] = sum${t // tile[0]}_${t % tile[0]};
    //% endfor
    ${barrier};
    for (uint t = ${first}u + lid.z; t < ${[first + PHASE, count] | min}u; t += SPLITS) {
        const uint out_pixel = pixel + WG_X * (t % TILE_X);
        const uint out_slice = slice + WG_Y * (t / TILE_X);
        if (out_pixel < plane && out_slice < dst_c4) {
            const uint part = place + WG_X * WG_Y * SPLITS * (t - ${first}u);
            ${acc4} sum = partial[part];
            for (uint q = 1u; q < SPLITS; q++) {
                sum = sum + partial[part + WG_X * WG_Y * q];
            }
            const uint dst_index = plane * (out_slice + dst_c4 * n) + out_pixel;
            //% for line in epilogue("sum", "out_slice", "dst_index")
            ${line}
            //% endfor
            ${store4("dst", "dst_index", "sum")}
        }
    }
    //% if first + PHASE < count
    ${barrier};
    //% endif
    //% endfor
    //% else
    //% for s in range(tile[1])
    if (slice + WG_Y * ${s}u < dst_c4) {
        const uint dst${s} = plane * (slice + WG_Y * ${s}u + dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + WG_X * ${p}u < plane) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + WG_Y * " ~ s ~ "u", "dst" ~ s ~ " + WG_X * " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + WG_X * " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
    //% endif
}
