//# Host layout (any order of strides) to an RGBA image: one pixel per invocation. Channels beyond
//# the last one are zero. Solo: WGSL has no images here.
${constants}

__kernel void convert_pack_image2d(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint channel = 4u * slice;
    const uint n = gid.z / dst_c4;
    const uint place = gid.x * step_w + gid.y * step_h + n * step_n;
    //% for l in range(4)
    ${acc} v${l} = ${zero};
    if (channel + ${l}u < channels) {
        v${l} = ${load("src", "place + (channel + " ~ l ~ "u) * step_c")};
    }
    //% endfor
    const ${acc4} v = ${splat("v0, v1, v2, v3")};
    ${store4("dst", "", "v", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")}
}
