//! Functions of a tile's values, with what they are given.

use super::evaluation::Evaluation;
use super::functions::{Applied, Argument, Columns};
use super::paired::{Normalised, Paired};
use super::program::{Given, Kind, MOST_GIVEN};
use crate::cpu::arch::apart;
use crate::ops::elementwise::Function;
use pulp::Simd;

impl<S: Simd> Evaluation<'_, S> {
    /// A function of values that were computed.
    pub(super) fn apply(&mut self, function: Function, given: &[Given; MOST_GIVEN], out: &mut [f32]) {
        let (simd, arguments) = (self.simd, self.arguments(given, out.len()));
        apart(simd, Applied { function, arguments, out });
    }

    /// A function of what another one gives.
    pub(super) fn pair(&mut self, functions: [Function; 2], given: &[Given; MOST_GIVEN], out: &mut [f32]) {
        let (simd, arguments) = (self.simd, self.arguments(given, out.len()));
        apart(simd, Paired { functions, arguments, out });
    }

    /// A normalisation of values, of which the mean and the deviation are known.
    pub(super) fn normalised(&mut self, given: &[Given; MOST_GIVEN], out: &mut [f32]) {
        let (simd, mut arguments) = (self.simd, self.arguments(given, out.len()));
        if given[4] == Given::None {
            [arguments[4], arguments[5]] = [Argument::Single(1.0), Argument::Single(0.0)];
        }
        apart(simd, Normalised { arguments, out });
    }

    #[inline]
    fn arguments<const COUNT: usize>(
        &mut self,
        given: &[Given; MOST_GIVEN],
        len: usize,
    ) -> [Argument<'_>; COUNT] {
        for own in given {
            if let Given::Spread(id) = own {
                self.spread(*id, len);
            }
        }
        let mut arguments = [Argument::Each(&[]); COUNT];
        for place in 0..COUNT {
            arguments[place] = self.argument(&given[place], len);
        }
        arguments
    }

    #[inline]
    fn argument(&self, given: &Given, len: usize) -> Argument<'_> {
        match *given {
            Given::None => Argument::Each(&[]),
            Given::Values(id) => Argument::Each(self.computed(id)),
            Given::Single(id) => Argument::Single(self.single(id)),
            Given::Columns(id) => {
                let (values, is_row) = (self.computed(id), self.program.kinds[id] == Kind::Rows);
                Argument::Columns(Columns::new(values, if is_row { self.width } else { values.len() }, len))
            }
            Given::Rows(id) => Argument::Rows(self.computed(id)),
            Given::Spread(id) => Argument::Each(self.spread_values(id, len)),
        }
    }
}
