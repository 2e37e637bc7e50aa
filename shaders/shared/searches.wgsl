//# What the statements of rows call that find the place of the largest or the smallest element, `calls`: of vec4s if `wide`, of
//# integers if WORD is 1, or 2 without a sign. Sets `element`, `floats` and their like for what invocations of a row tell each other.
//% set floats = "vec4<f32>" if WIDE else "f32"
//% set bools = "vec4<bool>" if WIDE else "bool"
//% set bits = "vec4<u32>" if WIDE else "u32"
//% set element = "i32" if WORD == 1 else "u32" if WORD == 2 else floats
//% if WORD == 0 and ("larger" in calls or "smaller" in calls)
//# Not as `!is_nan(x)`: Oclgrind negates vectors of comparisons wrongly.
fn is_number(x: ${floats}) -> ${bools} {
    return (bitcast<${bits}>(x) & ${bits}(0x7fffffffu)) <= ${bits}(0x7f800000u);
}

//% endif
//% for name in ["larger", "smaller"] if name in calls
//# Whether a search for the largest or the smallest takes x at this place rather than another one: a NaN comes before
//# numbers, and of equal ones the first.
fn ${name}(x: ${element}, at: ${floats}, other: ${element}, other_at: ${floats}) -> ${bools} {
    let is_better = x ${">" if name == "larger" else "<"} other;
    let is_equal = x == other;
    //% if WORD == 0
    //# WGSL lets an implementation assume that no NaN is compared.
    let are_numbers: ${bools} = is_number(x) & is_number(other);
    let is_first: ${bools} = (is_nan(x) & is_number(other)) | (are_numbers & is_better);
    let is_alike: ${bools} = (is_nan(x) & is_nan(other)) | (are_numbers & is_equal);
    return is_first | (is_alike & (at < other_at));
    //% else
    return is_better | (is_equal & (at < other_at));
    //% endif
}

//% endfor
