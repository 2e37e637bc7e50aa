//# Host layout (any order of strides) to an RGBA image: one pixel per invocation. Channels beyond
//# the last one are zero. OpenCL only: sessions bind no images through wgpu.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_pack_image2d(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let channel: u32 = 4u * slice;
    let n: u32 = gid.z / params.dst_c4;
    let place: u32 = gid.x * params.step_w + gid.y * params.step_h + n * params.step_n;
    //% for l in range(4)
    var v${l}: ${acc} = ${zero};
    if (channel + ${l}u < params.channels) {
        v${l} = ${load("src", "place + (channel + " ~ l ~ "u) * params.step_c")};
    }
    //% endfor
    let v: ${acc4} = ${splat("v0, v1, v2, v3")};
    ${store4("dst", "", "v", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")}
}
