//# What a reduction makes of an element, and of two elements of the type `value`, a scalar or a vec4 of f32 whose
//# bits are of the type `bits`. A NaN, found by its bits because WGSL lets an implementation assume that there is
//# none, is larger and smaller than anything and stays.
fn element(x: ${value}) -> ${value} {
    //% if LOGICAL
    // A NaN is equal to nothing, and `!=` of one is false where SPIR-V's ordered comparison stands for it.
    return select(${value}(1.0f), ${value}(0.0f), x == ${value}(0.0f));
    //% else
    return x;
    //% endif
}

fn joined(a: ${value}, b: ${value}) -> ${value} {
    //% if ADDS
    return a + b;
    //% elif MULTIPLIES
    return a * b;
    //% elif value == "i32" or value == "u32"
    //% if LARGEST
    return max(a, b);
    //% else
    return min(a, b);
    //% endif
    //% else
    let is_nan = (bitcast<${bits}>(b) & ${bits}(0x7fffffffu)) > ${bits}(0x7f800000u);
    //% if LARGEST
    return select(select(a, b, b > a), b, is_nan);
    //% else
    return select(select(a, b, b < a), b, is_nan);
    //% endif
    //% endif
}
