//# y = A^T [sum_k (G w_k G^T) * (B^T x_k B)] A for 3x3 windows of step 1 (Lavin and Gray, 2016): F(4x4,
//# 3x3), with 36 products for 16 pixels instead of 144. The weights are transformed when they are packed.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_winograd4(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    //% include "shared/winograd"
    //% include "shared/winograd_output"
}
