//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): a micro-tile of tile[0] pixels by tile[1] slices per
//# invocation. The plane is one row of pixels, so that a small map does not waste invocations.
//# Pixels beyond the plane are computed from the last pixel and not stored; slices beyond the
//# last have zero weights and are not stored.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn pointwise_micro(@builtin(global_invocation_id) gid: vec3<u32>) {
    let pixel: u32 = gid.x * TILE_X;
    let slice: u32 = gid.y * TILE_Y;
    let n: u32 = gid.z;
    if (pixel >= params.plane || slice >= params.dst_c4 || n >= params.batch) {
        return;
    }
    let src_first: u32 = params.plane * params.src_c4 * n;
    //% for p in range(tile[0])
    let src${p}: u32 = src_first + min(pixel + ${p}u, params.plane - 1u);
    //% endfor
    //% for s in range(tile[1])
    let weights${s}: u32 = 4u * params.src_c4 * (slice + ${s}u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var i: u32 = 0u; i < params.src_c4; i++) {
        let offset: u32 = params.plane * i;
        //% for p in range(tile[0])
        let x${p}: ${acc4} = ${load4("src", "src" ~ p ~ " + offset")};
        //% endfor
        //% for s in range(tile[1])
        let w${s}: u32 = weights${s} + 4u * i;
        let w${s}_x: ${acc4} = ${load4("weights", "w" ~ s)};
        let w${s}_y: ${acc4} = ${load4("weights", "w" ~ s ~ " + 1u")};
        let w${s}_z: ${acc4} = ${load4("weights", "w" ~ s ~ " + 2u")};
        let w${s}_w: ${acc4} = ${load4("weights", "w" ~ s ~ " + 3u")};
        //% for lane in ["x", "y", "z", "w"]
        //% for p in range(tile[0])
        sum${s}_${p} = ${fma4("w" ~ s ~ "_" ~ lane, splat("x" ~ p ~ "." ~ lane), "sum" ~ s ~ "_" ~ p)};
        //% endfor
        //% endfor
        //% endfor
    }
    //% for s in range(tile[1])
    if (slice + ${s}u < params.dst_c4) {
        let dst${s}: u32 = params.plane * (slice + ${s}u + params.dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + ${p}u < params.plane) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
