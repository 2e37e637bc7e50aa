//# y[i] = x[place(i)], or the fill value, of feature maps: one vec4 of channels per invocation, lane by lane, or
//# as a whole where WHOLE says that elements are vec4s. Elements are counted as in rows; shapes are those of rows
//# of elements.
${constants}

${interface}
//% include "shared/place"

//# Where element `i` lies among those of C4.
fn stored(i: u32) -> u32 {
    let pixel: u32 = i / params.src_c;
    let row: u32 = pixel / params.src_w;
    let n: u32 = row / params.src_h;
    //% if WHOLE
    let slice: u32 = i % params.src_c + params.src_c * n;
    return pixel % params.src_w + params.src_w * (row % params.src_h + params.src_h * slice);
    //% else
    let c: u32 = i % params.src_c;
    let slice: u32 = c / 4u + (params.src_c + 3u) / 4u * n;
    return 4u * (pixel % params.src_w + params.src_w * (row % params.src_h + params.src_h * slice)) + c % 4u;
    //% endif
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn remap_lanes(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let pixel: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * (gid.z / params.dst_c4));
    var value: ${acc4} = ${zero4};
    //% if WHOLE
    let at: u32 = place(slice + params.dst_c * pixel);
    //% if RULE == 1
    value = ${splat(param("fill"))};
    if (at != NONE) {
        value = ${load4("src", "stored(at)")};
    }
    //% else
    value = ${load4("src", "stored(at)")};
    //% endif
    //% else
    //% for lane_index in range(4)
    if (4u * slice + ${lane_index}u < params.dst_c) {
        let at: u32 = place(4u * slice + ${lane_index}u + params.dst_c * pixel);
        //% if RULE == 1
        value[${lane_index}] = ${param("fill")};
        if (at != NONE) {
            let from_lane: u32 = stored(at);
            value[${lane_index}] = ${lane("src", "from_lane / 4u", "(from_lane % 4u)")};
        }
        //% else
        let from_lane: u32 = stored(at);
        value[${lane_index}] = ${lane("src", "from_lane / 4u", "(from_lane % 4u)")};
        //% endif
    }
    //% endfor
    //% endif
    ${store4("dst", "gid.x + params.dst_w * (gid.y + params.dst_h * gid.z)", "value")}
}
