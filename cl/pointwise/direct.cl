//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): one vec4 of output channels per invocation, on a
//# grid of width x height x slices. The shape of the TensorFlow Lite GL delegate's kernel.
${constants}

__kernel void pointwise_direct(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint n = gid.z / dst_c4;
    const uint plane = dst_w * dst_h;
    const uint pixel = gid.x + dst_w * gid.y;
    const uint src_first = pixel + plane * src_c4 * n;
    const uint weights_first = 4u * src_c4 * slice;
    ${acc4} sum = ${zero4};
    for (uint i = 0u; i < src_c4; i++) {
        const ${acc4} x = ${load4("src", "src_first + plane * i", column="gid.x + dst_w * i", row="gid.y + dst_h * n")};
        const uint w = weights_first + 4u * i;
        sum = ${fma4(load4("weights", "w"), splat("x.x"), "sum")};
        sum = ${fma4(load4("weights", "w + 1u"), splat("x.y"), "sum")};
        sum = ${fma4(load4("weights", "w + 2u"), splat("x.z"), "sum")};
        sum = ${fma4(load4("weights", "w + 3u"), splat("x.w"), "sum")};
    }
    const uint dst_index = pixel + plane * (slice + dst_c4 * n);
    //% for line in epilogue("sum", "slice", "dst_index", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")}
}
