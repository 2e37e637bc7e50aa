//# The rows of INPUTS inputs in turn: one element of the result per invocation, or LANES of them, in lines of
//# WIDTH invocations. Input i ends behind element `end{i}` of a row.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn concat_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let row: u32 = i / params.end${INPUTS - 1};
    let at: u32 = i % params.end${INPUTS - 1};
    //% for input in range(INPUTS)
    //% set begin = "params.end" ~ (input - 1) if input > 0 else "0u"
    //% set place = "row * (params.end" ~ input ~ " - " ~ begin ~ ") + at - " ~ begin
    //% set name = "arg" ~ input
    if (at >= ${begin} && at < params.end${input}) {
        ${store4("dst", "i", load4(name, place)) if LANES == 4 else store("dst", "i", load(name, place))}
    }
    //% endfor
}
