//# softmax(scale Q K^T + bias) V of halves with f32 sums, by cooperative matrices: a wave of 32 invocations has
//# TILE_Y times 16 queries of a head of keys, as matrices in its registers. A work-group stages KEYS keys and values
//# at a time; the next ones travel into registers while these are multiplied. A wave passes its scores through
//# `passed`: two invocations have a row, one its even and one its odd vec4s, and write its shares as halves to
//# local memory, where the keys were if there is room. Shares are exponentials of scores less a score of the row that is at most 4
//# less than the largest so far, so that the sums of a row need another scale only when a score exceeds all before by more: then
//# its wave says so in the vec4s behind the first row of `passed`, and the sums of all waves pass through `passed`, KEYS columns at
//# a time. In the first step there are none. Shares are 1024 times themselves, which the sum of shares is
//# as well: a half keeps one down to 2^-24, and one of e^4 is below 65504. Keys beyond the last are zeros without a share.
//# Solo: OpenCL C has no cooperative matrices.
enable wgpu_cooperative_matrix;
${constants}

${interface}
var<workgroup> staged: array<vec4<f16>, STAGED>;
var<workgroup> passed: array<vec4<f32>, PASSED>;
//% if SHARES
var<workgroup> shares: array<vec4<f16>, SHARES>;
//% endif
//% set shares = "shares" if SHARES else "staged"

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn attention_matrix(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let wave: u32 = lid / 32u;
    let lane: u32 = lid % 32u;
    let side: u32 = lane % 2u;
    let b: u32 = group.z / params.heads;
    let h: u32 = group.z % params.heads;
    let first_row: u32 = ROWS * group.x;
    let last_row: u32 = params.all_rows - 1u;
    //% include "shared/attended"
    //% for l in range(LOADS_Q)
    //% if l + 1 == LOADS_Q and LOADS_Q * THREADS != ROWS * 4 * D16
    if (lid + ${l}u * THREADS < ROWS * ${4 * D16}u) {
    //% else
    {
    //% endif
        let unit: u32 = (lid + ${l}u * THREADS) % ${4 * D16}u;
        let number: u32 = (lid + ${l}u * THREADS) / ${4 * D16}u;
        let row: u32 = min(first_row + number, last_row);
        let at: u32 = params.query_batch * b + params.query_head * h + params.query_group * (row / params.rows) + params.query_row * (row % params.rows) + params.query_first;
        //% if D4 == 4 * D16
        staged[KEY_ROW * number + unit] = query[at + unit];
        //% else
        staged[KEY_ROW * number + unit] = select(vec4<f16>(), query[at + min(unit, ${D4 - 1}u)], unit < ${D4}u);
        //% endif
    }
    //% endfor
    ${barrier};
    //% for r in range(tile[1])
    //% for t in range(D16)
    let q${r}_${t}: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&staged[16u * (TILE_Y * wave + ${r}u) * KEY_ROW + ${4 * t}u], KEY_ROW);
    //% endfor
    let row${r}: u32 = min(first_row + 16u * (TILE_Y * wave + ${r}u) + lane / 2u, last_row);
    ${row_of(r, "row" ~ r) | trim}
    var most${r}: f32 = -3.40282346e38f;
    var sum${r}: f32 = 0.0f;
    //% for c in range(E16)
    var out${r}_${c}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
    //% endfor
    //% endfor
    let key_from: u32 = params.key_batch * b + params.key_head * h + params.key_first;
    let value_from: u32 = params.value_batch * b + params.value_head * h + params.value_first;
    ${attended_until() | trim}
    //% set operands = [["key", D4, 4 * D16, "KEY_ROW", LOADS_K, "0u"], ["value", E4, 4 * E16, "VALUE_ROW", LOADS_V, "KEYS * KEY_ROW"]]
    //% macro fetch(first)
    //% for what, units, whole, row, loads, from in operands
    //% for l in range(loads)
    {
        let unit: u32 = (lid + ${l}u * THREADS) % ${whole}u;
        let number: u32 = ${first} + (lid + ${l}u * THREADS) / ${whole}u;
        let read: vec4<f16> = ${what}[${what}_from + params.${what}_row * min(number, params.keys - 1u) + ${"unit" if units == whole else "min(unit, " ~ (units - 1) ~ "u)"}];
        ${what}_next${l} = select(vec4<f16>(), read, number < end${"" if units == whole else " && unit < " ~ units ~ "u"});
    }
    //% endfor
    //% endfor
    //% endmacro
    //% for what, units, whole, row, loads, from in operands
    //% for l in range(loads)
    var ${what}_next${l}: vec4<f16>;
    //% endfor
    //% endfor
    ${fetch("0u") | trim}
    let passed_at: u32 = PASSED_ROW * (16u * TILE_Y * wave + lane / 2u) + side;
    let shares_at: u32 = SHARES_ROW * (16u * TILE_Y * wave + lane / 2u) + side;
    ${barrier};
    for (var first: u32 = 0u; first < until; first += KEYS) {
        //% for what, units, whole, row, loads, from in operands
        //% for l in range(loads)
        //% if l + 1 == loads and loads * THREADS != KEYS * whole
        if (lid + ${l}u * THREADS < KEYS * ${whole}u) {
            staged[${from} + ${row} * ((lid + ${l}u * THREADS) / ${whole}u) + (lid + ${l}u * THREADS) % ${whole}u] = ${what}_next${l};
        }
        //% else
        staged[${from} + ${row} * ((lid + ${l}u * THREADS) / ${whole}u) + (lid + ${l}u * THREADS) % ${whole}u] = ${what}_next${l};
        //% endif
        //% endfor
        //% endfor
        ${barrier};
        ${fetch("(first + KEYS)") | trim | indent(4)}
        //% for c in range(tile[0])
        {
            //% for t in range(D16)
            let k${t}: coop_mat16x16<f16, B> = coopLoad<coop_mat16x16<f16, B>>(&staged[${16 * c}u * KEY_ROW + ${4 * t}u], KEY_ROW);
            //% endfor
            //% for r in range(tile[1])
            var score${r}: coop_mat16x16<f32, C> = coop_mat16x16<f32, C>();
            //% for t in range(D16)
            score${r} = coopMultiplyAdd(q${r}_${t}, k${t}, score${r});
            //% endfor
            coopStoreT(score${r}, &passed[PASSED_ROW * (16u * (TILE_Y * wave + ${r}u)) + ${4 * c}u], PASSED_ROW);
            //% endfor
        }
        //% endfor
        ${barrier};
        //% for r in range(tile[1])
        //% for c in range(2 * tile[0])
        var s${r}_${c}: vec4<f32> = passed[passed_at + ${16 * r}u * PASSED_ROW + ${2 * c}u] * params.scale;
        let key${r}_${c}: u32 = first + ${8 * c}u + 4u * side;
        //% for lane in range(4)
        {
            var s: f32 = s${r}_${c}.${["x", "y", "z", "w"][lane]};
            ${scored("s", r, "(key" ~ r ~ "_" ~ c ~ " + " ~ lane ~ "u)") | trim | indent(8)}
            s${r}_${c}.${["x", "y", "z", "w"][lane]} = s;
        }
        //% endfor
        //% endfor
        var top${r}: vec4<f32> = s${r}_0;
        //% for c in range(1, 2 * tile[0])
        top${r} = max(top${r}, s${r}_${c});
        //% endfor
        var new${r}: f32 = max(max(top${r}.x, top${r}.y), max(top${r}.z, top${r}.w));
        new${r} = max(new${r}, subgroupShuffleXor(new${r}, 1u));
        //# Not compared with the sum of `most` and 4, which is rounded up where scores are large.
        new${r} = select(most${r}, new${r}, new${r} - most${r} > 4.0f);
        //% endfor
        let grew: bool = subgroupAny(${"new0 != most0" if tile[1] == 1 else "new0 != most0 || new1 != most1"});
        if (lane == 0u) {
            passed[${4 * tile[0]}u + wave / 4u][wave % 4u] = select(0.0f, 1.0f, grew && first != 0u);
        }
        //% for r in range(tile[1])
        let smaller${r}: f32 = exp(most${r} - new${r});
        most${r} = new${r};
        sum${r} = sum${r} * smaller${r};
        //% for c in range(2 * tile[0])
        s${r}_${c} = exp(s${r}_${c} - new${r}) * 1024.0f;
        sum${r} = sum${r} + ((s${r}_${c}.x + s${r}_${c}.y) + (s${r}_${c}.z + s${r}_${c}.w));
        ${shares}[shares_at + ${16 * r}u * SHARES_ROW + ${2 * c}u] = vec4<f16>(s${r}_${c});
        //% endfor
        //% endfor
        let grown: vec4<f32> = workgroupUniformLoad(&passed[${4 * tile[0]}u]);
        //% if THREADS > 128
        let grown_too: vec4<f32> = workgroupUniformLoad(&passed[${4 * tile[0] + 1}u]);
        if (any((grown + grown_too) != vec4<f32>(0.0f))) {
        //% elif THREADS == 128
        if (any(grown != vec4<f32>(0.0f))) {
        //% elif THREADS == 64
        if (any(grown.xy != vec2<f32>(0.0f))) {
        //% else
        if (grown.x != 0.0f) {
        //% endif
            //% for from in range(0, E16, tile[0])
            //% for r in range(tile[1])
            //% for c in range(from, [E16, from + tile[0]] | min)
            coopStoreT(out${r}_${c}, &passed[PASSED_ROW * (16u * (TILE_Y * wave + ${r}u)) + ${4 * (c - from)}u], PASSED_ROW);
            //% endfor
            //% endfor
            ${barrier};
            //% for r in range(tile[1])
            //% for c in range(2 * from, [2 * E16, 2 * (from + tile[0])] | min)
            passed[passed_at + ${16 * r}u * PASSED_ROW + ${2 * (c - 2 * from)}u] *= smaller${r};
            //% endfor
            //% endfor
            ${barrier};
            //% for r in range(tile[1])
            //% for c in range(from, [E16, from + tile[0]] | min)
            out${r}_${c} = coopLoadT<coop_mat16x16<f32, C>>(&passed[PASSED_ROW * (16u * (TILE_Y * wave + ${r}u)) + ${4 * (c - from)}u], PASSED_ROW);
            //% endfor
            //% endfor
            ${barrier};
            //% endfor
        }
        //% for k in range(tile[0])
        {
            //% for r in range(tile[1])
            let p${r}: coop_mat16x16<f16, A> = coopLoadT<coop_mat16x16<f16, A>>(&${shares}[SHARES_ROW * (16u * (TILE_Y * wave + ${r}u)) + ${4 * k}u], SHARES_ROW);
            //% endfor
            //% for c in range(E16)
            let v${c}: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&staged[KEYS * KEY_ROW + ${16 * k}u * VALUE_ROW + ${4 * c}u], VALUE_ROW);
            //% for r in range(tile[1])
            out${r}_${c} = coopMultiplyAdd(p${r}, v${c}, out${r}_${c});
            //% endfor
            //% endfor
        }
        //% endfor
        ${barrier};
    }
    //% for r in range(tile[1])
    let all${r}: f32 = sum${r} + subgroupShuffleXor(sum${r}, 1u);
    let to${r}: u32 = params.dst_batch * b + params.dst_head * h + params.dst_group * member${r} + params.dst_row * own${r} + params.dst_first + side;
    //% endfor
    //% for from in range(0, E16, tile[0])
    //% for r in range(tile[1])
    //% for c in range(from, [E16, from + tile[0]] | min)
    coopStoreT(out${r}_${c}, &passed[PASSED_ROW * (16u * (TILE_Y * wave + ${r}u)) + ${4 * (c - from)}u], PASSED_ROW);
    //% endfor
    //% endfor
    ${barrier};
    //% for r in range(tile[1])
    if (first_row + 16u * (TILE_Y * wave + ${r}u) + lane / 2u <= last_row) {
        //% for c in range(2 * from, [2 * E16, 2 * (from + tile[0])] | min)
        //% if 2 * c < E4
        //% if 2 * c + 1 == E4
        if (side == 0u) {
        //% else
        {
        //% endif
            let sums: vec4<f32> = passed[passed_at + ${16 * r}u * PASSED_ROW + ${2 * (c - 2 * from)}u];
            //% if ZERO
            let result: vec4<f32> = select(sums / all${r}, vec4<f32>(0.0f), all${r} == 0.0f);
            //% else
            let result: vec4<f32> = sums / all${r};
            //% endif
            dst[to${r} + ${2 * c}u] = vec4<f16>(result);
        }
        //% endif
        //% endfor
    }
    //% endfor
    ${barrier};
    //% endfor
}
