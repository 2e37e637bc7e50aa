//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]): tile[0] pixels of a row
//# by tile[2] slices of output channels per invocation. Groups are whole slices of channels, and an
//# invocation reads the slices of its own. RULE says what lies outside the input, where that is not zero.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x * TILE_X;
    let row: u32 = gid.y;
    let slice: u32 = gid.z % params.dst_tiles * TILE_Z;
    let n: u32 = gid.z / params.dst_tiles;
    if (column >= params.dst_w || row >= params.dst_h || n >= params.batch) {
        return;
    }
    let src_plane: u32 = params.src_w * params.src_h;
    //% if GROUPED
    let first: u32 = 4u * slice / params.group_outputs * params.src_slices;
    //% else
    let first: u32 = 0u;
    //% endif
    //% for s in range(tile[2])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = row * STRIDE_H + ky * DILATION_H;
        //% set src_y = "bordered(y, params.before_h, params.src_h)" if RULE is defined else "y - params.before_h"
        //% if RULE is not defined
        if (y < params.before_h || y >= params.src_h + params.before_h) {
            continue;
        }
        //% endif
        let src_row: u32 = params.src_w * (${src_y}) + src_plane * params.src_c4 * n;
        for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
            let tap: u32 = ky * KERNEL_W + kx;
            //% for p in range(tile[0])
            //% if RULE is defined
            let x${p}: u32 = bordered((column + ${p}u) * STRIDE_W + kx * DILATION_W, params.before_w, params.src_w);
            //% else
            let x${p}: u32 = (column + ${p}u) * STRIDE_W + kx * DILATION_W;
            let inside${p}: bool = x${p} >= params.before_w && x${p} < params.src_w + params.before_w;
            //% endif
            //% endfor
            for (var i: u32 = 0u; i < params.src_slices; i++) {
                let src_first: u32 = src_row + src_plane * min(first + i, params.src_c4 - 1u);
                //% for p in range(tile[0])
                var v${p}: ${acc4} = ${zero4};
                //% set src_x = "x" ~ p if RULE is defined else "x" ~ p ~ " - params.before_w"
                //% if RULE is not defined
                if (inside${p}) {
                //% endif
                    v${p} = ${load4("src", "src_first + " ~ src_x, column=src_x ~ " + params.src_w * min(first + i, params.src_c4 - 1u)", row=src_y ~ " + params.src_h * n")};
                //% if RULE is not defined
                }
                //% endif
                //% endfor
                //% for s in range(tile[2])
                let w${s}: u32 = 4u * (i + params.src_slices * (tap + KERNEL_H * KERNEL_W * (slice + ${s}u)));
                //% for lane in ["x", "y", "z", "w"]
                let w${s}_${lane}: ${acc4} = ${load4("weights", "w" ~ s ~ " + " ~ loop.index0 ~ "u")};
                //% for p in range(tile[0])
                sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ lane, splat("v" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
                //% endfor
                //% endfor
                //% endfor
            }
        }
    }
    //% for s in range(tile[2])
    if (slice + ${s}u < params.dst_c4) {
        let dst${s}: u32 = column + params.dst_w * (row + params.dst_h * (slice + ${s}u + params.dst_c4 * n));
        //% for p in range(tile[0])
        if (column + ${p}u < params.dst_w) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u", column="column + " ~ p ~ "u + params.dst_w * (slice + " ~ s ~ "u)", row="row + params.dst_h * n")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p, column="column + " ~ p ~ "u + params.dst_w * (slice + " ~ s ~ "u)", row="row + params.dst_h * n")}
        }
        //% endfor
    }
    //% endfor
}
