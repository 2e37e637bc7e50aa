//! What rewrites of a network change in its results: the network runs with them and without.

use super::Session;
use crate::context::Context;
use crate::error::Result;
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::options::{Rewrite, SessionOptions};

/// How far results are off without a rewrite at most, beside how far they are with all, where that rewrite is at fault.
const MENDED: f32 = 0.1;

/// How far the results of a network with its rewrites are from the results without any ([`Session::compare_rewrites`]).
///
/// A distance is the largest difference of an output's elements, in proportion to the largest magnitude of that output; the
/// largest of all outputs. It is infinite where only one of two elements is finite.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ComparedRewrites {
    /// The distance with every rewrite that the options allow.
    pub difference: f32,
    /// The most that rounding is taken to explain.
    pub tolerance: f32,
    /// Where the distance is beyond the tolerance: what it is without each of them.
    pub without: Vec<(Rewrite, f32)>,
}

impl ComparedRewrites {
    /// Whether rounding may explain the distance.
    ///
    /// ```
    /// fn is_right(found: &diptych::ComparedRewrites) -> bool {
    ///     found.agrees()
    /// }
    /// ```
    pub fn agrees(&self) -> bool {
        self.difference <= self.tolerance
    }

    /// The rewrites without each of which the results agree, or are ten times nearer.
    ///
    /// ```
    /// fn names(found: &diptych::ComparedRewrites) -> Vec<&'static str> {
    ///     found.at_fault().map(|rewrite| rewrite.name()).collect()
    /// }
    /// ```
    pub fn at_fault(&self) -> impl Iterator<Item = Rewrite> + '_ {
        let most = self.tolerance.max(MENDED * self.difference.min(f32::MAX));
        self.without.iter().filter(move |(_, difference)| *difference <= most).map(|(rewrite, _)| *rewrite)
    }
}

/// The distance of two runs' outputs.
fn distance(found: &[HostTensor], wanted: &[HostTensor]) -> f32 {
    let of = |(found, wanted): (&HostTensor, &HostTensor)| {
        let (found, wanted) = (found.to_nhwc(), wanted.to_nhwc());
        let finite = wanted.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0f32, |most, value| most.max(value.abs()));
        let off = |(found, wanted): (&f32, &f32)| match found == wanted || (found.is_nan() && wanted.is_nan())
        {
            true => 0.0,
            false if found.is_finite() && wanted.is_finite() => {
                (found - wanted).abs() / largest.max(f32::MIN_POSITIVE)
            }
            false => f32::INFINITY,
        };
        found.iter().zip(wanted.iter()).map(off).fold(0.0, f32::max)
    };
    found.iter().zip(wanted).map(of).fold(0.0, f32::max)
}

impl Session {
    /// Runs `graph` without any rewrite ([`Rewrite`]) and with those that `options` allow, and says how far the results
    /// differ. Beyond `tolerance` it also runs without each rewrite in turn: the ones at fault are those without which the
    /// results agree. In f32 rounding explains about 1e-4 of a large network's results, with halves stored about 2e-2.
    ///
    /// ```
    /// use diptych::{Backend, Context, Function, Graph, HostTensor, Session, SessionOptions, Shape};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 1, 4))?;
    /// let moved = graph.elementwise("moved", Function::Add, &[x.into(), 1.0.into()])?;
    /// let y = graph.elementwise("y", Function::Relu, &[moved.into()])?;
    /// graph.output(y)?;
    /// let context = Context::new(Backend::Cpu)?;
    /// let input = HostTensor::new(Shape::nhwc(1, 1, 1, 4), vec![-2.0, -1.0, 1.0, 2.0])?;
    /// let options = SessionOptions::default();
    /// let found = Session::compare_rewrites(&context, &graph, &options, &[("x", &input)], 1e-4)?;
    /// assert!(found.agrees() && found.without.is_empty());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::new`] and [`Session::run`].
    pub fn compare_rewrites(
        context: &Context,
        graph: &Graph,
        options: &SessionOptions,
        inputs: &[(&str, &HostTensor)],
        tolerance: f32,
    ) -> Result<ComparedRewrites> {
        let run = |without: &[Rewrite]| {
            let mut options = options.clone();
            options.without_rewrites.extend(without);
            Session::new(context, graph, options)?.run(inputs)
        };
        let plain = run(&Rewrite::ALL)?;
        let difference = distance(&run(&[])?, &plain);
        let mut without = Vec::new();
        if difference > tolerance {
            let allowed = Rewrite::ALL.into_iter().filter(|own| !options.without_rewrites.contains(own));
            for rewrite in allowed {
                without.push((rewrite, distance(&run(&[rewrite])?, &plain)));
            }
        }
        Ok(ComparedRewrites { difference, tolerance, without })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_in_proportion_to_the_output() {
        let of = |values: &[f32]| vec![HostTensor::vector(values.to_vec()).expect("a tensor")];
        assert_eq!(distance(&of(&[1.0, 4.0]), &of(&[1.0, 8.0])), 0.5);
        assert_eq!(distance(&of(&[f32::NAN, f32::INFINITY]), &of(&[f32::NAN, f32::INFINITY])), 0.0);
        assert_eq!(distance(&of(&[f32::NAN, 1.0]), &of(&[1.0, 1.0])), f32::INFINITY);
        assert_eq!(distance(&of(&[0.0]), &of(&[-0.0])), 0.0);
    }

    #[test]
    fn at_fault_is_what_mends_when_it_is_left_out() {
        let without = vec![(Rewrite::Borders, 0.5), (Rewrite::Attention, 1e-6), (Rewrite::Loops, 0.03)];
        let found = ComparedRewrites { difference: 0.5, tolerance: 1e-4, without };
        assert!(!found.agrees());
        assert_eq!(found.at_fault().collect::<Vec<_>>(), [Rewrite::Attention, Rewrite::Loops]);
    }
}
