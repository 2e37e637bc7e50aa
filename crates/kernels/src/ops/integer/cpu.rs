//! Functions of integers on the CPU, over blocks that the first-level cache holds: a loop over vectors for each function
//! and each type of word.

use super::function::Number;
use super::{Argument, IntegerFunction, IntegerOp};
use crate::cpu::arch::Arch;
use crate::cpu::blocks::{WORK_ASKED, parts, with_scratch};
use crate::cpu::workers::each;
use crate::dtype::DType;
use crate::word::Integer;
use pulp::{Simd, WithSimd};

/// Elements of a block.
const BLOCK: usize = 1024;

/// Words of a block: integers of 64 bits have two each.
const WORDS: usize = 2 * BLOCK;

/// Elements below which handing a part to another worker does not pay.
const MIN_WORK: usize = 8 * 1024;

/// An argument of the function, for a block of the output.
#[derive(Debug, Clone, Copy)]
enum Reading<'a> {
    /// Each element with the output's of the same place, in words of so many.
    Flat(&'a [f32], usize),
    /// One value for all elements: put into the scratch once.
    Same(DType, Number),
    /// Copied run by run: the input's number, and its words.
    Runs(usize, &'a [f32], usize),
}

/// The number that the first of these words hold.
fn first(word: DType, words: &[f32]) -> Number {
    fn of<T: Integer>(words: &[f32]) -> Number {
        let integer = T::view(words).first().map_or(0, |&words| T::of(words));
        Number { integer, float: integer as f32 }
    }
    match word {
        DType::I32 => of::<i32>(words),
        DType::U32 => of::<u32>(words),
        DType::I64 => of::<i64>(words),
        _ => {
            let float = words.first().copied().unwrap_or_default();
            Number { integer: float as i64, float }
        }
    }
}

/// Fills words of type `word` with a number.
fn fill(word: DType, words: &mut [f32], number: Number) {
    match word {
        DType::I64 => <i64 as Integer>::view_mut(words).fill(<i64 as Integer>::words(number.integer)),
        DType::I32 | DType::U32 => words.fill(<i32 as Integer>::words(number.integer)),
        _ => words.fill(number.float),
    }
}

impl IntegerOp {
    /// The type of the words of an argument.
    fn word_of(&self, place: usize) -> DType {
        match self.arguments.get(place) {
            Some(Argument::Input(input)) => self.words.get(usize::from(*input)).copied().unwrap_or_default(),
            Some(Argument::Number(_)) if place == 0 && self.function == IntegerFunction::Select => DType::F32,
            _ => self.word,
        }
    }

    fn reading<'a>(&self, place: usize, inputs: &[&'a [f32]]) -> Option<Reading<'a>> {
        let word = self.word_of(place);
        Some(match *self.arguments.get(place)? {
            Argument::Number(integer) => Reading::Same(word, Number { integer, float: integer as f32 }),
            Argument::Input(input) => {
                let input = usize::from(input);
                let words = *inputs.get(input)?;
                match self.broadcast.strides.get(input)? {
                    strides if strides.iter().all(|&stride| stride == 0) => {
                        Reading::Same(word, first(word, words))
                    }
                    _ if self.broadcast.is_whole(input) => Reading::Flat(words, word.words()),
                    _ => Reading::Runs(input, words, word.words()),
                }
            }
        })
    }

    /// The elements of `input` that belong to those of the output from `start` on.
    #[inline(always)]
    fn gather(&self, input: usize, values: &[f32], words: usize, start: usize, out: &mut [f32]) {
        let (inner, stride) = self.broadcast.inner(input);
        let (len, mut done, mut at) = (out.len() / words, 0, start);
        while done < len {
            let run = (inner - at % inner).min(len - done);
            let place = self.broadcast.place(input, at);
            let Some(target) = out.get_mut(done * words..(done + run) * words) else { return };
            let taken = if stride == 0 { 1 } else { run };
            let Some(values) = values.get(place * words..(place + taken) * words) else { return };
            match values {
                &[value] if stride == 0 => target.fill(value),
                values if stride == 0 => {
                    target.chunks_exact_mut(words).for_each(|own| own.copy_from_slice(values));
                }
                values => target.copy_from_slice(values),
            }
            (done, at) = (done + run, at + run);
        }
    }

    /// The result for all elements.
    pub(super) fn compute_all(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let (elements, words) = (self.output.elements(), self.result.words());
        let share = elements.div_ceil(parts(elements / MIN_WORK, WORK_ASKED)).next_multiple_of(BLOCK);
        let arch = Arch::new();
        let part = |(index, dst): (usize, &mut [f32])| {
            with_scratch(3 * WORDS, |scratch| {
                arch.dispatch(Part { op: self, inputs, first: index * share, dst, scratch });
            });
        };
        if elements <= share {
            part((0, dst));
        } else {
            each(dst.chunks_mut(share * words).enumerate(), part);
        }
    }
}

/// A worker's part, compiled for each instruction set.
struct Part<'a> {
    op: &'a IntegerOp,
    inputs: &'a [&'a [f32]],
    first: usize,
    dst: &'a mut [f32],
    scratch: &'a mut [f32],
}

impl WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Part { op, inputs, first, dst, scratch } = self;
        let words = op.result.words();
        let mut held = scratch.chunks_exact_mut(WORDS);
        let mut held = [held.next(), held.next(), held.next()].map(Option::unwrap_or_default);
        let readings = [0, 1, 2].map(|place| op.reading(place, inputs));
        for (held, reading) in held.iter_mut().zip(&readings) {
            if let Some(Reading::Same(word, number)) = reading {
                fill(*word, held, *number);
            }
        }
        for (block, dst) in dst.chunks_mut(BLOCK * words).enumerate() {
            let (start, len) = (first + block * BLOCK, dst.len() / words);
            for (held, reading) in held.iter_mut().zip(&readings) {
                if let Some(Reading::Runs(input, values, words)) = *reading {
                    op.gather(input, values, words, start, held.get_mut(..len * words).unwrap_or_default());
                }
            }
            let mut given: [&[f32]; 3] = [&[]; 3];
            for ((given, held), reading) in given.iter_mut().zip(&held).zip(&readings) {
                *given = match *reading {
                    Some(Reading::Flat(values, words)) => {
                        values.get(start * words..(start + len) * words).unwrap_or_default()
                    }
                    _ => held,
                };
            }
            run(op, given, dst);
        }
    }
}

/// The function of each element of a block.
#[inline(always)]
fn run(op: &IntegerOp, given: [&[f32]; 3], dst: &mut [f32]) {
    use IntegerFunction::Convert;
    match (op.function, op.word) {
        (Convert, DType::F32) => match op.result {
            DType::I32 => cut_off::<i32>(given[0], dst),
            DType::U32 => cut_off::<u32>(given[0], dst),
            _ => cut_off::<i64>(given[0], dst),
        },
        (Convert, DType::I32) => convert::<i32>(op.result, given[0], dst),
        (Convert, DType::U32) => convert::<u32>(op.result, given[0], dst),
        (Convert, _) => convert::<i64>(op.result, given[0], dst),
        (_, DType::I32) => apply::<i32>(op.function, given, dst),
        (_, DType::U32) => apply::<u32>(op.function, given, dst),
        _ => apply::<i64>(op.function, given, dst),
    }
}

#[inline(always)]
fn cut_off<T: Integer>(given: &[f32], dst: &mut [f32]) {
    let dst = T::view_mut(dst);
    let Some(given) = given.get(..dst.len()) else { return };
    for at in 0..dst.len() {
        dst[at] = T::words(IntegerFunction::cut_off(T::TYPE, given[at]));
    }
}

/// Integers in another type: their lowest bits, or the nearest float.
#[inline(always)]
fn convert<T: Integer>(to: DType, given: &[f32], dst: &mut [f32]) {
    match to {
        DType::F32 => {
            let Some(given) = T::view(given).get(..dst.len()) else { return };
            for at in 0..dst.len() {
                dst[at] = T::of(given[at]) as f32;
            }
        }
        DType::I64 => {
            let dst = <i64 as Integer>::view_mut(dst);
            let Some(given) = T::view(given).get(..dst.len()) else { return };
            for at in 0..dst.len() {
                dst[at] = <i64 as Integer>::words(T::of(given[at]));
            }
        }
        _ => {
            let Some(given) = T::view(given).get(..dst.len()) else { return };
            for at in 0..dst.len() {
                dst[at] = <i32 as Integer>::words(T::of(given[at]));
            }
        }
    }
}

/// A loop for each function, in which nothing asks which one it is. Indices, not iterators: whether those are inlined
/// depends on the profile.
macro_rules! loops {
    ($function:ident, $dst:ident, $result:expr, $at:ident, $given:expr, [$($name:ident)*]) => {
        match $function {
            $(IntegerFunction::$name => {
                for $at in 0..$dst.len() {
                    $dst[$at] = $result(IntegerFunction::$name.value(T::TYPE, $given));
                }
            })*
            _ => {}
        }
    };
}

/// Every function but conversions, of words of one type.
#[inline(always)]
fn apply<T: Integer>(function: IntegerFunction, given: [&[f32]; 3], dst: &mut [f32]) {
    let [a, b, c] = given.map(T::view);
    if function.compares() {
        let (Some(a), Some(b)) = (a.get(..dst.len()), b.get(..dst.len())) else { return };
        loops!(function, dst, truth, at, [of::<T>(a[at]), of::<T>(b[at]), Number::default()],
            [Equal NotEqual Less LessEqual Greater GreaterEqual]);
        return;
    }
    let dst = T::view_mut(dst);
    let (Some(b), Some(c)) = (b.get(..dst.len()), c.get(..dst.len())) else { return };
    if function == IntegerFunction::Select {
        let Some(condition) = given[0].get(..dst.len()) else { return };
        for at in 0..dst.len() {
            let chosen = Number { integer: 0, float: condition[at] };
            let given = [chosen, of::<T>(b[at]), of::<T>(c[at])];
            dst[at] = T::words(IntegerFunction::Select.value(T::TYPE, given));
        }
        return;
    }
    let Some(a) = a.get(..dst.len()) else { return };
    loops!(function, dst, T::words, at, [of::<T>(a[at]), of::<T>(b[at]), of::<T>(c[at])],
        [Add Sub Mul Div Rem FloorDiv FloorMod Pow Maximum Minimum Abs Neg Sign BitAnd BitOr BitXor BitNot ShiftLeft
         ShiftRight Clamp]);
}

/// True or false, as 1 or 0.
#[inline(always)]
fn truth(value: i64) -> f32 {
    value as f32
}

#[inline(always)]
fn of<T: Integer>(words: T::Words) -> Number {
    Number { integer: T::of(words), float: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::word::{integers, of_integers};

    /// Numbers of every size and sign, those at the type's ends among them; of floats fractions too.
    fn values(word: DType, len: usize, seed: i64) -> Vec<f32> {
        let [least, most] = word.range().unwrap_or([-9, 9]);
        let ends = [least, most, 0, 1, -1, 2, 31, 32, 63, most / 3];
        let value = |at: i64| match at % 3 {
            0 => ends[(at / 3 + seed) as usize % ends.len()],
            _ => (at * 7919 + seed * 31) % 200 - if least < 0 { 100 } else { 0 },
        };
        match word {
            DType::F32 => (0..len as i64).map(|at| value(at) as f32 / 2.0).collect(),
            word => of_integers(word, (0..len as i64).map(value)),
        }
    }

    /// Whether each result is that of its element alone.
    fn check(op: &IntegerOp) {
        let inputs: Vec<Vec<f32>> = op
            .inputs
            .iter()
            .zip(&op.words)
            .zip(1..)
            .map(|((dims, &word), seed)| values(word, dims.elements(), seed))
            .collect();
        let given: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let mut dst = vec![f32::NAN; op.output.elements() * op.result.words()];
        op.compute_all(&given, &mut dst);
        let all: Vec<Vec<i64>> =
            given.iter().zip(&op.words).map(|(words, &word)| integers(word, words)).collect();
        let number = |input: usize, index: usize| {
            let at = op.broadcast.place(input, index);
            let integer = all[input][at];
            let float = if op.words[input] == DType::F32 { given[input][at] } else { integer as f32 };
            Number { integer, float }
        };
        let wanted = (0..op.output.elements()).map(|index| {
            op.value(&(0..given.len()).map(|input| number(input, index)).collect::<Vec<Number>>())
        });
        let wanted: Vec<Number> = wanted.collect();
        let floats: Vec<f32> = wanted.iter().map(|number| number.float).collect();
        let wanted = match op.result {
            DType::F32 => floats,
            word => of_integers(word, wanted.iter().map(|number| number.integer)),
        };
        let bits = |words: &[f32]| words.iter().map(|word| word.to_bits()).collect::<Vec<_>>();
        let differ = bits(&dst).iter().zip(bits(&wanted)).position(|(found, wanted)| *found != wanted);
        assert_eq!(differ, None, "{op:?}");
    }

    #[test]
    fn blocks_are_what_their_elements_are() {
        let dims = |extents: &[usize]| Dims::new(extents).expect("small");
        let shapes = [
            [&[3000][..], &[3000], &[3000]],
            [&[7, 300], &[300], &[7, 1]],
            [&[5, 1, 3], &[1, 4, 3], &[1]],
            [&[1], &[1], &[1]],
            [&[1], &[2100], &[1]],
        ];
        let x = [0, 1, 2].map(Argument::Input);
        for &function in IntegerFunction::ALL {
            for word in [DType::I32, DType::U32, DType::I64] {
                for shapes in shapes.map(|shapes| shapes.map(dims)) {
                    let arity = function.arity();
                    let typed = |(place, &dims): (usize, &Dims)| match function {
                        IntegerFunction::Select if place == 0 => (dims, DType::F32),
                        _ => (dims, word),
                    };
                    let inputs: Vec<(Dims, DType)> =
                        shapes.iter().enumerate().map(typed).take(arity).collect();
                    for to in [DType::F32, DType::I32, DType::U32, DType::I64] {
                        check(&IntegerOp::new(function, x[..arity].to_vec(), &inputs, to).expect("it fits"));
                        if function != IntegerFunction::Convert {
                            break;
                        }
                    }
                    if function == IntegerFunction::Convert {
                        check(
                            &IntegerOp::new(function, x[..1].to_vec(), &[(shapes[0], DType::F32)], word)
                                .expect("fits"),
                        );
                    }
                    // A number in the place of the last.
                    if arity > 1 {
                        let mut arguments = x[..arity].to_vec();
                        arguments[arity - 1] = Argument::Number(3);
                        check(
                            &IntegerOp::new(function, arguments, &inputs[..arity - 1], word)
                                .expect("it fits"),
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn quotients_of_32_bits_are_exact() {
        let ends = [
            i32::MIN,
            i32::MIN + 1,
            -65_537,
            -65_536,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            46_340,
            65_537,
            i32::MAX - 1,
            i32::MAX,
        ];
        let of = |function: IntegerFunction, word: DType, a: i64, b: i64| {
            let number = |integer| Number { integer, float: 0.0 };
            function.value(word, [number(a), number(b), Number::default()])
        };
        for (a, b) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))).filter(|(_, b)| *b != 0) {
            let found = [IntegerFunction::Div, IntegerFunction::Rem]
                .map(|function| of(function, DType::I32, a.into(), b.into()));
            assert_eq!(found, [a.wrapping_div(b), a.wrapping_rem(b)].map(i64::from), "{a} by {b}");
            let [a, b] = [a, b].map(|value| value as u32);
            let found = [IntegerFunction::Div, IntegerFunction::Rem]
                .map(|function| of(function, DType::U32, a.into(), b.into()));
            assert_eq!(found, [a / b, a % b].map(i64::from), "{a} by {b}");
        }
    }
}
