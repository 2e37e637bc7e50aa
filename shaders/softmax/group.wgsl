//# y[k] = exp(beta * (x[k] - m)) / sum_j exp(beta * (x[j] - m)), m the largest x: one line along the axis per
//# work-group, in lines of WIDTH work-groups. Its SIZE invocations take every SIZE-th element each, and join their
//# maxima and sums in halves.
${constants}

${interface}
var<workgroup> partial: array<f32, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn softmax_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let own: u32 = min(group.x + WIDTH * group.y, params.lines - 1u);
    let stored: bool = group.x + WIDTH * group.y < params.lines;
    let first: u32 = own / params.inner * params.inner * params.count + own % params.inner;
    var part: f32 = ${load("src", "first")};
    for (var k: u32 = lid.x; k < params.count; k += SIZE) {
        part = max(part, ${load("src", "first + k * params.inner")});
    }
    partial[lid.x] = part;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = max(partial[lid.x], partial[lid.x + ${parts}u]);
    }
    //% endfor
    ${barrier};
    let largest: f32 = partial[0];
    ${barrier};
    part = 0.0f;
    for (var k: u32 = lid.x; k < params.count; k += SIZE) {
        part = part + exp(params.beta * (${load("src", "first + k * params.inner")} - largest));
    }
    partial[lid.x] = part;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = partial[lid.x] + partial[lid.x + ${parts}u];
    }
    //% endfor
    ${barrier};
    let sum: f32 = partial[0];
    //% if LOG
    let log_sum: f32 = log(sum);
    //% endif
    for (var k: u32 = lid.x; k < params.count && stored; k += SIZE) {
        let exponent: f32 = params.beta * (${load("src", "first + k * params.inner")} - largest);
        //% if LOG
        ${store("dst", "first + k * params.inner", "exponent - log_sum")}
        //% else
        ${store("dst", "first + k * params.inner", "exp(exponent) / sum")}
        //% endif
    }
}
