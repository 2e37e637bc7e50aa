//# RGBA image to C4 buffer: one vec4 per invocation. OpenCL only: sessions bind no images through wgpu.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_image2d_to_c4(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    let v: ${acc4} = ${load4("src", "", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")};
    ${store4("dst", "gid.x + params.dst_w * (gid.y + params.dst_h * gid.z)", "v")}
}
