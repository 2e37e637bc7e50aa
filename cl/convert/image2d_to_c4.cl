//# RGBA image to C4 buffer: one vec4 per invocation. Solo: WGSL has no images here.
${constants}

__kernel void convert_image2d_to_c4(
    ${arguments}
) {
    const uint3 gid = (uint3)(get_global_id(0), get_global_id(1), get_global_id(2));
    if (gid.x >= dst_w || gid.y >= dst_h || gid.z >= dst_c4 * batch) {
        return;
    }
    const uint slice = gid.z % dst_c4;
    const uint n = gid.z / dst_c4;
    const ${acc4} v = ${load4("src", "", column="gid.x + dst_w * slice", row="gid.y + dst_h * n")};
    ${store4("dst", "gid.x + dst_w * (gid.y + dst_h * gid.z)", "v")}
}
