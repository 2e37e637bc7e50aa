//# y[n,c] = sum over a map's height and width of x[n,..,c], or another reduction: a part of the pixels of four channels
//# per work-group of SIZE invocations, and the last one of these channels to arrive joins what all parts have found.
//# What has no value to begin with begins with the first element.
//% set value = acc4
//% set bits = "vec4<u32>"
${constants}

${interface}
//% include "shared/reduction"

var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> found: array<${acc}, FOUND>;
var<workgroup> before: u32;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn reduce_maps_last(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let begin: u32 = group.x * params.part_pixels;
    let first: u32 = group.y * params.plane + begin;
    let count: u32 = min(params.part_pixels, params.plane - begin);
    //% if ADDS
    var result: ${acc4} = ${zero4};
    //% elif MULTIPLIES
    var result: ${acc4} = ${splat("1.0f")};
    //% else
    var result: ${acc4} = element(${load4("src", "first")});
    //% endif
    for (var i: u32 = lid.x; i < count; i += SIZE) {
        result = joined(result, element(${load4("src", "first + i")}));
    }
    partial[lid.x] = result;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = joined(partial[lid.x], partial[lid.x + ${parts}u]);
    }
    //% endfor
    let mine: ${acc4} = partial[0];
    let reduction: u32 = group.y;
    let groups: u32 = params.parts;
    let own: u32 = group.x;
    //% set told = "found"
    //% include "shared/arrival"
    //% if ADDS
    result = ${zero4};
    //% elif MULTIPLIES
    result = ${splat("1.0f")};
    //% else
    result = ${acc4}(found[0], found[1], found[2], found[3]);
    //% endif
    for (var i: u32 = lid.x; i < params.parts; i += SIZE) {
        let at: u32 = 4u * i;
        result = joined(result, ${acc4}(found[at], found[at + 1u], found[at + 2u], found[at + 3u]));
    }
    partial[lid.x] = result;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = joined(partial[lid.x], partial[lid.x + ${parts}u]);
    }
    //% endfor
    if (lid.x == 0u) {
        //% if DIVIDES
        result = partial[0] / ${splat(acc ~ "(params.plane)")};
        //% else
        result = partial[0];
        //% endif
        ${store4("dst", "group.y", "result")}
    }
}
