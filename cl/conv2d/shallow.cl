//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) for inputs of up to four
//# channels, read as NHWC rows: tile[0] pixels of a row by tile[2] slices of output channels per
//# invocation, the window unrolled. The tiles of a plane are one axis of the grid. What lies
//# outside the input is read from the nearest place inside and replaced by zero.
${constants}

__kernel void conv2d_shallow(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = gid.x % tiles_w * TILE_X;
    const uint row = gid.x / tiles_w;
    const uint slice = gid.y % dst_tiles * TILE_Z;
    const uint n = gid.y / dst_tiles;
    if (row >= dst_h || n >= batch) {
        return;
    }
    const uint src_first = CHANNELS * src_w * src_h * n;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    const uint x${c} = column * STRIDE_W + ${c}u;
    const bool outside${c} = x${c} < before_w || x${c} >= src_w + before_w;
    const uint near${c} = CHANNELS * min(max(x${c}, before_w) - before_w, src_w - 1u);
    //% endfor
    //% for s in range(tile[2])
    const uint weights${s} = CHANNELS * KERNEL_H * KERNEL_W * (slice + ${s}u);
    //% for p in range(tile[0])
    ${acc4} sum${s}_${p} = ${zero4};
    //% endfor
    //% endfor
    //% for a in range(KERNEL_H)
    const uint y${a} = row * STRIDE_H + ${a * DILATION_H}u;
    const bool off${a} = y${a} < before_h || y${a} >= src_h + before_h;
    const uint src_row${a} = src_first + CHANNELS * src_w * min(max(y${a}, before_h) - before_h, src_h - 1u);
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    //% for k in range(CHANNELS)
    ${acc} v${a}_${c}_${k} = ${load("src", "src_row" ~ a ~ " + near" ~ c ~ " + " ~ k ~ "u")};
    //% endfor
    if (off${a} || outside${c}) {
        //% for k in range(CHANNELS)
        v${a}_${c}_${k} = ${zero};
        //% endfor
    }
    //% endfor
    //% for b in range(KERNEL_W)
    //% for k in range(CHANNELS)
    //% for s in range(tile[2])
    const ${acc4} w${s}_${a}_${b}_${k} = ${load4("weights", "weights" ~ s ~ " + " ~ ((a * KERNEL_W + b) * CHANNELS + k) ~ "u")};
    //% for p in range(tile[0])
    sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ a ~ "_" ~ b ~ "_" ~ k, splat("v" ~ a ~ "_" ~ (p * STRIDE_W + b * DILATION_W) ~ "_" ~ k), "sum" ~ s ~ "_" ~ p)};
    //% endfor
    //% endfor
    //% endfor
    //% endfor
    //% endfor
    //% for s in range(tile[2])
    if (slice + ${s}u < dst_c4) {
        const uint dst${s} = column + dst_w * (row + dst_h * (slice + ${s}u + dst_c4 * n));
        //% for p in range(tile[0])
        if (column + ${p}u < dst_w) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
