//# INPUTS feature maps one behind the other along AXIS (0 batch, 1 height, 2 width, 3 channels): one vec4 of the
//# result per invocation. Input i ends behind element `end{i}` of the axis, channels in slices where SLICES says
//# that each slice of the result is one of an input; else its lanes are found one by one.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn concat_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    let dst_index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% if SLICES
    let at: u32 = ${["n", "gid.y", "gid.x", "slice"][AXIS]};
    //% for input in range(INPUTS)
    //% set begin = "params.end" ~ (input - 1) if input > 0 else "0u"
    //% set own = "(params.end" ~ input ~ " - " ~ begin ~ ")"
    //% set w = own if AXIS == 2 else "params.dst_w"
    //% set h = own if AXIS == 1 else "params.dst_h"
    //% set c4 = own if AXIS == 3 else "params.dst_c4"
    //% set x = "at - " ~ begin if AXIS == 2 else "gid.x"
    //% set y = "(at - " ~ begin ~ ")" if AXIS == 1 else "gid.y"
    //% set z = "at - " ~ begin if AXIS == 3 else "slice"
    //% set b = "(at - " ~ begin ~ ")" if AXIS == 0 else "n"
    //% set place = x ~ " + " ~ w ~ " * (" ~ y ~ " + " ~ h ~ " * (" ~ z ~ " + " ~ c4 ~ " * " ~ b ~ "))"
    if (at >= ${begin} && at < params.end${input}) {
        ${store4("dst", "dst_index", load4("arg" ~ input, place))}
    }
    //% endfor
    //% else
    let plane: u32 = params.dst_w * params.dst_h;
    let pixel: u32 = gid.x + params.dst_w * gid.y;
    var joined: ${acc4} = ${zero4};
    //% for lane_index in range(4)
    let c${lane_index}: u32 = 4u * slice + ${lane_index}u;
    //% for input in range(INPUTS)
    //% set begin = "params.end" ~ (input - 1) if input > 0 else "0u"
    //% set own = "(c" ~ lane_index ~ " - " ~ begin ~ ")"
    //% set slices = "((params.end" ~ input ~ " - " ~ begin ~ " + 3u) / 4u)"
    //% set place = "pixel + plane * (" ~ own ~ " / 4u + " ~ slices ~ " * n)"
    if (c${lane_index} >= ${begin} && c${lane_index} < params.end${input}) {
        joined[${lane_index}] = ${lane("arg" ~ input, place, "(" ~ own ~ " % 4u)")};
    }
    //% endfor
    //% endfor
    ${store4("dst", "dst_index", "joined")}
    //% endif
}
