//# Sums and products of f32 that have one result on every device, and the functions that are made of these: the same as
//# `src/ops/random/exact.rs`, in the same order.
//# Takes a result by its bits, together with a scalar that is 0: no compiler can join it with another operation.
fn exact(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ params.zero);
}

fn sum(a: f32, b: f32) -> f32 {
    return exact(a + b);
}

fn product(a: f32, b: f32) -> f32 {
    return exact(a * b);
}

//# a b + c, rounded twice.
fn term(a: f32, b: f32, c: f32) -> f32 {
    return sum(product(a, b), c);
}

//% if DRAW > 1
//# The number x with bit `sign` as its sign, which is positive.
fn signed(x: f32, sign: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ (sign << 31u));
}

//# The float that is nearest to a word, made of two that are exact: a conversion may be rounded in any direction.
fn whole(word: u32) -> f32 {
    return term(f32(word >> 8u), 256.0f, f32(word & 0xffu));
}

//# -ln((1 + f) 2^e).
fn minus_log(f: f32, e: f32) -> f32 {
    let square: f32 = product(f, f);
    var high: f32 = term(0.070376836f, f, -0.1151461f);
    high = term(high, f, 0.116769984f);
    high = term(high, f, -0.12420141f);
    high = term(high, f, 0.14249323f);
    high = term(high, f, -0.16668057f);
    high = term(high, f, 0.20000714f);
    high = term(high, f, -0.24999994f);
    high = term(high, f, 0.3333333f);
    let rest: f32 = term(product(f, square), high, product(e, -2.1219444e-4f));
    return product(sum(sum(f, sum(rest, product(square, -0.5f))), product(e, 0.693359375f)), -1.0f);
}

//# 1 + f between the roots of 1/2 and 2, and e, of x = (1 + f) 2^e: f, then e.
fn parts(x: f32) -> vec2<f32> {
    let bits: u32 = bitcast<u32>(x) + 0x004afb0du;
    let mantissa: f32 = bitcast<f32>((bits & 0x007fffffu) + 0x3f3504f3u);
    return vec2<f32>(sum(mantissa, -1.0f), f32(i32(bits >> 23u) - 127i));
}

//# -ln(1 - x) of the number x in (0, 1) that a word stands for.
fn exponential(word: u32) -> f32 {
    let few: bool = word < 0x4b000000u;
    let rest: u32 = select(~word + 1u, word, few);
    let share: f32 = select(product(whole(rest), 2.3283064e-10f), 1.1641532e-10f, rest == 0u);
    let scaled: vec2<f32> = select(parts(share), vec2<f32>(product(share, -1.0f), 0.0f), vec2<bool>(few));
    return minus_log(scaled.x, scaled.y);
}

//% if DRAW == 2
//# The root of x, by that of its reciprocal.
fn root(x: f32) -> f32 {
    let half: f32 = product(0.5f, x);
    var reciprocal: f32 = bitcast<f32>(0x5f375a86u - (bitcast<u32>(x) >> 1u));
    for (var turn: u32 = 0u; turn < 3u; turn++) {
        let square: f32 = product(product(half, reciprocal), reciprocal);
        reciprocal = product(sum(1.5f, product(square, -1.0f)), reciprocal);
    }
    return product(x, reciprocal);
}

//# Two normally distributed numbers.
fn normals(radius: u32, angle: u32) -> vec2<f32> {
    let half: f32 = exponential(radius);
    let length: f32 = root(sum(half, half));
    let quarter: u32 = (angle + 0x20000000u) >> 30u;
    let rest: u32 = angle - (quarter << 30u);
    let below: u32 = rest >> 31u;
    let x: f32 = product(whole(select(rest, ~rest + 1u, below == 1u)), 1.4629181e-9f);
    let square: f32 = product(x, x);
    let high: f32 = term(term(square, -1.9515296e-4f, 8.332161e-3f), square, -0.16666655f);
    let sine: f32 = term(high, product(square, x), x);
    let low: f32 = term(term(square, 2.4433157e-5f, -1.3887316e-3f), square, 0.041666646f);
    let cosine: f32 = term(low, product(square, square), term(square, -0.5f, 1.0f));
    let odd: bool = (quarter & 1u) == 1u;
    let upper: u32 = (quarter >> 1u) & 1u;
    let across: f32 = product(length, select(cosine, sine, odd));
    let along: f32 = product(length, select(sine, cosine, odd));
    let left: u32 = select(upper, upper ^ 1u ^ below, odd);
    let down: u32 = select(upper ^ below, upper, odd);
    return vec2<f32>(signed(across, left), signed(along, down));
}

//% endif
//% endif
