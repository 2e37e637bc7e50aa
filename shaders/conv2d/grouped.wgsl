//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, g*I+k] * w[o,a,b,k]) with g = o/O: tile[0] pixels
//# of a row by tile[2] slices of output channels per invocation. Only what lies in a channel's own
//# group is multiplied: the four channels of a slice are of DISTINCT groups at most, and each reads
//# STEP inputs of its group at a time. Lanes beyond the last channel read the last group; their
//# weights are zero. RULE says what lies outside the input, where that is not zero.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_grouped(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x * TILE_X;
    let row: u32 = gid.y;
    let slice: u32 = gid.z % params.dst_tiles * TILE_Z;
    let n: u32 = gid.z / params.dst_tiles;
    if (column >= params.dst_w || row >= params.dst_h || n >= params.batch) {
        return;
    }
    let src_plane: u32 = params.src_w * params.src_h;
    //% for g in range(DISTINCT)
    let first${g}: u32 = params.group_inputs * (min(4u * slice + ${4 // DISTINCT * g}u, params.dst_c - 1u) / params.group_outputs);
    //% endfor
    //% for s in range(tile[2])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = row * STRIDE_H + ky * DILATION_H;
        //% if RULE is not defined
        if (y < params.before_h || y >= params.src_h + params.before_h) {
            continue;
        }
        //% endif
        let src_row: u32 = params.src_w * (${"bordered(y, params.before_h, params.src_h)" if RULE is defined else "y - params.before_h"}) + src_plane * params.src_c4 * n;
        for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
            let tap: u32 = ky * KERNEL_W + kx;
            //% for p in range(tile[0])
            //% if RULE is defined
            let src${p}: u32 = src_row + bordered((column + ${p}u) * STRIDE_W + kx * DILATION_W, params.before_w, params.src_w);
            //% else
            let x${p}: u32 = (column + ${p}u) * STRIDE_W + kx * DILATION_W;
            let inside${p}: bool = x${p} >= params.before_w && x${p} < params.src_w + params.before_w;
            let src${p}: u32 = src_row + x${p} - params.before_w;
            //% endif
            //% endfor
            for (var k: u32 = 0u; k < params.group_inputs; k += STEP) {
                //% for g in range(DISTINCT)
                let slice${g}: u32 = src_plane * ((first${g} + k) / 4u);
                //% if STEP == 1
                let lane${g}: u32 = (first${g} + k) % 4u;
                //% endif
                //% for p in range(tile[0])
                //% if STEP == 1
                var v${p}_${g}: ${acc} = ${zero};
                //% else
                var v${p}_${g}: ${acc4} = ${zero4};
                //% endif
                //% if RULE is not defined
                if (inside${p}) {
                //% endif
                    //% if STEP == 1
                    v${p}_${g} = ${lane("src", "src" ~ p ~ " + slice" ~ g, "lane" ~ g)};
                    //% else
                    v${p}_${g} = ${load4("src", "src" ~ p ~ " + slice" ~ g)};
                    //% endif
                //% if RULE is not defined
                }
                //% endif
                //% endfor
                //% endfor
                //% for s in range(tile[2])
                let w${s}: u32 = k + params.group_inputs * (tap + KERNEL_H * KERNEL_W * (slice + ${s}u));
                //% for lane in (["x", "y", "z", "w"] if STEP == 4 else [""])
                let w${s}_${loop.index0}: ${acc4} = ${load4("weights", "w" ~ s ~ " + " ~ loop.index0 ~ "u")};
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
