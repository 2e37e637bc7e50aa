//# y[n,i,j,o] = f(sum_{a,b,k} x[n, i*s+a*d-p, j*s+b*d-p, k] * w[o,a,b,k]) without groups: a matrix
//# product of pixels and output channels from local memory, the windows' columns gathered as they are
//# staged. A work-group covers TILE_Y WG_Y pixels of all images and TILE_X WG_X slices, and stages
//# 4 DEPTH4 terms of them at a time; an invocation sums tile[1] pixels, four together, by tile[0]
//# slices. Layers of the work-group along z sum a part of the terms each and are added up at the end.
//# Pixels and slices beyond the last are computed from it and not stored; what lies outside the input
//# is read from its first pixel and replaced by zero, or is as RULE says.
${constants}

${interface}
//% if RULE is defined
//% include "shared/border"
//% endif
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn conv2d_tiled(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let area: u32 = params.dst_w * params.dst_h;
    let pixels: u32 = area * params.batch;
    let src_area: u32 = params.src_w * params.src_h;
    let total4: u32 = KERNEL_H * KERNEL_W * SOURCES;
    //% include "shared/tile_place"
    //% for l in range(LOADS_A)
    let a_first${l}: u32 = ${"src_area * SOURCES * (a_pixel" ~ l ~ " / area)" if BATCHED else "0u"};
    let a_y${l}: u32 = a_pixel${l} % area / params.dst_w * STRIDE_H${" - params.before_h" if RULE is not defined else ""};
    let a_x${l}: u32 = a_pixel${l} % area % params.dst_w * STRIDE_W${" - params.before_w" if RULE is not defined else ""};
    //% endfor
    //% macro pixels_of(ahead4)
    {
        //% if ALIGNED
        let term4: u32 = ${"min(first4 + " ~ ahead4 ~ ", total4 - DEPTH4)" if RAGGED else "first4 + " ~ ahead4};
        let tap: u32 = term4 / SOURCES;
        let from4: u32 = term4 - SOURCES * tap;
        let ky: u32 = tap / KERNEL_W;
        let kx: u32 = tap - KERNEL_W * ky;
        //% endif
        //% for l in range(LOADS_A)
        //% if not ALIGNED
        let term4_${l}: u32 = ${"min(a_term" ~ l ~ " + " ~ ahead4 ~ ", total4 - 1u)" if RAGGED else "a_term" ~ l ~ " + " ~ ahead4};
        let tap${l}: u32 = term4_${l} / SOURCES;
        let from4_${l}: u32 = term4_${l} - SOURCES * tap${l};
        let ky${l}: u32 = tap${l} / KERNEL_W;
        let kx${l}: u32 = tap${l} - KERNEL_W * ky${l};
        //% endif
        //% set which = "" if ALIGNED else l ~ ""
        //% if RULE is defined
        let src_y${l}: u32 = bordered(a_y${l} + ky${which} * DILATION_H, params.before_h, params.src_h);
        let src_x${l}: u32 = bordered(a_x${l} + kx${which} * DILATION_W, params.before_w, params.src_w);
        let at${l}: u32 = src_x${l} + params.src_w * src_y${l} + a_first${l} + src_area * (${"from4 + a_item" ~ l ~ " / ROWS" if ALIGNED else "from4_" ~ l});
        a_next${l} = ${load4("src", "at" ~ l)};
        //% else
        let src_y${l}: u32 = a_y${l} + ky${which} * DILATION_H;
        let src_x${l}: u32 = a_x${l} + kx${which} * DILATION_W;
        let inside${l}: bool = src_y${l} < params.src_h && src_x${l} < params.src_w;
        var at${l}: u32 = a_first${l} + src_area * (${"from4 + a_item" ~ l ~ " / ROWS" if ALIGNED else "from4_" ~ l});
        if (inside${l}) {
            at${l} = at${l} + src_x${l} + params.src_w * src_y${l};
        }
        a_next${l} = ${load4("src", "at" ~ l)};
        if (!inside${l}) {
            a_next${l} = ${zero4};
        }
        //% endif
        //% endfor
    }
    //% endmacro
    //% include "shared/tile_loop"
    //% include "shared/add_splits"
    //% include "shared/store_pixels"
}
