//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) without groups: TILE_X pixels of a row by
//# a slice of output channels per invocation, which keeps what all taps of a row of the window read of an input slice in
//# registers. What lies outside the input is read from the nearest place inside and replaced by zero, or is as RULE
//# says.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_sliding(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x * TILE_X;
    let row: u32 = gid.y;
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    if (column >= params.dst_w || row >= params.dst_h || n >= params.batch) {
        return;
    }
    let src_plane: u32 = params.src_w * params.src_h;
    //% set columns = (TILE_X - 1) * STRIDE_W + (KERNEL_W - 1) * DILATION_W + 1
    //% for c in range(columns)
    //% if RULE is defined
    let near${c}: u32 = bordered(column * STRIDE_W + ${c}u, params.before_w, params.src_w);
    //% else
    let x${c}: u32 = column * STRIDE_W + ${c}u;
    let outside${c}: bool = x${c} < params.before_w || x${c} >= params.src_w + params.before_w;
    let near${c}: u32 = min(max(x${c}, params.before_w) - params.before_w, params.src_w - 1u);
    //% endif
    //% endfor
    //% for p in range(TILE_X)
    var sum${p}: ${acc4} = ${zero4};
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = row * STRIDE_H + ky * DILATION_H;
        //% if RULE is defined
        let src_y: u32 = bordered(y, params.before_h, params.src_h);
        //% else
        if (y < params.before_h || y >= params.src_h + params.before_h) {
            continue;
        }
        let src_y: u32 = y - params.before_h;
        //% endif
        let src_row: u32 = params.src_w * src_y + src_plane * params.src_c4 * n;
        let tap: u32 = KERNEL_W * (ky + KERNEL_H * slice);
        for (var i: u32 = 0u; i < params.src_c4; i++) {
            let src_first: u32 = src_row + src_plane * i;
            //% for c in range(columns)
            var v${c}: ${acc4} = ${load4("src", "src_first + near" ~ c)};
            //% if RULE is not defined
            if (outside${c}) {
                v${c} = ${zero4};
            }
            //% endif
            //% endfor
            //% for b in range(KERNEL_W)
            let w${b}: u32 = 4u * (i + params.src_c4 * (tap + ${b}u));
            //% for lane in ["x", "y", "z", "w"]
            let w${b}_${lane}: ${acc4} = ${load4("weights", "w" ~ b ~ " + " ~ loop.index0 ~ "u")};
            //% for p in range(TILE_X)
            sum${p} = ${fma4("w" ~ b ~ "_" ~ lane, splat("v" ~ (p * STRIDE_W + b * DILATION_W) ~ "." ~ lane), "sum" ~ p)};
            //% endfor
            //% endfor
            //% endfor
        }
    }
    let out: u32 = column + params.dst_w * (row + params.dst_h * (slice + params.dst_c4 * n));
    //% for p in range(TILE_X)
    if (column + ${p}u < params.dst_w) {
        //% for line in epilogue("sum" ~ p, "slice", "out + " ~ p ~ "u")
        ${line}
        //% endfor
        ${store4("dst", "out + " ~ p ~ "u", "sum" ~ p)}
    }
    //% endfor
}
