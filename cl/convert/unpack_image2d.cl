//# An RGBA image to a host layout (any order of strides): one pixel per invocation. Solo: WGSL has
//# no images here.
${constants}

__kernel void convert_unpack_image2d(
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
    const ${acc4} v = ${load4("src", "", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")};
    //% for lane in ["x", "y", "z", "w"]
    if (channel + ${loop.index0}u < channels) {
        ${store("dst", "place + (channel + " ~ loop.index0 ~ "u) * step_c", "v." ~ lane)}
    }
    //% endfor
}
