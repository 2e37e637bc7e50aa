//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a-p, j*s+b-p, c] * w[a,b,c]): tile[0] pixels of a row per
//# invocation, which read each column of the input once. Undilated windows, unrolled along a row.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn depthwise_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x * TILE_X;
    if (column >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    //% if ROWS
    let image: u32 = gid.z / params.dst_c4;
    let src_first: u32 = params.src_first + params.src_image * image + slice;
    //% else
    let src_first: u32 = params.src_w * params.src_h * gid.z;
    //% endif
    let weights_first: u32 = KERNEL_H * KERNEL_W * slice;
    //% for c in range((tile[0] - 1) * STRIDE_W + KERNEL_W)
    let x${c}: u32 = column * STRIDE_W + ${c}u;
    let inside${c}: bool = x${c} >= params.before_w && x${c} < params.src_w + params.before_w;
    //% endfor
    //% for p in range(tile[0])
    var sum${p}: ${acc4} = ${zero4};
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = gid.y * STRIDE_H + ky;
        if (y >= params.before_h && y < params.src_h + params.before_h) {
            //% if ROWS
            let src_row: u32 = src_first + params.src_pixel * (params.src_w * (y - params.before_h));
            //% else
            let src_row: u32 = src_first + params.src_w * (y - params.before_h);
            //% endif
            //% for c in range((tile[0] - 1) * STRIDE_W + KERNEL_W)
            var v${c}: ${acc4} = ${zero4};
            if (inside${c}) {
                //% set at = "params.src_pixel * (x" ~ c ~ " - params.before_w)" if ROWS else "x" ~ c ~ " - params.before_w"
                v${c} = ${load4("src", "src_row + " ~ at)};
            }
            //% endfor
            //% for b in range(KERNEL_W)
            let w${b}: ${acc4} = ${load4("weights", "weights_first + ky * KERNEL_W + " ~ b ~ "u")};
            //% for p in range(tile[0])
            sum${p} = ${fma4("v" ~ (p * STRIDE_W + b), "w" ~ b, "sum" ~ p)};
            //% endfor
            //% endfor
        }
    }
    //% if ROWS
    let dst_first: u32 = slice + params.dst_c4 * (column + params.dst_w * (gid.y + params.dst_h * image));
    //% else
    let dst_first: u32 = column + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% endif
    //% for p in range(tile[0])
    //% set to = "dst_first + " ~ p ~ ("u * params.dst_c4" if ROWS else "u")
    if (column + ${p}u < params.dst_w) {
        //% for line in epilogue("sum" ~ p, "slice", to)
        ${line}
        //% endfor
        ${store4("dst", to, "sum" ~ p)}
    }
    //% endfor
}
