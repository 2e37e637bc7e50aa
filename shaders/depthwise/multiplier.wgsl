//# y[n,i,j,c*M+m] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c*M+m]): one vec4 of output
//# channels per invocation, each lane of which reads its own input channel. Lanes beyond the last
//# channel read the last one and take zero instead, because it may be infinite.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn depthwise_multiplier(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    let src_plane: u32 = params.src_w * params.src_h;
    let weights_first: u32 = KERNEL_H * KERNEL_W * slice;
    //% for l in range(4)
    let channel${l}: u32 = min((4u * slice + ${l}u) / params.multiplier, params.src_c - 1u);
    let src${l}: u32 = src_plane * (channel${l} / 4u + params.src_c4 * n);
    let lane${l}: u32 = channel${l} % 4u;
    let beyond${l}: bool = (4u * slice + ${l}u) / params.multiplier >= params.src_c;
    //% endfor
    var sum: ${acc4} = ${zero4};
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = gid.y * STRIDE_H + ky * DILATION_H;
        if (y >= params.before_h && y < params.src_h + params.before_h) {
            for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
                let x: u32 = gid.x * STRIDE_W + kx * DILATION_W;
                if (x >= params.before_w && x < params.src_w + params.before_w) {
                    let place: u32 = params.src_w * (y - params.before_h) + x - params.before_w;
                    //% for l in range(4)
                    let v${l}: ${acc} = select(${lane("src", "src" ~ l ~ " + place", "lane" ~ l)}, ${zero}, beyond${l});
                    //% endfor
                    let w: ${acc4} = ${load4("weights", "weights_first + ky * KERNEL_W + kx")};
                    sum = ${fma4(splat("v0, v1, v2, v3"), "w", "sum")};
                }
            }
        }
    }
    let dst_index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% for line in epilogue("sum", "slice", "dst_index")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum")}
}
