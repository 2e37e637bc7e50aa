//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]) of halves with f32 sums, by cooperative matrices: the body is
//# `shared/matrix`. Solo: OpenCL C has no cooperative matrices.
enable wgpu_cooperative_matrix;
${constants}

${interface}
var<workgroup> staged: array<vec4<f16>, STAGED>;
var<workgroup> passed: array<vec4<f32>, PASSED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn pointwise_matrix(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let area: u32 = params.plane;
    let pixels: u32 = area * params.batch;
    let total4: u32 = params.src_c4;
    //% macro place_of(l)
    let a_from${l}: u32 = pixel${l} + area * (total4 - 1u) * (pixel${l} / area);
    //% endmacro
    //% macro load_of(l, term4)
    a_next${l} = src[a_from${l} + area * ${"min(" ~ term4 ~ ", total4 - 1u)" if RAGGED else "(" ~ term4 ~ ")"}];
    //% endmacro
    //% include "shared/matrix"
}
