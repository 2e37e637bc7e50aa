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
    let rest0: u32 = i;
    //% for axis in range(RANK - 1)
    let p${axis}: u32 = rest${axis} % params.extent${axis};
    let rest${axis + 1}: u32 = rest${axis} / params.extent${axis};
    //% endfor
    let p${RANK - 1}: u32 = rest${RANK - 1};
    //% for input in range(INPUTS)
    var at${input}: u32 = p0 * params.step${input}_0;
    //% for axis in range(1, RANK)
    at${input} = at${input} + p${axis} * params.step${input}_${axis};
    //% endfor
    let in${input} = ${stored("arg" ~ input, "at" ~ input)};
    //% endfor
    //% for statement in statements
    ${statement}
    //% endfor
    ${store("dst", "i", "y")}
}
