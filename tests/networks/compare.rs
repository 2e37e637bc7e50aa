//! How far results are apart, and how far they may be.
//!
//! A value that goes through `n` steps one behind another is rounded `n` times, and each rounding is off by at most half a
//! unit `u` of the number. Taken as independent and of any size up to that, such errors have the standard deviation
//! `u sqrt(n / 3)` relative to the values; a sum of `k` terms is rounded `k` times instead of once. The bound is six
//! standard deviations, relative to the largest magnitude of the output:
//!
//! | | bound | u | 1 step | 60 steps |
//! |---|---|---|---|---|
//! | f32 | `6 u sqrt(n k / 3)`, sums of 1024 terms | 2^-24 | 6.6e-6 | 5.1e-5 |
//! | halves | `6 u sqrt(n / 3)`, of maps and weights alike | 2^-11 | 1.7e-3 | 1.3e-2 |
//!
//! The steps of a session are more than those that lie one behind another, and most networks damp errors: all those here
//! but [`WIDER`] are within half of the bound. Integers are compared exactly in f32.

use diptych::HostTensor;
use std::path::Path;

/// Standard deviations.
const DEVIATIONS: f64 = 6.0;
/// Terms of a long sum.
const TERMS: f64 = 1024.0;

/// A network whose results may be further apart.
struct Wider {
    name: &'static str,
    /// By how much, in f32 and where halves are stored.
    factors: [f64; 2],
    /// What becomes of a rounding in it.
    #[expect(dead_code, reason = "it is for readers")]
    reason: &'static str,
}

/// Where a reason says what a change of the input does, that is by up to 2^-11 of each number, on the CPU in f32: about as much
/// as one of the many roundings to halves. Such networks carry errors on, and each layer adds its own.
const WIDER: [Wider; 9] = [
    Wider {
        name: "models/onnx/silero_vad_16k_op15",
        factors: [1.0, 4.0],
        reason: "such a change of its input changes its results by 2.1e-3, and its recurrence has halves too: both APIs find the same 2.3e-2",
    },
    Wider {
        name: "posenet/posenet_mobilenet_v1_075_257x257_os16_f32",
        factors: [1.0, 16.0],
        reason: "such a change of its input changes its results by 8.1e-3, and it has 31 layers: both APIs find the same 8.9e-2",
    },
    Wider {
        name: "posenet/posenet_mobilenet_v1_075_513x513_os16_f32",
        factors: [1.0, 16.0],
        reason: "it has the weights of the smaller one",
    },
    Wider {
        name: "posenet/posenet_mobilenet_v1_100_257x257_f32",
        factors: [1.0, 4.0],
        reason: "such a change of its input changes its results by 3.4e-3, and it has 31 layers",
    },
    Wider {
        name: "models/mobilenet_v1_0.25_224_keras_f32",
        factors: [1.0, 4.0],
        reason: "it ends in exponentials: the error of a logit, whatever its size, is the relative error of its result",
    },
    Wider {
        name: "models/selfie_segmentation",
        factors: [4.0, 4.0],
        reason: "such a change of its input changes its results by 1.2e-2",
    },
    Wider {
        name: "models/onnx/ch_PP-OCRv4_det_infer",
        factors: [4.0, 4.0],
        reason: "it ends in a sigmoid of sums that cancel",
    },
    Wider {
        name: "models/onnx/yunet_n_dynamic",
        factors: [1.0, 4.0],
        reason: "it ends in sigmoids of at most 4e-5, which are exponentials of their logits",
    },
    Wider {
        name: "models/yunet_int8_weights",
        factors: [200.0, 1.0],
        reason: "maps are rounded to bytes at the run: the last bit of a float decides between two bytes, 1/127 apart",
    },
];

/// What may be off in the goldens of an engine whatever the magnitude: ONNX Runtime's sigmoid is that far from the exact
/// one, and outputs of `yunet_n_dynamic` are sigmoids of at most 4e-5.
const GOLDEN_LEAST: f64 = 1.5e-7;

/// How far outputs may be apart behind so many steps, relative to the largest magnitude.
pub(crate) fn bound(network: &str, steps: usize, in_halves: bool) -> f64 {
    let wider = WIDER.iter().find(|wider| wider.name == network);
    let factor = wider.map_or(1.0, |wider| wider.factors[usize::from(in_halves)]);
    let steps = steps.max(1) as f64;
    let variance = if in_halves { 2f64.powi(-22) } else { 2f64.powi(-48) * TERMS } * steps / 3.0;
    factor * DEVIATIONS * variance.sqrt()
}

/// What an output should be.
pub(crate) struct Wanted {
    pub(crate) extents: Vec<usize>,
    pub(crate) values: Vec<f64>,
    pub(crate) is_integer: bool,
    /// What may be off whatever the magnitude.
    pub(crate) least: f64,
}

fn numbers(output: &HostTensor) -> (Vec<f64>, bool) {
    match output.to_i64() {
        Some(integers) => (integers.iter().map(|&integer| integer as f64).collect(), true),
        None => (output.to_nhwc().iter().map(|&number| f64::from(number)).collect(), false),
    }
}

impl Wanted {
    pub(crate) fn of(output: &HostTensor) -> Self {
        let (values, is_integer) = numbers(output);
        Wanted { extents: output.dims().extents().to_vec(), values, is_integer, least: 0.0 }
    }

    /// What is right, in a file.
    pub(crate) fn case(path: &Path) -> Self {
        let (extents, values) = crate::npy::read(path);
        Wanted { extents, values, is_integer: true, least: 0.0 }
    }

    /// The output of another engine, in a file.
    pub(crate) fn golden(path: &Path) -> Self {
        Wanted { least: GOLDEN_LEAST, ..Wanted::case(path) }
    }

    /// How far an output is off, relative to the largest magnitude; or what is wrong, if that is more than the bound.
    pub(crate) fn compare(&self, output: &HostTensor, bound: f64, is_exact: bool) -> Result<f64, String> {
        let (found, is_integer) = numbers(output);
        if output.dims().extents() != self.extents {
            return Err(format!("found {}, wanted {:?}", output.dims(), self.extents));
        }
        let finite = self.values.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0f64, |most, value| most.max(value.abs())).max(f64::MIN_POSITIVE);
        let (mut worst, mut place) = (0.0, 0);
        for (at, (&found, &wanted)) in found.iter().zip(&self.values).enumerate() {
            let is_same = found == wanted || found.is_nan() && wanted.is_nan();
            // A NaN is as far off as can be.
            let off = match (found - wanted).abs() {
                _ if is_same => 0.0,
                off if off.is_finite() => (off - self.least).max(0.0) / largest,
                _ => f64::INFINITY,
            };
            if off > worst {
                (worst, place) = (off, at);
            }
        }
        let bound = if is_exact && is_integer && self.is_integer { 0.0 } else { bound };
        if worst <= bound {
            return Ok(worst);
        }
        let (found, wanted) = (found[place], self.values[place]);
        Err(format!("{worst:.1e} off, at most {bound:.1e} wanted: found {found} at {place}, wanted {wanted}"))
    }
}

#[test]
fn the_bounds_are_those_of_the_table() {
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.02, "{found}");
    near(bound("", 1, false), 6.6e-6);
    near(bound("", 60, false), 5.1e-5);
    near(bound("", 1, true), 1.7e-3);
    near(bound("", 60, true), 1.31e-2);
    near(bound("models/selfie_segmentation", 60, true), 4.0 * 1.31e-2);
}

#[test]
fn what_is_further_apart_is_found() {
    let tensor = |values: &[f32]| HostTensor::vector(values.to_vec()).expect("a tensor");
    let wanted = Wanted::of(&tensor(&[1.0, -2.0, 0.0]));
    assert_eq!(wanted.compare(&tensor(&[1.0, -2.0, 1e-5]), 6e-6, true), Ok(f64::from(1e-5f32) / 2.0));
    for other in [[1.0, -2.0, 1e-4], [f32::NAN, -2.0, 0.0], [1.0, f32::INFINITY, 0.0], [1.0, 2.0, 0.0]] {
        assert!(wanted.compare(&tensor(&other), 6e-6, true).is_err(), "{other:?}");
    }
    assert!(wanted.compare(&tensor(&[1.0, -2.0]), 1.0, true).is_err());
    let integers = |values: &[i64]| {
        HostTensor::of(diptych::Dims::new(&[2]).expect("an extent"), values.to_vec()).expect("a tensor")
    };
    let wanted = Wanted::of(&integers(&[1 << 40, 3]));
    assert!(wanted.compare(&integers(&[1 << 40, 3]), 1e-3, true).is_ok());
    assert!(wanted.compare(&integers(&[1 << 40, 4]), 1e-3, true).is_err());
    let unknown = Wanted { values: vec![f64::NAN, f64::INFINITY, 1.0], ..Wanted::of(&tensor(&[0.0; 3])) };
    assert!(unknown.compare(&tensor(&[f32::NAN, f32::INFINITY, 1.0]), 0.0, true).is_ok());
    assert!(unknown.compare(&tensor(&[0.0, f32::INFINITY, 1.0]), 1.0, true).is_err());
}
