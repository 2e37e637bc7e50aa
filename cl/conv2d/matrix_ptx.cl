//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) of halves with f32 sums, without groups,
//# by NVIDIA's matrix instructions: the body is `shared/matrix_ptx`. The slices of all taps are one row of
//# terms; what lies outside the input is zero. Solo: WGSL has no inline assembly.
${constants}
//% include "shared/matrix_ptx_words"

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void conv2d_matrix_ptx(
    ${arguments}
) {
    const uint area = dst_w * dst_h;
    const uint src_area = src_w * src_h;
    const uint pixels = area * batch;
    const uint total4 = KERNEL_H * KERNEL_W * SOURCES;
    //% macro place_of(p)
    const uint at${p} = src_area * SOURCES * (pixel${p} / area);
    const uint y${p} = pixel${p} % area / dst_w * STRIDE_H - before_h;
    const uint x${p} = pixel${p} % area % dst_w * STRIDE_W - before_w;
    //% endmacro
    //% macro load_of(step)
    //% for j in range(2)
    {
        const uint term4 = 8u * ${step} + ${4 * j}u + lane % 4u;
        const uint tap = term4 / SOURCES;
        const uint down = tap / KERNEL_W * DILATION_H;
        const uint right = tap % KERNEL_W * DILATION_W;
        const uint plane_at = src_area * (term4 % SOURCES);
        //% for p in range(2 * tile[1])
        const bool inside${p} = y${p} + down < src_h && x${p} + right < src_w${" && term4 < total4" if RAGGED};
        a_next${p}_${j} = inside${p} ? src2[at${p} + plane_at + (y${p} + down) * src_w + x${p} + right] : (uint2)(0u);
        //% endfor
    }
    //% endfor
    //% endmacro
    //% include "shared/matrix_ptx"
}
