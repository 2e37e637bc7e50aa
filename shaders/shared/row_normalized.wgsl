//# Line `n` of the input, normalised with NORM, in `values` from word `first` on. Values are taken from the line's first,
//# so that no sum grows with their mean. A barrier behind it, and none before:
//# there must be one before `partial` and these `values` are written again.
    //% if NORM
    var part: ${acc4} = ${zero4};
    //% if CENTRED
    let origin: ${acc} = ${load("src", "n * params.inputs")};
    //% endif
    for (var i: u32 = lid.x; i < params.inputs; i += 4u * SIZE) {
        //% for lane in ["x", "y", "z", "w"]
        if (i + ${loop.index0}u * SIZE < params.inputs) {
            let x: ${acc} = ${load("src", "n * params.inputs + i + " ~ loop.index0 ~ "u * SIZE")}${" - origin" if CENTRED else ""};
            values[${first} + i + ${loop.index0}u * SIZE] = x;
            part.${lane} += x;
        }
        //% endfor
    }
    //% if CENTRED
    //% include "shared/group_sum"
    let mean: ${acc} = ((part.x + part.y) + (part.z + part.w)) / ${acc}(params.inputs);
    ${barrier};
    //% else
    let mean: ${acc} = ${zero};
    //% endif
    part = ${zero4};
    for (var i: u32 = lid.x; i < params.inputs; i += 4u * SIZE) {
        //% for lane in ["x", "y", "z", "w"]
        if (i + ${loop.index0}u * SIZE < params.inputs) {
            let difference: ${acc} = values[${first} + i + ${loop.index0}u * SIZE] - mean;
            values[${first} + i + ${loop.index0}u * SIZE] = difference;
            part.${lane} += difference * difference;
        }
        //% endfor
    }
    //% include "shared/group_sum"
    let squares: ${acc} = ((part.x + part.y) + (part.z + part.w)) / ${acc}(params.inputs);
    let factor: ${acc} = 1.0f / sqrt(squares + params.epsilon);
    for (var i: u32 = lid.x; i < params.inputs; i += SIZE) {
        values[${first} + i] = values[${first} + i] * factor;
    }
    //% else
    for (var i: u32 = lid.x; i < params.inputs; i += SIZE) {
        values[${first} + i] = ${load("src", "n * params.inputs + i")};
    }
    //% endif
    ${barrier};
