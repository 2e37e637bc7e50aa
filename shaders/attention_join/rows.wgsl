//# y = sum_p exp(l_p - max l) y_p / sum_p exp(l_p - max l): a unit of one query's result per invocation, in lines of
//# WIDTH invocations. A unit is a vec4 where rows are of whole ones (LANES), else a scalar. A row of a part is UNITS
//# units, and TAIL whose first element is l_p.
${constants}

${interface}
//% set unit = "vec4<f32>" if LANES == 4 else "f32"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn attention_join_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let place: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || place >= params.units) {
        return;
    }
    let e: u32 = place % UNITS;
    let query: u32 = place / UNITS;
    let first: u32 = query * (UNITS + TAIL);
    var most: f32 = -3.40282346e38f;
    for (var p: u32 = 0u; p < PARTS; p++) {
        most = max(most, src[p * params.part + first + UNITS]${".x" if LANES == 4 else ""});
    }
    var all: f32 = 0.0f;
    var sum: ${unit} = ${unit}(0.0f);
    for (var p: u32 = 0u; p < PARTS; p++) {
        let at: u32 = p * params.part + first;
        let share: f32 = exp(src[at + UNITS]${".x" if LANES == 4 else ""} - most);
        all = all + share;
        sum = fma(${unit}(share), src[at + e], sum);
    }
    let row: u32 = query % params.rows;
    let g: u32 = query / params.rows % params.heads_shared;
    let h: u32 = query / (params.rows * params.heads_shared) % params.heads;
    let b: u32 = query / (params.rows * params.heads_shared * params.heads);
    let to: u32 = params.dst_batch * b + params.dst_head * h + params.dst_group * g + params.dst_row * row + e;
    //% if NOTHING
    let result: ${unit} = select(sum / all, ${unit}(bitcast<f32>(params.nothing)), most == -3.40282346e38f);
    //% else
    let result: ${unit} = sum / all;
    //% endif
    ${store4("dst", "to", "result") if LANES == 4 else store("dst", "to", "result")}
}
