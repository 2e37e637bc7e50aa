//# y = A^T [sum_k (G w_k G^T) * (B^T x_k B)] A for 3x3 windows of step 1 (Lavin and Gray, 2016): F(2x2,
//# 3x3), with 16 products for 4 pixels instead of 36. The weights are transformed when they are packed.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void conv2d_winograd2(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    //% include "shared/winograd"
    //% include "shared/winograd_output"
}
