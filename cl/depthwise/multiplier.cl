//# y[n,i,j,c*M+m] = f(sum_{a,b} x[n, i*s+a*d-p, j*s+b*d-p, c] * w[a,b,c*M+m]): one vec4 of output
//# channels per invocation, each lane of which reads its own input channel. Lanes beyond the last
//# channel read the last one; their weights are zero.
${constants}

__kernel void depthwise_multiplier(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint n = gid.z / dst_c4;
    const uint src_plane = src_w * src_h;
    const uint weights_first = KERNEL_H * KERNEL_W * slice;
    //% for l in range(4)
    const uint channel${l} = min((4u * slice + ${l}u) / multiplier, src_c - 1u);
    const uint src${l} = src_plane * (channel${l} / 4u + src_c4 * n);
    const uint lane${l} = channel${l} % 4u;
    //% endfor
    ${acc4} sum = ${zero4};
    for (uint ky = 0u; ky < KERNEL_H; ky++) {
        const uint y = gid.y * STRIDE_H + ky * DILATION_H;
        if (y >= before_h && y < src_h + before_h) {
            for (uint kx = 0u; kx < KERNEL_W; kx++) {
                const uint x = gid.x * STRIDE_W + kx * DILATION_W;
                if (x >= before_w && x < src_w + before_w) {
                    const uint place = src_w * (y - before_h) + x - before_w;
                    //% for l in range(4)
                    const ${acc} v${l} = ${lane("src", "src" ~ l ~ " + place", "lane" ~ l)};
                    //% endfor
                    const ${acc4} w = ${load4("weights", "weights_first + ky * KERNEL_W + kx")};
                    sum = ${fma4(splat("v0, v1, v2, v3"), "w", "sum")};
                }
            }
        }
    }
    const uint dst_index = gid.x + dst_w * (gid.y + dst_h * gid.z);
    //% for line in epilogue("sum", "slice", "dst_index")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "sum")}
}
