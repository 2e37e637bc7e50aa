//# y = (x - m) / sqrt(v + epsilon) * scale + bias, m and v the mean and variance of what is normalised together:
//# that of one invocation, in lines of WIDTH invocations. Values are taken from the first of them, so that no sum grows
//# with their mean. Without CENTRED m is 0 and v the mean of x^2.
${constants}

${interface}
fn place(i: u32) -> u32 {
    return i % params.reduced2 * params.reduced_step2 + i / params.reduced2 % params.reduced1 * params.reduced_step1
        + i / (params.reduced2 * params.reduced1) * params.reduced_step0;
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn normalize_serial(@builtin(global_invocation_id) gid: vec3<u32>) {
    let out: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || out >= params.outputs) {
        return;
    }
    let first: u32 = out % params.kept2 * params.kept_step2
        + out / params.kept2 % params.kept1 * params.kept_step1
        + out / (params.kept2 * params.kept1) * params.kept_step0;
    //% if CENTRED
    let origin: f32 = ${load("src", "first")};
    var sum: f32 = 0.0f;
    for (var i: u32 = 0u; i < params.count; i++) {
        sum = sum + (${load("src", "first + place(i)")} - origin);
    }
    let mean: f32 = sum / f32(params.count);
    //% else
    let origin: f32 = 0.0f;
    let mean: f32 = 0.0f;
    //% endif
    var squares: f32 = 0.0f;
    for (var i: u32 = 0u; i < params.count; i++) {
        let difference: f32 = (${load("src", "first + place(i)")} - origin) - mean;
        squares = squares + difference * difference;
    }
    let factor: f32 = 1.0f / sqrt(squares / f32(params.count) + params.epsilon);
    for (var i: u32 = 0u; i < params.count; i++) {
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
