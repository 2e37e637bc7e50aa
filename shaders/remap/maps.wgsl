//# y[n,i,j,c] = x[f(n), f(i), f(j), f(c)], or the fill value, of feature maps whose axes stay: one vec4 of
//# channels per invocation, slices as a whole where SLICES says that each is one of the source, else lane by
//# lane. Coordinates are start + step * i; RULE says what f is, as in `place`.
${constants}

${interface}
//% if RULE >= 2
//% include "shared/coordinate"

//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn remap_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    let n: u32 = gid.z / params.dst_c4;
    //% for axis, i in [("n", "n"), ("h", "gid.y"), ("w", "gid.x")]
    //% set at = "params.start_" ~ axis ~ " + params.step_" ~ axis ~ " * i32(" ~ i ~ ")"
    let at_${axis}: u32 = u32(${"coordinate(" ~ at ~ ", params.source_" ~ axis ~ ")" if RULE >= 2 else at});
    //% endfor
    let src_w: u32 = u32(params.source_w);
    let plane: u32 = src_w * u32(params.source_h);
    let pixel: u32 = at_w + src_w * at_h;
    let first_slice: u32 = params.src_c4 * at_n;
    //% if RULE == 1
    let inside: bool = at_w < src_w && at_h < u32(params.source_h) && at_n < u32(params.source_n);
    //% endif
    //% if SLICES
    let channel: i32 = params.start_c + i32(slice);
    let at_c: u32 = u32(${"coordinate(channel, params.source_c)" if RULE >= 2 else "channel"});
    //% set loaded = load4("src", "pixel + plane * (at_c + first_slice)")
    //% if RULE == 1
    var value: ${acc4} = ${splat(param("fill"))};
    if (inside && at_c < u32(params.source_c)) {
        value = ${loaded};
    }
    //% else
    var value: ${acc4} = ${loaded};
    //% endif
    value = select(${zero4}, value, 4u * slice + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.dst_c));
    //% else
    var value: ${acc4} = ${zero4};
    //% for l in range(4)
    //% set at = "params.start_c + params.step_c * i32(4u * slice + " ~ l ~ "u)"
    if (4u * slice + ${l}u < params.dst_c) {
        let at_c: u32 = u32(${"coordinate(" ~ at ~ ", params.source_c)" if RULE >= 2 else at});
        //% set loaded = lane("src", "pixel + plane * (at_c / 4u + first_slice)", "(at_c % 4u)")
        //% if RULE == 1
        value[${l}] = ${param("fill")};
        if (inside && at_c < u32(params.source_c)) {
            value[${l}] = ${loaded};
        }
        //% else
        value[${l}] = ${loaded};
        //% endif
    }
    //% endfor
    //% endif
    ${store4("dst", "gid.x + params.dst_w * (gid.y + params.dst_h * gid.z)", "value")}
}
