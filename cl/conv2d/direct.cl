//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]): tile[0] pixels of a row
//# by tile[2] slices of output channels per invocation. Groups are whole slices of channels, and an
//# invocation reads the slices of its own.
${constants}

__kernel void conv2d_direct(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = gid.x * TILE_X;
    const uint row = gid.y;
    const uint slice = gid.z % dst_tiles * TILE_Z;
    const uint n = gid.z / dst_tiles;
    if (column >= dst_w || row >= dst_h || n >= batch) {
        return;
    }
    const uint src_plane = src_w * src_h;
    //% if GROUPED
    const uint first = 4u * slice / group_outputs * src_slices;
    //% else
    const uint first = 0u;
    //% endif
    //% for s in range(tile[2])
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    for (uint ky = 0u; ky < KERNEL_H; ky++) {
        const uint y = row * STRIDE_H + ky * DILATION_H;
        if (y < before_h || y >= src_h + before_h) {
            continue;
        }
        const uint src_row = src_w * (y - before_h) + src_plane * src_c4 * n;
        for (uint kx = 0u; kx < KERNEL_W; kx++) {
            const uint tap = ky * KERNEL_W + kx;
            //% for p in range(tile[0])
            const uint x${p} = (column + ${p}u) * STRIDE_W + kx * DILATION_W;
            const bool inside${p} = x${p} >= before_w && x${p} < src_w + before_w;
            //% endfor
            for (uint i = 0u; i < src_slices; i++) {
                const uint src_first = src_row + src_plane * min(first + i, src_c4 - 1u);
                //% for p in range(tile[0])
                ${acc4} v${p} = ${zero4};
                if (inside${p}) {
                    v${p} = ${load4("src", "src_first + x" ~ p ~ " - before_w", column="x" ~ p ~ " - before_w + src_w * min(first + i, src_c4 - 1u)", row="y - before_h + src_h * n")};
                }
                //% endfor
                //% for s in range(tile[2])
                const uint w${s} = 4u * (i + src_slices * (tap + KERNEL_H * KERNEL_W * (slice + ${s}u)));
                //% for lane in ["x", "y", "z", "w"]
                const ${acc4} w${s}_${lane} = ${load4("weights", "w" ~ s ~ " + " ~ loop.index0 ~ "u")};
                //% for p in range(tile[0])
                sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ lane, splat("v" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
                //% endfor
                //% endfor
                //% endfor
            }
        }
    }
    //% for s in range(tile[2])
    if (slice + ${s}u < dst_c4) {
        const uint dst${s} = column + dst_w * (row + dst_h * (slice + ${s}u + dst_c4 * n));
        //% for p in range(tile[0])
        if (column + ${p}u < dst_w) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u", column="column + " ~ p ~ "u + dst_w * (slice + " ~ s ~ "u)", row="row + dst_h * n")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p, column="column + " ~ p ~ "u + dst_w * (slice + " ~ s ~ "u)", row="row + dst_h * n")}
        }
        //% endfor
    }
    //% endfor
}
