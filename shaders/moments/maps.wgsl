//# m = mean of x - o and q = sum of (x - o - m)^2 over PART pixels of a plane, or what is left of it at the end, o the
//# plane's first pixel, or 0 without CENTRED: of four channels per work-group of SIZE invocations, each of which takes every SIZE-th pixel.
//# The lanes beyond the channels are zero.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn moments_maps(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let slice: u32 = group.y % params.slices;
    let n: u32 = group.y / params.slices;
    let first: u32 = group.y * params.plane + group.x * PART;
    let count: u32 = min(PART, params.plane - group.x * PART);
    //% set each = PART // SIZE
    var part: ${acc4} = ${zero4};
    //% if CENTRED
    let origin: ${acc4} = ${load4("src", "group.y * params.plane")};
    //% endif
    //% for k in range(each)
    var x${k}: ${acc4} = ${zero4};
    if (lid.x + ${k}u * SIZE < count) {
        x${k} = ${load4("src", "first + lid.x + " ~ k ~ "u * SIZE")}${" - origin" if CENTRED else ""};
    }
    //% endfor
    //% for k in range(each)
    part = part + x${k};
    //% endfor
    //% include "shared/group_sum"
    let mean: ${acc4} = part / ${splat(acc ~ "(count)")};
    ${barrier};
    part = ${zero4};
    //% for k in range(each)
    if (lid.x + ${k}u * SIZE < count) {
        part = part + (x${k} - mean) * (x${k} - mean);
    }
    //% endfor
    //% include "shared/group_sum"
    if (lid.x == 0u) {
        let at: u32 = (n * params.parts + group.x) * 2u * params.slices + slice;
        ${store4("dst", "at", "mean")}
        ${store4("dst", "at + params.slices", "part")}
    }
}
