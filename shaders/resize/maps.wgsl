//# y[n,i,j,c] = x[n, v(i), u(j), c], the nearest pixel or a mean of four: one vec4 of channels per invocation.
//# The nearest pixel follows from a product that is compared and never added to, so that no compiler fuses it
//# into an addition and rounds it otherwise.
${constants}

${interface}
fn scaled(at: u32, scale: f32) -> f32 {
    //% if HALF_PIXEL_CENTERS
    return (f32(at) + 0.5f) * scale;
    //% else
    return f32(at) * scale;
    //% endif
}

//% if BILINEAR
fn place(at: u32, scale: f32, extent: u32) -> f32 {
    //% if HALF_PIXEL_CENTERS
    return clamp(scaled(at, scale) - 0.5f, 0.0f, f32(extent - 1u));
    //% else
    return clamp(scaled(at, scale), 0.0f, f32(extent - 1u));
    //% endif
}
//% else
fn nearest(at: u32, scale: f32, extent: u32) -> u32 {
    let v: f32 = scaled(at, scale);
    let below: f32 = floor(v);
    //% if ROUNDS
    return min(u32(select(below, below + 1.0f, v >= below + 0.5f)), extent - 1u);
    //% else
    return min(u32(below), extent - 1u);
    //% endif
}
//% endif

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn resize_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.dst_w || gid.y >= params.dst_h || gid.z >= params.planes) {
        return;
    }
    let first: u32 = params.src_w * params.src_h * gid.z;
    let dst_index: u32 = gid.x + params.dst_w * (gid.y + params.dst_h * gid.z);
    //% if BILINEAR
    let v: f32 = place(gid.y, params.scale_h, params.src_h);
    let u: f32 = place(gid.x, params.scale_w, params.src_w);
    let upper: u32 = first + params.src_w * u32(v);
    let lower: u32 = first + params.src_w * u32(ceil(v));
    let left: u32 = u32(u);
    let right: u32 = u32(ceil(u));
    let down: ${acc4} = ${splat(acc ~ "(v - floor(v))")};
    let across: ${acc4} = ${splat(acc ~ "(u - floor(u))")};
    let up: ${acc4} = ${splat(acc ~ "(1.0f)")} - down;
    let back: ${acc4} = ${splat(acc ~ "(1.0f)")} - across;
    let above: ${acc4} = ${fma4(load4("src", "upper + right"), "across", load4("src", "upper + left") ~ " * back")};
    let below: ${acc4} = ${fma4(load4("src", "lower + right"), "across", load4("src", "lower + left") ~ " * back")};
    var resized: ${acc4} = ${fma4("below", "down", "above * up")};
    //% else
    let row: u32 = params.src_w * nearest(gid.y, params.scale_h, params.src_h);
    let column: u32 = nearest(gid.x, params.scale_w, params.src_w);
    var resized: ${acc4} = ${load4("src", "first + row + column")};
    //% endif
    //% for line in epilogue("resized", "gid.z % params.dst_c4", "dst_index")
    ${line}
    //% endfor
    ${store4("dst", "dst_index", "resized")}
}
