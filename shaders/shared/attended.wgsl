//# What attention's kernels share: between which keys a work-group's queries attend, where a row of queries reads
//# and writes, and what a score becomes. Needs `b` and `h`, the places of the batch and of the head of keys.
//# Numbers of elements in `params` are in the units that an invocation reads, but those of bias and mask.
    //% if BEGINS
    let begin: i32 = clamp(i32(begins[b * params.begins_batch]), -536870912, 536870912);
    //% elif BEHIND or BEFORE
    let begin: i32 = params.begin;
    //% endif
    //% if ENDS
    let told: u32 = u32(max(i32(ends[b * params.ends_batch]), 0));
    let end: u32 = min(told, params.keys);
    //% else
    let end: u32 = params.keys;
    //% endif
//# Row `row`, which is no further than the last: its place among the keys, and where its bias and mask begin.
//% macro row_of(r, row)
    let member${r}: u32 = ${row} / params.rows;
    let own${r}: u32 = ${row} % params.rows;
    //% if BEHIND or BEFORE
    let place${r}: i32 = begin + i32(own${r});
    //% endif
    //% if BIAS
    let bias${r}: u32 = params.bias_batch * b + params.bias_head * h + params.bias_group * member${r} + params.bias_row * own${r};
    //% endif
    //% if MASK
    let mask${r}: u32 = params.mask_batch * b + params.mask_head * h + params.mask_group * member${r} + params.mask_row * own${r};
    //% endif
//% endmacro
//# The score `s`, a variable, of row `r` and key `key`: bounded, biased and masked.
//% macro scored(s, r, key)
    //% if SOFTCAP
    ${s} = params.softcap * tanh(clamp(${s} / params.softcap, -10.0f, 10.0f));
    //% endif
    //% if BIAS
    ${s} = ${s} + ${load("bias", "bias" ~ r ~ " + params.bias_key * min(" ~ key ~ ", params.keys - 1u)")};
    //% endif
    //% if MASK == 3
    ${s} = ${s} + ${load("mask", "mask" ~ r ~ " + params.mask_key * min(" ~ key ~ ", params.keys - 1u)")};
    //% elif MASK
    ${s} = select(${s}, params.fill, ${load("mask", "mask" ~ r ~ " + params.mask_key * min(" ~ key ~ ", params.keys - 1u)")} ${"==" if MASK == 1 else "!="} 0.0f);
    //% endif
    //% if BEHIND
    ${s} = select(${s}, params.none, i32(${key}) > place${r} + params.behind);
    //% endif
    //% if BEFORE
    ${s} = select(${s}, params.none, i32(${key}) < place${r} - params.before);
    //% endif
    ${s} = select(${s}, params.none, ${key} >= end);
//% endmacro
//# Until which key the queries of a work-group attend. No query attends a key from there on: the rows are of one head, or all of a
//# head are among them.
//% macro attended_until()
    //% if BEHIND
    let place: i32 = begin + i32(select(params.rows - 1u, min(first_row + ROWS - 1u, last_row), params.all_rows == params.rows));
    let attended: u32 = u32(max(place + params.behind + 1, 0));
    let until: u32 = min(end, attended);
    //% else
    let until: u32 = end;
    //% endif
//% endmacro
