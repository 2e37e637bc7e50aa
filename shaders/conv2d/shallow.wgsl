//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) for inputs of up to four
//# channels, read as NHWC rows: tile[0] pixels of a row by tile[2] slices of output channels per
//# invocation. The window is unrolled: wholly, or where ROLLED a row at a time, so that a compiler
//# does not load all of it ahead. The tiles of a plane are one axis of the grid. What lies outside
//# the input is read from the nearest place inside and replaced by zero, without a branch that loads
//# would wait behind, or is as RULE says.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_shallow(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x % params.tiles_w * TILE_X;
    let row: u32 = gid.x / params.tiles_w;
    let slice: u32 = gid.y % params.dst_tiles * TILE_Z;
    let n: u32 = gid.y / params.dst_tiles;
    if (row >= params.dst_h || n >= params.batch) {
        return;
    }
    let src_first: u32 = CHANNELS * params.src_w * params.src_h * n;
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    //% if RULE is defined
    let near${c}: u32 = CHANNELS * bordered(column * STRIDE_W + ${c}u, params.before_w, params.src_w);
    //% else
    let x${c}: u32 = column * STRIDE_W + ${c}u;
    let outside${c}: bool = x${c} < params.before_w || x${c} >= params.src_w + params.before_w;
    let near${c}: u32 = CHANNELS * min(max(x${c}, params.before_w) - params.before_w, params.src_w - 1u);
    //% endif
    //% endfor
    //% for s in range(tile[2])
    ${"var" if ROLLED else "let"} weights${s}: u32 = CHANNELS * KERNEL_H * KERNEL_W * (slice + ${s}u);
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    //% macro window_row(a, y, first)
    let y${a}: u32 = ${y};
    //% if RULE is defined
    let src_row${a}: u32 = src_first + CHANNELS * params.src_w * bordered(y${a}, params.before_h, params.src_h);
    //% else
    let off${a}: bool = y${a} < params.before_h || y${a} >= params.src_h + params.before_h;
    let src_row${a}: u32 = src_first + CHANNELS * params.src_w * min(max(y${a}, params.before_h) - params.before_h, params.src_h - 1u);
    //% endif
    //% for c in range((tile[0] - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1)
    //% if RULE is not defined
    let outside${a}_${c}: bool = off${a} || outside${c};
    //% endif
    //% for k in range(CHANNELS)
    //% set near = load("src", "src_row" ~ a ~ " + near" ~ c ~ " + " ~ k ~ "u")
    //% if RULE is defined
    let v${a}_${c}_${k}: ${acc} = ${near};
    //% else
    let near${a}_${c}_${k}: ${acc} = ${near};
    let v${a}_${c}_${k}: ${acc} = select(near${a}_${c}_${k}, ${zero}, outside${a}_${c});
    //% endif
    //% endfor
    //% endfor
    //% for b in range(KERNEL_W)
    //% for k in range(CHANNELS)
    //% for s in range(tile[2])
    let w${s}_${a}_${b}_${k}: ${acc4} = ${load4("weights", "weights" ~ s ~ " + " ~ (first + b * CHANNELS + k) ~ "u")};
    //% for p in range(tile[0])
    sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ a ~ "_" ~ b ~ "_" ~ k, splat("v" ~ a ~ "_" ~ (p * STRIDE_W + b * DILATION_W) ~ "_" ~ k), "sum" ~ s ~ "_" ~ p)};
    //% endfor
    //% endfor
    //% endfor
    //% endfor
    //% endmacro
    //% if ROLLED
    for (var a: u32 = 0u; a < KERNEL_H; a += 1u) {
        ${window_row(0, "row * STRIDE_H + a * DILATION_H", 0) | trim | indent(4)}
        //% for s in range(tile[2])
        weights${s} += CHANNELS * KERNEL_W;
        //% endfor
    }
    //% else
    //% for a in range(KERNEL_H)
    ${window_row(a, "row * STRIDE_H + " ~ a * DILATION_H ~ "u", a * KERNEL_W * CHANNELS) | trim}
    //% endfor
    //% endif
    //% for s in range(tile[2])
    if (slice + ${s}u < params.dst_c4) {
        let dst${s}: u32 = column + params.dst_w * (row + params.dst_h * (slice + ${s}u + params.dst_c4 * n));
        //% for p in range(tile[0])
        if (column + ${p}u < params.dst_w) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
