//! The words of 32 bits that a network's values are kept in, on the CPU and in rows on a device.
//!
//! A word is an f32, or holds the bits of an integer of 32 bits; an integer of 64 bits takes two. Slices of words have
//! the type `[f32]` everywhere, because most of them are numbers: what reads or writes integers looks at their bits.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::{HostTensor, TensorElement};
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::borrow::Cow;
use std::sync::Arc;

/// An integer of 64 bits as words.
pub type Pair = [f32; 2];

/// A type whose elements lie in words.
pub trait Integer: Copy {
    /// The type's name.
    const TYPE: DType;

    /// The type of an element's words.
    type Words: bytemuck::Pod;

    /// The elements that `words` hold; none if they do not hold whole ones.
    #[inline(always)]
    fn view(words: &[f32]) -> &[Self::Words] {
        bytemuck::try_cast_slice(words).unwrap_or_default()
    }

    /// The elements that `words` hold, to be written; none if they do not hold whole ones.
    #[inline(always)]
    fn view_mut(words: &mut [f32]) -> &mut [Self::Words] {
        bytemuck::try_cast_slice_mut(words).unwrap_or_default()
    }

    /// The number that the words hold.
    fn of(words: Self::Words) -> i64;

    /// The words that hold the lowest bits of a number.
    fn words(value: i64) -> Self::Words;
}

impl Integer for i32 {
    const TYPE: DType = DType::I32;

    type Words = f32;

    #[inline(always)]
    fn of(word: f32) -> i64 {
        i64::from(word.to_bits().cast_signed())
    }

    #[inline(always)]
    fn words(value: i64) -> f32 {
        f32::from_bits(value as u32)
    }
}

impl Integer for u32 {
    const TYPE: DType = DType::U32;

    type Words = f32;

    #[inline(always)]
    fn of(word: f32) -> i64 {
        i64::from(word.to_bits())
    }

    #[inline(always)]
    fn words(value: i64) -> f32 {
        f32::from_bits(value as u32)
    }
}

impl Integer for i64 {
    const TYPE: DType = DType::I64;

    type Words = Pair;

    #[inline(always)]
    fn of(words: Pair) -> i64 {
        bytemuck::cast(words)
    }

    #[inline(always)]
    fn words(value: i64) -> Pair {
        bytemuck::cast(value)
    }
}

/// The integers that words of this type hold; whole numbers in f32 as integers.
pub fn integers(word: DType, words: &[f32]) -> Vec<i64> {
    match word {
        DType::I32 => words.iter().map(|&word| <i32 as Integer>::of(word)).collect(),
        DType::U32 => words.iter().map(|&word| <u32 as Integer>::of(word)).collect(),
        DType::I64 => words.as_chunks().0.iter().map(|&pair| <i64 as Integer>::of(pair)).collect(),
        _ => words.iter().map(|&number| number as i64).collect(),
    }
}

/// The numbers that words of this type hold, rounded to f64.
pub fn numbers(word: DType, words: &[f32]) -> Vec<f64> {
    match word {
        DType::I32 | DType::U32 | DType::I64 => {
            integers(word, words).into_iter().map(|value| value as f64).collect()
        }
        _ => words.iter().map(|&number| f64::from(number)).collect(),
    }
}

/// Integers as words of this type, which hold their lowest bits; f32 is the nearest.
pub fn of_integers(word: DType, values: impl Iterator<Item = i64>) -> Vec<f32> {
    match word {
        DType::I32 | DType::U32 => values.map(<i32 as Integer>::words).collect(),
        DType::I64 => values.flat_map(<i64 as Integer>::words).collect(),
        _ => values.map(|value| value as f32).collect(),
    }
}

/// What an element that does not fit is refused with.
fn misfit(what: &str, value: impl std::fmt::Display, place: usize, word: DType, of: DType) -> Error {
    let wanted = match (word, of) {
        (DType::I32, DType::I64) => {
            "an integer of 32 bits, which is what a GPU has; the CPU has 64".to_owned()
        }
        (DType::F32, of) if of.is_float() => "a number that f32 holds".to_owned(),
        (DType::F32, of) => format!("a number of {of}"),
        _ => format!("a number of {word}"),
    };
    Error::input(what, format!("{value} at element {place}"), wanted)
}

/// Whether numbers are all of type `of`, which words of f32 hold: any for floats, whole ones of its range else.
///
/// # Errors
/// If one is none; it names the first.
pub fn fit(numbers: &[f32], of: DType, what: &str) -> Result<()> {
    let Some(range) = of.range() else { return Ok(()) };
    let [least, most] = range.map(|end| end as f32);
    let fits = |number: f32| number.trunc() == number && (least..=most).contains(&number);
    match numbers.iter().position(|&number| !fits(number)) {
        Some(place) => Err(misfit(what, numbers[place], place, DType::F32, of)),
        None => Ok(()),
    }
}

/// The elements of a tensor in NHWC order as words of type `word`, for what is of type `of`.
///
/// # Errors
/// If one is no number of that type, or there is no memory.
pub fn of_tensor<'a>(tensor: &'a HostTensor, word: DType, of: DType, what: &str) -> Result<Cow<'a, [f32]>> {
    let wide = matches!(tensor.dtype(), DType::I64 | DType::I32 | DType::U32);
    if word == DType::F32 && !wide {
        let numbers = tensor.try_nhwc()?;
        if tensor.dtype() != of {
            fit(&numbers, of, what)?;
        }
        return Ok(numbers);
    }
    if tensor.dtype() == word && word != DType::I64 {
        return Ok(Cow::Borrowed(bytemuck::cast_slice(tensor.bytes())));
    }
    let elements = tensor.dims().elements();
    let mut words = alloc::reserved(elements * word.words(), what)?;
    let range = if word == DType::F32 { of.range() } else { word.range() };
    let mut put = |value: i64| match range {
        Some([least, most]) if value < least || value > most => false,
        Some(_) if word == DType::I64 => {
            words.extend(<i64 as Integer>::words(value));
            true
        }
        Some(_) if word == DType::F32 => {
            words.push(value as f32);
            value as f32 as i64 == value
        }
        Some(_) => {
            words.push(<i32 as Integer>::words(value));
            true
        }
        None => {
            words.push(value as f32);
            value as f32 as i64 == value
        }
    };
    match tensor.to_i64() {
        Some(values) => {
            if let Some(place) = values.iter().position(|&value| !put(value)) {
                return Err(misfit(what, values[place], place, word, of));
            }
        }
        None => {
            let values = tensor.try_nhwc()?;
            let whole = |value: f32| value.trunc() == value && value.abs() < 9.3e18;
            if let Some(place) = values.iter().position(|&value| !whole(value) || !put(value as i64)) {
                return Err(misfit(what, values[place], place, word, of));
            }
        }
    }
    Ok(Cow::Owned(words))
}

/// The tensor of type `dtype` whose elements are kept as `words` of type `word`.
///
/// # Errors
/// If there are not as many as `dims` has elements, or there is no memory.
pub fn to_tensor(dims: Dims, dtype: DType, word: DType, words: &[f32]) -> Result<HostTensor> {
    /// Made once and where it stays: a copy would want as much once more.
    fn tensor<T: TensorElement>(dims: Dims, values: impl ExactSizeIterator<Item = T>) -> Result<HostTensor> {
        HostTensor::of(dims, alloc::shared(values, "an output")?)
    }
    let signed = || words.iter().map(|word| word.to_bits().cast_signed());
    match dtype {
        DType::F32 => tensor(dims, words.iter().copied()),
        DType::F16 => {
            let mut halves = alloc::shared(std::iter::repeat_n(f16::ZERO, words.len()), "an output")?;
            if let Some(halves) = Arc::get_mut(&mut halves) {
                halves.convert_from_f32_slice(words);
            }
            HostTensor::of(dims, halves)
        }
        DType::I64 if word == DType::I64 => {
            tensor(dims, words.as_chunks().0.iter().map(|&pair: &Pair| bytemuck::cast::<Pair, i64>(pair)))
        }
        DType::I64 => tensor(dims, signed().map(i64::from)),
        DType::I32 => tensor(dims, signed()),
        DType::U32 => tensor(dims, words.iter().map(|word| word.to_bits())),
        DType::I16 => tensor(dims, words.iter().map(|&value| value as i16)),
        DType::I8 => tensor(dims, words.iter().map(|&value| value as i8)),
        DType::U16 => tensor(dims, words.iter().map(|&value| value as u16)),
        DType::U8 => tensor(dims, words.iter().map(|&value| value as u8)),
        DType::Bool => tensor(dims, words.iter().map(|&value| value != 0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(extent: usize) -> Dims {
        Dims::new(&[extent]).expect("small")
    }

    #[test]
    fn every_type_comes_back_from_its_words() {
        let tensors = [
            HostTensor::of(dims(3), vec![i64::MIN, -1, i64::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![i32::MIN, -1, i32::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![0, 1 << 31, u32::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![i16::MIN, -1, i16::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![i8::MIN, -1, i8::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![0, 1, u16::MAX]).expect("three"),
            HostTensor::of(dims(3), vec![0, 1, u8::MAX]).expect("three"),
            HostTensor::of(dims(2), vec![true, false]).expect("two"),
            HostTensor::of(dims(2), vec![f16::from_f32(0.5), f16::MAX]).expect("two"),
            HostTensor::of(dims(2), vec![0.1f32, f32::NEG_INFINITY]).expect("two"),
        ];
        for tensor in tensors {
            let dtype = tensor.dtype();
            let word = dtype.word();
            let words = of_tensor(&tensor, word, dtype, "x").expect("they fit");
            assert_eq!(words.len(), tensor.dims().elements() * word.words(), "{dtype}");
            assert_eq!(to_tensor(tensor.dims(), dtype, word, &words).expect("as many"), tensor);
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let text = |tensor: HostTensor, word, of| {
            of_tensor(&tensor, word, of, "input \"ids\"").expect_err("it does not fit").to_string()
        };
        let ids = HostTensor::of(dims(3), vec![1, -5, 1i64 << 31]).expect("three");
        let found = text(ids.clone(), DType::I32, DType::I64);
        assert!(found.contains("2147483648 at element 2") && found.contains("the CPU has 64"), "{found}");
        assert!(text(ids.clone(), DType::U32, DType::U32).contains("-5 at element 1"));
        assert_eq!(of_tensor(&ids, DType::I64, DType::I64, "x").expect("all fit").len(), 6);
        let halves = HostTensor::vector(vec![1.0, 2.5]).expect("two");
        assert!(text(halves, DType::I64, DType::I64).contains("2.5 at element 1"));
        let large = HostTensor::of(dims(1), vec![(1 << 24) + 1]).expect("one");
        assert!(text(large, DType::F32, DType::F32).contains("16777217 at element 0"));
        // Integers of few bits and booleans, which f32 holds and more.
        let bytes = HostTensor::of(dims(2), vec![7i64, 256]).expect("two");
        assert!(text(bytes, DType::F32, DType::U8).contains("256 at element 1, wanted a number of u8"));
        let signed = HostTensor::of(dims(2), vec![7i8, -1]).expect("two");
        assert!(text(signed, DType::F32, DType::U8).contains("-1 at element 1"));
        for odd in [2.5, 2.0, -1.0, f32::NAN] {
            let truths = HostTensor::vector(vec![1.0, 0.0, odd]).expect("three");
            assert!(text(truths, DType::F32, DType::Bool).contains("at element 2, wanted a number of bool"));
        }
        let truths = HostTensor::of(dims(2), vec![true, false]).expect("two");
        assert_eq!(*of_tensor(&truths, DType::F32, DType::I8, "x").expect("0 and 1"), [1.0, 0.0]);
        for odd in [f32::NAN, f32::INFINITY, 1e30] {
            assert!(
                of_tensor(&HostTensor::vector(vec![odd]).expect("one"), DType::I64, DType::I64, "x").is_err()
            );
        }
        let whole = HostTensor::vector(vec![3.0, -4.0]).expect("two");
        let words = of_tensor(&whole, DType::I32, DType::I64, "x").expect("whole numbers");
        assert_eq!(integers(DType::I32, &words), [3, -4]);
    }
}
