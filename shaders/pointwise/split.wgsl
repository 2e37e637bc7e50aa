//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): the sum over the input channels is split between the
//# invocations of a work-group along z, for maps too small to fill the device otherwise. Each
//# invocation sums every SPLITS-th slice of tile[0] pixels by tile[1] slices; those of the first
//# split add the parts up. Pixels and slices beyond the edge are computed from the last one and not
//# stored.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, PARTIALS>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn pointwise_split(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(global_invocation_id) gid: vec3<u32>) {
    let pixel: u32 = gid.x * TILE_X;
    let slice: u32 = gid.y * TILE_Y;
    let n: u32 = gid.z / SPLITS;
    let src_first: u32 = params.plane * params.src_c4 * n;
    //% for p in range(tile[0])
    let src${p}: u32 = src_first + min(pixel + ${p}u, params.plane - 1u);
    //% endfor
    //% for s in range(tile[1])
    let weights${s}: u32 = 4u * params.src_c4 * min(slice + ${s}u, params.dst_c4 - 1u);
    //% endfor
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    var sum${s}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var i: u32 = lid.z; i < params.src_c4; i += SPLITS) {
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
    let place: u32 = lid.x + WG_X * lid.y;
    //% for s in range(tile[1])
    //% for p in range(tile[0])
    partial[place + WG_X * WG_Y * (lid.z + SPLITS * ${s * tile[0] + p}u)] = sum${s}_${p};
    //% endfor
    //% endfor
    ${barrier};
    if (lid.z > 0u || pixel >= params.plane) {
        return;
    }
    //% for s in range(tile[1])
    if (slice + ${s}u < params.dst_c4) {
        let dst${s}: u32 = params.plane * (slice + ${s}u + params.dst_c4 * n) + pixel;
        //% for p in range(tile[0])
        if (pixel + ${p}u < params.plane) {
            for (var q: u32 = 1u; q < SPLITS; q++) {
                sum${s}_${p} = sum${s}_${p} + partial[place + WG_X * WG_Y * (q + SPLITS * ${s * tile[0] + p}u)];
            }
            //% for line in epilogue("sum" ~ s ~ "_" ~ p, "slice + " ~ s ~ "u", "dst" ~ s ~ " + " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + " ~ p ~ "u", "sum" ~ s ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
