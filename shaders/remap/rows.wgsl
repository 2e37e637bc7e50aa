//# y[i] = x[first + sum over axes of stride * f(start + step * i_axis)]: one element per invocation, or LANES
//# of them, in lines of WIDTH invocations. RULE says what f is: 0 all coordinates are as they are, 1 those
//# outside have the fill value, and `coordinate` has the others.
${constants}

${interface}
//% if RULE >= 2
/*% include "shared/coordinate" %*/
//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn remap_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let rest${AXES - 1}: u32 = i;
    //% for axis in range(1, AXES) | reverse
    let i${axis}: u32 = rest${axis} % params.extent${axis};
    let rest${axis - 1}: u32 = rest${axis} / params.extent${axis};
    //% endfor
    let i0: u32 = rest0;
    var src_index: u32 = params.first;
    //% if RULE == 1
    var inside: bool = true;
    //% endif
    //% for axis in range(AXES)
    //% if RULE == 0
    src_index = src_index + params.stride${axis} * i${axis};
    //% elif RULE == 1
    let at${axis}: u32 = u32(params.start${axis} + params.step${axis} * i32(i${axis}));
    inside = inside && at${axis} < u32(params.source${axis});
    src_index = src_index + params.stride${axis} * at${axis};
    //% else
    let at${axis}: i32 = coordinate(params.start${axis} + params.step${axis} * i32(i${axis}), params.source${axis});
    src_index = src_index + params.stride${axis} * u32(at${axis});
    //% endif
    //% endfor
    //% set value = load4("src", "src_index") if LANES == 4 else load("src", "src_index")
    //% if RULE == 1
    var value = ${splat(param("fill")) if LANES == 4 else param("fill")};
    if (inside) {
        value = ${value};
    }
    //% else
    let value = ${value};
    //% endif
    ${store4("dst", "i", "value") if LANES == 4 else store("dst", "i", "value")}
}
