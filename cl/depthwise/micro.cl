//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): tile[0] columns by tile[1]
//# rows of one slice per invocation. Each input row that the tile's windows touch is read once,
//# and serves every row of outputs whose window it lies in. The tiles of a plane are one axis of
//# the grid, so that a small map does not waste invocations. All loads stand apart from each other,
//# so that they are in flight together.
${constants}

__kernel void depthwise_micro(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = gid.x % tiles_w * TILE_X;
    const uint row = gid.x / tiles_w * TILE_Y;
    if (row >= dst_h || gid.y >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.y % dst_c4;
    const uint src_first = src_w * src_h * gid.y;
    const uint weights_first = KERNEL_H * KERNEL_W * slice;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    const uint x${c} = column * STRIDE_W + ${c}u;
    const bool inside${c} = x${c} >= before_w && x${c} < src_w + before_w;
    //% endfor
    //% for a in range(KERNEL_H)
    //% for b in range(KERNEL_W)
    const ${acc4} w${a}_${b} = ${load4("weights", "weights_first + " ~ (a * KERNEL_W + b) ~ "u")};
    //% endfor
    //% endfor
    //% for q in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${q}_${p} = ${zero4};
    //% endfor
    //% endfor
    //% for r in range((tile[1] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    const uint y${r} = row * STRIDE_H + ${r}u;
    const bool on${r} = y${r} >= before_h && y${r} < src_h + before_h;
    const uint src_row${r} = src_first + src_w * (y${r} - before_h) - before_w;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    ${acc4} v${r}_${c} = ${zero4};
    if (on${r} && inside${c}) {
        v${r}_${c} = ${load4("src", "src_row" ~ r ~ " + x" ~ c)};
    }
    //% endfor
    //% for q in range(tile[1])
    //% set d = r - q * STRIDE_H
    //% if d >= 0 and d % DILATION_H == 0 and d // DILATION_H < KERNEL_H
    //% for b in range(KERNEL_W)
    //% for p in range(tile[0])
    sum${q}_${p} = ${fma4("v" ~ r ~ "_" ~ (p * STRIDE_W + b * DILATION_W), "w" ~ (d // DILATION_H) ~ "_" ~ b, "sum" ~ q ~ "_" ~ p)};
    //% endfor
    //% endfor
    //% endif
    //% endfor
    //% endfor
    //% for q in range(tile[1])
    if (row + ${q}u < dst_h) {
        const uint dst${q} = column + dst_w * (row + ${q}u + dst_h * gid.y);
        //% for p in range(tile[0])
        if (column + ${p}u < dst_w) {
            //% for line in epilogue("sum" ~ q ~ "_" ~ p, "slice", "dst" ~ q ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ q ~ " + " ~ p ~ "u", "sum" ~ q ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
