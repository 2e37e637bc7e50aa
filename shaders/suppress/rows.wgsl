//# The best boxes of a row of scores without those that overlap one of them: one row per work-group, in lines of
//# WIDTH work-groups. Each of its SIZE invocations keeps the scores that are left of every SIZE-th box behind the
//# results; the best of all is found in halves, the first of equal ones.
${constants}

${interface}
var<workgroup> best_score: array<f32, SIZE>;
var<workgroup> best_place: array<u32, SIZE>;

fn overlap_of(own: vec4<f32>, other: vec4<f32>) -> f32 {
    let own_low: vec2<f32> = min(own.xy, own.zw);
    let own_high: vec2<f32> = max(own.xy, own.zw);
    let low: vec2<f32> = min(other.xy, other.zw);
    let high: vec2<f32> = max(other.xy, other.zw);
    let own_side: vec2<f32> = own_high - own_low;
    let side: vec2<f32> = high - low;
    let own_area: f32 = own_side.x * own_side.y;
    let area: f32 = side.x * side.y;
    let joint_side: vec2<f32> = max(min(own_high, high) - max(own_low, low), vec2<f32>(0.0, 0.0));
    let joint: f32 = joint_side.x * joint_side.y;
    let flat: bool = own_area <= 0.0 || area <= 0.0;
    return select(joint / select(own_area + area - joint, 1.0f, flat), 0.0f, flat);
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn suppress_rows(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let row: u32 = min(group.x + WIDTH * group.y, params.rows - 1u);
    let stored: bool = group.x + WIDTH * group.y < params.rows;
    let corners: u32 = 4u * row * params.box_step;
    let chosen: u32 = row * (2u * params.count + params.boxes);
    let left: u32 = chosen + 2u * params.count;
    for (var i: u32 = lid.x; i < params.boxes && stored; i += SIZE) {
        let score: f32 = ${load("arg1", "row * params.boxes + i")};
        //% if STRICT
        let kept: bool = score > params.score;
        //% else
        let kept: bool = score >= params.score;
        //% endif
        ${store("dst", "left + i", "select(NONE, score, kept)")}
    }
    for (var k: u32 = 0u; k < params.count; k++) {
        var best: f32 = NONE;
        var place: u32 = params.boxes;
        for (var i: u32 = lid.x; i < params.boxes && stored; i += SIZE) {
            let score: f32 = ${load("dst", "left + i")};
            let better: bool = score > best;
            place = select(place, i, better);
            best = select(best, score, better);
        }
        best_score[lid.x] = best;
        best_place[lid.x] = place;
        //% for parts in [128, 64, 32, 16, 8, 4, 2, 1] if parts < SIZE
        ${barrier};
        if (lid.x < ${parts}u) {
            let score: f32 = best_score[lid.x + ${parts}u];
            let other: u32 = best_place[lid.x + ${parts}u];
            let before: bool = other < best_place[lid.x];
            if (score > best_score[lid.x] || (score == best_score[lid.x] && before)) {
                best_score[lid.x] = score;
                best_place[lid.x] = other;
            }
        }
        //% endfor
        ${barrier};
        let score: f32 = best_score[0];
        let own: u32 = best_place[0];
        ${barrier};
        let found: bool = own < params.boxes;
        if (lid.x == 0u && stored) {
            ${store("dst", "chosen + 2u * k", "select(-1.0f, f32(own), found)")}
            ${store("dst", "chosen + 2u * k + 1u", "select(0.0f, score, found)")}
        }
        let first: u32 = corners + 4u * min(own, params.boxes - 1u);
        let a: vec4<f32> = vec4<f32>(${load("arg0", "first")}, ${load("arg0", "first + 1u")},
            ${load("arg0", "first + 2u")}, ${load("arg0", "first + 3u")});
        for (var i: u32 = lid.x; i < params.boxes && stored && found; i += SIZE) {
            let before: f32 = ${load("dst", "left + i")};
            let at: u32 = corners + 4u * i;
            let b: vec4<f32> = vec4<f32>(${load("arg0", "at")}, ${load("arg0", "at + 1u")},
                ${load("arg0", "at + 2u")}, ${load("arg0", "at + 3u")});
            // A box's overlap with itself is 1, however a device divides, or 0 without an area.
            let quotient: f32 = overlap_of(a, b);
            let overlap: f32 = select(quotient, 1.0f, i == own && quotient > 0.0);
            //% if STRICT
            let over: bool = overlap >= params.overlap;
            //% else
            let over: bool = overlap > params.overlap || i == own;
            //% endif
            let soft: f32 = before * exp(params.decay * overlap * overlap);
            let after: f32 = select(before, soft, params.decay < 0.0);
            let below: bool = after != before && after <= params.score;
            ${store("dst", "left + i", "select(after, NONE, over || below || before <= NONE)")}
        }
    }
}
