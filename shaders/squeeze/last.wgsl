//# y = f(sum_c w[o,c] m[c] + b[o]), m[c] the mean of a map's channel: a work-group of SIZE invocations adds up a part of
//# the pixels of a slice, and the last one of an image to arrive makes the means of all parts and the product. The lanes
//# beyond the channels have means that no weight is multiplied with.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> means: array<${acc}, MEANS>;
var<workgroup> before: u32;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn squeeze_last(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n: u32 = group.y;
    let slice: u32 = group.x % params.slices;
    let begin: u32 = group.x / params.slices * params.part_pixels;
    let first: u32 = (n * params.slices + slice) * params.plane + begin;
    let count: u32 = min(params.part_pixels, params.plane - begin);
    var part: ${acc4} = ${zero4};
    for (var i: u32 = lid.x; i < count; i += 4u * SIZE) {
        //% for k in range(4)
        var x${k}: ${acc4} = ${zero4};
        if (i + ${k}u * SIZE < count) {
            x${k} = ${load4("src", "first + i + " ~ k ~ "u * SIZE")};
        }
        //% endfor
        part = part + ((x0 + x1) + (x2 + x3));
    }
    //% include "shared/group_sum"
    let reduction: u32 = n;
    let groups: u32 = params.parts * params.slices;
    let own: u32 = group.x;
    let mine: ${acc4} = part;
    //% set told = "means"
    //% include "shared/arrival"
    let channels: u32 = 4u * params.slices;
    for (var c: u32 = lid.x; c < channels; c += SIZE) {
        var mean: ${acc} = means[c];
        for (var i: u32 = 1u; i < params.parts; i++) {
            mean = mean + means[i * channels + c];
        }
        means[c] = mean / ${acc}(params.plane);
    }
    ${barrier};
    //% set values = "means"
    //% set inputs = "params.inputs"
    //% include "shared/pixel_product"
}
