//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): one vec4 of channels per
//# invocation.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn depthwise_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    //% if images
    let n: u32 = gid.z / params.dst_c4;
    //% endif
    let src_first: u32 = params.src_w * params.src_h * gid.z;
    let weights_first: u32 = KERNEL_H * KERNEL_W * slice;
    var sum: ${acc4} = ${zero4};
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = gid.y * STRIDE_H + ky * DILATION_H;
        if (y >= params.before_h && y < params.src_h + params.before_h) {
            let src_row: u32 = src_first + params.src_w * (y - params.before_h);
            for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
                let x: u32 = gid.x * STRIDE_W + kx * DILATION_W;
                if (x >= params.before_w && x < params.src_w + params.before_w) {
                    let v: ${acc4} = ${load4("src", "src_row + x - params.before_w", column="x - params.before_w + params.src_w * slice", row="y - params.before_h + params.src_h * n")};
                    let w: ${acc4} = ${load4("weights", "weights_first + ky * KERNEL_W + kx")};
                    sum = ${fma4("v", "w", "sum")};
                }
            }
        }
    }
    let dst_index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% for line in epilogue("sum", "slice", "dst_index", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")}
}
