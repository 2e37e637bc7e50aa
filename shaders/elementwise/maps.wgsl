//# y = f(x0, x1, ...) of feature maps: one vec4 of channels per invocation, on a grid of width x height x
//# slices. An input whose bit is set in BROADCAST has extents of 1 and steps of its own, in vec4s along width,
//# height, slices and images; one whose bit is set in SPLAT has one channel for all.
${constants}

${interface}
//% set wide = true
//% include "shared/functions"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn elementwise_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.width || gid.y >= params.height || gid.z >= params.slices * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.slices;
    let n: u32 = gid.z / params.slices;
    let i: u32 = gid.x + params.width * (gid.y + params.height * gid.z);
    //% for input in range(INPUTS)
    //% set own = (BROADCAST // 2 ** input) % 2
    //% set splat_it = (SPLAT // 2 ** input) % 2
    //% if own
    let at${input}: u32 = gid.x * params.step${input}_0 + gid.y * params.step${input}_1 + slice * params.step${input}_2 + n * params.step${input}_3;
    //% endif
    //% set value = load4("arg" ~ input, "at" ~ input if own else "i")
    let x${input}: ${acc4} = ${splat("(" ~ value ~ ").x") if splat_it else value};
    //% endfor
    //% for statement in statements
    ${statement}
    //% endfor
    //% if MASK
    let lanes: vec4<u32> = 4u * slice + vec4<u32>(0u, 1u, 2u, 3u);
    ${store4("dst", "i", "select(" ~ zero4 ~ ", y, lanes < vec4<u32>(params.channels))")}
    //% else
    ${store4("dst", "i", "y")}
    //% endif
}
