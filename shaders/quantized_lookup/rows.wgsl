//# y[i] = table[x[i]], of bytes, four in a word: one word per invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_lookup_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let x: vec4<u32> = unpack4xU8(${stored("src", "i")});
    var y: vec4<u32> = vec4<u32>(0u);
    //% for lane in range(4)
    y[${lane}] = (${stored("arg0", "x[" ~ lane ~ "] / 4u")} >> (8u * (x[${lane}] % 4u))) & 255u;
    //% endfor
    ${store("dst", "i", "pack4xU8(y)")}
}
