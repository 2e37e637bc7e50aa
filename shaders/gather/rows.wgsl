//# y[b, o, i, n] = x[b, o, index[b, i], n], or zero where an index is outside its axis: one element per
//# invocation, or LANES of them, in lines of WIDTH invocations. There are AXES numbers to an index.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gather_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let row: u32 = i / params.inner;
    let outer: u32 = row / params.count;
    let entry: u32 = row % params.count + params.count * (outer / params.outer);
    var inside: bool = true;
    var at: u32 = outer;
    //% for axis in range(AXES)
    //% if INDEX == 0
    let index${axis}: f32 = ${stored("arg0", "AXES * entry + " ~ axis ~ "u")};
    let inside${axis}: bool = index${axis} >= 0.0 && index${axis} < f32(params.extent${axis});
    //# Within the axis whatever a driver makes of NaN.
    let place${axis}: u32 = min(u32(select(0.0, index${axis}, inside${axis})), params.extent${axis} - 1u);
    //% else
    //# A negative one is beyond every axis.
    let index${axis}: u32 = u32(${stored("arg0", "AXES * entry + " ~ axis ~ "u")});
    let inside${axis}: bool = index${axis} < params.extent${axis};
    let place${axis}: u32 = min(index${axis}, params.extent${axis} - 1u);
    //% endif
    inside = inside && inside${axis};
    at = at * params.extent${axis} + place${axis};
    //% endfor
    //% set place = "at * params.inner + i % params.inner"
    var value = ${zero4 if LANES == 4 else zero};
    if (inside) {
        value = ${load4("src", place) if LANES == 4 else load("src", place)};
    }
    ${store4("dst", "i", "value") if LANES == 4 else store("dst", "i", "value")}
}
