//# Adds the products of staged term t to the sums, one scalar after the other: along a row of results
//# and back along the next, so that each product has a factor in common with the one before and reads
//# fewer registers that could stand in one bank.
        //% for r in range(tile[1])
        //% for i in (range(4 * tile[0]) if r % 2 == 0 else range(4 * tile[0]) | reverse)
        //% set column = i // 4 ~ "." ~ ["x", "y", "z", "w"][i % 4]
        //% set sum = "sum" ~ r ~ "_" ~ column
        ${sum} = ${fma4("a" ~ t ~ "_" ~ r // 4 ~ "." ~ ["x", "y", "z", "w"][r % 4], "b" ~ t ~ "_" ~ column, sum)};
        //% endfor
        //% endfor
