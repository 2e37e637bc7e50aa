//! What two nests read.

use super::Nested;
use crate::dims::Dims;
use crate::lower::network::Network;
use crate::lower::unit::Input;
use crate::ops::loops::SourceAt;

/// The sources of two nests, each once.
#[derive(Default)]
pub(super) struct SharedSources {
    pub(super) sources: Vec<(Input, Dims)>,
    /// A bit for each that is read in halves.
    pub(super) halves: u32,
}

impl SharedSources {
    /// A source and where it is: what one of the nests reads in f32 is read so.
    pub(super) fn add(
        &mut self,
        network: &mut Network<'_>,
        (input, dims): &(Input, Dims),
        half: bool,
    ) -> SourceAt {
        let input = match input {
            Input::Constant(tensor, None) => {
                Input::Constant(tensor.clone(), Some(network.add_constant(tensor.clone())))
            }
            known => known.clone(),
        };
        SourceAt::whole(self.place_of(input, *dims, half))
    }

    /// The place of a source, which is added if it is new: what is read in f32 once is read so.
    pub(super) fn place_of(&mut self, input: Input, dims: Dims, half: bool) -> usize {
        let value = |input: &Input| match input {
            Input::Value(value) | Input::Constant(_, Some(value)) => Some(*value),
            Input::Constant(_, None) => None,
        };
        let same = |(own, _): &(Input, Dims)| value(own).is_some() && value(own) == value(&input);
        let place = self.sources.iter().position(same).unwrap_or_else(|| {
            self.sources.push((input, dims));
            self.halves |= u32::from(half) << (self.sources.len() - 1).min(31);
            self.sources.len() - 1
        });
        if !half {
            self.halves &= !(1 << place.min(31));
        }
        place
    }

    /// All sources of a nest.
    pub(super) fn add_all(&mut self, network: &mut Network<'_>, of: &Nested) -> Vec<SourceAt> {
        let sources = of.sources.iter().enumerate();
        sources.map(|(place, own)| self.add(network, own, of.halves.sources & (1 << place) != 0)).collect()
    }
}
