//# y = f(x0, x1, x2) of rows of integers: the output's axes, from the innermost one on, and each input's steps along
//# them, 0 where it has one element for all. One element per invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn integer_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    //% include "shared/row_places"
    //% for input in range(INPUTS)
    let in${input} = ${stored("arg" ~ input, "at" ~ input)};
    //% endfor
    //% for statement in statements
    ${statement}
    //% endfor
    ${store("dst", "i", "y")}
}
