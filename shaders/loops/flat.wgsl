//# An element of a nest's result per invocation, or four along its last axis if WIDE; in lines of WIDTH invocations.
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn ${entry}(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    //% for statement in statements
    ${statement}
    //% endfor
}
