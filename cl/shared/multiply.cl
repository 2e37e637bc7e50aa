//# Adds the products of STEP staged terms to the sums: those of the rows from a_at on, four to a vec4,
//# WG_Y vec4s apart, and of the columns from b_at on, WG_X vec4s apart.
        //% for t in range(STEP)
        //% for r in range(tile[1] // 4)
        const ${acc4} a${t}_${r} = staged[a_at + ${t}u * A_ROW + ${r}u * WG_Y];
        //% endfor
        //% for c in range(tile[0])
        const ${acc4} b${t}_${c} = staged[b_at + ${t}u * B_ROW + ${c}u * WG_X];
        //% endfor
        //% for r in range(tile[1])
        //% for c in range(tile[0])
        sum${r}_${c} = ${fma4(splat("a" ~ t ~ "_" ~ r // 4 ~ "." ~ ["x", "y", "z", "w"][r % 4]), "b" ~ t ~ "_" ~ c, "sum" ~ r ~ "_" ~ c)};
        //% endfor
        //% endfor
        //% endfor
