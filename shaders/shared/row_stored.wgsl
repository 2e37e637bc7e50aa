//# Stores `value`, what four outputs of line `n` are, as elements of its row.
            //% for line in epilogue("value", "row", "0u")
            ${line}
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            if (4u * row + ${loop.index0}u < params.outputs) {
                ${store("dst", "n * params.outputs + 4u * row + " ~ loop.index0 ~ "u", "value." ~ lane)}
            }
            //% endfor
