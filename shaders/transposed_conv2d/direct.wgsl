//# y[n,i,j,o] = f(sum_{a,b,k} x[n, (i+p-a)/s, (j+p-b)/s, k] * w[o,a,b,k]) over the a and b without remainder:
//# tile[0] pixels of a row, a stride apart, by tile[2] slices of output channels per invocation. The taps that
//# reach them are the same: every STRIDE_W-th from the first. An input coordinate is counted from KERNEL_H or
//# KERNEL_W on, so that one below 0 is a large number and is outside too. A tap outside is left out rather than
//# multiplied by zero, because its weight may be infinite; only where a tile reaches outside are its pixels looked at
//# one by one.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn transposed_conv2d_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    let phase: u32 = gid.x / params.row_tiles;
    let column: u32 = phase + STRIDE_W * TILE_X * (gid.x % params.row_tiles);
    let row: u32 = gid.y;
    let slice: u32 = gid.z % params.dst_tiles * TILE_Z;
    let n: u32 = gid.z / params.dst_tiles;
    if (phase >= STRIDE_W || column >= params.dst_w || row >= params.dst_h || n >= params.batch) {
        return;
    }
    let src_plane: u32 = params.src_w * params.src_h;
    //% for s in range(tile[2])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var ky: u32 = (row + params.before_h) % STRIDE_H; ky < KERNEL_H; ky += STRIDE_H) {
        let y: u32 = (row + params.before_h + STRIDE_H * KERNEL_H - ky) / STRIDE_H - KERNEL_H;
        if (y >= params.src_h) {
            continue;
        }
        let src_row: u32 = params.src_w * y + src_plane * params.src_c4 * n;
        for (var kx: u32 = (column + params.before_w) % STRIDE_W; kx < KERNEL_W; kx += STRIDE_W) {
            let tap: u32 = ky * KERNEL_W + kx;
            let x0: u32 = (column + params.before_w + STRIDE_W * KERNEL_W - kx) / STRIDE_W - KERNEL_W;
            //% for p in range(1, tile[0])
            let x${p}: u32 = x0 + ${p}u;
            //% endfor
            //% if tile[0] == 1
            if (x0 >= params.src_w) {
                continue;
            }
            //% else
            let whole: bool = x0 < params.src_w && x${tile[0] - 1} < params.src_w;
            //% endif
            //% for part in (["all"] if tile[0] == 1 else ["whole", "!whole"])
            //% if tile[0] > 1
            if (${part}) {
            //% endif
            for (var i: u32 = 0u; i < params.src_c4; i++) {
                let src_first: u32 = src_row + src_plane * i;
                //% for p in range(tile[0])
                //% if part == "!whole"
                var v${p}: ${acc4} = ${zero4};
                if (x${p} < params.src_w) {
                    v${p} = ${load4("src", "src_first + x" ~ p)};
                }
                //% else
                let v${p}: ${acc4} = ${load4("src", "src_first + x" ~ p)};
                //% endif
                //% endfor
                //% for s in range(tile[2])
                let w${s}: u32 = 4u * (i + params.src_c4 * (tap + KERNEL_H * KERNEL_W * (slice + ${s}u)));
                //% for lane in ["x", "y", "z", "w"]
                let w${s}_${lane}: ${acc4} = ${load4("weights", "w" ~ s ~ " + " ~ loop.index0 ~ "u")};
                //% endfor
                //% endfor
                //% for p in range(tile[0])
                //% if part == "!whole"
                if (x${p} < params.src_w) {
                //% endif
                //% for s in range(tile[2])
                //% for lane in ["x", "y", "z", "w"]
                sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ lane, splat("v" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
                //% endfor
                //% endfor
                //% if part == "!whole"
                }
                //% endif
                //% endfor
            }
            //% if tile[0] > 1
            }
            //% endif
            //% endfor
        }
    }
    //% for s in range(tile[2])
    if (slice + ${s}u < params.dst_c4) {
        let dst${s}: u32 = column + params.dst_w * (row + params.dst_h * (slice + ${s}u + params.dst_c4 * n));
        //% for p in range(tile[0])
        if (column + ${p}u * STRIDE_W < params.dst_w) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u * STRIDE_W")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u * STRIDE_W", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
