//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): one vec4 of output channels per invocation, on a
//# grid of width x height x slices. The shape of the TensorFlow Lite GL delegate's kernel.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn pointwise_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    let plane: u32 = params.dst_w * params.dst_h;
    let pixel: u32 = gid.x + params.dst_w * gid.y;
    let src_first: u32 = pixel + plane * params.src_c4 * n;
    let weights_first: u32 = 4u * params.src_c4 * slice;
    var sum: ${acc4} = ${zero4};
    for (var i: u32 = 0u; i < params.src_c4; i++) {
        let x: ${acc4} = ${load4("src", "src_first + plane * i", column="gid.x + params.dst_w * i", row="gid.y + params.dst_h * n")};
        let w: u32 = weights_first + 4u * i;
        sum = ${fma4(load4("weights", "w"), splat("x.x"), "sum")};
        sum = ${fma4(load4("weights", "w + 1u"), splat("x.y"), "sum")};
        sum = ${fma4(load4("weights", "w + 2u"), splat("x.z"), "sum")};
        sum = ${fma4(load4("weights", "w + 3u"), splat("x.w"), "sum")};
    }
    let dst_index: u32 = pixel + plane * (slice + params.dst_c4 * n);
    //% for line in epilogue("sum", "slice", "dst_index", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")}
}
