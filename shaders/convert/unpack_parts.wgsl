//# C4 to several NHWC maps, one behind the other: map p has the channels from FIRST<p> to the first
//# of the next. One vec4 per invocation.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_unpack_parts(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let channel: u32 = 4u * (gid.z % params.dst_c4);
    let n: u32 = gid.z / params.dst_c4;
    let pixel: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * n);
    let pixels: u32 = params.dst_w * params.dst_h * params.batch;
    let v: ${acc4} = ${load4("src", "gid.x + params.dst_w * (gid.y + params.dst_h * gid.z)")};
    //% for l in range(4)
    let c${l}: u32 = channel + ${l}u;
    //% for p in range(PARTS)
    if (c${l} >= FIRST${p} && c${l} < FIRST${p + 1}) {
        let place: u32 = pixels * FIRST${p} + pixel * (FIRST${p + 1} - FIRST${p}) + c${l} - FIRST${p};
        ${store("dst", "place", "v." ~ ["x", "y", "z", "w"][l])}
    }
    //% endfor
    //% endfor
}
