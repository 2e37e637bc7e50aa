//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, g*I+k] * w[o,a,b,k]) with g = o/O: tile[0] pixels
//# of a row by tile[2] slices of output channels per invocation. Only what lies in a channel's own
//# group is multiplied: the four channels of a slice are of DISTINCT groups at most, and each reads
//# STEP inputs of its group at a time. Lanes beyond the last channel read the last group; their
//# weights are zero.
${constants}

__kernel void conv2d_grouped(
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
    //% for g in range(DISTINCT)
    const uint first${g} = group_inputs * (min(4u * slice + ${4 // DISTINCT * g}u, dst_c - 1u) / group_outputs);
    //% endfor
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
            const uint src${p} = src_row + x${p} - before_w;
            //% endfor
            for (uint k = 0u; k < group_inputs; k += STEP) {
                //% for g in range(DISTINCT)
                const uint slice${g} = src_plane * ((first${g} + k) / 4u);
                //% if STEP == 1
                const uint lane${g} = (first${g} + k) % 4u;
                //% endif
                //% for p in range(tile[0])
                //% if STEP == 1
                ${acc} v${p}_${g} = ${zero};
                //% else
                ${acc4} v${p}_${g} = ${zero4};
                //% endif
                if (inside${p}) {
                    //% if STEP == 1
                    v${p}_${g} = ${lane("src", "src" ~ p ~ " + slice" ~ g, "lane" ~ g)};
                    //% else
                    v${p}_${g} = ${load4("src", "src" ~ p ~ " + slice" ~ g)};
                    //% endif
                }
                //% endfor
                //% endfor
                //% for s in range(tile[2])
                const uint w${s} = k + group_inputs * (tap + KERNEL_H * KERNEL_W * (slice + ${s}u));
                //% for lane in (["x", "y", "z", "w"] if STEP == 4 else [""])
                const ${acc4} w${s}_${loop.index0} = ${load4("weights", "w" ~ s ~ " + " ~ loop.index0 ~ "u")};
                //% set dot = "." ~ lane if STEP == 4 else ""
                //% set term = loop.index0
                //% for p in range(tile[0])
                //% set v = "v" ~ p ~ "_"
                //% if DISTINCT == 1
                sum${s}_${p} = ${fma4(splat(v ~ "0" ~ dot), "w" ~ s ~ "_" ~ term, "sum" ~ s ~ "_" ~ p)};
                //% elif DISTINCT == 2
                sum${s}_${p} = ${fma4(splat(v ~ "0" ~ dot ~ ", " ~ v ~ "0" ~ dot ~ ", " ~ v ~ "1" ~ dot ~ ", " ~ v ~ "1" ~ dot), "w" ~ s ~ "_" ~ term, "sum" ~ s ~ "_" ~ p)};
                //% else
                sum${s}_${p} = ${fma4(splat(v ~ "0" ~ dot ~ ", " ~ v ~ "1" ~ dot ~ ", " ~ v ~ "2" ~ dot ~ ", " ~ v ~ "3" ~ dot), "w" ~ s ~ "_" ~ term, "sum" ~ s ~ "_" ~ p)};
                //% endif
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
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
