//! Numbers from words by operations that have one result on every device: those of integers, and single sums and products
//! of f32 that are no subnormal ones, each rounded to the nearest. There is no quotient, root, logarithm or cosine, which
//! WGSL and OpenCL leave to the device, and no product and sum in one (`shaders/shared/exact.wgsl` does the same).

/// Of the polynomial of `(ln(1 + f) - f + f^2 / 2) / f^3` for f from `sqrt(1/2) - 1` to `sqrt(2) - 1`, the highest power
/// first.
///
/// Source: Moshier, *Methods and Programs for Mathematical Functions*, 1989 (`logf` of Cephes).
const LOG: [f32; 9] = [
    0.070_376_836,
    -0.115_146_1,
    0.116_769_984,
    -0.124_201_41,
    0.142_493_23,
    -0.166_680_57,
    0.200_007_14,
    -0.249_999_94,
    0.333_333_3,
];

/// The two parts of `ln 2`: the first has so few bits that its product with an exponent is exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// `sqrt(1/2)`, as bits.
const ROOT_OF_HALF: u32 = 0x3f35_04f3;

/// Words below it stand for so little that `1 - x` of it is taken for a sum that needs no exponent: 0.293 of all.
const FEW: u32 = 0x4b00_0000;

/// 2^-24, 2^-32 and 2^-33.
const UNIT: f32 = 1.0 / (1u32 << 24) as f32;
const WORD: f32 = UNIT / 256.0;
const HALF_WORD: f32 = WORD / 2.0;

/// A turn in so many parts as there are words.
const ANGLE: f32 = 1.462_918_1e-9;

/// The float that is nearest to a word, made of two that are exact: a conversion may be rounded in any direction.
fn whole(word: u32) -> f32 {
    (word >> 8) as f32 * 256.0 + (word & 0xff) as f32
}

/// `ln((1 + f) 2^e)`, for `f` as [`LOG`] has it and a whole `e`.
fn log_of(f: f32, e: f32) -> f32 {
    let square = f * f;
    let high = LOG.iter().fold(0.0, |sum, term| sum * f + term);
    let rest = f * square * high + e * LN_2[1] + square * -0.5;
    f + rest + e * LN_2[0]
}

/// `1 + f` between `sqrt(1/2)` and `sqrt(2)`, and `e`, of `x = (1 + f) 2^e`.
fn parts(x: f32) -> (f32, f32) {
    let bits = x.to_bits() + (0x3f80_0000 - ROOT_OF_HALF);
    let mantissa = f32::from_bits((bits & 0x007f_ffff) + ROOT_OF_HALF);
    (mantissa - 1.0, ((bits >> 23) as i32 - 127) as f32)
}

/// A number in [0, 1).
pub(super) fn uniform(word: u32) -> f32 {
    (word >> 8) as f32 * UNIT
}

/// `-ln(1 - x)` of the number `x` in (0, 1) that a word stands for: from 2^-33 to 22.2, with all the bits that a float has
/// near both ends.
fn exponential(word: u32) -> f32 {
    let few = word < FEW;
    let rest = if few { word } else { word.wrapping_neg() };
    let share = if rest == 0 { HALF_WORD } else { whole(rest) * WORD };
    let (f, e) = if few { (-share, 0.0) } else { parts(share) };
    -log_of(f, e)
}

/// `-ln(-ln(1 - x))`.
pub(super) fn gumbel(word: u32) -> f32 {
    let (f, e) = parts(exponential(word));
    -log_of(f, e)
}

/// The root of a number, by that of its reciprocal (Lomont, *Fast Inverse Square Root*, 2003).
fn root(x: f32) -> f32 {
    let half = 0.5 * x;
    let guess = f32::from_bits(0x5f37_5a86 - (x.to_bits() >> 1));
    let reciprocal = (0..3).fold(guess, |root, _| (1.5 - half * root * root) * root);
    x * reciprocal
}

/// Two normally distributed numbers (Box and Muller, *A Note on the Generation of Random Normal Deviates*, 1958).
pub(super) fn normals(radius: u32, angle: u32) -> [f32; 2] {
    let length = exponential(radius);
    let length = root(length + length);
    // The quarter that is nearest, and the angle from there.
    let quarter = angle.wrapping_add(0x2000_0000) >> 30;
    let rest = angle.wrapping_sub(quarter << 30);
    let below = rest >> 31;
    let x = whole(if below == 1 { rest.wrapping_neg() } else { rest }) * ANGLE;
    let square = x * x;
    let sine = ((square * -1.951_529_6e-4 + 8.332_161e-3) * square + -0.166_666_55) * (square * x) + x;
    let cosine = (square * 2.443_315_7e-5 + -1.388_731_6e-3) * square + 0.041_666_646;
    let cosine = cosine * (square * square) + (square * -0.5 + 1.0);
    let (odd, upper) = (quarter & 1, (quarter >> 1) & 1);
    let (across, along) = if odd == 1 { (sine, cosine) } else { (cosine, sine) };
    let signed = |size: f32, sign: u32| f32::from_bits((length * size).to_bits() ^ (sign << 31));
    let left = if odd == 1 { upper ^ 1 ^ below } else { upper };
    let down = if odd == 1 { upper } else { upper ^ below };
    [signed(across, left), signed(along, down)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words at the ends, at what is decided by comparisons, and between.
    fn words() -> impl Iterator<Item = u32> {
        let edges = [0, FEW, 1 << 24, 1 << 29, 1 << 30, 3 << 29, 1 << 31, 3 << 30, u32::MAX];
        let near = edges.into_iter().flat_map(|edge| (-300..300).map(move |by| edge.wrapping_add_signed(by)));
        near.chain((0..200_000u32).map(|index| index.wrapping_mul(0x9E37_79B9)))
    }

    /// What a word stands for, as exactly as its own bits say.
    fn share(word: u32) -> f64 {
        if word == 0 { 2f64.powi(-33) } else { f64::from(word) * 2f64.powi(-32) }
    }

    #[test]
    fn functions_are_within_some_units_of_the_last_bit() {
        let (mut worst, mut turned) = ([0f64; 2], 0f64);
        for word in words() {
            let exact = -(-share(word)).ln_1p();
            let found = f64::from(exponential(word));
            worst[0] = worst[0].max((found - exact).abs() / exact);
            // The logarithm of what was found: what its argument is off is no error of its own.
            let exact = -found.ln();
            worst[1] = worst[1].max((f64::from(gumbel(word)) - exact).abs() / exact.abs().max(0.5));
            let length = (2.0 * f64::from(exponential(!word))).sqrt();
            let angle = f64::from(word) * std::f64::consts::TAU * 2f64.powi(-32);
            let [x, y] = normals(!word, word).map(f64::from);
            let off = (x - length * angle.cos()).abs().max((y - length * angle.sin()).abs());
            turned = turned.max(off / length);
        }
        assert!(worst[0] < 3e-7 && worst[1] < 3e-7, "{worst:?}");
        assert!(turned < 5e-7, "{turned}");
    }

    #[test]
    fn ends_are_where_the_documentation_says() {
        assert_eq!(uniform(0), 0.0);
        assert_eq!(uniform(u32::MAX), 1.0 - 2f32.powi(-24));
        assert_eq!(exponential(0), 2f32.powi(-33));
        assert!((exponential(u32::MAX) - 22.180_71).abs() < 1e-5);
        let [x, y] = normals(u32::MAX, 0);
        assert!((x - 6.660_44).abs() < 1e-5 && y == 0.0, "{x} {y}");
        assert!(gumbel(0) > 22.0 && gumbel(u32::MAX) > -3.2);
    }
}
