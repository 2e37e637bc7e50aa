//# y[k] = exp(beta * (x[k] - m)) / sum_j exp(beta * (x[j] - m)), m the largest x: one line along the axis per
//# invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn softmax_serial(@builtin(global_invocation_id) gid: vec3<u32>) {
    let own: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || own >= params.lines) {
        return;
    }
    let first: u32 = own / params.inner * params.inner * params.count + own % params.inner;
    var largest: f32 = ${load("src", "first")};
    for (var k: u32 = 1u; k < params.count; k++) {
        largest = max(largest, ${load("src", "first + k * params.inner")});
    }
    var sum: f32 = 0.0f;
    for (var k: u32 = 0u; k < params.count; k++) {
        sum = sum + exp(params.beta * (${load("src", "first + k * params.inner")} - largest));
    }
    //% if LOG
    let log_sum: f32 = log(sum);
    //% endif
    for (var k: u32 = 0u; k < params.count; k++) {
        let exponent: f32 = params.beta * (${load("src", "first + k * params.inner")} - largest);
        //% if LOG
        ${store("dst", "first + k * params.inner", "exponent - log_sum")}
        //% else
        ${store("dst", "first + k * params.inner", "exp(exponent) / sum")}
        //% endif
    }
}
