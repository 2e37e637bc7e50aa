//# y[.., c] = scale * (x[.., c] - zero), of bytes, four in a word: one number per invocation, in lines of WIDTH
//# invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn dequantize_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let channel: u32 = i % params.channels;
    let words: u32 = (params.channels + 3u) / 4u;
    let word: u32 = ${stored("src", "channel / 4u + words * (i / params.channels)")};
    let byte: u32 = (word >> (8u * (channel % 4u))) & 255u;
    ${store("dst", "i", "params.scale * f32(i32(byte) - params.zero)")}
}
