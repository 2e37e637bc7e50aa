//# y[.., c] = clamp(round(x[.., c] * factor), low, high) + zero, four in a word: one word per invocation, in
//# lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantize_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let words: u32 = (params.channels + 3u) / 4u;
    let first: u32 = 4u * (i % words);
    let row: u32 = i / words * params.channels;
    var x: vec4<f32> = vec4<f32>(0.0);
    //% for lane in range(4)
    if (first + ${lane}u < params.channels) {
        x[${lane}] = ${stored("src", "row + first + " ~ lane ~ "u")};
    }
    //% endfor
    let steps: vec4<f32> = round(clamp(x * params.factor, vec4<f32>(params.low), vec4<f32>(params.high)));
    ${store("dst", "i", "pack4xU8(vec4<u32>(vec4<i32>(steps) + params.zero))")}
}
