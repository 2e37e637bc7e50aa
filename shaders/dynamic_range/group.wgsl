//# [scale, zero, 1 / scale] of the least and the largest of 0 and the numbers of a row: one row per work-group, in lines of WIDTH
//# work-groups. Its SIZE invocations take every SIZE-th element each, and join what they have in halves.
${constants}

${interface}
var<workgroup> lows: array<f32, SIZE>;
var<workgroup> highs: array<f32, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn dynamic_range_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let row: u32 = min(group.x + WIDTH * group.y, params.rows - 1u);
    var low: f32 = 0.0f;
    var high: f32 = 0.0f;
    for (var i: u32 = lid.x; i < params.count; i += SIZE) {
        let x: f32 = ${stored("src", "row * params.count + i")};
        low = min(low, x);
        high = max(high, x);
    }
    lows[lid.x] = low;
    highs[lid.x] = high;
    //% for parts in [128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
    ${barrier};
    if (lid.x < ${parts}u) {
        lows[lid.x] = min(lows[lid.x], lows[lid.x + ${parts}u]);
        highs[lid.x] = max(highs[lid.x], highs[lid.x + ${parts}u]);
    }
    //% endfor
    if (lid.x == 0u && group.x + WIDTH * group.y < params.rows) {
        let width: f32 = highs[0] - lows[0];
        let empty: bool = width == 0.0f;
        //% if NEARER
        let steps: f32 = select(255.0f / select(width, 1.0f, empty), 1.0f, empty);
        let scale: f32 = 1.0f / steps;
        let below: f32 = lows[0] * steps;
        let above: f32 = highs[0] * steps;
        let of_low: bool = (below - 128.0f) + (above + 127.0f) > 0.0f;
        let zero: f32 = select((127.0f - above) + 128.0f, (-128.0f - below) + 128.0f, of_low);
        //% else
        let scale: f32 = select(width / 255.0f, 1.0f, empty);
        let zero: f32 = -(lows[0] / scale);
        //% endif
        ${store("dst", "3u * row", "scale")}
        ${store("dst", "3u * row + 1u", "round(clamp(zero, 0.0f, 255.0f))")}
        ${store("dst", "3u * row + 2u", "1.0f / scale")}
    }
}
