//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): tile[0] columns by tile[1]
//# rows of one slice per invocation. Each input row that the tile's windows touch is read once,
//# and serves every row of outputs whose window it lies in. The tiles of a plane are one axis of
//# the grid, so that a small map does not waste invocations. All loads stand apart from each other,
//# so that they are in flight together.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn depthwise_micro(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x % params.tiles_w * TILE_X;
    let row: u32 = gid.x / params.tiles_w * TILE_Y;
    if (row >= params.dst_h || gid.y >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.y % params.dst_c4;
    //% if ROWS
    let image: u32 = gid.y / params.dst_c4;
    let src_first: u32 = params.src_first + params.src_image * image + slice;
    //% else
    let src_first: u32 = params.src_w * params.src_h * gid.y;
    //% endif
    let weights_first: u32 = KERNEL_H * KERNEL_W * slice;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    let x${c}: u32 = column * STRIDE_W + ${c}u;
    let inside${c}: bool = x${c} >= params.before_w && x${c} < params.src_w + params.before_w;
    //% endfor
    //% for a in range(KERNEL_H)
    //% for b in range(KERNEL_W)
    let w${a}_${b}: ${acc4} = ${load4("weights", "weights_first + " ~ (a * KERNEL_W + b) ~ "u")};
    //% endfor
    //% endfor
    //% for q in range(tile[1])
    //% for p in range(tile[0])
    var sum${q}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% for r in range((tile[1] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    let y${r}: u32 = row * STRIDE_H + ${r}u;
    let on${r}: bool = y${r} >= params.before_h && y${r} < params.src_h + params.before_h;
    let src_row${r}: u32 = ${"" if ROWS else "src_first + "}params.src_w * (y${r} - params.before_h) - params.before_w;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    var v${r}_${c}: ${acc4} = ${zero4};
    if (on${r} && inside${c}) {
        //% set at = "src_row" ~ r ~ " + x" ~ c
        v${r}_${c} = ${load4("src", "src_first + params.src_pixel * (" ~ at ~ ")" if ROWS else at)};
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
    if (row + ${q}u < params.dst_h) {
        //% if ROWS
        let dst${q}: u32 = slice + params.dst_c4 * (column + params.dst_w * (row + ${q}u + params.dst_h * image));
        //% else
        let dst${q}: u32 = column + params.dst_w * (row + ${q}u + params.dst_h * gid.y);
        //% endif
        //% for p in range(tile[0])
        //% set to = "dst" ~ q ~ " + " ~ p ~ ("u * params.dst_c4" if ROWS else "u")
        if (column + ${p}u < params.dst_w) {
            //% for line in epilogue("sum" ~ q ~ "_" ~ p, "slice", to)
            ${line}
            //% endfor
            ${store4("dst", to, "sum" ~ q ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
