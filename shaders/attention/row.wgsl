//# softmax(scale Q K^T + bias) V of few queries: a work-group of SIZE invocations has ROWS queries of a head of
//# keys. Of SIZE keys at a time an invocation has the scores with one; then SLICES invocations share the keys of a
//# unit of features. A unit is a vec4 where rows are of whole ones (LANES), else a scalar. Of keys in PARTS a
//# work-group has one part, and writes the logarithm of the sum of its exponentials behind each row.
${constants}

${interface}
//% set unit = "vec4<f32>" if LANES == 4 else "f32"
//# Of each query, what `shares` has of every sixteenth invocation becomes one number of `partial`.
//% macro columns(before, behind)
    if (lid < 16u * ROWS) {
        let line: u32 = lid / 16u * SIZE + lid % 16u;
        var part: f32 = shares[line];
        for (var i: u32 = 16u; i < SIZE; i += 16u) {
            part = ${before}shares[line + i]${behind};
        }
        partial[lid] = part;
    }
//% endmacro
//% macro read(name, at)
${load4(name, at) if LANES == 4 else load(name, at)}
//% endmacro
var<workgroup> queries: array<${unit}, QUERIES>;
var<workgroup> shares: array<f32, SHARES>;
var<workgroup> partial: array<f32, PARTIAL>;
var<workgroup> joined: array<${unit}, JOINED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn attention_row(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let b: u32 = group.z / params.heads;
    let h: u32 = group.z % params.heads;
    //% if PARTS
    let part: u32 = group.x;
    //% endif
    let first_row: u32 = ROWS * group.y;
    let last_row: u32 = params.all_rows - 1u;
    //% include "shared/attended"
    for (var i: u32 = lid; i < ROWS * D; i += SIZE) {
        let row: u32 = min(first_row + i / D, last_row);
        let at: u32 = params.query_batch * b + params.query_head * h + params.query_group * (row / params.rows) + params.query_row * (row % params.rows) + params.query_first;
        queries[i] = ${read("query", "at + i % D") | trim} * params.scale;
    }
    //% for r in range(tile[1])
    let row${r}: u32 = min(first_row + ${r}u, last_row);
    ${row_of(r, "row" ~ r) | trim}
    var most${r}: f32 = -3.40282346e38f;
    var sum${r}: f32 = 0.0f;
    //% for c in range(COLUMNS)
    var sums${r}_${c}: ${unit} = ${unit}(0.0f);
    //% endfor
    //% endfor
    let key_from: u32 = params.key_batch * b + params.key_head * h + params.key_first;
    let value_from: u32 = params.value_batch * b + params.value_head * h + params.value_first;
    let column: u32 = lid % WIDE;
    let slice: u32 = lid / WIDE;
    //% if BEHIND
    //% for r in range(1, tile[1])
    let farthest${r}: u32 = max(${"own0" if r == 1 else "farthest" ~ (r - 1)}, own${r});
    //% endfor
    let place: i32 = begin + i32(${"own0" if tile[1] == 1 else "farthest" ~ (tile[1] - 1)});
    let attended: u32 = u32(max(place + params.behind + 1, 0));
    let until: u32 = min(end, attended);
    //% else
    let until: u32 = end;
    //% endif
    //% if PARTS
    let start: u32 = min(part * params.span, until);
    let count_all: u32 = min(until - start, params.span);
    //% else
    let count_all: u32 = until;
    //% endif
    ${barrier};
    for (var done: u32 = 0u; done < count_all; done += SIZE) {
        let first: u32 = ${"start + done" if PARTS else "done"};
        let key_at: u32 = key_from + params.key_row * min(first + lid, params.keys - 1u);
        //% for r in range(tile[1])
        var s${r}: f32 = 0.0f;
        //% endfor
        //% for step in [AHEAD, 1]
        //% set begin = D // AHEAD * AHEAD if loop.index0 else 0
        //% set stop = D if loop.index0 else D // AHEAD * AHEAD
        //% if begin < stop
        for (var d: u32 = ${begin}u; d < ${stop}u; d += ${step}u) {
            //% for u in range(step)
            let k${u}: ${unit} = ${read("key", "key_at + d + " ~ u ~ "u") | trim};
            //% endfor
            //% for u in range(step)
            //% for r in range(tile[1])
            let q${u}_${r}: ${unit} = queries[${r}u * D + d + ${u}u];
            //% if LANES == 4
            //% for lane in ["x", "y", "z", "w"]
            s${r} = fma(q${u}_${r}.${lane}, k${u}.${lane}, s${r});
            //% endfor
            //% else
            s${r} = fma(q${u}_${r}, k${u}, s${r});
            //% endif
            //% endfor
            //% endfor
        }
        //% endif
        //% endfor
        //% for r in range(tile[1])
        ${scored("s" ~ r, r, "(first + lid)") | trim | indent(4)}
        //% if PARTS
        s${r} = select(s${r}, params.none, done + lid >= count_all);
        //% endif
        shares[${r}u * SIZE + lid] = s${r};
        //% endfor
        ${barrier};
        ${columns("max(part, ", ")") | trim | indent(4)}
        ${barrier};
        //% for r in range(tile[1])
        var new${r}: f32 = most${r};
        for (var i: u32 = 0u; i < 16u; i += 1u) {
            new${r} = max(new${r}, partial[${16 * r}u + i]);
        }
        let smaller${r}: f32 = exp(most${r} - new${r});
        most${r} = new${r};
        s${r} = exp(s${r} - new${r});
        sum${r} = sum${r} * smaller${r} + s${r};
        shares[${r}u * SIZE + lid] = s${r};
        //% for c in range(COLUMNS)
        sums${r}_${c} = sums${r}_${c} * smaller${r};
        //% endfor
        //% endfor
        ${barrier};
        let count: u32 = min(SIZE, count_all - done);
        if (slice < SLICES) {
            //% set loads = LOADS if LOADS is defined else 8
            //% set together = loads // COLUMNS if COLUMNS < loads else 1
            for (var j: u32 = slice; j < count; j += ${together}u * SLICES) {
                //% for u in range(together)
                let j${u}: u32 = j + ${u}u * SLICES;
                let value_at${u}: u32 = value_from + params.value_row * (first + min(j${u}, count - 1u));
                //% for c in range(COLUMNS)
                let v${u}_${c}: ${unit} = ${read("value", "value_at" ~ u ~ " + min(column + " ~ c ~ "u * WIDE, E - 1u)") | trim};
                //% endfor
                //% endfor
                //% for u in range(together)
                if (j${u} < count) {
                    //% for r in range(tile[1])
                    let p${u}_${r}: ${unit} = ${unit}(shares[${r}u * SIZE + j${u}]);
                    //% for c in range(COLUMNS)
                    sums${r}_${c} = fma(p${u}_${r}, v${u}_${c}, sums${r}_${c});
                    //% endfor
                    //% endfor
                }
                //% endfor
            }
        }
        ${barrier};
    }
    //% for r in range(tile[1])
    shares[${r}u * SIZE + lid] = sum${r};
    //% endfor
    ${barrier};
    ${columns("(part + ", ")") | trim}
    ${barrier};
    //% for r in range(tile[1])
    sum${r} = 0.0f;
    for (var i: u32 = 0u; i < 16u; i += 1u) {
        sum${r} = sum${r} + partial[${16 * r}u + i];
    }
    let to${r}: u32 = ${"params.dst_part * part + " if PARTS else ""}params.dst_batch * b + params.dst_head * h + params.dst_group * member${r} + params.dst_row * own${r} + params.dst_first;
    //% for c in range(COLUMNS)
    //% if SLICES > 1
    if (slice > 0u && slice < SLICES) {
        joined[(slice - 1u) * WIDE + column] = sums${r}_${c};
    }
    ${barrier};
    if (slice == 0u) {
        for (var i: u32 = 0u; i < SLICES - 1u; i += 1u) {
            sums${r}_${c} = sums${r}_${c} + joined[i * WIDE + column];
        }
    }
    ${barrier};
    //% endif
    if (slice == 0u && first_row + ${r}u <= last_row && column + ${c}u * WIDE < E) {
        //% if ZERO
        let result${r}_${c}: ${unit} = select(sums${r}_${c} / sum${r}, ${unit}(0.0f), sum${r} == 0.0f);
        //% else
        let result${r}_${c}: ${unit} = sums${r}_${c} / sum${r};
        //% endif
        //% if LANES == 4
        ${store4("dst", "to" ~ r ~ " + column + " ~ c ~ "u * WIDE", "result" ~ r ~ "_" ~ c)}
        //% else
        ${store("dst", "to" ~ r ~ " + column + " ~ c ~ "u * WIDE", "result" ~ r ~ "_" ~ c)}
        //% endif
    }
    //% endfor
    //% if PARTS
    if (lid == 0u && first_row + ${r}u <= last_row) {
        let all${r}: f32 = select(most${r} + log(sum${r}), most${r}, sum${r} == 0.0f);
        dst[to${r} + E] = ${"vec4<f32>(all" ~ r ~ ", 0.0f, 0.0f, 0.0f)" if LANES == 4 else "all" ~ r};
    }
    //% endif
    //% endfor
}
