//# y[o, d, n] = on if index[o, n] is d, else off: one element per invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn one_hot_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let row: u32 = i / params.inner;
    let index: f32 = ${load("src", "row / params.depth * params.inner + i % params.inner")};
    let value: f32 = select(params.off, params.on, index == f32(row % params.depth));
    ${store("dst", "i", "value")}
}
