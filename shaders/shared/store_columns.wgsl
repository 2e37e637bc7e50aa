//# Stores tile[1] rows by tile[0] groups of four columns element by element, those that there are, from `row`
//# and `column` of matrix `batch` on.
    //% for r in range(tile[1])
    if (row + ${r}u < params.m) {
        let c${r}: u32 = ${apart("c_batch", "batch")} + params.c_row * (row + ${r}u) + column;
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
