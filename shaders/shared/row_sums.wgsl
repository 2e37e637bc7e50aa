//# Four outputs, those of `row`, of each of `lines` lines of `values`, LINE words apart: `word` invocations that follow each
//# other share a sum, each of which takes every `word`-th of the `inputs` terms, `unroll` at a time. Where `row` is not one
//# of the `rows` there are, they are zero.
        //% for r in range(lines)
        var sum${r}: ${acc4} = ${zero4};
        //% endfor
        if (row < ${rows}) {
            for (var k: u32 = lid.x % ${word}; k < ${inputs}; k += ${word} * ${unroll}) {
                //% for j in range(unroll)
                var w${j}: ${acc4} = ${zero4};
                //% for r in range(lines)
                var m${j}_${r}: ${acc} = ${zero};
                //% endfor
                if (k + ${j}u * ${word} < ${inputs}) {
                    w${j} = ${load4(matrix, "row * " ~ inputs ~ " + k + " ~ j ~ "u * " ~ word)};
                    //% for r in range(lines)
                    m${j}_${r} = ${values}[k + ${j}u * ${word}${" + " ~ r ~ "u * LINE" if r > 0 else ""}];
                    //% endfor
                }
                //% endfor
                //% for j in range(unroll)
                //% for r in range(lines)
                sum${r} = ${fma4("w" ~ j, splat("m" ~ j ~ "_" ~ r), "sum" ~ r)};
                //% endfor
                //% endfor
            }
        }
