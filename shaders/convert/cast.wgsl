//# Rows to rows with elements of another type: LANES elements per invocation, in lines of WIDTH invocations. Where it
//# becomes a half (NARROW), a number beyond the largest half is that one: a mask's least number stays a number. What
//# is infinite or no number, whose exponent's bits are all ones, stays so.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_cast(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    //% set exponent = "vec4<u32>(0x7f800000u)" if LANES == 4 else "0x7f800000u"
    //% set largest = splat("65504.0f") if LANES == 4 else "65504.0f"
    let value = ${load4("src", "i") if LANES == 4 else load("src", "i")};
    //% if NARROW
    let kept = (bitcast<${"vec4<u32>" if LANES == 4 else "u32"}>(value) & ${exponent}) == ${exponent};
    let narrow = select(clamp(value, -${largest}, ${largest}), value, kept);
    ${store4("dst", "i", "narrow") if LANES == 4 else store("dst", "i", "narrow")}
    //% else
    ${store4("dst", "i", "value") if LANES == 4 else store("dst", "i", "value")}
    //% endif
}
