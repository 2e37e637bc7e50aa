//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) of halves with f32 sums, without groups,
//# by cooperative matrices: the body is `shared/matrix`. The slices of all taps are one row of terms, gathered as
//# they are staged; what lies outside the input is zero. Solo: OpenCL C has no cooperative matrices.
enable wgpu_cooperative_matrix;
${constants}

${interface}
var<workgroup> staged: array<vec4<f16>, STAGED>;
var<workgroup> passed: array<vec4<f32>, PASSED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_matrix(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let area: u32 = params.dst_w * params.dst_h;
    let src_area: u32 = params.src_w * params.src_h;
    let pixels: u32 = area * params.batch;
    let total4: u32 = KERNEL_H * KERNEL_W * SOURCES;
    //% macro place_of(l)
    let a_from${l}: u32 = src_area * SOURCES * (pixel${l} / area);
    let a_y${l}: u32 = pixel${l} % area / params.dst_w * STRIDE_H - params.before_h;
    let a_x${l}: u32 = pixel${l} % area % params.dst_w * STRIDE_W - params.before_w;
    //% endmacro
    //% macro load_of(l, term4)
    {
        let term4: u32 = ${"min(" ~ term4 ~ ", total4 - 1u)" if RAGGED else term4};
        let tap: u32 = term4 / SOURCES;
        let src_y: u32 = a_y${l} + tap / KERNEL_W * DILATION_H;
        let src_x: u32 = a_x${l} + tap % KERNEL_W * DILATION_W;
        a_next${l} = vec4<f16>();
        if (src_y < params.src_h && src_x < params.src_w) {
            a_next${l} = src[a_from${l} + src_area * (term4 % SOURCES) + src_x + params.src_w * src_y];
        }
    }
    //% endmacro
    //% include "shared/matrix"
}
