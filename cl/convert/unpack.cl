//# C4 to a host layout (any order of strides): one vec4 per invocation.
${constants}

__kernel void convert_unpack(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint channel = 4u * (gid.z % dst_c4);
    const uint n = gid.z / dst_c4;
    const uint place = gid.x * step_w + gid.y * step_h + n * step_n;
    const ${acc4} v = ${load4("src", "gid.x + dst_w * (gid.y + dst_h * gid.z)")};
    //% for lane in ["x", "y", "z", "w"]
    if (channel + ${loop.index0}u < channels) {
        ${store("dst", "place + (channel + " ~ loop.index0 ~ "u) * step_c", "v." ~ lane)}
    }
    //% endfor
}
