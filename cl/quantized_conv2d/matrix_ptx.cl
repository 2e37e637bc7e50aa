//# y[n,i,j,o] = clamp(round(m[o] (b[o] + sum_{a,b,k} (x[..] - 128) w[o,a,b,k])) + zero), of bytes, four in a word, by NVIDIA's
//# `mma.sync` of 16x8x32 without staging: a warp of 32 invocations sums TILE_Y times 16 pixels by TILE_X times 8 output channels.
//# The words of all taps are one row of terms. Their order in a product is free, so a lane has four that lie side by side, UNIT at
//# a time; weights are packed in the order in which lanes read them. Words of the next step travel while one is multiplied.
//# Layers of the work-group along z sum every LAYERS-th step each and add up in local memory. Pixels and channels beyond the last
//# are computed from it and not stored. Solo: WGSL has no inline assembly.
${constants}
#define MMA(c, a0, a1, a2, a3, b0, b1) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(c.x), "+r"(c.y), "+r"(c.z), "+r"(c.w) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define EXCHANGE(to, from) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(to) : "r"(from))

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void quantized_conv2d_matrix_ptx(
    ${arguments}
) {
    const uint area = dst_w * dst_h;
    const uint pixels = area * batch;
    const uint lane = get_local_id(0) % 32u;
    const uint layer = get_local_id(2);
    const uint first_pixel = 16u * TILE_Y * (WG_Y * get_group_id(1) + get_local_id(1)) + lane / 4u;
    const uint first_column = TILE_X * (WG_X / 32u * get_group_id(0) + get_local_id(0) / 32u);
    const uint columns8 = (dst_words + 1u) / 2u;
    const uint steps = (TERMS + 15u) / 16u;
    __global const uint4* packed = (__global const uint4*)weights + lane;
    //% for p in range(2 * tile[1])
    const uint pixel${p} = min(first_pixel + ${8 * p}u, pixels - 1u);
    const uint from${p} = src_h * (pixel${p} / area);
    const uint y${p} = pixel${p} % area / dst_w * STRIDE_H - before_h;
    const uint x${p} = pixel${p} % area % dst_w * STRIDE_W - before_w;
    uint4 a${p}, a_next${p};
    //% endfor
    //% for c in range(tile[0])
    __global const uint4* weights${c} = packed + 32u * min(first_column + ${c}u, columns8 - 1u);
    uint4 b${c}, b_next${c};
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    int4 sum${r}_${c} = (int4)(0);
    //% endfor
    //% endfor
    //% macro fetch(step)
    //% for c in range(tile[0])
    b_next${c} = weights${c}[32u * columns8 * ${step}];
    //% endfor
    //% for u in range(4 // UNIT)
    {
        const uint term = 16u * ${step} + 4u * (lane % 4u) + ${u * UNIT}u;
        const uint tap = term / SOURCES;
        const uint down = tap / KERNEL_W * DILATION_H;
        const uint right = tap % KERNEL_W * DILATION_W;
        const uint word = term % SOURCES;
        //% set lanes = "" if UNIT == 4 else (["." ~ "xy", "." ~ "zw"][u] if UNIT == 2 else "." ~ ["x", "y", "z", "w"][u])
        //% set type = "uint" ~ (UNIT if UNIT > 1 else "")
        //% for p in range(2 * tile[1])
        const bool inside${p} = y${p} + down < src_h && x${p} + right < src_w${" && term < TERMS" if RAGGED};
        a_next${p}${lanes} = (inside${p} ? ((__global const ${type}*)src)[(SOURCES * ((from${p} + y${p} + down) * src_w + x${p} + right) + word) / ${UNIT}u] : (${type})(outside)) ^ 0x80808080u;
        //% endfor
    }
    //% endfor
    //% endmacro
    const uint first = min(layer, steps - 1u);
    ${fetch("first") | trim}
    for (uint step = layer; step < steps; step += LAYERS) {
        //% for p in range(2 * tile[1])
        a${p} = a_next${p};
        //% endfor
        //% for c in range(tile[0])
        b${c} = b_next${c};
        //% endfor
        const uint next = min(step + LAYERS, steps - 1u);
        ${fetch("next") | trim | indent(4)}
        //% for low, high in [("x", "y"), ("z", "w")]
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        MMA(sum${r}_${c}, a${2 * r}.${low}, a${2 * r + 1}.${low}, a${2 * r}.${high}, a${2 * r + 1}.${high}, b${c}.${low}, b${c}.${high});
        //% endfor
        //% endfor
        //% endfor
    }
    //% set number = "int"
    //% set slices = "dst_words"
    //% macro finish_of()
    const float4 rounded = rint(clamp(convert_float4(sum + bias[slice]) * scale[slice], low, high));
    const uint4 bytes = as_uint4(convert_int4(rounded) + zero);
    dst[dst_words * to + slice] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
    //% endmacro
    //% include "shared/matrix_ptx_finish"
}
