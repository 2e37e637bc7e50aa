//# y = a + b or a * b, of bytes, four in a word: one word per invocation, in lines of WIDTH invocations. A row of
//# words of b serves a span of words of a.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_binary_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let other: u32 = i / params.span * params.row + i % params.row;
    let a: vec4<i32> = vec4<i32>(unpack4xU8(${stored("arg0", "i")})) - params.zero_a;
    let b: vec4<i32> = vec4<i32>(unpack4xU8(${stored("arg1", "other")})) - params.zero_b;
    //% if PRODUCT == 1
    let x: vec4<f32> = vec4<f32>(a * b) * params.ratio;
    let steps: vec4<i32> = vec4<i32>(round(clamp(x, vec4<f32>(params.low), vec4<f32>(params.high))));
    //% else
    let half: i32 = 1i << (params.shift - 1u);
    let sum: vec4<i32> = (a * params.multiplier_a + b * params.multiplier_b + half) >> vec4<u32>(params.shift);
    let steps: vec4<i32> = clamp(sum, vec4<i32>(i32(params.low)), vec4<i32>(i32(params.high)));
    //% endif
    ${store("dst", "i", "pack4xU8(vec4<u32>(steps + params.zero))")}
}
