//# The largest byte, or a mean of the bytes, of the elements inside each window: one word of four channels per
//# invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_pool_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let word: u32 = i % params.words;
    let pixel: u32 = i / params.words;
    let first_x: u32 = pixel % params.dst_w * STRIDE_W;
    let first_y: u32 = pixel / params.dst_w % params.dst_h * STRIDE_H;
    let image: u32 = pixel / (params.dst_w * params.dst_h) * params.src_h;
    var count: i32 = 0i;
    var sum: vec4<i32> = vec4<i32>(0i);
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = first_y + ky;
        if (y >= params.before_h && y < params.src_h + params.before_h) {
            let row: u32 = (image + y - params.before_h) * params.src_w;
            for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
                let x: u32 = first_x + kx;
                if (x >= params.before_w && x < params.src_w + params.before_w) {
                    let v: vec4<i32> = vec4<i32>(unpack4xU8(${stored("src", "word + params.words * (row + x - params.before_w)")}));
                    //% if MEAN == 0
                    sum = max(sum, v);
                    //% else
                    sum = sum + v;
                    //% endif
                    count = count + 1i;
                }
            }
        }
    }
    //% if MEAN == 0
    let steps: vec4<i32> = sum - params.zero;
    //% elif MEAN == 1
    let centred: vec4<i32> = sum - count * params.origin;
    let half: i32 = count / 2i;
    let mean: vec4<i32> = (centred + select(vec4<i32>(-half), vec4<i32>(half), centred > vec4<i32>(0i))) / max(count, 1i);
    let steps: vec4<i32> = mean + params.origin - params.zero;
    //% else
    let x: vec4<f32> = vec4<f32>(sum - count * params.origin) * params.factor;
    let steps: vec4<i32> = vec4<i32>(round(clamp(x, vec4<f32>(params.low), vec4<f32>(params.high))));
    //% endif
    let bounded: vec4<i32> = clamp(steps, vec4<i32>(i32(params.low)), vec4<i32>(i32(params.high)));
    ${store("dst", "i", "pack4xU8(vec4<u32>(bounded + params.zero))")}
}
