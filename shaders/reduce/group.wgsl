//# y[k] = sum_r x[k,r], or another reduction: one output per work-group, in lines of WIDTH work-groups. Its SIZE
//# invocations take every SIZE-th element each, and join what they have in halves. What has no value to begin with
//# begins with the first element.
//% set value = acc
//% set bits = "u32"
${constants}

${interface}
//% include "shared/reduction"

var<workgroup> partial: array<${acc}, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn reduce_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let out: u32 = min(group.x + WIDTH * group.y, params.outputs - 1u);
    let first: u32 = out % params.kept2 * params.kept_step2
        + out / params.kept2 % params.kept1 * params.kept_step1
        + out / (params.kept2 * params.kept1) * params.kept_step0;
    //% if ADDS
    var result: ${acc} = 0.0f;
    //% elif MULTIPLIES
    var result: ${acc} = 1.0f;
    //% else
    var result: ${acc} = element(${load("src", "first")});
    //% endif
    for (var i: u32 = lid.x; i < params.count; i += SIZE) {
        let place: u32 = first + i % params.reduced2 * params.reduced_step2
            + i / params.reduced2 % params.reduced1 * params.reduced_step1
            + i / (params.reduced2 * params.reduced1) * params.reduced_step0;
        result = joined(result, element(${load("src", "place")}));
    }
    partial[lid.x] = result;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        partial[lid.x] = joined(partial[lid.x], partial[lid.x + ${parts}u]);
    }
    //% endfor
    if (lid.x == 0u && group.x + WIDTH * group.y < params.outputs) {
        //% if DIVIDES
        ${store("dst", "out", "partial[0] / " ~ acc ~ "(params.count)")}
        //% else
        ${store("dst", "out", "partial[0]")}
        //% endif
    }
}
