//# C = f(alpha * op(A) * B + beta * C): tile[1] rows by tile[0] groups of four columns per
//# invocation, B as an RGBA image of ceil(n / 4) x (k * batch) pixels, so that it comes through the
//# texture cache while A takes the buffer's path (Shimanskiy, "Matrix Multiply on Adreno GPUs",
//# 2016). Rows and columns beyond the edge are computed from the last one and not stored. OpenCL only:
//# sessions bind no images through wgpu.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_image2d(@builtin(global_invocation_id) gid: vec3<u32>) {
    let column: u32 = 4u * TILE_X * gid.x;
    let row: u32 = TILE_Y * gid.y;
    if (column >= params.n || row >= params.m || gid.z >= params.batch) {
        return;
    }
    //% for r in range(tile[1])
    let a${r}: u32 = params.a_batch * gid.z + params.a_row * min(row + ${r}u, params.m - 1u);
    //% endfor
    let b_first: u32 = params.b_batch * gid.z;
    //% for c in range(tile[0])
    let b${c}: u32 = min(column / 4u + ${c}u, params.n4 - 1u);
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(tile[0])
    var sum${r}_${c}: ${acc4} = ${zero4};
    //% endfor
    //% endfor
    for (var term: u32 = 0u; term < params.k; term++) {
        let a_term: u32 = params.a_step * term;
        //% for c in range(tile[0])
        let v${c}: ${acc4} = ${load4("mat_b", "", column="b" ~ c, row="b_first + term")};
        //% endfor
        //% for r in range(tile[1])
        let u${r}: ${acc} = ${load("mat_a", "a" ~ r ~ " + a_term")};
        //% for c in range(tile[0])
        sum${r}_${c} = ${fma4(splat("u" ~ r), "v" ~ c, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
    }
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        let c${r}: u32 = params.c_batch * gid.z + params.c_row * (row + ${r}u) + column;
        //% for c in range(tile[0])
        sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
        //% for lane in ["x", "y", "z", "w"]
        //% if BETA
        if (column + ${4 * c + loop.index0}u < params.n) {
            sum${r}_${c}.${lane} += ${param("beta")} * ${load("mat_c", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u")};
        }
        //% endif
        //% endfor
        //% for line in epilogue("sum" ~ r ~ "_" ~ c, "column / 4u + " ~ c ~ "u", "0u")
        ${line}
        //% endfor
        //% for lane in ["x", "y", "z", "w"]
        if (column + ${4 * c + loop.index0}u < params.n) {
            //% if residual
            sum${r}_${c}.${lane} += ${load("residual", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u")};
            //% endif
            ${store("mat_c", "c" ~ r ~ " + " ~ (4 * c + loop.index0) ~ "u", "sum" ~ r ~ "_" ~ c ~ "." ~ lane)}
        }
        //% endfor
        //% endfor
    }
    //% endfor
}
