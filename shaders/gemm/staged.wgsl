//# C = f(alpha * op(A) * op(B) + beta * C) from local memory, of operands that are read element by element: of any
//# extents, transposed or not. A work-group stages STEP terms of its rows of A and of its columns of B, groups of
//# four of them in a vec4. An invocation sums tile[1] rows by tile[0] groups of four columns, four rows or columns
//# together, WG_Y or WG_X such groups apart. Neighbours read neighbours in memory: terms, or where an operand is
//# stored the other way rows or columns. Rows and columns beyond the edge are computed from the last one and not
//# stored; terms beyond it are zero.
${constants}

${interface}
var<workgroup> staged: array<${acc4}, STAGED>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn gemm_staged(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let place: u32 = lid % THREADS;
    let slice: u32 = lid / THREADS;
    let lane: u32 = place % (LANES_X * LANES_Y);
    let x: u32 = lane / PAIRED % LANES_X + LANES_X * (place / (LANES_X * LANES_Y) % (WG_X / LANES_X));
    let y: u32 = lane % PAIRED + PAIRED * (lane / (PAIRED * LANES_X)) + LANES_Y * (place / (LANES_Y * WG_X));
    let column: u32 = 4u * TILE_X * WG_X * group.x;
    let row: u32 = TILE_Y * WG_Y * group.y;
    let own: u32 = SLICE * slice;
    let terms4: u32 = STEP / 4u * ((params.k + STEP * SPLITS - 1u) / (STEP * SPLITS));
    let first: u32 = STEP * slice;
    //% for l in range(LOADS_A)
    let a_index${l}: u32 = place + ${l}u * THREADS;
    let a_line${l}: u32 = a_index${l} ${"%" if TRANSPOSE_A else "/"} ${"ROWS" if TRANSPOSE_A else "STEP"};
    let a_step${l}: u32 = a_index${l} ${"/" if TRANSPOSE_A else "%"} ${"ROWS" if TRANSPOSE_A else "STEP"};
    let a_term${l}: u32 = first + a_step${l};
    let a_from${l}: u32 = ${apart("a_batch", "group.z")} + params.a_row * min(row + a_line${l}, params.m - 1u);
    let a_to${l}: u32 = own + A_ROW * a_step${l} + a_line${l} / 4u;
    //% endfor
    //% for l in range(LOADS_B)
    let b_index${l}: u32 = place + ${l}u * THREADS;
    let b_line${l}: u32 = b_index${l} ${"/" if TRANSPOSE_B else "%"} ${"STEP" if TRANSPOSE_B else "COLUMNS"};
    let b_step${l}: u32 = b_index${l} ${"%" if TRANSPOSE_B else "/"} ${"STEP" if TRANSPOSE_B else "COLUMNS"};
    let b_term${l}: u32 = first + b_step${l};
    let b_from${l}: u32 = ${apart("b_batch", "group.z")} + params.b_column * min(column + b_line${l}, params.n - 1u);
    let b_to${l}: u32 = own + B_FIRST + B_ROW * b_step${l} + b_line${l} / 4u;
    //% endfor
    //% macro fetch(s, ahead4)
    //% for operand in ["a", "b"]
    //% for l in range(LOADS_A if operand == "a" else LOADS_B)
    //% set term = operand ~ "_term" ~ l ~ " + 4u * SPLITS * " ~ ahead4
    ${operand}_next${s}_${l} = ${load("mat_" ~ operand, operand ~ "_from" ~ l ~ " + params." ~ operand ~ "_step * " ~ ("min(" ~ term ~ ", params.k - 1u)" if RAGGED else "(" ~ term ~ ")"))};
    //% if RAGGED
    if (${term} >= params.k) {
        ${operand}_next${s}_${l} = ${zero};
    }
    //% endif
    //% endfor
    //% endfor
    //% endmacro
    //% macro stage(s, to)
    //% for operand in ["a", "b"]
    //% for l in range(LOADS_A if operand == "a" else LOADS_B)
    ${set_lane("staged", operand ~ "_to" ~ l ~ " + " ~ to, operand ~ "_line" ~ l ~ " % 4u", operand ~ "_next" ~ s ~ "_" ~ l)}
    //% endfor
    //% endfor
    //% endmacro
    //% set loaded = acc
    //% set none = zero
    //% include "shared/product_loop"
    //% set lanes = ["x", "y", "z", "w"]
    //% for r in range(tile[1])
    let row${r}: u32 = row + 4u * (y + ${r // 4}u * WG_Y) + ${r % 4}u;
    if (row${r} < params.m) {
        //% for c in range(tile[0])
        let column${r}_${c}: u32 = column + 4u * (x + ${c}u * WG_X);
        let c${r}_${c}: u32 = ${apart("c_batch", "group.z")} + params.c_row * row${r} + column${r}_${c};
        sum${r}_${c} = sum${r}_${c} * ${splat(param("alpha"))};
        //% if BETA
        //% for lane in lanes
        if (column${r}_${c} + ${loop.index0}u < params.n) {
            sum${r}_${c}.${lane} += ${param("beta")} * ${load("mat_c", "c" ~ r ~ "_" ~ c ~ " + " ~ loop.index0 ~ "u")};
        }
        //% endfor
        //% endif
        //% for line in epilogue("sum" ~ r ~ "_" ~ c, "min(column" ~ r ~ "_" ~ c ~ ", params.n - 1u) / 4u", "0u")
        ${line}
        //% endfor
        //% for lane in lanes
        if (column${r}_${c} + ${loop.index0}u < params.n) {
            //% if residual
            sum${r}_${c}.${lane} += ${load("residual", "c" ~ r ~ "_" ~ c ~ " + " ~ loop.index0 ~ "u")};
            //% endif
            ${store("mat_c", "c" ~ r ~ "_" ~ c ~ " + " ~ loop.index0 ~ "u", "sum" ~ r ~ "_" ~ c ~ "." ~ lane)}
        }
        //% endfor
        //% endfor
    }
    //% endfor
}
