//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a-p, j*s+b-p, c] * w[a,b,c]): tile[0] pixels of a row per
//# invocation, which read each column of the input once. Undilated windows, unrolled along a row.
${constants}

__kernel void depthwise_rows(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = gid.x * TILE_X;
    if (column >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint src_first = src_w * src_h * gid.z;
    const uint weights_first = KERNEL_H * KERNEL_W * slice;
    //% for c in range((tile[0] - 1) * STRIDE_W + KERNEL_W)
    const uint x${c} = column * STRIDE_W + ${c}u;
    const bool inside${c} = x${c} >= before_w && x${c} < src_w + before_w;
    //% endfor
    //% for p in range(tile[0])
    ${acc4} sum${p} = ${zero4};
    //% endfor
    for (uint ky = 0u; ky < KERNEL_H; ky++) {
        const uint y = gid.y * STRIDE_H + ky;
        if (y >= before_h && y < src_h + before_h) {
            const uint src_row = src_first + src_w * (y - before_h);
            //% for c in range((tile[0] - 1) * STRIDE_W + KERNEL_W)
            ${acc4} v${c} = ${zero4};
            if (inside${c}) {
                v${c} = ${load4("src", "src_row + x" ~ c ~ " - before_w")};
            }
            //% endfor
            //% for b in range(KERNEL_W)
            const ${acc4} w${b} = ${load4("weights", "weights_first + ky * KERNEL_W + " ~ b ~ "u")};
            //% for p in range(tile[0])
            sum${p} = ${fma4("v" ~ (p * STRIDE_W + b), "w" ~ b, "sum" ~ p)};
            //% endfor
            //% endfor
        }
    }
    const uint dst_first = column + dst_w * (gid.y + dst_h * gid.z);
    //% for p in range(tile[0])
    if (column + ${p}u < dst_w) {
        //% for line in epilogue("sum" ~ p, "slice", "dst_first + " ~ p ~ "u")
        ${line}
        //% endfor
        ${store4("dst", "dst_first + " ~ p ~ "u", "sum" ~ p)}
    }
    //% endfor
}
