//# C4 buffer to RGBA image: one vec4 per invocation. Solo: WGSL has no images here.
${constants}

__kernel void convert_c4_to_image2d(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint n = gid.z / dst_c4;
    const ${acc4} v = ${load4("src", "gid.x + dst_w * (gid.y + dst_h * gid.z)")};
    ${store4("dst", "", "v", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")}
}
