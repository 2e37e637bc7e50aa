//# y[n,i,j,o] = clamp(round(m[o] (b[o] + sum_{a,b,k} (x[..] - 128) w[o,a,b,k])) + zero), of bytes, four in a word: tile[1]
//# pixels of a row by tile[0] words of output channels per invocation. The SPLITS invocations of a work-group along z share the
//# words of each tap, and their sums are added up at the end.
${constants}

${interface}
//% if SPLITS > 1
var<workgroup> sums: array<vec4<i32>, SUMS>;

//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
//% if SPLITS > 1
fn quantized_conv2d_direct(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
//% else
fn quantized_conv2d_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
//% endif
    let word: u32 = gid.x * TILE_X;
    let column: u32 = gid.y * TILE_Y;
    //% if SPLITS > 1
    //# What is beyond the edge computes what lies at it, as all invocations meet at the barrier.
    let slice: u32 = lid.z;
    let image_row: u32 = min(gid.z / SPLITS, params.dst_h * params.batch - 1u);
    let row: u32 = image_row % params.dst_h;
    let n: u32 = image_row / params.dst_h;
    //% else
    let slice: u32 = 0u;
    let row: u32 = gid.z % params.dst_h;
    let n: u32 = gid.z / params.dst_h;
    if (word >= params.dst_words || column >= params.dst_w || n >= params.batch) {
        return;
    }
    //% endif
    //% for q in range(tile[0])
    let word${q}: u32 = min(word + ${q}u, params.dst_words - 1u);
    //% for p in range(tile[1])
    var sum${q}_${p}: vec4<i32> = vec4<i32>(0i);
    //% endfor
    //% endfor
    for (var ky: u32 = 0u; ky < KERNEL_H; ky++) {
        let y: u32 = row * STRIDE_H + ky * DILATION_H;
        let within: bool = y >= params.before_h && y < params.src_h + params.before_h;
        let src_row: u32 = params.src_w * (select(0u, y - params.before_h, within) + params.src_h * n);
        for (var kx: u32 = 0u; kx < KERNEL_W; kx++) {
            //% for p in range(tile[1])
            let x${p}: u32 = (column + ${p}u) * STRIDE_W + kx * DILATION_W;
            let inside${p}: bool = within && x${p} >= params.before_w && x${p} < params.src_w + params.before_w;
            let src${p}: u32 = params.src_words * (src_row + select(0u, x${p} - params.before_w, inside${p}));
            //% endfor
            let first: u32 = params.src_words * (ky * KERNEL_W + kx);
            for (var k: u32 = slice; k < params.src_words; k += SPLITS) {
                //% for p in range(tile[1])
                let v${p}: u32 = select(params.outside, ${stored("src", "src" ~ p ~ " + k")}, inside${p}) ^ 0x80808080u;
                //% endfor
                //% for q in range(tile[0])
                let w${q}: vec4<u32> = weights[(first + k) * params.dst_words + word${q}];
                //% for p in range(tile[1])
                //% if UNPACKED is defined
                sum${q}_${p} = sum${q}_${p} + vec4<i32>(dot(unpack4xI8(v${p}), unpack4xI8(w${q}.x)), dot(unpack4xI8(v${p}), unpack4xI8(w${q}.y)), dot(unpack4xI8(v${p}), unpack4xI8(w${q}.z)), dot(unpack4xI8(v${p}), unpack4xI8(w${q}.w)));
                //% else
                sum${q}_${p} = sum${q}_${p} + vec4<i32>(dot4I8Packed(v${p}, w${q}.x), dot4I8Packed(v${p}, w${q}.y), dot4I8Packed(v${p}, w${q}.z), dot4I8Packed(v${p}, w${q}.w));
                //% endif
                //% endfor
                //% endfor
            }
        }
    }
    //% if SPLITS > 1
    let place: u32 = lid.x + WG_X * lid.y;
    if (slice > 0u) {
        //% for q in range(tile[0])
        //% for p in range(tile[1])
        sums[place + WG_X * WG_Y * (slice - 1u + (SPLITS - 1u) * ${p + q * tile[1]}u)] = sum${q}_${p};
        //% endfor
        //% endfor
    }
    ${barrier};
    if (slice > 0u || word >= params.dst_words || column >= params.dst_w || gid.z / SPLITS >= params.dst_h * params.batch) {
        return;
    }
    for (var other: u32 = 0u; other < SPLITS - 1u; other++) {
        //% for q in range(tile[0])
        //% for p in range(tile[1])
        sum${q}_${p} = sum${q}_${p} + sums[place + WG_X * WG_Y * (other + (SPLITS - 1u) * ${p + q * tile[1]}u)];
        //% endfor
        //% endfor
    }
    //% endif
    let low: vec4<f32> = vec4<f32>(params.low);
    let high: vec4<f32> = vec4<f32>(params.high);
    let dst_row: u32 = params.dst_w * (row + params.dst_h * n);
    //% for q in range(tile[0])
    if (word + ${q}u < params.dst_words) {
        let bias${q}: vec4<i32> = bias[word${q}];
        let scale${q}: vec4<f32> = scale[word${q}];
        //% for p in range(tile[1])
        if (column + ${p}u < params.dst_w) {
            let steps: vec4<f32> = round(clamp(vec4<f32>(sum${q}_${p} + bias${q}) * scale${q}, low, high));
            dst[word${q} + params.dst_words * (dst_row + column + ${p}u)] = pack4xU8(vec4<u32>(vec4<i32>(steps) + params.zero));
        }
        //% endfor
    }
    //% endfor
}
