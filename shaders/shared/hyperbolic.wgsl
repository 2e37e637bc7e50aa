//# The functions of `shared/functions` that are made of exponentials and logarithms: no sum of them cancels near 0,
//# and none overflows before its result does.
//% set inverse = "inverse_hyperbolic_sine" in calls or "inverse_hyperbolic_cosine" in calls or "inverse_hyperbolic_tangent" in calls
//% if "exp_minus_one" in calls or "hyperbolic_sine" in calls
//# `exp(x) - 1`, near 0 by Taylor's polynomial.
fn exp_minus_one(x: ${floats}) -> ${floats} {
    let high: ${floats} = ((x * 2.4801587e-5f + 1.9841270e-4f) * x + 1.3888889e-3f) * x + 8.3333333e-3f;
    let near: ${floats} = ((((high * x + 0.041666667f) * x + 0.16666667f) * x + 0.5f) * x + 1.0f) * x;
    return select(exp(x) - 1.0f, near, abs(x) < ${floats}(0.5f));
}

//% endif
//% if "softplus" in calls or inverse
//# `log(1 + y)` of `y >= 0`, below 1 by the series of the inverse hyperbolic tangent of `y / (2 + y)`.
fn log_one_plus(y: ${floats}) -> ${floats} {
    let s: ${floats} = y / (2.0f + y);
    let q: ${floats} = s * s;
    let high: ${floats} = ((q * 0.066666667f + 0.076923077f) * q + 0.090909091f) * q + 0.11111111f;
    let near: ${floats} = ((((high * q + 0.14285714f) * q + 0.2f) * q + 0.33333333f) * q + 1.0f) * 2.0f * s;
    return select(log(1.0f + y), near, y < ${floats}(1.0f));
}

//% endif
//% if "softplus" in calls
fn softplus(x: ${floats}) -> ${floats} {
    return max(x, ${floats}(0.0f)) + log_one_plus(exp(-abs(x)));
}

//% endif
//% if "hyperbolic_sine" in calls or "hyperbolic_cosine" in calls
//# The root of `exp(z) / 2`, which overflows where its square does.
fn root_of_half(z: ${floats}) -> ${floats} {
    return exp(0.5f * z - 0.34657359f);
}

//% endif
//% if "hyperbolic_sine" in calls
fn hyperbolic_sine(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x);
    let e: ${floats} = exp_minus_one(z);
    let root: ${floats} = root_of_half(z);
    let size: ${floats} = select(0.5f * (e + e / (e + 1.0f)), root * root, z > ${floats}(20.0f));
    return select(size, -size, x < ${floats}(0.0f));
}

//% endif
//% if "hyperbolic_cosine" in calls
fn hyperbolic_cosine(x: ${floats}) -> ${floats} {
    let root: ${floats} = root_of_half(abs(x));
    let half: ${floats} = root * root;
    return half + 0.25f / half;
}

//% endif
//% if "inverse_hyperbolic_sine" in calls
fn inverse_hyperbolic_sine(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x);
    let near: ${floats} = log_one_plus(z + z * z / (1.0f + sqrt(z * z + 1.0f)));
    let size: ${floats} = select(near, log(z) + 0.69314718f, z > ${floats}(4096.0f));
    return select(size, -size, x < ${floats}(0.0f));
}

//% endif
//% if "inverse_hyperbolic_cosine" in calls
fn inverse_hyperbolic_cosine(x: ${floats}) -> ${floats} {
    let t: ${floats} = x - 1.0f;
    let near: ${floats} = log_one_plus(t + sqrt(t * (t + 2.0f)));
    let size: ${floats} = select(near, log(x) + 0.69314718f, x > ${floats}(4096.0f));
    return select(none(x), size, x >= ${floats}(1.0f));
}

//% endif
//% if "inverse_hyperbolic_tangent" in calls
fn inverse_hyperbolic_tangent(x: ${floats}) -> ${floats} {
    let z: ${floats} = abs(x);
    let size: ${floats} = 0.5f * log_one_plus(2.0f * z / (1.0f - z));
    return select(none(x), select(size, -size, x < ${floats}(0.0f)), z <= ${floats}(1.0f));
}

//% endif
