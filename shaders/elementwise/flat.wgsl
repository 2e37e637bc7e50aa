//# y[i] = f(x0[i], x1[i], ...) of feature maps of one shape: a vec4 per invocation, in lines of WIDTH
//# invocations, whatever the extents.
${constants}

${interface}
//% set wide = true
//% include "shared/functions"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn elementwise_flat(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements4) {
        return;
    }
    //% for input in range(INPUTS)
    let x${input}: ${acc4} = ${load4("arg" ~ input, "i")};
    //% endfor
    //% for statement in statements
    ${statement}
    //% endfor
    //% if MASK
    let lanes: vec4<u32> = 4u * (i / params.plane % params.slices) + vec4<u32>(0u, 1u, 2u, 3u);
    ${store4("dst", "i", "select(" ~ zero4 ~ ", y, lanes < vec4<u32>(params.channels))")}
    //% else
    ${store4("dst", "i", "y")}
    //% endif
}
