//# C = f(alpha * A * B + beta * C): tile[1] rows by tile[0] groups of four columns per invocation,
//# straight from global memory, four terms at a time. k, n and the leading dimensions are whole
//# vec4s and nothing is transposed. Rows and columns beyond the edge are computed from the last
//# one and not stored.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_vec4(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column4: u32 = TILE_X * gid.x;
    let row: u32 = TILE_Y * gid.y;
    if (column4 >= params.n4 || row >= params.m || gid.z >= params.batch) {
        return;
    }
    //% for r in range(tile[1])
    let a${r}: u32 = ${apart("a_batch4", "gid.z")} + params.lda4 * min(row + ${r}u, params.m - 1u);
    //% endfor
    //% for c in range(tile[0])
    let b${c}: u32 = ${apart("b_batch4", "gid.z")} + min(column4 + ${c}u, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var term4: u32 = 0u; term4 < params.k4; term4++) {
        let b_row: u32 = 4u * params.ldb4 * term4;
        //% for c in range(tile[0])
        let v${c}_x: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row")};
        let v${c}_y: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + params.ldb4")};
        let v${c}_z: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + 2u * params.ldb4")};
        let v${c}_w: ${acc4} = ${load4("mat_b", "b" ~ c ~ " + b_row + 3u * params.ldb4")};
        //% endfor
        //% for r in range(tile[1])
        let u${r}: ${acc4} = ${load4("mat_a", "a" ~ r ~ " + term4")};
        //% for c in range(tile[0])
        //% for lane in ["x", "y", "z", "w"]
        sum${r}_${c} = ${fma4(splat("u" ~ r ~ "." ~ lane), "v" ~ c ~ "_" ~ lane, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        let c${r}: u32 = ${apart("c_batch4", "gid.z")} + params.ldc4 * (row + ${r}u) + column4;
        //% for c in range(tile[0])
        if (column4 + ${c}u < params.n4) {
            sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
            //% if BETA
            sum${r}_${c} = sum${r}_${c} + ${splat(param("beta"))} * ${load4("mat_c", "c" ~ r ~ " + " ~ c ~ "u")};
            //% endif
            //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column4 + " ~ c ~ "u", "c" ~ r ~ " + " ~ c ~ "u")
            ${line}
            //% endfor
            ${store4("mat_c", "c" ~ r ~ " + " ~ c ~ "u", "sum" ~ r ~ "_" ~ c)}
        }
        //% endfor
    }
    //% endfor
}
