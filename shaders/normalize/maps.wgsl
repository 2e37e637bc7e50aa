//# y = (x - m) / sqrt(v + epsilon) * scale + bias, m and v the mean and variance over some of batch, height and
//# width: those of four channels per work-group of SIZE invocations, each of which takes every SIZE-th pixel. The
//# lanes beyond the channels are zero, and so are their mean and their differences from it. WHOLE says that it is all
//# of height and width. Values are taken from the first pixel, so that no sum grows with their mean. Without CENTRED m
//# is 0 and v the mean of x^2.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;

fn place(i: u32) -> u32 {
    //% if WHOLE
    return i;
    //% else
    return i % params.reduced_w + i / params.reduced_w % params.reduced_h * params.width
        + i / (params.reduced_w * params.reduced_h) * params.slices * params.plane;
    //% endif
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn normalize_maps(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let out: u32 = group.x;
    let slice: u32 = group.y;
    let n: u32 = out / (params.kept_w * params.kept_h);
    let image: u32 = n * params.slices + slice;
    let first: u32 = image * params.plane
        + out / params.kept_w % params.kept_h * params.width + out % params.kept_w;
    let count: u32 = params.reduced_n * params.reduced_h * params.reduced_w;
    let share: ${acc4} = ${splat(acc ~ "(count)")};
    var part: ${acc4} = ${zero4};
    //% if CENTRED
    let origin: ${acc4} = ${load4("src", "first")};
    for (var i: u32 = lid.x; i < count; i += SIZE) {
        part = part + (${load4("src", "first + place(i)")} - origin);
    }
    //% include "shared/group_sum"
    let mean: ${acc4} = part / share;
    ${barrier};
    part = ${zero4};
    //% else
    let origin: ${acc4} = ${zero4};
    let mean: ${acc4} = ${zero4};
    //% endif
    for (var i: u32 = lid.x; i < count; i += SIZE) {
        let difference: ${acc4} = (${load4("src", "first + place(i)")} - origin) - mean;
        part = part + difference * difference;
    }
    //% include "shared/group_sum"
    let factor: ${acc4} = ${splat("1.0f")} / sqrt(part / share + ${splat("params.epsilon")});
    //% include "shared/scaled"
    for (var i: u32 = lid.x; i < count; i += SIZE) {
        let at: u32 = first + place(i);
        var result: ${acc4} = ((${load4("src", "at")} - origin) - mean) * factor;
        //% include "shared/normalized"
    }
}
