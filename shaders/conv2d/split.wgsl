//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) without groups, as a matrix
//# product of pixels and output channels: an invocation sums tile[0] pixels of the plane by tile[1]
//# slices; those of a work-group lie WG_X pixels and WG_Y slices apart, so that neighbours load
//# neighbours. At each tap the sum over the input channels is split between the work-group's
//# tile[2] layers along z, which share the work of adding the parts up. Pixels and slices beyond the
//# edge are computed from the last one and not stored; input slices beyond the last have zero
//# weights. What lies outside the input is read from its first pixel and replaced by zero, or is as RULE says.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
//% if SPLITS > 1
var<workgroup> partial: array<${acc4}, PARTIALS>;
//% endif

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_split(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) wid: vec3<u32>, @builtin(global_invocation_id) gid: vec3<u32>) {
    let plane: u32 = params.dst_w * params.dst_h;
    let src_plane: u32 = params.src_w * params.src_h;
    let pixel: u32 = wid.x * WG_X * TILE_X + lid.x;
    let slice: u32 = wid.y * WG_Y * TILE_Y + lid.y;
    let n: u32 = gid.z / SPLITS;
    let src_first: u32 = src_plane * params.src_c4 * n;
    //% for p in range(tile[0])
    let pixel${p}: u32 = min(pixel + WG_X * ${p}u, plane - 1u);
    let row${p}: u32 = pixel${p} / params.dst_w * STRIDE_H;
    let column${p}: u32 = pixel${p} % params.dst_w * STRIDE_W;
    //% endfor
    //% for s in range(tile[1])
    let weights${s}: u32 = min(slice + WG_Y * ${s}u, params.dst_c4 - 1u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
            let tap: u32 = 4u * params.dst_c4 * params.src_slices * (kx + KERNEL_W * ky);
            //% for p in range(tile[0])
            //% if RULE is defined
            let y${p}: u32 = bordered(row${p} + ky * DILATION_H, params.before_h, params.src_h);
            let x${p}: u32 = bordered(column${p} + kx * DILATION_W, params.before_w, params.src_w);
            let src${p}: u32 = src_first + x${p} + params.src_w * y${p};
            //% else
            let y${p}: u32 = row${p} + ky * DILATION_H - params.before_h;
            let x${p}: u32 = column${p} + kx * DILATION_W - params.before_w;
            let inside${p}: bool = y${p} < params.src_h && x${p} < params.src_w;
            var src${p}: u32 = src_first;
            if (inside${p}) {
                src${p} = src_first + x${p} + params.src_w * y${p};
            }
            //% endif
            //% endfor
            for (var i: u32 = lid.z; i < params.src_c4; i += SPLITS * UNROLL) {
                //% for u in range(UNROLL)
                let offset${u}: u32 = src_plane * min(i + SPLITS * ${u}u, params.src_c4 - 1u);
                let tap_row${u}: u32 = tap + 4u * params.dst_c4 * (i + SPLITS * ${u}u);
                //% for p in range(tile[0])
                var v${u}_${p}: ${acc4} = ${load4("src", "src" ~ p ~ " + offset" ~ u)};
                //% if RULE is not defined
                if (!inside${p}) {
                    v${u}_${p} = ${zero4};
                }
                //% endif
                //% endfor
                //% for lane in ["x", "y", "z", "w"]
                //% set term = loop.index0
                //% for s in range(tile[1])
                let w${u}_${s}_${lane}: ${acc4} = ${load4("weights", "tap_row" ~ u ~ " + weights" ~ s ~ " + params.dst_c4 * " ~ term ~ "u")};
                //% endfor
                //% endfor
                //% endfor
                //% for u in range(UNROLL)
                //% for lane in ["x", "y", "z", "w"]
                //% for s in range(tile[1])
                //% for p in range(tile[0])
                sum${s}_${p} = ${fma4("w" ~ u ~ "_" ~ s ~ "_" ~ lane, splat("v" ~ u ~ "_" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
                //% endfor
                //% endfor
                //% endfor
                //% endfor
            }
        }
    }
    //% if SPLITS > 1
    let place: u32 = lid.x + WG_X * lid.y;
    //% set count = tile[0] * tile[1]
    //% for first in range(0, count, PHASE)
    //% for t in range(first, [first + PHASE, count] | min)
    partial[place + WG_X * WG_Y * (lid.z + SPLITS * ${t - first}u)] = sum${t // tile[0]}_${t % tile[0]};
    //% endfor
    ${barrier};
    for (var t: u32 = ${first}u + lid.z; t < ${[first + PHASE, count] | min}u; t += SPLITS) {
        let out_pixel: u32 = pixel + WG_X * (t % TILE_X);
        let out_slice: u32 = slice + WG_Y * (t / TILE_X);
        if (out_pixel < plane && out_slice < params.dst_c4) {
            let part: u32 = place + WG_X * WG_Y * SPLITS * (t - ${first}u);
            var sum: ${acc4} = partial[part];
            for (var q: u32 = 1u; q < SPLITS; q++) {
                sum = sum + partial[part + WG_X * WG_Y * q];
            }
            let dst_index: u32 = plane * (out_slice + params.dst_c4 * n) + out_pixel;
            //% for line in epilogue("sum", "out_slice", "dst_index")
            ${line}
            //% endfor
            ${store4("dst", "dst_index", "sum")}
        }
    }
    //% if first + PHASE < count
    ${barrier};
    //% endif
    //% endfor
    //% else
    //% for s in range(tile[1])
    if (slice + WG_Y * ${s}u < params.dst_c4) {
        let dst${s}: u32 = plane * (slice + WG_Y * ${s}u + params.dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + WG_X * ${p}u < plane) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + WG_Y * " ~ s ~ "u", "dst" ~ s ~ " + WG_X * " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + WG_X * " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
    //% endif
}
