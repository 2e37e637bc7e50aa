//# y[n,i,j,o] = f(s m[o] t + bias[o]) + residual[n,i,j,o], or the integers t = sum_{a,b,k} (x[..] - z) w[o,a,b,k], of bytes, four in
//# a word, with the scale s and the zero point z of the pixel's range: tile[1] pixels of a row by tile[0] words of output
//# channels per invocation. The sums of each channel's weights lie behind the weights.
${constants}

${interface}
//% set lanes = ["x", "y", "z", "w"]
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn dynamic_conv2d_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    let word: u32 = gid.x * TILE_X;
    let column: u32 = gid.y * TILE_Y;
    let row: u32 = gid.z % params.dst_h;
    let n: u32 = gid.z / params.dst_h;
    if (word >= params.dst_words || column >= params.dst_w || n >= params.batch) {
        return;
    }
    let dst_row: u32 = params.dst_w * (row + params.dst_h * n);
    //# Windows reach outside only where an image has one range.
    let outside: u32 = u32(${stored("arg0", "3u * (dst_row / params.span) + 1u")}) * 0x01010101u;
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
            for (var k: u32 = 0u; k < params.src_words; k++) {
                //% for p in range(tile[1])
                let v${p}: u32 = select(outside, ${stored("src", "src" ~ p ~ " + k")}, inside${p}) ^ 0x80808080u;
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
    //% for q in range(tile[0])
    let of_weights${q}: vec4<i32> = vec4<i32>(weights[KERNEL_H * KERNEL_W * params.src_words * params.dst_words + word${q}]);
    if (word + ${q}u < params.dst_words) {
        //% for p in range(tile[1])
        if (column + ${p}u < params.dst_w) {
            let pixel: u32 = dst_row + column + ${p}u;
            let range: u32 = 3u * (pixel / params.span);
            let whole: vec4<i32> = sum${q}_${p} - (i32(${stored("arg0", "range + 1u")}) - 128i) * of_weights${q};
            //% if INTEGERS
            let y: vec4<i32> = whole;
            //% else
            var y: vec4<f32> = vec4<f32>(whole) * ${stored("arg0", "range")} * scale[word${q}];
            //% endif
            //% if WIDE_DST
            let to: u32 = params.channels / 4u * pixel + word${q};
            //% if not INTEGERS
            //% for line in epilogue("y", "word" ~ q, "to")
            ${line}
            //% endfor
            //% endif
            dst[to] = y;
            //% else
            let to: u32 = params.channels * pixel + 4u * word${q};
            //% if not INTEGERS
            //% for line in epilogue("y", "word" ~ q, "0u")
            ${line}
            //% endfor
            //% endif
            //% for lane in lanes
            if (4u * word${q} + ${loop.index0}u < params.channels) {
                //% if residual
                y.${lane} += ${load("residual", "to + " ~ loop.index0 ~ "u")};
                //% endif
                ${store("dst", "to + " ~ loop.index0 ~ "u", "y." ~ lane)}
            }
            //% endfor
            //% endif
        }
        //% endfor
    }
    //% endfor
}
