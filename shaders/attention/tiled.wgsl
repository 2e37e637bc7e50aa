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
    //% for c in range(0, LOADS_Q, 8)
    {
        //% for l in range(c, [LOADS_Q, c + 8] | min)
        let i${l}: u32 = lid + ${l}u * THREADS;
        let row${l}: u32 = min(first_row + i${l} / D, last_row);
        let at${l}: u32 = params.query_batch * b + params.query_head * h + params.query_group * (row${l} / params.rows) + params.query_row * (row${l} % params.rows) + params.query_first;
        let q${l}: vec4<f32> = ${load4("query", "at" ~ l ~ " + i" ~ l ~ " % D")} * params.scale;
        //% endfor
        //% for l in range(c, [LOADS_Q, c + 8] | min)
        //% if l + 1 == LOADS_Q and LOADS_Q * THREADS != ROWS * D
        if (i${l} < ROWS * D) {
            queries[i${l} / D * ROW + i${l} % D] = q${l};
        }
        //% else
        queries[i${l} / D * ROW + i${l} % D] = q${l};
        //% endif
        //% endfor
    }
    //% endfor
    //% for r in range(tile[1])
    let row${r}: u32 = min(first_row + y + ${r}u * WG_Y, last_row);
    ${row_of(r, "row" ~ r) | trim}
    var most${r}: f32 = -3.40282346e38f;
    var sum${r}: f32 = 0.0f;
    //% for c in range(COLUMNS)
    var sums${r}_${c}: vec4<f32> = vec4<f32>(0.0f);
    //% endfor
    //% endfor
    let key_from: u32 = params.key_batch * b + params.key_head * h + params.key_first;
    let value_from: u32 = params.value_batch * b + params.value_head * h + params.value_first;
    ${attended_until() | trim}
    //% macro fetch_keys(from)
    //% for l in range(LOADS_K)
    key_next${l} = ${load4("key", "key_from + params.key_row * min(" ~ from ~ " + (lid + " ~ l ~ "u * THREADS) / D, params.keys - 1u) + (lid + " ~ l ~ "u * THREADS) % D")};
    //% endfor
    //% endmacro
    //% macro stage_keys()
    //% for l in range(LOADS_K)
    //% set ragged = l + 1 == LOADS_K and LOADS_K * THREADS != KEYS * D
    let key_number${l}: u32 = (lid + ${l}u * THREADS) / D;
    //% if ragged
    if (key_number${l} < KEYS) {
        staged[(key_number${l} % 4u * KEYS4 + key_number${l} / 4u) * ROW + (lid + ${l}u * THREADS) % D] = key_next${l};
    }
    //% else
    staged[(key_number${l} % 4u * KEYS4 + key_number${l} / 4u) * ROW + (lid + ${l}u * THREADS) % D] = key_next${l};
    //% endif
    //% endfor
    //% endmacro
    //% for l in range(LOADS_K)
    var key_next${l}: vec4<f32>;
    //% endfor
    ${fetch_keys("0u") | trim}
    {
        ${stage_keys() | trim | indent(4)}
    }
    ${barrier};
    for (var first: u32 = 0u; first < until; first += KEYS) {
        //% for r in range(tile[1])
        //% for c in range(keys)
        var s${r}_${c}: f32 = 0.0f;
        //% endfor
        //% endfor
        //% set unrolled = 4 if D % 4 == 0 else (2 if D % 2 == 0 else 1)
        for (var d: u32 = 0u; d < D; d += ${unrolled}u) {
            //% for u in range(unrolled)
            //% for r in range(tile[1])
            let q${u}_${r}: vec4<f32> = queries[(y + ${r}u * WG_Y) * ROW + d + ${u}u];
            //% endfor
            //% for c in range(keys)
            let k${u}_${c}: vec4<f32> = staged[(${c % 4}u * KEYS4 + x + ${c // 4}u * WG_X) * ROW + d + ${u}u];
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            //% for r in range(tile[1])
            //% for c in range(keys)
            s${r}_${c} = fma(q${u}_${r}.${lane}, k${u}_${c}.${lane}, s${r}_${c});
            //% endfor
            //% endfor
            //% endfor
            //% endfor
        }
        //% for l in range(LOADS_V)
        let value_number${l}: u32 = first + (lid + ${l}u * THREADS) / E;
        let value_next${l}: vec4<f32> = ${load4("value", "value_from + params.value_row * min(value_number" ~ l ~ ", params.keys - 1u) + (lid + " ~ l ~ "u * THREADS) % E")};
        //% endfor
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
        //% for l in range(LOADS_V)
        //% set ragged = l + 1 == LOADS_V and LOADS_V * THREADS != KEYS * E
        //% if ragged
        if (lid + ${l}u * THREADS < KEYS * E) {
            staged[lid + ${l}u * THREADS] = select(vec4<f32>(0.0f), value_next${l}, value_number${l} < end);
        }
        //% else
        staged[lid + ${l}u * THREADS] = select(vec4<f32>(0.0f), value_next${l}, value_number${l} < end);
        //% endif
        //% endfor
        ${barrier};
        ${fetch_keys("first + KEYS") | trim | indent(4)}
        //% set unrolled = 2 if KEYS4 % 2 == 0 else 1
        for (var k: u32 = 0u; k < KEYS4; k += ${unrolled}u) {
            //% for u in range(unrolled)
            //% for r in range(tile[1])
            let p${u}_${r}: vec4<f32> = shares[(y + ${r}u * WG_Y) * SHARES_ROW + k + ${u}u];
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            //% set i = loop.index0
            //% for c in range(COLUMNS)
            let v${u}_${i}_${c}: vec4<f32> = staged[(4u * (k + ${u}u) + ${i}u) * E + ${"x + " ~ c ~ "u * WG_X" if WHOLE else "min(x + " ~ c ~ "u * WG_X, E - 1u)"}];
            //% endfor
            //% for r in range(tile[1])
            //% for c in range(COLUMNS)
            sums${r}_${c} = fma(vec4<f32>(p${u}_${r}.${lane}), v${u}_${i}_${c}, sums${r}_${c});
            //% endfor
            //% endfor
            //% endfor
            //% endfor
        }
        ${barrier};
        {
            ${stage_keys() | trim | indent(8)}
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
