//# C4 to C4 with elements of another type: one vec4 per invocation.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_repack(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    let v: ${acc4} = ${load4("src", "index")};
    ${store4("dst", "index", "v")}
}
