//# y = argmax_k x[k], or argmin, the first of equals: one line along the axis per work-group, in lines of WIDTH
//# work-groups. Its SIZE invocations begin with the first element, take every SIZE-th each, and join what they
//# found in halves: of two indices the better one, of equals the smaller.
${constants}

${interface}
//% include "shared/better"
var<workgroup> values: array<${["f32", "i32", "u32"][SOURCE]}, SIZE>;
var<workgroup> indices: array<u32, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn arg_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let own: u32 = min(group.x + WIDTH * group.y, params.lines - 1u);
    let first: u32 = own / params.inner * params.inner * params.count + own % params.inner;
    var best = ${stored("src", "first")};
    var found: u32 = 0u;
    for (var k: u32 = lid.x; k < params.count; k += SIZE) {
        let x = ${stored("src", "first + k * params.inner")};
        if (better(x, best)) {
            best = x;
            found = k;
        }
    }
    values[lid.x] = best;
    indices[lid.x] = found;
    //% for parts in [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        let x = values[lid.x + ${parts}u];
        let k: u32 = indices[lid.x + ${parts}u];
        if (better(x, values[lid.x]) || (!better(values[lid.x], x) && k < indices[lid.x])) {
            values[lid.x] = x;
            indices[lid.x] = k;
        }
    }
    //% endfor
    if (lid.x == 0u && group.x + WIDTH * group.y < params.lines) {
        ${store("dst", "own", "f32(indices[0])")}
    }
}
