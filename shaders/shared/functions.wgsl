//# Functions that the statements of an op call (`calls`), in f32 whatever the kernel computes in: of vec4s if
//# `wide`, else of scalars.
//% set floats = "vec4<f32>" if wide else "f32"
//% set bits = "vec4<u32>" if wide else "u32"
//% set bools = "vec4<bool>" if wide else "bool"
//% if "is_nan" in calls
//# By its bits, because WGSL lets an implementation assume that there is none.
fn is_nan(x: ${floats}) -> ${bools} {
    return (bitcast<${bits}>(x) & ${bits}(0x7fffffffu)) > ${bits}(0x7f800000u);
}

//% endif
//% if "power" in calls
fn power(x: ${floats}, y: ${floats}) -> ${floats} {
    let size: ${floats} = pow(abs(x), y);
    let odd: ${bools} = floor(y * 0.5f) * 2.0f != y;
    let none: ${floats} = bitcast<${floats}>(bitcast<${bits}>(x) | ${bits}(0x7fc00000u));
    let negative: ${floats} = select(none, select(size, -size, odd), floor(y) == y);
    let signed: ${floats} = select(size, negative, x < ${floats}(0.0f));
    return select(signed, ${floats}(1.0f), y == ${floats}(0.0f));
}

//% endif
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
//# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by at most 1.5e-7. OpenCL C has
//# an `erf` of its own.
fn error_function(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x);
    let t: ${floats} = 1.0f / (1.0f + 0.3275911f * z);
    let high: ${floats} = (1.061405429f * t - 1.453152027f) * t + 1.421413741f;
    let above: ${floats} = ((high * t - 0.284496736f) * t + 0.254829592f) * t * exp(-z * z);
    return select(1.0f - above, above - 1.0f, x < ${floats}(0.0f));
}

//% endif
//% if "gelu_tanh" in calls
fn gelu_tanh(x: ${floats}) -> ${floats} {
    let z: ${floats} = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + tanh(clamp(z, ${floats}(-10.0f), ${floats}(10.0f))));
}

//% endif
