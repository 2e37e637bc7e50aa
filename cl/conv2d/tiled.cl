//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) without groups: a matrix
//# product of pixels and output channels from local memory, the windows' columns gathered as they are
//# staged. A work-group covers TILE_Y WG_Y pixels of all images and TILE_X WG_X slices, and stages
//# 4 DEPTH4 terms of them at a time; an invocation sums tile[1] pixels, four together, by tile[0]
//# slices. Layers of the work-group along z sum a part of the terms each and are added up at the end.
//# Pixels and slices beyond the last are computed from it and not stored; what lies outside the input
//# is read from its first pixel and replaced by zero.
${constants}

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void conv2d_tiled(
    ${arguments}
) {
    __local ${acc4} staged[STAGED];
    const uint lid = get_local_id(0) + WG_X * (get_local_id(1) + WG_Y * get_local_id(2));
    const uint3 group = (uint3)(get_group_id(0), get_group_id(1), get_group_id(2));
    const uint area = dst_w * dst_h;
    const uint pixels = area * batch;
    const uint src_area = src_w * src_h;
    const uint total4 = KERNEL_H * KERNEL_W * SOURCES;
    //% include "shared/tile_place"
    //% for l in range(LOADS_A)
    const uint a_first${l} = ${"src_area * SOURCES * (a_pixel" ~ l ~ " / area)" if BATCHED else "0u"};
    const uint a_y${l} = a_pixel${l} % area / dst_w * STRIDE_H - before_h;
    const uint a_x${l} = a_pixel${l} % area % dst_w * STRIDE_W - before_w;
    //% endfor
    //% macro pixels_of(ahead4)
    {
        //% if ALIGNED
        const uint term4 = ${"min(first4 + " ~ ahead4 ~ ", total4 - DEPTH4)" if RAGGED else "first4 + " ~ ahead4};
        const uint tap = term4 / SOURCES;
        const uint from4 = term4 - SOURCES * tap;
        const uint ky = tap / KERNEL_W;
        const uint kx = tap - KERNEL_W * ky;
        //% endif
        //% for l in range(LOADS_A)
        //% if not ALIGNED
        const uint term4_${l} = ${"min(a_term" ~ l ~ " + " ~ ahead4 ~ ", total4 - 1u)" if RAGGED else "a_term" ~ l ~ " + " ~ ahead4};
        const uint tap${l} = term4_${l} / SOURCES;
        const uint from4_${l} = term4_${l} - SOURCES * tap${l};
        const uint ky${l} = tap${l} / KERNEL_W;
        const uint kx${l} = tap${l} - KERNEL_W * ky${l};
        //% endif
        //% set which = "" if ALIGNED else l ~ ""
        const uint src_y${l} = a_y${l} + ky${which} * DILATION_H;
        const uint src_x${l} = a_x${l} + kx${which} * DILATION_W;
        const bool inside${l} = src_y${l} < src_h && src_x${l} < src_w;
        uint at${l} = a_first${l} + src_area * (${"from4 + a_item" ~ l ~ " / ROWS" if ALIGNED else "from4_" ~ l});
        if (inside${l}) {
            at${l} = at${l} + src_x${l} + src_w * src_y${l};
        }
        a_next${l} = ${load4("src", "at" ~ l)};
        if (!inside${l}) {
            a_next${l} = ${zero4};
        }
        //% endfor
    }
    //% endmacro
    //% include "shared/tile_loop"
    //% include "shared/add_splits"
    //% include "shared/store_pixels"
}
