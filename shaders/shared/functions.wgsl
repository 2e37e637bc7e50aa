//# Functions that the statements of an op call (`calls`), in f32 whatever the kernel computes in: of vec4s if
//# `wide`, else of scalars. None if they are `declared` already.
//% set floats = "vec4<f32>" if wide else "f32"
//% set bits = "vec4<u32>" if wide else "u32"
//% set bools = "vec4<bool>" if wide else "bool"
//% if not declared
//% if "is_nan" in calls or "power" in calls
//# By its bits, because WGSL lets an implementation assume that there is none.
fn is_nan(x: ${floats}) -> ${bools} {
    return (bitcast<${bits}>(x) & ${bits}(0x7fffffffu)) > ${bits}(0x7f800000u);
}

//% endif
//% if "power" in calls or "floor_modulo" in calls or "inverse_hyperbolic_cosine" in calls or "inverse_hyperbolic_tangent" in calls
//# What is no number, whatever x is.
fn none(x: ${floats}) -> ${floats} {
    return bitcast<${floats}>(bitcast<${bits}>(x) | ${bits}(0x7fc00000u));
}

//% endif
//% if "power" in calls
//# As C's `powf`: 1 where y is 0 or x is 1, whatever the other is. `pow` is asked for what it defines alone.
fn power(x: ${floats}, y: ${floats}) -> ${floats} {
    let one: ${floats} = ${floats}(1.0f);
    let zero: ${floats} = ${floats}(0.0f);
    let infinity: ${bits} = ${bits}(0x7f800000u);
    let base: ${floats} = abs(x);
    let exponent: ${bits} = bitcast<${bits}>(y) & ${bits}(0x7fffffffu);
    let at_end: ${bools} = (base == zero) | (bitcast<${bits}>(base) == infinity);
    let grows: ${bools} = (base > one) == (y > zero);
    let end: ${floats} = select(zero, bitcast<${floats}>(infinity), grows);
    let inner: ${floats} = select(pow(base, y), one, base == one);
    let size: ${floats} = select(inner, end, at_end | ((exponent == infinity) & (base != one)));
    let whole: ${bools} = floor(y) == y;
    let odd: ${bools} = whole & (floor(y * 0.5f) * 2.0f != y);
    let signed: ${floats} = select(select(none(x), size, whole | at_end), -size, odd);
    let negative: ${bools} = bitcast<${bits}>(x) >= ${bits}(0x80000000u);
    let known: ${floats} = select(select(size, signed, negative), none(x), is_nan(x) | is_nan(y));
    return select(known, one, (exponent == ${bits}(0u)) | (bitcast<${bits}>(x) == ${bits}(0x3f800000u)));
}

//% endif
//% if "floor_modulo" in calls
//# What `floor(a / b)` leaves of a: exact but for the sum with b where the signs differ. While b fits, it is taken
//# away with the exponent of what is left, or half of that. A subnormal b counts as 0.
fn floor_modulo(a: ${floats}, b: ${floats}) -> ${floats} {
    let infinity: ${bits} = ${bits}(0x7f800000u);
    let divisor: ${floats} = abs(b);
    let size: ${bits} = bitcast<${bits}>(divisor);
    let fits: ${bools} = (size >= ${bits}(0x00800000u)) & (bitcast<${bits}>(abs(a)) < infinity);
    var rest: ${floats} = abs(a);
    loop {
        let more: ${bools} = fits & (rest >= divisor);
        if (!${"any(more)" if wide else "more"}) {
            break;
        }
        let above: ${bits} = (bitcast<${bits}>(rest) & infinity) - (size & infinity);
        let part: ${floats} = bitcast<${floats}>(size + above);
        rest = select(rest, rest - select(part, part * 0.5f, part > rest), more);
    }
    let zero: ${floats} = ${floats}(0.0f);
    let signed: ${floats} = select(rest, -rest, a < zero);
    let whole: ${floats} = select(signed, signed + b, (rest > zero) & ((a < zero) != (b < zero)));
    return select(none(a), whole, fits & (size <= infinity));
}

//% endif
//% include "shared/hyperbolic"
//% if "gelu" in calls
//# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by at most 1.5e-7.
fn gelu(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x) * 0.70710678f;
    let t: ${floats} = 1.0f / (1.0f + 0.3275911f * z);
    let high: ${floats} = (1.061405429f * t - 1.453152027f) * t + 1.421413741f;
    let above: ${floats} = ((high * t - 0.284496736f) * t + 0.254829592f) * t * exp(-z * z);
    return 0.5f * x * select(above, 2.0f - above, x > ${floats}(0.0f));
}

//% endif
//% if "error_function" in calls
//# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by at most 1.5e-7. Below 1/2, where that
//# is much of the result, Taylor's polynomial. OpenCL C has an `erf` of its own.
fn error_function(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x);
    let t: ${floats} = 1.0f / (1.0f + 0.3275911f * z);
    let high: ${floats} = (1.061405429f * t - 1.453152027f) * t + 1.421413741f;
    let above: ${floats} = ((high * t - 0.284496736f) * t + 0.254829592f) * t * exp(-z * z);
    let q: ${floats} = z * z;
    let low: ${floats} = (q * -8.5483270e-4f + 5.2239776e-3f) * q - 0.026866171f;
    let near: ${floats} = (((low * q + 0.11283792f) * q - 0.37612639f) * q + 1.1283792f) * x;
    return select(select(1.0f - above, above - 1.0f, x < ${floats}(0.0f)), near, z < ${floats}(0.5f));
}

//% endif
//% if "gelu_tanh" in calls
//# From 10 on the hyperbolic tangent is 1, and some drivers' is a little less.
fn gelu_tanh(x: ${floats}) -> ${floats} {
    let z: ${floats} = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + select(tanh(clamp(z, ${floats}(-10.0f), ${floats}(10.0f))), sign(z), abs(z) > ${floats}(10.0f)));
}

//% endif
//% endif
