//# y = f(sum_k w[o,k] m[k] + b[o]) of image `n`, whose m lie in `means`: SHARES invocations for each four outputs, each
//# of which takes every SHARES-th term, UNROLL at a time. There must be a barrier behind what writes `means`.
    for (var base: u32 = 0u; base < params.rows; base += SIZE / SHARES) {
        let row: u32 = base + lid.x / SHARES;
        var sum: ${acc4} = ${zero4};
        if (row < params.rows) {
            for (var k: u32 = lid.x % SHARES; k < params.inputs; k += SHARES * UNROLL) {
                //% for j in range(UNROLL)
                var w${j}: ${acc4} = ${zero4};
                var m${j}: ${acc} = ${zero};
                if (k + ${j}u * SHARES < params.inputs) {
                    w${j} = ${load4("weights", "row * params.inputs + k + " ~ j ~ "u * SHARES")};
                    m${j} = means[k + ${j}u * SHARES];
                }
                //% endfor
                //% for j in range(UNROLL)
                sum = ${fma4("w" ~ j, splat("m" ~ j), "sum")};
                //% endfor
            }
        }
        partial[lid.x] = sum;
        //% set shares = SHARES
        //% include "shared/share_sum"
        if (lid.x % SHARES == 0u && row < params.rows) {
            var value: ${acc4} = partial[lid.x];
            //% for line in epilogue("value", "row", "0u")
            ${line}
            //% endfor
            //% if ROWS
            //% for lane in ["x", "y", "z", "w"]
            if (4u * row + ${loop.index0}u < params.outputs) {
                ${store("dst", "n * params.outputs + 4u * row + " ~ loop.index0 ~ "u", "value." ~ lane)}
            }
            //% endfor
            //% else
            ${store4("dst", "n * params.rows + row", "value")}
            //% endif
        }
        ${barrier};
    }
