//# Rows to rows with elements of another type: LANES elements per invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn convert_cast(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    ${store4("dst", "i", load4("src", "i")) if LANES == 4 else store("dst", "i", load("src", "i"))}
}
