//# y[n,i,j,o] = f(sum_k g(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, k] * v[a,b,k]) * w[o,k]): the windows
//# of a work-group's outputs are summed into local memory, CHUNK input slices at a time, and
//# multiplied from there. A strip is tile[0] outputs of one column, one below the other; an
//# invocation sums the windows of one strip in one slice, reading each input row once for all of
//# them, and then the products of one strip with tile[1] output slices, WG_Y apart. The sum over the
//# input slices is split between the work-group's tile[2] layers along z, which share the work of
//# adding the parts up. Outputs and slices beyond the edge are computed and not stored; input slices
//# beyond the last are the last one's windows times weights of zero.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn separable_staged(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) wid: vec3<u32>, @builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = gid.x % params.dst_w;
    let row: u32 = gid.x / params.dst_w * TILE_X;
    let slice: u32 = wid.y * WG_Y * TILE_Y + lid.y;
    let n: u32 = gid.z / SPLITS;
    let plane: u32 = params.src_w * params.src_h;
    //% for b in range(KERNEL_W)
    let at${b}: u32 = column * STRIDE_W + ${b}u * DILATION_W;
    let inside${b}: bool = at${b} >= params.before_w && at${b} < params.src_w + params.before_w;
    //% endfor
    //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    let y${r}: u32 = row * STRIDE_H + ${r}u;
    let on${r}: bool = y${r} >= params.before_h && y${r} < params.src_h + params.before_h;
    let src_row${r}: u32 = params.src_w * (y${r} - params.before_h) - params.before_w;
    //% endfor
    //% for s in range(tile[1])
    let weights${s}: u32 = min(slice + WG_Y * ${s}u, params.dst_c4 - 1u);
    //% for q in range(tile[0])
    var sum${s}_${q}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    let own: u32 = lid.y + WG_Y * lid.z;
    for (var first: u32 = 0u; first < params.src_c4; first += CHUNK) {
        let source: u32 = min(first + own, params.src_c4 - 1u);
        let src_first: u32 = plane * (source + params.src_c4 * n);
        let window_first: u32 = KERNEL_H * KERNEL_W * source;
        //% for a in range(KERNEL_H)
        //% for b in range(KERNEL_W)
        let k${a}_${b}: ${acc4} = ${load4("window", "window_first + " ~ (a * KERNEL_W + b) ~ "u")};
        //% endfor
        //% endfor
        //% for q in range(tile[0])
        var mid${q}: ${acc4} = ${zero4};
        //% endfor
        //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
        //% for b in range(KERNEL_W)
        var v${r}_${b}: ${acc4} = ${zero4};
        if (on${r} && inside${b}) {
            v${r}_${b} = ${load4("src", "src_first + src_row" ~ r ~ " + at" ~ b)};
        }
        //% endfor
        //% endfor
        //% for r in range((tile[0] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
        //% for q in range(tile[0])
        //% set d = r - q * STRIDE_H
        //% if d >= 0 and d % DILATION_H == 0 and d // DILATION_H < KERNEL_H
        //% for b in range(KERNEL_W)
        mid${q} = ${fma4("v" ~ r ~ "_" ~ b, "k" ~ (d // DILATION_H) ~ "_" ~ b, "mid" ~ q)};
        //% endfor
        //% endif
        //% endfor
        //% endfor
        //% for q in range(tile[0])
        //% for line in between("mid" ~ q, "source")
        ${line}
        //% endfor
        staged[lid.x + WG_X * (TILE_X * own + ${q}u)] = mid${q};
        //% endfor
        ${barrier};
        for (var i: u32 = lid.z; i < CHUNK; i += SPLITS * UNROLL) {
            //% for u in range(UNROLL)
            let row${u}: u32 = 4u * params.dst_c4 * min(first + i + SPLITS * ${u}u, params.src_c4);
            //% for q in range(tile[0])
            let x${u}_${q}: ${acc4} = staged[lid.x + WG_X * (TILE_X * (i + SPLITS * ${u}u) + ${q}u)];
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            //% set term = loop.index0
            //% for s in range(tile[1])
            let w${u}_${s}_${lane}: ${acc4} = ${load4("weights", "row" ~ u ~ " + weights" ~ s ~ " + params.dst_c4 * " ~ term ~ "u")};
            //% endfor
            //% endfor
            //% endfor
            //% for u in range(UNROLL)
            //% for lane in ["x", "y", "z", "w"]
            //% for s in range(tile[1])
            //% for q in range(tile[0])
            sum${s}_${q} = ${fma4("w" ~ u ~ "_" ~ s ~ "_" ~ lane, splat("x" ~ u ~ "_" ~ q ~ "." ~ lane), "sum" ~ s ~ "_" ~ q)};
            //% endfor
            //% endfor
            //% endfor
            //% endfor
        }
        ${barrier};
    }
    //% for s in range(tile[1])
    //% if SPLITS > 1
    let place${s}: u32 = lid.x + WG_X * lid.y;
    //% for q in range(tile[0])
    staged[place${s} + WG_X * WG_Y * (lid.z + SPLITS * ${q}u)] = sum${s}_${q};
    //% endfor
    ${barrier};
    for (var q: u32 = lid.z; q < TILE_X; q += SPLITS) {
        if (row + q < params.dst_h && slice + WG_Y * ${s}u < params.dst_c4) {
            var sum: ${acc4} = staged[place${s} + WG_X * WG_Y * SPLITS * q];
            for (var z: u32 = 1u; z < SPLITS; z++) {
                sum = sum + staged[place${s} + WG_X * WG_Y * (z + SPLITS * q)];
            }
            let dst_index: u32 = column + params.dst_w * (row + q + params.dst_h * (slice + WG_Y * ${s}u + params.dst_c4 * n));
            //% for line in epilogue("sum", "slice + WG_Y * " ~ s ~ "u", "dst_index")
            ${line}
            //% endfor
            ${store4("dst", "dst_index", "sum")}
        }
    }
    //% if s + 1 < tile[1]
    ${barrier};
    //% endif
    //% else
    if (slice + WG_Y * ${s}u < params.dst_c4) {
        let dst${s}: u32 = column + params.dst_w * (row + params.dst_h * (slice + WG_Y * ${s}u + params.dst_c4 * n));
        //% for q in range(tile[0])
        if (row + ${q}u < params.dst_h) {
            //% for line in epilogue("sum" ~ s ~ "_" ~ q, "slice + WG_Y * " ~ s ~ "u", "dst" ~ s ~ " + params.dst_w * " ~ q ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ s ~ " + params.dst_w * " ~ q ~ "u", "sum" ~ s ~ "_" ~ q)}
        }
        //% endfor
    }
    //% endif
    //% endfor
}
