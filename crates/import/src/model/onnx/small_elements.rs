//! Elements of eight bits and fewer that only constants have: floats are read as f32, integers as what they are.

use crate::model::build::{Kind, floats, integers};
use crate::model::constant::{Constant, elements_of};
use crate::model::reason::Reason;

/// How an element is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Small {
    /// Bits of exponent and mantissa, the exponent's bias, and what is no finite number.
    Float { exponent: u32, mantissa: u32, bias: i32, special: Special },
    /// Four bits, without or with a sign.
    Integer { signed: bool },
}

/// Which codes of a small float are no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    None,
    /// The largest exponent, as IEEE 754 has it.
    Exponent,
    /// All ones but the sign.
    Ones,
    /// The sign alone.
    NegativeZero,
}

impl Small {
    /// How elements of a code of the format are stored, if they are small.
    pub(super) fn of(code: i64) -> Option<Self> {
        let float = |exponent, mantissa, bias, special| Small::Float { exponent, mantissa, bias, special };
        Some(match code {
            17 => float(4, 3, 7, Special::Ones),
            18 => float(4, 3, 8, Special::NegativeZero),
            19 => float(5, 2, 15, Special::Exponent),
            20 => float(5, 2, 16, Special::NegativeZero),
            21 => Small::Integer { signed: false },
            22 => Small::Integer { signed: true },
            23 => float(2, 1, 1, Special::None),
            _ => return None,
        })
    }

    const fn bits(self) -> usize {
        match self {
            Small::Float { exponent, mantissa, .. } => 1 + (exponent + mantissa) as usize,
            Small::Integer { .. } => 4,
        }
    }

    /// The bytes of so many elements.
    pub(super) const fn bytes(self, elements: usize) -> usize {
        if self.bits() == 8 { elements } else { elements.div_ceil(2) }
    }

    /// The element of a code.
    fn float(self, code: u8) -> f32 {
        let Small::Float { exponent, mantissa, bias, special } = self else { return 0.0 };
        let code = u32::from(code);
        let sign = if code >> (exponent + mantissa) & 1 == 1 { -1.0f32 } else { 1.0 };
        let (power, part) = (code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1));
        let top = (1 << exponent) - 1;
        match special {
            Special::Exponent if power == top => {
                return if part == 0 { sign * f32::INFINITY } else { f32::NAN };
            }
            Special::Ones if power == top && part == (1 << mantissa) - 1 => return f32::NAN,
            Special::NegativeZero if power == 0 && part == 0 && sign < 0.0 => return f32::NAN,
            _ => (),
        }
        let share = part as f32 / (1 << mantissa) as f32;
        let (whole, power) = if power == 0 { (share, 1) } else { (1.0 + share, power as i32) };
        sign * whole * 2.0f32.powi(power - bias)
    }

    /// The constant that `bytes` are.
    pub(super) fn constant(self, extents: &[usize], bytes: &[u8]) -> Result<(Constant, Kind), Reason> {
        let elements = elements_of(extents)?;
        let wanted = self.bytes(elements);
        if bytes.len() != wanted {
            return refused!(
                "found {} bytes, wanted {wanted} for shape {extents:?} of {} bits each",
                bytes.len(),
                self.bits()
            );
        }
        let codes: Vec<u8> = match self.bits() {
            8 => bytes.to_vec(),
            // The first of two is in the lower half.
            _ => bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(elements).collect(),
        };
        match self {
            Small::Float { .. } => {
                Ok((floats(extents, codes.iter().map(|&code| self.float(code)).collect())?, Kind::F32))
            }
            Small::Integer { signed } => {
                let kind = if signed { Kind::I4 } else { Kind::U4 };
                let values = codes.iter().map(|&code| kind.wrapped(i64::from(code))).collect();
                Ok((integers(extents, values)?, kind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(code: i64, bits: u8) -> f32 {
        Small::of(code).expect("a small float").float(bits)
    }

    #[test]
    fn codes_at_the_edges_are_those_of_the_format() {
        for (code, bits, wanted) in [
            (17, 0x7E, 448.0),
            (17, 0x01, 2.0f32.powi(-9)),
            (17, 0xB8, -1.0),
            (18, 0x7F, 240.0),
            (18, 0x40, 1.0),
            (19, 0x7B, 57344.0),
            (19, 0x3C, 1.0),
            (19, 0xFC, f32::NEG_INFINITY),
            (20, 0x7F, 57344.0),
            (20, 0x40, 1.0),
            (23, 0x7, 6.0),
            (23, 0x1, 0.5),
            (23, 0xA, -1.0),
        ] {
            assert_eq!(float(code, bits), wanted, "{bits:#x} of type {code}");
        }
        for (code, bits) in [(17, 0x7F), (18, 0x80), (19, 0x7D), (20, 0x80)] {
            assert!(float(code, bits).is_nan(), "{bits:#x} of type {code}");
        }
    }

    #[test]
    fn two_elements_of_four_bits_are_a_byte() {
        let signed = Small::of(22).expect("integers");
        let (constant, kind) = signed.constant(&[3], &[0x8F, 0xA7]).expect("three");
        assert_eq!((constant, kind), (integers(&[3], vec![-1, -8, 7]).expect("three"), Kind::I4));
        let unsigned = Small::of(21).expect("integers");
        let (constant, _) = unsigned.constant(&[2], &[0x8F]).expect("two");
        assert_eq!(constant, integers(&[2], vec![15, 8]).expect("two"));
        let error = signed.constant(&[5], &[0, 0]).expect_err("too few");
        assert!(error.to_string().contains("found 2 bytes, wanted 3"), "{error}");
    }
}
