//# y[n,i,j,c] = f(max or mean of x[n, i*s+a-p, j*s+b-p, c] over the a, b inside): one vec4 of channels per
//# invocation. Every window holds an element, with which a maximum begins. A NaN, found by its bits because
//# WGSL lets an implementation assume that there is none, is larger than anything and stays.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn pool_direct(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.dst_c4 * params.batch) {
        return;
    }
    let slice: u32 = gid.z % params.dst_c4;
    //% if images
    let n: u32 = gid.z / params.dst_c4;
    //% endif
    let src_first: u32 = params.src_w * params.src_h * gid.z;
    let y_first: u32 = max(gid.y * STRIDE_H, params.before_h) - params.before_h;
    let y_end: u32 = min(gid.y * STRIDE_H + KERNEL_H - params.before_h, params.src_h);
    let x_first: u32 = max(gid.x * STRIDE_W, params.before_w) - params.before_w;
    let x_end: u32 = min(gid.x * STRIDE_W + KERNEL_W - params.before_w, params.src_w);
    //% if AVERAGE
    var pooled: ${acc4} = ${zero4};
    //% else
    var pooled: ${acc4} = ${load4("src", "src_first + params.src_w * y_first + x_first", column="x_first + params.src_w * slice", row="y_first + params.src_h * n")};
    //% endif
    for (var y: u32 = y_first; y < min(y_end, y_first + KERNEL_H); y++) {
        for (var x: u32 = x_first; x < min(x_end, x_first + KERNEL_W); x++) {
            let v: ${acc4} = ${load4("src", "src_first + params.src_w * y + x", column="x + params.src_w * slice", row="y + params.src_h * n")};
            //% if AVERAGE
            pooled = pooled + v;
            //% else
            let no_number: vec4<bool> = (bitcast<vec4<u32>>(vec4<f32>(v)) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
            pooled = select(select(pooled, v, v > pooled), v, no_number);
            //% endif
        }
    }
    //% if AVERAGE
    pooled = pooled / ${splat(acc ~ "((y_end - y_first) * (x_end - x_first))")};
    //% endif
    let dst_index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% for line in epilogue("pooled", "slice", "dst_index", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "pooled", column="gid.x + params.dst_w * slice", row="gid.y + params.dst_h * n")}
}
