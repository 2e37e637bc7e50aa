//# Where element `i` of rows lies: its index along each axis, from the innermost one on, and from those its place in
//# each input.
    let rest0: u32 = i;
    //% for axis in range(RANK - 1)
    let p${axis}: u32 = rest${axis} % params.extent${axis};
    let rest${axis + 1}: u32 = rest${axis} / params.extent${axis};
    //% endfor
    let p${RANK - 1}: u32 = rest${RANK - 1};
    //% for input in range(INPUTS)
    var at${input}: u32 = p0 * params.step${input}_0;
    //% for axis in range(1, RANK)
    at${input} = at${input} + p${axis} * params.step${input}_${axis};
    //% endfor
    //% endfor
