//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): a micro-tile of tile[0] pixels by tile[1] slices per
//# invocation. The plane is one row of pixels, so that a small map does not waste invocations.
//# Pixels beyond the plane are computed from the last pixel and not stored; slices beyond the
//# last have zero weights and are not stored.
${constants}

__kernel void pointwise_micro(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint pixel = gid.x * TILE_X;
    const uint slice = gid.y * TILE_Y;
    const uint n = gid.z;
    if (pixel >= plane || slice >= dst_c4 || n >= batch) {
        return;
    }
    const uint src_first = plane * src_c4 * n;
    //% for p in range(tile[0])
    const uint src${p} = src_first + min(pixel + ${p}u, plane - 1u);
    //% endfor
    //% for s in range(tile[1])
    const uint weights${s} = 4u * src_c4 * (slice + ${s}u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    for (uint i = 0u; i < src_c4; i++) {
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
    //% for s in range(tile[1])
    if (slice + ${s}u < dst_c4) {
        const uint dst${s} = plane * (slice + ${s}u + dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + ${p}u < plane) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
