//# y[n,i,j,c] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c]): one vec4 of channels per
//# invocation.
${constants}

__kernel void depthwise_direct(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    //% if images
    const uint n = gid.z / dst_c4;
    //% endif
    const uint src_first = src_w * src_h * gid.z;
    const uint weights_first = KERNEL_H * KERNEL_W * slice;
    ${acc4} sum = ${zero4};
    for (uint ky = 0u; ky < KERNEL_H; ky++) {
        const uint y = gid.y * STRIDE_H + ky * DILATION_H;
        if (y >= before_h && y < src_h + before_h) {
            const uint src_row = src_first + src_w * (y - before_h);
            for (uint kx = 0u; kx < KERNEL_W; kx++) {
                const uint x = gid.x * STRIDE_W + kx * DILATION_W;
                if (x >= before_w && x < src_w + before_w) {
                    const ${acc4} v = ${load4("src", "src_row + x - before_w", column="x - before_w + src_w * slice", row="y - before_h + src_h * n")};
                    const ${acc4} w = ${load4("weights", "weights_first + ky * KERNEL_W + kx")};
                    sum = ${fma4("v", "w", "sum")};
                }
            }
        }
    }
    const uint dst_index = gid.x + dst_w * (gid.y + dst_h * gid.z);
    //% for line in epilogue("sum", "slice", "dst_index", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")}
}
