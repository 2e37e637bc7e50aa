//# The element of the source that element `i` of a move's result is, or NONE where it has the fill value: of a
//# result with AXES axes, `first` + the sum of stride * f(start + step * i_axis). RULE says what f is: 0 all
//# coordinates are as they are, 1 those outside have no element, and `coordinate` has the others.
//% if RULE >= 2
//% include "shared/coordinate"

//% endif
fn place(i: u32) -> u32 {
    let rest${AXES - 1}: u32 = i;
    //% for axis in range(1, AXES) | reverse
    let i${axis}: u32 = rest${axis} % params.extent${axis};
    let rest${axis - 1}: u32 = rest${axis} / params.extent${axis};
    //% endfor
    let i0: u32 = rest0;
    var index: u32 = params.first;
    //% for axis in range(AXES)
    //% set at = "params.start" ~ axis ~ " + params.step" ~ axis ~ " * i32(i" ~ axis ~ ")"
    //% if RULE == 0
    index = index + params.stride${axis} * i${axis};
    //% elif RULE == 1
    let at${axis}: u32 = u32(${at});
    index = index + params.stride${axis} * at${axis};
    //% else
    index = index + params.stride${axis} * u32(coordinate(${at}, params.source${axis}));
    //% endif
    //% endfor
    //% if RULE == 1
    //% for axis in range(AXES)
    if (at${axis} >= u32(params.source${axis})) {
        return NONE;
    }
    //% endfor
    //% endif
    return index;
}
