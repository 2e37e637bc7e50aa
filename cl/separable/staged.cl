//# y[n,i,j,o] = f(sum_k g(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, k] * v[a,b,k]) * w[o,k]): the windows
//# of a work-group's outputs are summed into local memory, CHUNK input slices at a time, and
//# multiplied from there. A strip is tile[0] outputs of one column, one below the other; an
//# invocation sums the windows of one strip in one slice, reading each input row once for all of
//# them, and then the products of one strip with tile[1] output slices, WG_Y apart. The sum over the
//# input slices is split between the work-group's tile[2] layers along z, which share the work of
//# adding the parts up. Outputs and slices beyond the edge are computed and not stored; input slices
//# beyond the last are the last one's windows times weights of zero.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void separable_staged(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint3 lid = (uint3)(get_local_id(0), get_local_id(1), get_local_id(2));
    const uint3 wid = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    const uint column = gid.x % dst_w;
    const uint row = gid.x / dst_w * TILE_X;
    const uint slice = wid.y * WG_Y * TILE_Y + lid.y;
    const uint n = gid.z / SPLITS;
    const uint plane = src_w * src_h;
    //% for b in range(KERNEL_W)
    const uint at${b} = column * STRIDE_W + ${b}u * DILATION_W;
    const bool inside${b} = at${b} >= before_w && at${b} < src_w + before_w;
    //% endfor
    //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    const uint y${r} = row * STRIDE_H + ${r}u;
    const bool on${r} = y${r} >= before_h && y${r} < src_h + before_h;
    const uint src_row${r} = src_w * (y${r} - before_h) - before_w;
    //% endfor
    //% for s in range(tile[1])
    const uint weights${s} = min(slice + WG_Y * ${s}u, dst_c4 - 1u);
    //% for q in range(tile[0])
    ${acc4} sum${s}_${q} = ${zero4};
    //% endfor
    //% endfor
    const uint own = lid.y + WG_Y * lid.z;
    for (uint first = 0u; first < src_c4; first += CHUNK) {
        const uint source = min(first + own, src_c4 - 1u);
        const uint src_first = plane * (source + src_c4 * n);
        const uint window_first = KERNEL_H * KERNEL_W * source;
        //% for a in range(KERNEL_H)
        //% for b in range(KERNEL_W)
        const ${acc4} k${a}_${b} = ${load4("window", "window_first + " ~ (a * KERNEL_W + b) ~ "u")};
        //% endfor
        //% endfor
        //% for q in range(tile[0])
        ${acc4} mid${q} = ${zero4};
        //% endfor
        //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
        //% for b in range(KERNEL_W)
        ${acc4} v${r}_${b} = ${zero4};
        if (on${r} && inside${b}) {
            v${r}_${b} = ${load4("src", "src_first + src_row" ~ r ~ " + at" ~ b)};
        }
        //% endfor
        //% endfor
        //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
        //% for q in range(tile[0])
        //% set d = r - q * STRIDE_H
        //% if d >= 0 and d % DILATION_H == 0 and d // DILATION_H < KERNEL_H
        //% for b in range(KERNEL_W)
        mid${q} = ${fma4("v" ~ r ~ "_" ~ b, "k" ~ (d // DILATION_H) ~ "_" ~ b, "mid" ~ q)};
        //% endfor
        //% endif
        //% endfor
        //% endfor
        //% for q in range(tile[0])
        //% for line in between("mid" ~ q, "source")
        ${line}
        //% endfor
        staged[lid.x + WG_X * (TILE_X * own + ${q}u)] = mid${q};
        //% endfor
        ${barrier};
        for (uint i = lid.z; i < CHUNK; i += SPLITS * UNROLL) {
            //% for u in range(UNROLL)
            const uint row${u} = 4u * dst_c4 * min(first + i + SPLITS * ${u}u, src_c4);
            //% for q in range(tile[0])
            const ${acc4} x${u}_${q} = staged[lid.x + WG_X * (TILE_X * (i + SPLITS * ${u}u) + ${q}u)];
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
            //% for q in range(tile[0])
            sum${s}_${q} = ${fma4("w" ~ u ~ "_" ~ s ~ "_" ~ lane, splat("x" ~ u ~ "_" ~ q ~ "." ~ lane), "sum" ~ s ~ "_" ~ q)};
            //% endfor
            //% endfor
            //% endfor
            //% endfor
        }
        ${barrier};
    }
    //% for s in range(tile[1])
    //% if SPLITS > 1
    const uint place${s} = lid.x + WG_X * lid.y;
    //% for q in range(tile[0])
    staged[place${s} + WG_X * WG_Y * (lid.z + SPLITS * ${q}u)] = sum${s}_${q};
    //% endfor
    ${barrier};
    for (uint q = lid.z; q < TILE_X; q += SPLITS) {
        if (row + q < dst_h && slice + WG_Y * ${s}u < dst_c4) {
            ${acc4} sum = staged[place${s} + WG_X * WG_Y * SPLITS * q];
            for (uint z = 1u; z < SPLITS; z++) {
                sum = sum + staged[place${s} + WG_X * WG_Y * (z + SPLITS * q)];
            }
            const uint dst_index = column + dst_w * (row + q + dst_h * (slice + WG_Y * ${s}u + dst_c4 * n));
            //% for line in epilogue("sum", "slice + WG_Y * " ~ s ~ "u", "dst_index")
            ${line}
            //% endfor
            ${store4("dst", "dst_index", "sum")}
        }
    }
    //% if s + 1 < tile[1]
    ${barrier};
    //% endif
    //% else
    if (slice + WG_Y * ${s}u < dst_c4) {
        const uint dst${s} = column + dst_w * (row + dst_h * (slice + WG_Y * ${s}u + dst_c4 * n));
        //% for q in range(tile[0])
        if (row + ${q}u < dst_h) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ q, "slice + WG_Y * " ~ s ~ "u", "dst" ~ s ~ " + dst_w * " ~ q ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + dst_w * " ~ q ~ "u", "sum" ~ s ~ "_" ~ q)}
        }
        //% endfor
    }
    //% endif
    //% endfor
}
