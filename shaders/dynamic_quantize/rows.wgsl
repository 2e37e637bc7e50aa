//# y[r, c] = clamp(round(x[r, c] / scale) + zero, 0, 255), four in a word, of the row's range: one word per invocation, in lines of
//# WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn dynamic_quantize_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let words: u32 = (params.channels + 3u) / 4u;
    let first: u32 = 4u * (i % words);
    let row: u32 = i / words;
    let range: u32 = 3u * (row / params.span);
    let zero: f32 = ${stored("arg0", "range + 1u")};
    var x: vec4<f32> = vec4<f32>(0.0);
    //% for lane in range(4)
    if (first + ${lane}u < params.channels) {
        x[${lane}] = ${stored("src", "row * params.channels + first + " ~ lane ~ "u")};
    }
    //% endfor
    //% if DIVIDES
    let quotient: vec4<f32> = x / ${stored("arg0", "range")};
    //% else
    let quotient: vec4<f32> = x * ${stored("arg0", "range + 2u")};
    //% endif
    let steps: vec4<f32> = round(clamp(quotient, vec4<f32>(-zero), vec4<f32>(255.0f - zero)));
    ${store("dst", "i", "pack4xU8(vec4<u32>(vec4<i32>(steps + zero)))")}
}
