//# y = x * f(sum_r w[c,r] g(sum_k v[r,k] p[k] + d[r]) + b[c]) + z: a work-group of SIZE invocations computes the
//# factor of its slice, and then PIXELS pixels of the map in each invocation. The sums g(..), of which each
//# work-group needs all, are formed four at a time in SPLITS parts, which are then added up. Lanes of p, and sums,
//# beyond the last have zero weights; pixels beyond the last are not stored. Without FIRST the sums g(..) are given in
//# the place of p; of MANY, each invocation adds up those that it has first.
${constants}

${interface}
//% if FIRST
var<workgroup> parts: array<${acc4}, PARTS>;
//% endif
//% if MANY
var<workgroup> partial: array<${acc4}, SIZE>;
//% else
var<workgroup> hidden: array<${acc4}, MOST_HIDDEN>;
//% endif

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gate_maps(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let slice: u32 = group.y % params.slices;
    let n: u32 = group.y / params.slices;
    //% if FIRST
    for (var t: u32 = lid.x; t < params.hidden_slices * SPLITS; t += SIZE) {
        let row: u32 = t / SPLITS;
        var sum: ${acc4} = ${zero4};
        for (var k: u32 = t % SPLITS; k < params.pooled_slices; k += SPLITS) {
            let v: ${acc4} = ${load4("src", "n * params.pooled_slices + k")};
            let w: u32 = 4u * (row * params.pooled_slices + k);
            //% for lane in ["x", "y", "z", "w"]
            sum = ${fma4(load4("window", "w + " ~ loop.index0 ~ "u"), splat("v." ~ lane), "sum")};
            //% endfor
        }
        parts[t] = sum;
    }
    ${barrier};
    //% endif
    //% if MANY
    var part: ${acc4} = ${zero4};
    //% endif
    for (var row: u32 = lid.x; row < params.hidden_slices; row += SIZE) {
        //% if FIRST
        var mid: ${acc4} = parts[row * SPLITS];
        for (var q: u32 = 1u; q < SPLITS; q++) {
            mid = mid + parts[row * SPLITS + q];
        }
        //% for line in between("mid", "row")
        ${line}
        //% endfor
        //% else
        let mid: ${acc4} = ${load4("src", "n * params.hidden_slices + row")};
        //% endif
        let w: u32 = 4u * (slice * params.hidden_slices + row);
        //% if not MANY
        var part: ${acc4} = ${zero4};
        //% endif
        //% for lane in ["x", "y", "z", "w"]
        part = ${fma4(load4("weights", "w + " ~ loop.index0 ~ "u"), splat("mid." ~ lane), "part")};
        //% endfor
        //% if not MANY
        hidden[row] = part;
        //% endif
    }
    //% if MANY
    //% include "shared/group_sum"
    var factor: ${acc4} = part;
    //% else
    ${barrier};
    var factor: ${acc4} = hidden[0];
    for (var row: u32 = 1u; row < params.hidden_slices; row++) {
        factor = factor + hidden[row];
    }
    //% endif
    //% for line in epilogue("factor", "slice", "0u")
    ${line}
    //% endfor
    let first: u32 = params.plane * (slice + params.slices * n);
    let begin: u32 = group.x * SIZE * PIXELS + lid.x;
    //% for t in range(PIXELS)
    if (begin + SIZE * ${t}u < params.plane) {
        let at${t}: u32 = first + begin + SIZE * ${t}u;
        //% if RESIDUAL
        let y${t}: ${acc4} = ${fma4(load4("arg0", "at" ~ t), "factor", load4("residual", "at" ~ t))};
        //% else
        let y${t}: ${acc4} = ${load4("arg0", "at" ~ t)} * factor;
        //% endif
        ${store4("dst", "at" ~ t, "y" ~ t)}
    }
    //% endfor
}
