//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]) of halves with f32 sums, by NVIDIA's matrix instructions: the body
//# is `shared/matrix_ptx`. Solo: WGSL has no inline assembly.
${constants}
//% include "shared/matrix_ptx_words"

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void pointwise_matrix_ptx(
    ${arguments}
) {
    const uint area = plane;
    const uint pixels = area * batch;
    const uint total4 = src_c4;
    //% macro place_of(p)
    const uint at${p} = pixel${p} + area * (src_c4 - 1u) * (pixel${p} / area);
    //% endmacro
    //% macro load_of(step)
    //% for j in range(2)
    {
        const uint term4 = 8u * ${step} + ${4 * j}u + lane % 4u;
        const uint plane_at = area * ${"min(term4, total4 - 1u)" if RAGGED else "term4"};
        //% for p in range(2 * tile[1])
        a_next${p}_${j} = ${"term4 < total4 ? src2[at" ~ p ~ " + plane_at] : (uint2)(0u)" if RAGGED else "src2[at" ~ p ~ " + plane_at]"};
        //% endfor
    }
    //% endfor
    //% endmacro
    //% include "shared/matrix_ptx"
}
