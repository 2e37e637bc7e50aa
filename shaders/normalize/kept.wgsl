//# y = f((x - m) / sqrt(v + epsilon) * scale + bias) + r, m and v the mean and variance over height and width: those
//# of four channels per work-group of SIZE invocations, each of which has KEPT pixels in registers, SIZE apart. Those
//# beyond the last are read from it and replaced by zero, without a branch that loads would wait behind. The lanes
//# beyond the channels are zero, and so are their mean and their differences from it. Values are taken from the first
//# pixel, so that no sum grows with their mean. Without CENTRED m is 0 and v the mean of x^2.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn normalize_kept(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let slice: u32 = group.y;
    let image: u32 = group.x * params.slices + slice;
    let first: u32 = image * params.plane;
    let share: ${acc4} = ${splat(acc ~ "(params.plane)")};
    var part: ${acc4} = ${zero4};
    //% if CENTRED
    let origin: ${acc4} = ${load4("src", "first")};
    //% endif
    //% for k in range(KEPT)
    let near${k}: ${acc4} = ${load4("src", "first + min(lid.x + " ~ k ~ "u * SIZE, params.plane - 1u)")};
    var x${k}: ${acc4} = select(${zero4}, near${k}${" - origin" if CENTRED else ""}, lid.x + ${k}u * SIZE < params.plane);
    //% endfor
    //% if CENTRED
    //% for k in range(KEPT)
    part = part + x${k};
    //% endfor
    //% include "shared/group_sum"
    let mean: ${acc4} = part / share;
    ${barrier};
    part = ${zero4};
    //% for k in range(KEPT)
    x${k} = select(${zero4}, x${k} - mean, lid.x + ${k}u * SIZE < params.plane);
    //% endfor
    //% endif
    //% for k in range(KEPT)
    part = part + x${k} * x${k};
    //% endfor
    //% include "shared/group_sum"
    let factor: ${acc4} = ${splat("1.0f")} / sqrt(part / share + ${splat("params.epsilon")});
    //% include "shared/scaled"
    //% for k in range(KEPT)
    if (lid.x + ${k}u * SIZE < params.plane) {
        let at: u32 = first + lid.x + ${k}u * SIZE;
        var result: ${acc4} = x${k} * factor;
        //% include "shared/normalized"
    }
    //% endfor
}
