//# y = f((x - m) / sqrt(v + epsilon) * scale + bias) + r, m and v the mean and variance over height and width: EACH
//# pixels of four channels per invocation, SIZE apart. A work-group of SIZE invocations adds up the moments of the
//# parts of PART pixels first: with c_i pixels of mean m_i, taken from the map's first pixel, and q_i, the sum of their
//# squared distances from it, m = sum c_i m_i / c and v = sum (q_i + c_i (m_i - m)^2) / c. All pixels are loaded before the first is stored, those beyond the last from
//# it. The lanes beyond the channels are zero, and so are their moments. Without CENTRED m is 0 and v the mean of x^2.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn normalize_parts(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let image: u32 = group.y;
    let slice: u32 = image % params.slices;
    let moments: u32 = image / params.slices * params.parts * 2u * params.slices + slice;
    let share: ${acc4} = ${splat(acc ~ "(params.plane)")};
    var part: ${acc4} = ${zero4};
    //% if CENTRED
    for (var i: u32 = lid.x; i < params.parts; i += SIZE) {
        let count: u32 = min(PART, params.plane - i * PART);
        part = part + ${splat(acc ~ "(count)")} * ${load4("arg2", "moments + 2u * i * params.slices")};
    }
    //% include "shared/group_sum"
    let mean: ${acc4} = part / share;
    ${barrier};
    part = ${zero4};
    //% else
    let mean: ${acc4} = ${zero4};
    //% endif
    for (var i: u32 = lid.x; i < params.parts; i += SIZE) {
        let count: u32 = min(PART, params.plane - i * PART);
        let off: ${acc4} = ${load4("arg2", "moments + 2u * i * params.slices")} - mean;
        part = part + ${load4("arg2", "moments + (2u * i + 1u) * params.slices")} + ${splat(acc ~ "(count)")} * off * off;
    }
    //% include "shared/group_sum"
    let factor: ${acc4} = ${splat("1.0f")} / sqrt(part / share + ${splat("params.epsilon")});
    //% include "shared/scaled"
    let first: u32 = image * params.plane;
    //% if CENTRED
    let origin: ${acc4} = ${load4("src", "first")};
    //% else
    let origin: ${acc4} = ${zero4};
    //% endif
    let pixel: u32 = group.x * SIZE * EACH + lid.x;
    //% for k in range(EACH)
    let x${k}: ${acc4} = ${load4("src", "first + min(pixel + " ~ k ~ "u * SIZE, params.plane - 1u)")};
    //% endfor
    //% for k in range(EACH)
    if (pixel + ${k}u * SIZE < params.plane) {
        let at: u32 = first + pixel + ${k}u * SIZE;
        var result: ${acc4} = ((x${k} - origin) - mean) * factor;
        //% include "shared/normalized"
    }
    //% endfor
}
