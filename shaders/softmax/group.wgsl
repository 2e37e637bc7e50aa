//# y[k] = exp(beta * (x[k] - m)) / sum_j exp(beta * (x[j] - m)), m the largest x: one line along the axis per
//# work-group, in lines of WIDTH work-groups. Its SIZE invocations take every SIZE-th element each; some join the
//# maxima of a column of them, and all those of the columns. So are the sums.
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
    ${barrier};
    //% set columns = SIZE if SIZE < 16 else (8 if SIZE < 256 else (16 if SIZE < 1024 else 32))
    if (lid.x < ${columns}u) {
        //% for row in range(1, SIZE // columns)
        part = max(part, partial[lid.x + ${row * columns}u]);
        //% endfor
        partial[lid.x] = part;
    }
    ${barrier};
    var largest: f32 = partial[0];
    //% for column in range(1, columns)
    largest = max(largest, partial[${column}u]);
    //% endfor
    ${barrier};
    part = 0.0f;
    for (var k: u32 = lid.x; k < params.count; k += SIZE) {
        part = part + exp(params.beta * (${load("src", "first + k * params.inner")} - largest));
    }
    //% include "shared/group_sum"
    let sum: f32 = part;
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
