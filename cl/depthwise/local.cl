//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): tile[0] columns, WG_X apart,
//# by tile[1] neighbouring rows of one slice per invocation. The part of the input that the windows
//# of a work-group touch is staged in local memory, zeros outside the map, so that each value is
//# read once however many windows it lies in. Outputs beyond the map are computed from what was
//# staged and not stored.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void depthwise_local(
    ${arguments}
) {
    __local ${acc4} staged[STAGED_W * STAGED_H];
    const uint3 lid = (uint3)(get_local_id(0), get_local_id(1), get_local_id(2));
    const uint3 wid = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint slice = wid.z % dst_c4;
    const uint weights_first = KERNEL_H * KERNEL_W * slice;
    //% for a in range(KERNEL_H)
    //% for b in range(KERNEL_W)
    const ${acc4} w${a}_${b} = ${load4("weights", "weights_first + " ~ (a * KERNEL_W + b) ~ "u")};
    //% endfor
    //% endfor
    const uint src_first = src_w * src_h * wid.z;
    for (uint i = lid.x + WG_X * lid.y; i < STAGED_W * STAGED_H; i += WG_X * WG_Y) {
        const uint x = wid.x * WG_X * TILE_X * STRIDE_W + i % STAGED_W;
        const uint y = wid.y * WG_Y * TILE_Y * STRIDE_H + i / STAGED_W;
        ${acc4} v = ${zero4};
        if (x >= before_w && x < src_w + before_w && y >= before_h && y < src_h + before_h) {
            v = ${load4("src", "src_first + src_w * (y - before_h) + x - before_w")};
        }
        staged[i] = v;
    }
    ${barrier};
    //% for q in range(tile[1])
    //% for p in range(tile[0])
    ${acc4} sum${q}_${p} = ${zero4};
    //% endfor
    //% endfor
    const uint window = lid.x * STRIDE_W + STAGED_W * (lid.y * TILE_Y * STRIDE_H);
    //% for r in range((tile[1] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    //% for p in range(tile[0])
    //% for b in range(KERNEL_W)
    const ${acc4} v${r}_${p}_${b} = staged[window + STAGED_W * ${r}u + WG_X * STRIDE_W * ${p}u + DILATION_W * ${b}u];
    //% endfor
    //% endfor
    //% for q in range(tile[1])
    //% set d = r - q * STRIDE_H
    //% if d >= 0 and d % DILATION_H == 0 and d // DILATION_H < KERNEL_H
    //% for b in range(KERNEL_W)
    //% for p in range(tile[0])
    sum${q}_${p} = ${fma4("v" ~ r ~ "_" ~ p ~ "_" ~ b, "w" ~ (d // DILATION_H) ~ "_" ~ b, "sum" ~ q ~ "_" ~ p)};
    //% endfor
    //% endfor
    //% endif
    //% endfor
    //% endfor
    const uint column = wid.x * WG_X * TILE_X + lid.x;
    const uint row = (wid.y * WG_Y + lid.y) * TILE_Y;
    //% for q in range(tile[1])
    if (row + ${q}u < dst_h) {
        const uint dst${q} = column + dst_w * (row + ${q}u + dst_h * wid.z);
        //% for p in range(tile[0])
        if (column + WG_X * ${p}u < dst_w) {
            //% for line in epilogue("sum" ~ q ~ "_" ~ p, "slice", "dst" ~ q ~ " + WG_X * " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ q ~ " + WG_X * " ~ p ~ "u", "sum" ~ q ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
