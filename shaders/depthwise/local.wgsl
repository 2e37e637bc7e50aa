//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): tile[0] columns, WG_X apart,
//# by tile[1] neighbouring rows of one slice per invocation. The part of the input that the windows
//# of a work-group touch is staged in local memory, zeros outside the map, so that each value is
//# read once however many windows it lies in. Outputs beyond the map are computed from what was
//# staged and not stored.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED_W * STAGED_H>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn depthwise_local(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) wid: vec3<u32>) {
    let slice: u32 = wid.z % params.dst_c4;
    let weights_first: u32 = KERNEL_H * KERNEL_W * slice;
    //% for a in range(KERNEL_H)
    //% for b in range(KERNEL_W)
    let w${a}_${b}: ${acc4} = ${load4("weights", "weights_first + " ~ (a * KERNEL_W + b) ~ "u")};
    //% endfor
    //% endfor
    let src_first: u32 = params.src_w * params.src_h * wid.z;
    for (var i: u32 = lid.x + WG_X * lid.y; i < STAGED_W * STAGED_H; i += WG_X * WG_Y) {
        let x: u32 = wid.x * WG_X * TILE_X * STRIDE_W + i % STAGED_W;
        let y: u32 = wid.y * WG_Y * TILE_Y * STRIDE_H + i / STAGED_W;
        var v: ${acc4} = ${zero4};
        if (x >= params.before_w && x < params.src_w + params.before_w && y >= params.before_h && y < params.src_h + params.before_h) {
            v = ${load4("src", "src_first + params.src_w * (y - params.before_h) + x - params.before_w")};
        }
        staged[i] = v;
    }
    ${barrier};
    //% for q in range(tile[1])
    //% for p in range(tile[0])
    var sum${q}_${p}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    let window: u32 = lid.x * STRIDE_W + STAGED_W * (lid.y * TILE_Y * STRIDE_H);
    //% for r in range((tile[1] - 1) * STRIDE_H + (KERNEL_H - 1) * DILATION_H + 1)
    //% for p in range(tile[0])
    //% for b in range(KERNEL_W)
    let v${r}_${p}_${b}: ${acc4} = staged[window + STAGED_W * ${r}u + WG_X * STRIDE_W * ${p}u + DILATION_W * ${b}u];
    //% endfor
    //% endfor
    //% for q in range(tile[1])
    //% set d = r - q * STRIDE_H
    //% if d >= 0 and d % DILATION_H == 0 and d // DILATION_H < KERNEL_H
    //% for b in range(KERNEL_W)
    //% for p in range(tile[0])
    sum${q}_${p} = ${fma4("v" ~ r ~ "_" ~ p ~ "_" ~ b, "w" ~ (d // DILATION_H) ~ "_" ~ b, "sum" ~ q ~ "_" ~ p)};
    //% endfor
    //% endfor
    //% endif
    //% endfor
    //% endfor
    let column: u32 = wid.x * WG_X * TILE_X + lid.x;
    let row: u32 = (wid.y * WG_Y + lid.y) * TILE_Y;
    //% for q in range(tile[1])
    if (row + ${q}u < params.dst_h) {
        let dst${q}: u32 = column + params.dst_w * (row + ${q}u + params.dst_h * wid.z);
        //% for p in range(tile[0])
        if (column + WG_X * ${p}u < params.dst_w) {
            //% for line in epilogue("sum" ~ q ~ "_" ~ p, "slice", "dst" ~ q ~ " + WG_X * " ~ p ~ "u")
            ${line}
            //% endfor
            ${store4("dst", "dst" ~ q ~ " + WG_X * " ~ p ~ "u", "sum" ~ q ~ "_" ~ p)}
        }
        //% endfor
    }
    //% endfor
}
