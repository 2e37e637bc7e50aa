//! Numbers of outputs, as they are reported: integers exactly.

use diptych::HostTensor;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;

/// A number of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Float(f32),
    Integer(i64),
}

impl Number {
    /// All of an output's, in NHWC order.
    pub(super) fn all(output: &HostTensor) -> Vec<Self> {
        match output.to_i64() {
            Some(integers) => integers.iter().map(|&integer| Number::Integer(integer)).collect(),
            None => output.to_nhwc().iter().map(|&float| Number::Float(float)).collect(),
        }
    }

    pub(super) fn is_nan(self) -> bool {
        matches!(self, Number::Float(float) if float.is_nan())
    }

    /// The order of numbers of one output.
    pub(super) fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Number::Integer(one), Number::Integer(other)) => one.cmp(&other),
            (one, other) => one.to_f64().total_cmp(&other.to_f64()),
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Number::Float(float) => f64::from(float),
            Number::Integer(integer) => integer as f64,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(float) => write!(f, "{float:.6}"),
            Number::Integer(integer) => write!(f, "{integer}"),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Float(float) => serializer.serialize_f32(*float),
            Number::Integer(integer) => serializer.serialize_i64(*integer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::Dims;

    #[test]
    fn integers_are_compared_and_shown_exactly() {
        let dims = Dims::new(&[2]).expect("small");
        let large = HostTensor::of(dims, vec![(1i64 << 53) + 1, 1 << 53]).expect("two");
        let [one, other] = Number::all(&large)[..] else { panic!("two") };
        assert_eq!(one.order(other), Ordering::Greater);
        assert_eq!(one.to_string(), "9007199254740993");
        assert_eq!(serde_json::to_string(&one).expect("JSON"), "9007199254740993");
        let half = Number::all(&HostTensor::new(dims, vec![0.5, f32::NAN]).expect("two"));
        assert_eq!((half[0].to_string().as_str(), half[1].is_nan()), ("0.500000", true));
        let truths = HostTensor::of(dims, vec![true, false]).expect("two");
        assert_eq!(Number::all(&truths), [Number::Integer(1), Number::Integer(0)]);
    }
}
