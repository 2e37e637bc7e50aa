//# y = (x - m) / sqrt(v + epsilon) * scale + bias, m and v the mean and variance of what is normalised together:
//# that of one work-group of SIZE invocations, each of which takes every SIZE-th element; in lines of WIDTH
//# work-groups. Values are taken from the first of them, so that no sum grows with their mean. Without CENTRED m is 0
//# and v the mean of x^2.
${constants}

${interface}
var<workgroup> partial: array<f32, SIZE>;

fn place(i: u32) -> u32 {
    //% if LINES
    return i * params.reduced_step2;
    //% else
    return i % params.reduced2 * params.reduced_step2 + i / params.reduced2 % params.reduced1 * params.reduced_step1
        + i / (params.reduced2 * params.reduced1) * params.reduced_step0;
    //% endif
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn normalize_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let out: u32 = min(group.x + WIDTH * group.y, params.outputs - 1u);
    let stored: bool = group.x + WIDTH * group.y < params.outputs;
    let first: u32 = out % params.kept2 * params.kept_step2
        + out / params.kept2 % params.kept1 * params.kept_step1
        + out / (params.kept2 * params.kept1) * params.kept_step0;
    var part: f32 = 0.0f;
    //% if CENTRED
    let origin: f32 = ${load("src", "first")};
    for (var i: u32 = lid.x; i < params.count; i += SIZE) {
        part = part + (${load("src", "first + place(i)")} - origin);
    }
    //% include "shared/group_sum"
    let mean: f32 = part / f32(params.count);
    ${barrier};
    part = 0.0f;
    //% else
    let origin: f32 = 0.0f;
    let mean: f32 = 0.0f;
    //% endif
    for (var i: u32 = lid.x; i < params.count; i += SIZE) {
        let difference: f32 = (${load("src", "first + place(i)")} - origin) - mean;
        part = part + difference * difference;
    }
    //% include "shared/group_sum"
    let factor: f32 = 1.0f / sqrt(part / f32(params.count) + params.epsilon);
    for (var i: u32 = lid.x; i < params.count && stored; i += SIZE) {
        let at: u32 = first + place(i);
        var result: f32 = ((${load("src", "at")} - origin) - mean) * factor;
        //% if SCALED
        result = result * ${load("weights", "at % params.channels")};
        //% endif
        //% if MOVED
        result = result + ${load("bias", "at % params.channels")};
        //% endif
        ${store("dst", "at", "result")}
    }
}
