//# y[n,i,j,c] = clamp(round(m[c] (b[c] + sum_{a,b} (x[..] - 128) w[a,b,c])) + zero), of bytes, four in a word: tile[1] pixels
//# of a row and a word of channels per invocation.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn quantized_depthwise_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    let word: u32 = gid.x;
    let column: u32 = gid.y * TILE_Y;
    let row: u32 = gid.z % params.dst_h;
    let n: u32 = gid.z / params.dst_h;
    if (word >= params.words || column >= params.dst_w || n >= params.batch) {
        return;
    }
    //% for p in range(tile[1])
    var sum${p}: vec4<i32> = bias[word];
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = row * STRIDE_H + ky * DILATION_H;
        let within: bool = y >= params.before_h && y < params.src_h + params.before_h;
        let src_row: u32 = params.src_w * (select(0u, y - params.before_h, within) + params.src_h * n);
        for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
            let w: vec4<i32> = unpack4xI8(${stored("weights", "word + params.words * (ky * KERNEL_W + kx)")});
            //% for p in range(tile[1])
            let x${p}: u32 = (column + ${p}u) * STRIDE_W + kx * DILATION_W;
            let inside${p}: bool = within && x${p} >= params.before_w && x${p} < params.src_w + params.before_w;
            let src${p}: u32 = word + params.words * (src_row + select(0u, x${p} - params.before_w, inside${p}));
            let v${p}: u32 = select(params.outside, ${stored("src", "src" ~ p)}, inside${p}) ^ 0x80808080u;
            sum${p} = sum${p} + unpack4xI8(v${p}) * w;
            //% endfor
        }
    }
    let low: vec4<f32> = vec4<f32>(params.low);
    let high: vec4<f32> = vec4<f32>(params.high);
    let scale4: vec4<f32> = scale[word];
    let dst_row: u32 = params.dst_w * (row + params.dst_h * n);
    //% for p in range(tile[1])
    if (column + ${p}u < params.dst_w) {
        let steps: vec4<f32> = round(clamp(vec4<f32>(sum${p}) * scale4, low, high));
        dst[word + params.words * (dst_row + column + ${p}u)] = pack4xU8(vec4<u32>(vec4<i32>(steps) + params.zero));
    }
    //% endfor
}
