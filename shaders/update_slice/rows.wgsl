//# y[o, a, n] = u[o, a - at[b], n] where u has such a row, else x[o, a, n]; at[b] belongs to the b-th `outer` of the o.
//# One element per invocation, or LANES of them, in lines of WIDTH invocations: each element of y, or IN_PLACE each
//# element of u, which is written into what is there.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn update_slice_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let column: u32 = i % params.inner;
    let line: u32 = i / params.inner;
    //% if IN_PLACE
    let outer: u32 = line / params.rows;
    let begin: i32 = ${stored("arg1", "outer / params.outer")};
    let place: i32 = begin + i32(line % params.rows);
    //# A negative place is beyond every extent.
    if (u32(place) < params.extent) {
        let at: u32 = (outer * params.extent + u32(place)) * params.inner + column;
        let value = ${load4("arg0", "i") if LANES == 4 else load("arg0", "i")};
        ${store4("dst", "at", "value") if LANES == 4 else store("dst", "at", "value")}
    }
    //% else
    let outer: u32 = line / params.extent;
    let begin: i32 = ${stored("arg1", "outer / params.outer")};
    let row: i32 = i32(line % params.extent) - begin;
    var value = ${load4("src", "i") if LANES == 4 else load("src", "i")};
    if (u32(row) < params.rows) {
        let source: u32 = (outer * params.rows + u32(row)) * params.inner + column;
        value = ${load4("arg0", "source") if LANES == 4 else load("arg0", "source")};
    }
    ${store4("dst", "i", "value") if LANES == 4 else store("dst", "i", "value")}
    //% endif
}
