//# y[k,c] = sum_r x[k,r,c], or another reduction, over some of batch, height and width: one vec4 of channels per
//# invocation. What has no value to begin with begins with its first element.
//% set value = acc4
//% set bits = "vec4<u32>"
${constants}

${interface}
//% include "shared/reduction"

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn reduce_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    let slice: u32 = gid.y;
    if (gid.x >= params.outputs || slice >= params.slices) {
        return;
    }
    let n: u32 = gid.x / (params.kept_w * params.kept_h);
    let first: u32 = (n * params.slices + slice) * params.src_plane
        + gid.x / params.kept_w % params.kept_h * params.src_w + gid.x % params.kept_w;
    //% if ADDS
    var result: ${acc4} = ${zero4};
    //% elif MULTIPLIES
    var result: ${acc4} = ${splat("1.0f")};
    //% else
    var result: ${acc4} = element(${load4("src", "first")});
    //% endif
    for (var i: u32 = 0u; i < params.reduced_n; i++) {
        for (var j: u32 = 0u; j < params.reduced_h; j++) {
            let line: u32 = first + i * params.slices * params.src_plane + j * params.src_w;
            for (var k: u32 = 0u; k < params.reduced_w; k++) {
                result = joined(result, element(${load4("src", "line + k")}));
            }
        }
    }
    //% if DIVIDES
    result = result / ${splat(acc ~ "(params.reduced_n * params.reduced_h * params.reduced_w)")};
    //% endif
    let image: u32 = gid.x / params.dst_plane * params.slices + slice;
    ${store4("dst", "image * params.dst_plane + gid.x % params.dst_plane", "result")}
}
