//# y[n,i,j,o] = f(sum_k x[n,i,j,k] * w[o,k]): a matrix product of pixels and output channels from local
//# memory. A work-group covers TILE_Y WG_Y pixels of all images and TILE_X WG_X slices, and stages
//# 4 DEPTH4 input channels of them at a time; an invocation sums tile[1] pixels, four together, by
//# tile[0] slices. Layers of the work-group along z sum a part of the channels each and are added up at
//# the end. Pixels and slices beyond the last are computed from it and not stored.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void pointwise_tiled(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint area = plane;
    const uint pixels = area * batch;
    const uint total4 = src_c4;
    //% include "shared/tile_place"
    //% for l in range(LOADS_A)
    const uint a_from${l} = ${"a_pixel" ~ l ~ " + area * (total4 - 1u) * (a_pixel" ~ l ~ " / area)" if BATCHED else "a_pixel" ~ l};
    //% endfor
    //% macro pixels_of(ahead4)
    //% for l in range(LOADS_A)
    a_next${l} = ${load4("src", "a_from" ~ l ~ " + area * min(a_term" ~ l ~ " + " ~ ahead4 ~ ", total4 - 1u)" if RAGGED else "a_from" ~ l ~ " + area * (a_term" ~ l ~ " + " ~ ahead4 ~ ")")};
    //% endfor
    //% endmacro
    //% include "shared/tile_loop"
    //% include "shared/add_splits"
    //% include "shared/store_pixels"
}
