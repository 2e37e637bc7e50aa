//# y[k,c] = sum_r x[k,r,c], or another reduction, over some of batch, height and width: one vec4 of channels per
//# work-group. Its SIZE invocations take every SIZE-th pixel each, and join what they have in halves. What has no
//# value to begin with begins with the first element. WHOLE says that it is all of height and width.
//% set value = acc4
//% set bits = "vec4<u32>"
${constants}

${interface}
//% include "shared/reduction"

var<workgroup> partial: array<${acc4}, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn reduce_maps_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let out: u32 = group.x;
    let slice: u32 = group.y;
    let n: u32 = out / (params.kept_w * params.kept_h);
    let first: u32 = (n * params.slices + slice) * params.src_plane
        + out / params.kept_w % params.kept_h * params.src_w + out % params.kept_w;
    let count: u32 = params.reduced_n * params.reduced_h * params.reduced_w;
    //% if ADDS
    var result: ${acc4} = ${zero4};
    //% elif MULTIPLIES
    var result: ${acc4} = ${splat("1.0f")};
    //% else
    var result: ${acc4} = element(${load4("src", "first")});
    //% endif
    for (var i: u32 = lid.x; i < count; i += SIZE) {
        //% if WHOLE
        let place: u32 = first + i;
        //% else
        let place: u32 = first + i % params.reduced_w + i / params.reduced_w % params.reduced_h * params.src_w
            + i / (params.reduced_w * params.reduced_h) * params.slices * params.src_plane;
        //% endif
        result = joined(result, element(${load4("src", "place")}));
    }
    partial[lid.x] = result;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = joined(partial[lid.x], partial[lid.x + ${parts}u]);
    }
    //% endfor
    if (lid.x == 0u) {
        let image: u32 = out / params.dst_plane * params.slices + slice;
        //% if DIVIDES
        result = partial[0] / ${splat(acc ~ "(count)")};
        //% else
        result = partial[0];
        //% endif
        ${store4("dst", "image * params.dst_plane + out % params.dst_plane", "result")}
    }
}
