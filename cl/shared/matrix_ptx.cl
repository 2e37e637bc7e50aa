//# A convolution by NVIDIA's `mma.sync` of 16x8x16 without staging: a warp sums TILE_Y times 16 pixels by
//# TILE_X times 8 output channels of halves in f32. The order of terms in a product is free, so a lane's terms
//# are the four channels of one slice, which lie together in a feature map; weights are packed in the order in
//# which lanes read them, 32 terms in 16 bytes. Operands of the next step travel while one is multiplied.
//# Layers of the work-group along z sum every LAYERS-th step each and add up in local memory. Pixels and
//# channels beyond the last are computed from it and not stored. Needs `pixels`, `area`, `total4` and macros
//# `place_of` for a pixel's place and `load_of` for its vec4 of a slice.
    const uint lane = get_local_id(0) % 32u;
    const uint layer = get_local_id(2);
    const uint first_pixel = 16u * TILE_Y * (WG_Y * get_group_id(1) + get_local_id(1)) + lane / 4u;
    const uint first_column = TILE_X * (WG_X / 32u * get_group_id(0) + get_local_id(0) / 32u);
    const uint columns8 = (dst_c4 + 1u) / 2u;
    const uint steps = (total4 + 7u) / 8u;
    __global const uint2* src2 = (__global const uint2*)src;
    __global const uint4* packed = (__global const uint4*)weights + lane;
    //% for p in range(2 * tile[1])
    const uint pixel${p} = min(first_pixel + ${8 * p}u, pixels - 1u);
    ${place_of(p) | trim}
    uint2 a${p}_0, a${p}_1, a_next${p}_0, a_next${p}_1;
    //% endfor
    //% for c in range(tile[0])
    __global const uint4* from${c} = packed + 32u * min(first_column + ${c}u, columns8 - 1u);
    uint4 b${c}, b_next${c};
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    float4 sum${r}_${c} = (float4)(0.0f);
    //% endfor
    //% endfor
    //% macro fetch(step)
    //% for c in range(tile[0])
    b_next${c} = from${c}[32u * columns8 * ${step}];
    //% endfor
    ${load_of(step) | trim}
    //% endmacro
    const uint first = min(layer, steps - 1u);
    ${fetch("first") | trim}
    for (uint step = layer; step < steps; step += LAYERS) {
        //% for p in range(2 * tile[1])
        a${p}_0 = a_next${p}_0;
        a${p}_1 = a_next${p}_1;
        //% endfor
        //% for c in range(tile[0])
        b${c} = b_next${c};
        //% endfor
        const uint next = min(step + LAYERS, steps - 1u);
        ${fetch("next") | trim | indent(4)}
        //% for j in range(2)
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        MMA(sum${r}_${c}, a${2 * r}_${j}.x, a${2 * r + 1}_${j}.x, a${2 * r}_${j}.y, a${2 * r + 1}_${j}.y, b${c}.${["x", "z"][j]}, b${c}.${["y", "w"][j]});
        //% endfor
        //% endfor
        //% endfor
    }
    //% set number = "float"
    //% set slices = "dst_c4"
    //% macro finish_of()
    const uint at = to + area * (slice + (dst_c4 - 1u) * (to / area));
    //% for line in epilogue("sum", "slice", "at")
    ${line}
    //% endfor
    ${store4("dst", "at", "sum")}
    //% endmacro
    //% include "shared/matrix_ptx_finish"
