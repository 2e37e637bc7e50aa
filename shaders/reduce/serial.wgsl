//# y[k] = sum_r x[k,r], or another reduction: one output per invocation, in lines of WIDTH invocations. What has
//# no value to begin with begins with its first element.
//% set value = acc
//% set bits = "u32"
${constants}

${interface}
//% include "shared/reduction"

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn reduce_serial(@builtin(global_invocation_id) gid: vec3<u32>) {
    let out: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || out >= params.outputs) {
        return;
    }
    let first: u32 = out % params.kept2 * params.kept_step2
        + out / params.kept2 % params.kept1 * params.kept_step1
        + out / (params.kept2 * params.kept1) * params.kept_step0;
    //% if ADDS
    var result: ${acc} = ${zero};
    //% elif MULTIPLIES
    var result: ${acc} = ${"1.0f" if acc == "f32" else acc ~ "(1)"};
    //% else
    var result: ${acc} = element(${load("src", "first")});
    //% endif
    for (var i: u32 = 0u; i < params.reduced0; i++) {
        for (var j: u32 = 0u; j < params.reduced1; j++) {
            let line: u32 = first + i * params.reduced_step0 + j * params.reduced_step1;
            for (var k: u32 = 0u; k < params.reduced2; k++) {
                result = joined(result, element(${load("src", "line + k * params.reduced_step2")}));
            }
        }
    }
    //% if DIVIDES
    result = result / ${acc}(params.count);
    //% endif
    ${store("dst", "out", "result")}
}
