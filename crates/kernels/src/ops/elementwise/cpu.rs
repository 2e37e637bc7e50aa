//! The program on the CPU, step by step.

use super::program::{Program, Source};

impl Program {
    /// The program of inputs that are as long as `dst`.
    pub(in crate::ops) fn apply(&self, inputs: &[&[f32]], dst: &mut [f32]) {
        let numbers = self.numbers();
        let filled: Vec<Vec<f32>> = numbers.iter().map(|number| vec![number.0; dst.len()]).collect();
        let mut results: Vec<Vec<f32>> = Vec::with_capacity(self.steps().len());
        for step in self.steps() {
            let of = |source: &Source| match source {
                Source::Input(input) => inputs.get(usize::from(*input)).copied(),
                Source::Step(step) => results.get(usize::from(*step)).map(Vec::as_slice),
                Source::Number(number) => {
                    let place = numbers.iter().position(|known| known == number)?;
                    filled.get(place).map(Vec::as_slice)
                }
            };
            let mut arguments: [&[f32]; 3] = [&[]; 3];
            for (slot, source) in arguments.iter_mut().zip(&step.arguments) {
                *slot = of(source).unwrap_or_default();
            }
            let mut result = vec![0.0; dst.len()];
            step.function.each(arguments, &mut result);
            results.push(result);
        }
        if let Some(last) = results.last() {
            dst.copy_from_slice(last);
        }
    }
}
