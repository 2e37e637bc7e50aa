//# softmax(scale Q K^T + bias) V without a matrix of scores in memory: a work-group has ROWS queries of a head of
//# keys and takes KEYS keys at a time. An invocation has the scores of TILE_Y queries and TILE_X groups of four
//# keys, then the sums of the same queries and every WG_X-th vec4 of features. Keys, then values of a step lie in
//# `staged`; a key has the place (its number) % 4 * KEYS4 + (its number) / 4, so that invocations side by side read
//# keys side by side, an odd number of vec4s apart. The largest score of a query so far is subtracted from the
//# scores; where it grows, what was summed is made smaller by the exponential of the difference.
${constants}

${interface}
var<workgroup> queries: array<vec4<f32>, QUERIES>;
var<workgroup> staged: array<vec4<f32>, STAGED>;
var<workgroup> shares: array<vec4<f32>, SHARES>;
var<workgroup> largest: array<vec4<f32>, LARGEST>;

//% set keys = 4 * tile[0]
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn attention_tiled(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let x: u32 = lid % WG_X;
    let y: u32 = lid / WG_X;
    let b: u32 = group.z / params.heads;
    let h: u32 = group.z % params.heads;
    let first_row: u32 = ROWS * group.y;
    let last_row: u32 = params.all_rows - 1u;
    //% include "shared/attended"
    for (var i: u32 = lid; i < ROWS * D; i += THREADS) {
        let row: u32 = min(first_row + i / D, last_row);
        let at: u32 = params.query_batch * b + params.query_head * h + params.query_group * (row / params.rows) + params.query_row * (row % params.rows) + params.query_first;
        queries[i / D * ROW + i % D] = ${load4("query", "at + i % D")} * params.scale;
    }
    //% for r in range(tile[1])
    let row${r}: u32 = min(first_row + y + ${r}u * WG_Y, last_row);
    ${row_of(r, "row" ~ r) | trim}
    var most${r}: f32 = -3.4028235e38f;
    var sum${r}: f32 = 0.0f;
    //% for c in range(COLUMNS)
    var sums${r}_${c}: vec4<f32> = vec4<f32>(0.0f);
    //% endfor
    //% endfor
    let key_from: u32 = params.key_batch * b + params.key_head * h + params.key_first;
    let value_from: u32 = params.value_batch * b + params.value_head * h + params.value_first;
    //% if BEHIND
//# No query of the work-group attends a key from here on: its rows are of one head, or all of a head are among them.
    let place: i32 = begin + i32(select(params.rows - 1u, min(first_row + ROWS - 1u, last_row), params.all_rows == params.rows));
    let attended: u32 = u32(max(place + params.behind + 1, 0));
    let until: u32 = min(end, attended);
    //% else
    let until: u32 = end;
    //% endif
    for (var first: u32 = 0u; first < until; first += KEYS) {
        for (var i: u32 = lid; i < KEYS * D; i += THREADS) {
            let number: u32 = i / D;
            staged[(number % 4u * KEYS4 + number / 4u) * ROW + i % D] = ${load4("key", "key_from + params.key_row * min(first + number, params.keys - 1u) + i % D")};
        }
        ${barrier};
        //% for r in range(tile[1])
        //% for c in range(keys)
        var s${r}_${c}: f32 = 0.0f;
        //% endfor
        //% endfor
        for (var d: u32 = 0u; d < D; d += 1u) {
            //% for r in range(tile[1])
            let q${r}: vec4<f32> = queries[(y + ${r}u * WG_Y) * ROW + d];
            //% endfor
            //% for c in range(keys)
            let k${c}: vec4<f32> = staged[(${c % 4}u * KEYS4 + x + ${c // 4}u * WG_X) * ROW + d];
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            //% for r in range(tile[1])
            //% for c in range(keys)
            s${r}_${c} = fma(q${r}.${lane}, k${c}.${lane}, s${r}_${c});
            //% endfor
            //% endfor
            //% endfor
        }
        //% for r in range(tile[1])
        //% for c in range(keys)
        ${scored("s" ~ r ~ "_" ~ c, r, "(first + 4u * (x + " ~ (c // 4) ~ "u * WG_X) + " ~ (c % 4) ~ "u)") | trim | indent(4)}
        //% endfor
        var new${r}: f32 = s${r}_0;
        //% for c in range(1, keys)
        new${r} = max(new${r}, s${r}_${c});
        //% endfor
        ${set_lane("largest", "(y + " ~ r ~ "u * WG_Y) * (WG_X / 4u) + x / 4u", "x % 4u", "new" ~ r)}
        //% endfor
        ${barrier};
        //% for r in range(tile[1])
        var all${r}: vec4<f32> = largest[(y + ${r}u * WG_Y) * (WG_X / 4u)];
        for (var i: u32 = 1u; i < WG_X / 4u; i += 1u) {
            all${r} = max(all${r}, largest[(y + ${r}u * WG_Y) * (WG_X / 4u) + i]);
        }
        new${r} = max(most${r}, max(max(all${r}.x, all${r}.y), max(all${r}.z, all${r}.w)));
        let smaller${r}: f32 = exp(most${r} - new${r});
        most${r} = new${r};
        sum${r} = sum${r} * smaller${r};
        //% for c in range(COLUMNS)
        sums${r}_${c} = sums${r}_${c} * smaller${r};
        //% endfor
        //% for c in range(keys)
        s${r}_${c} = exp(s${r}_${c} - new${r});
        sum${r} = sum${r} + s${r}_${c};
        //% endfor
        //% for g in range(tile[0])
        shares[(y + ${r}u * WG_Y) * SHARES_ROW + x + ${g}u * WG_X] = vec4<f32>(s${r}_${4 * g}, s${r}_${4 * g + 1}, s${r}_${4 * g + 2}, s${r}_${4 * g + 3});
        //% endfor
        //% endfor
        for (var i: u32 = lid; i < KEYS * E; i += THREADS) {
            let number: u32 = first + i / E;
            let value: vec4<f32> = ${load4("value", "value_from + params.value_row * min(number, params.keys - 1u) + i % E")};
            staged[i] = select(vec4<f32>(0.0f), value, number < end);
        }
        ${barrier};
        for (var k: u32 = 0u; k < KEYS4; k += 1u) {
            //% for r in range(tile[1])
            let p${r}: vec4<f32> = shares[(y + ${r}u * WG_Y) * SHARES_ROW + k];
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            //% set i = loop.index0
            //% for c in range(COLUMNS)
            let v${i}_${c}: vec4<f32> = staged[(4u * k + ${i}u) * E + min(x + ${c}u * WG_X, E - 1u)];
            //% endfor
            //% for r in range(tile[1])
            //% for c in range(COLUMNS)
            sums${r}_${c} = fma(vec4<f32>(p${r}.${lane}), v${i}_${c}, sums${r}_${c});
            //% endfor
            //% endfor
            //% endfor
        }
        ${barrier};
    }
    //% for r in range(tile[1])
    ${set_lane("largest", "(y + " ~ r ~ "u * WG_Y) * (WG_X / 4u) + x / 4u", "x % 4u", "sum" ~ r)}
    //% endfor
    ${barrier};
    //% for r in range(tile[1])
    var all_sums${r}: vec4<f32> = largest[(y + ${r}u * WG_Y) * (WG_X / 4u)];
    for (var i: u32 = 1u; i < WG_X / 4u; i += 1u) {
        all_sums${r} = all_sums${r} + largest[(y + ${r}u * WG_Y) * (WG_X / 4u) + i];
    }
    sum${r} = (all_sums${r}.x + all_sums${r}.y) + (all_sums${r}.z + all_sums${r}.w);
    if (first_row + y + ${r}u * WG_Y <= last_row) {
        let to${r}: u32 = params.dst_batch * b + params.dst_head * h + params.dst_group * member${r} + params.dst_row * own${r} + params.dst_first;
        //% for c in range(COLUMNS)
        if (x + ${c}u * WG_X < E) {
            //% if ZERO
            let result${r}_${c}: vec4<f32> = select(sums${r}_${c} / sum${r}, vec4<f32>(0.0f), sum${r} == 0.0f);
            //% else
            let result${r}_${c}: vec4<f32> = sums${r}_${c} / sum${r};
            //% endif
            ${store4("dst", "to" ~ r ~ " + x + " ~ c ~ "u * WG_X", "result" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
