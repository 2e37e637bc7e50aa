//# An RGBA image to a host layout (any order of strides): one pixel per invocation. OpenCL only: sessions
//# bind no images through wgpu.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_unpack_image2d(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let channel: u32 = 4u * slice;
    let n: u32 = gid.z / params.dst_c4;
    let place: u32 = gid.x * params.step_w + gid.y * params.step_h + n * params.step_n;
    let v: ${acc4} = ${load4("src", "", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")};
    //% for lane in ["x", "y", "z", "w"]
    if (channel + ${loop.index0}u < params.channels) {
        ${store("dst", "place + (channel + " ~ loop.index0 ~ "u) * params.step_c", "v." ~ lane)}
    }
    //% endfor
}
