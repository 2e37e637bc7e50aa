//# y[i] = x[place(i)], or the fill value: one element per invocation, or LANES of them, in lines of WIDTH
//# invocations.
${constants}

${interface}
//% include "shared/place"

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn remap_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let at: u32 = place(i);
    //% set value = load4("src", "at") if LANES == 4 else load("src", "at")
    //% if RULE == 1
    var value = ${splat(param("fill")) if LANES == 4 else param("fill")};
    if (at != NONE) {
        value = ${value};
    }
    //% else
    let value = ${value};
    //% endif
    ${store4("dst", "i", "value") if LANES == 4 else store("dst", "i", "value")}
}
