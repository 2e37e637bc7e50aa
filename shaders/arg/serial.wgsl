//# y = argmax_k x[k], or argmin, the first of equals: one line along the axis per invocation, in lines of WIDTH
//# invocations.
${constants}

${interface}
//% include "shared/better"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn arg_serial(@builtin(global_invocation_id) gid: vec3<u32>) {
    let own: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || own >= params.lines) {
        return;
    }
    let first: u32 = own / params.inner * params.inner * params.count + own % params.inner;
    var best = ${stored("src", "first")};
    var found: u32 = 0u;
    for (var k: u32 = 1u; k < params.count; k++) {
        let x = ${stored("src", "first + k * params.inner")};
        if (better(x, best)) {
            best = x;
            found = k;
        }
    }
    ${store("dst", "own", "f32(found)")}
}
