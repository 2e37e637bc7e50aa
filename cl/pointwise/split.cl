//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): the sum over the input channels is split between the
//# invocations of a work-group along z, for maps too small to fill the device otherwise. Each
//# invocation sums every SPLITS-th slice of tile[0] pixels by tile[1] slices; those of the first
//# split add the parts up. Pixels and slices beyond the edge are computed from the last one and not
//# stored.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void pointwise_split(
    ${arguments}
) {
    __local ${acc4} partial[PARTIALS];
    const uint3 lid = (uint3)(get_local_id(0), get_local_id(1), get_local_id(2));
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint pixel = gid.x * TILE_X;
    const uint slice = gid.y * TILE_Y;
    const uint n = gid.z / SPLITS;
    const uint src_first = plane * src_c4 * n;
    //% for p in range(tile[0])
    const uint src${p} = src_first + min(pixel + ${p}u, plane - 1u);
    //% endfor
    //% for s in range(tile[1])
    const uint weights${s} = 4u * src_c4 * min(slice + ${s}u, dst_c4 - 1u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    for (uint i = lid.z; i < src_c4; i += SPLITS) {
        const uint offset = plane * i;
        //% for p in range(tile[0])
        const ${acc4} x${p} = ${load4("src", "src" ~ p ~ " + offset")};
        //% endfor
        //% for s in range(tile[1])
        const uint w${s} = weights${s} + 4u * i;
        const ${acc4} w${s}_x = ${load4("weights", "w" ~ s)};
        const ${acc4} w${s}_y = ${load4("weights", "w" ~ s ~ " + 1u")};
        const ${acc4} w${s}_z = ${load4("weights", "w" ~ s ~ " + 2u")};
        const ${acc4} w${s}_w = ${load4("weights", "w" ~ s ~ " + 3u")};
        //% for lane in ["x", "y", "z", "w"]
        //% for p in range(tile[0])
        sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ lane, splat("x" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
        //% endfor
        //% endfor
        //% endfor
    }
    const uint place = lid.x + WG_X * lid.y;
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    partial[place + WG_X * WG_Y * (lid.z + SPLITS * ${s * tile[0] + p}u)] = sum${s}_${p};
    //% endfor
    //% endfor
    ${barrier};
    if (lid.z > 0u || pixel >= plane) {
        return;
    }
    //% for s in range(tile[1])
    if (slice + ${s}u < dst_c4) {
        const uint dst${s} = plane * (slice + ${s}u + dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + ${p}u < plane) {
            for (uint q = 1u; q < SPLITS; q++) {
                sum${s}_${p} = sum${s}_${p} + partial[place + WG_X * WG_Y * (q + SPLITS * ${s * tile[0] + p}u)];
            }
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
