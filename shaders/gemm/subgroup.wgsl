//# C = f(alpha * A * B + beta * C): tile[1] rows by tile[0] groups of four columns per invocation, the groups
//# WG_X apart. A work-group is a row of invocations that multiply the same rows of A, and nothing else is
//# asked of how invocations fall into subgroups: each lane of a subgroup loads another four terms of A, and
//# the lanes hear of each other's by a shuffle. Any size of subgroup will do. One with lanes missing cannot
//# ask them: it throws its sums away and reads all of A for itself, which needs no uniform control flow.
//# k, n and the leading dimensions are whole vec4s and nothing is transposed. Rows and columns beyond the
//# edge are computed from the last one and not stored: no invocation may return before the last shuffle.
//# Values travel as f32, because not every device shuffles halves.
//# Solo: no OpenCL driver at hand lists cl_khr_subgroups, so that its OpenCL C could not be tested.
${constants}

${interface}
//% set narrow = acc == "f16"
//% macro multiply(at4)
//% for c in range(tile[0])
let v${c}_x: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row")};
let v${c}_y: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + params.ldb4")};
let v${c}_z: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + 2u * params.ldb4")};
let v${c}_w: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + 3u * params.ldb4")};
//% endfor
//% for r in range(tile[1])
//% if at4
let u${r}: ${acc4} = ${load4("mat_a", "a" ~ r ~ " + " ~ at4)};
//% elif narrow
let u${r}: ${acc4} = ${acc4}(subgroupShuffle(own${r}, other));
//% else
let u${r}: ${acc4} = subgroupShuffle(own${r}, other);
//% endif
//% for c in range(tile[0])
//% for lane in ["x", "y", "z", "w"]
sum${r}_${c} = ${fma4(splat("u" ~ r ~ "." ~ lane), "v" ~ c ~ "_" ~ lane, "sum" ~ r ~ "_" ~ c)};
//% endfor
//% endfor
//% endfor
//% endmacro
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_subgroup(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    let column4: u32 = TILE_X * WG_X * group.x + lid;
    let row: u32 = TILE_Y * group.y;
    let present: u32 = subgroupAdd(1u);
    //% for r in range(tile[1])
    let a${r}: u32 = ${apart("a_batch4", "group.z")} + params.lda4 * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(tile[0])
    let b${c}: u32 = ${apart("b_batch4", "group.z")} + min(column4 + ${c}u * WG_X, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var done4: u32 = 0u; done4 < params.k4; done4 += lanes) {
        let mine4: u32 = min(done4 + lane, params.k4 - 1u);
        //% for r in range(tile[1])
        let own${r}: vec4<f32> = ${"vec4<f32>(" if narrow else ""}${load4("mat_a", "a" ~ r ~ " + mine4")}${")" if narrow else ""};
        //% endfor
        let terms4: u32 = min(lanes, params.k4 - done4);
        for (var other: u32 = 0u; other < terms4; other++) {
            let b_row: u32 = 4u * params.ldb4 * (done4 + other);
            ${multiply("") | trim | indent(12)}
        }
    }
    if (present != lanes) {
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        sum${r}_${c} = ${zero4};
        //% endfor
        //% endfor
        for (var term4: u32 = 0u; term4 < params.k4; term4++) {
            let b_row: u32 = 4u * params.ldb4 * term4;
            ${multiply("term4") | trim | indent(12)}
        }
    }
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        let c${r}: u32 = ${apart("c_batch4", "group.z")} + params.ldc4 * (row + ${r}u) + column4;
        //% for c in range(tile[0])
        if (column4 + ${c}u * WG_X < params.n4) {
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% if BETA
            sum${r}_${c} = sum${r}_${c} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ " + " ~ c ~ "u * WG_X")};
            //% endif
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + " ~ c ~ "u * WG_X", "c" ~ r ~ " + " ~ c ~ "u * WG_X")
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ " + " ~ c ~ "u * WG_X", "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
