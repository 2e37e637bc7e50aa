//! Weights of convolutions, as files have them.

use super::builder::Builder;
use super::operand::Operand;
use crate::host::HostTensor;
use crate::model::constant::{Indices, dims_of, elements_of, strides};
use crate::model::reason::Reason;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// The axis of weights that counts output channels.
pub(crate) const OUTPUTS: usize = 0;
/// The one that counts input channels; the spatial axes, of taps, are behind it.
pub(crate) const INPUTS: usize = 1;

/// Weights whose channels are in groups. A convolution has all output channels and the input channels of one group, a
/// transposed one all input channels and the output channels of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) count: usize,
    pub(crate) transposed: bool,
}

impl Groups {
    /// The groups of a convolution that is not transposed.
    pub(crate) fn of(count: usize) -> Self {
        Groups { count, transposed: false }
    }
}

/// The weights of a convolution, and its bias.
pub(crate) enum Weights {
    /// The summand of each output channel is computed at each run, if it is not the filter's: `1 channels 1..`.
    Known { filter: Filter, summand: Option<Operand> },
    /// Weights `outputs inputs taps..` that are computed at each run.
    Computed { weights: Operand, bias: Option<Operand>, groups: Groups },
}

impl Weights {
    /// Weights of which axis `i` is axis `order[i]` of `outputs inputs taps..`.
    pub(crate) fn new(
        b: &mut Builder,
        weights: Operand,
        bias: Option<Operand>,
        order: &[usize],
        groups: Groups,
    ) -> Result<Self, Reason> {
        let own = b.shape(&weights)?;
        if own.len() != order.len() || own.len() < 3 {
            return refused!("found weights of {own:?}, wanted rank {}", order.len().max(3));
        }
        let constant = match weights {
            Operand::Constant(constant, _) => constant,
            value @ Operand::Value(_) => {
                let place = |axis: usize| order.iter().position(|&own| own == axis).unwrap_or(axis);
                let permutation: Vec<usize> = (0..order.len()).map(place).collect();
                return Ok(Weights::Computed { weights: b.transposed(value, &permutation)?, bias, groups });
            }
        };
        let filter = Filter::new(constant.floats(&mut b.budget)?, order, groups)?;
        Ok(match bias {
            None => Weights::Known { filter, summand: None },
            Some(bias @ Operand::Constant(..)) => {
                let filter = filter.with_bias(b.known_list(&bias)?)?;
                Weights::Known { filter, summand: None }
            }
            Some(bias) => {
                let mut extents = vec![1; own.len()];
                extents[1] = filter.channels();
                let summand = b.with_extents("bias", bias, &extents)?;
                Weights::Known { filter, summand: Some(summand) }
            }
        })
    }

    /// `outputs inputs taps..`.
    fn extents(&self, b: &Builder) -> Result<Vec<usize>, Reason> {
        match self {
            Weights::Known { filter, .. } => Ok(filter.extents().to_vec()),
            Weights::Computed { weights, .. } => b.shape(weights),
        }
    }

    /// The taps along each spatial axis.
    pub(crate) fn kernel(&self, b: &Builder) -> Result<Vec<usize>, Reason> {
        Ok(self.extents(b)?.split_off(2))
    }

    /// Output channels as the weights count them: of all groups, or of one where they are transposed.
    pub(crate) fn outputs(&self, b: &Builder) -> Result<usize, Reason> {
        Ok(self.extents(b)?[OUTPUTS])
    }
}

/// Weights of f32 that are known, and one summand per output channel.
pub(crate) struct Filter {
    weights: HostTensor,
    /// The extents of `outputs inputs taps..`.
    extents: Vec<usize>,
    /// Axis `i` of the weights is this one of these.
    order: Vec<usize>,
    pub(crate) groups: Groups,
    pub(crate) bias: Option<Vec<f32>>,
    /// What the weights of each output channel are multiplied by; none for as they are.
    factors: Vec<f32>,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} (output channels, input channels, taps)", self.extents)
    }
}

/// How an operator wants weights.
pub(crate) struct Arranged<'a> {
    /// The axes, one behind the other.
    pub(crate) order: &'a [usize],
    /// First and count along each axis, if not all.
    pub(crate) ranges: &'a [(usize, [usize; 2])],
    /// Axes of taps that have zeros between them: from one tap to the next.
    pub(crate) apart: &'a [(usize, usize)],
}

impl<'a> Arranged<'a> {
    /// All of them in this order.
    pub(crate) fn by(order: &'a [usize]) -> Self {
        Arranged { order, ranges: &[], apart: &[] }
    }
}

impl Filter {
    /// The filter of `weights` whose axis `i` is axis `order[i]` of `outputs inputs taps..`.
    pub(crate) fn new(weights: HostTensor, order: &[usize], groups: Groups) -> Result<Self, Reason> {
        let own = weights.dims();
        if own.rank() != order.len() {
            return refused!("found weights of {own}, wanted rank {}", order.len());
        }
        let mut extents = vec![1; own.rank()];
        for (&axis, &extent) in order.iter().zip(own.extents()) {
            *extents.get_mut(axis).ok_or("found weights of unknown axes")? = extent;
        }
        if extents.contains(&0) || groups.count == 0 {
            return refused!("found weights of {own} in {} groups, wanted elements", groups.count);
        }
        Ok(Filter { weights, extents, order: order.to_vec(), groups, bias: None, factors: Vec::new() })
    }

    /// `outputs inputs taps..`.
    pub(crate) fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// The output channels of all groups.
    pub(crate) fn channels(&self) -> usize {
        self.extents[OUTPUTS] * if self.groups.transposed { self.groups.count } else { 1 }
    }

    /// The input channels of one group.
    pub(crate) fn inputs(&self) -> usize {
        self.extents[INPUTS] / if self.groups.transposed { self.groups.count } else { 1 }
    }

    /// Whether output channels are behind all taps, as those of a convolution of each channel by itself are.
    pub(crate) fn is_by_channel(&self) -> bool {
        self.extents[INPUTS] == 1
            && self.order.first() == Some(&INPUTS)
            && self.order.last() == Some(&OUTPUTS)
    }

    /// Multiplies the sums of each output channel, and adds to them: a factor and a summand for each, or one for all.
    pub(crate) fn scale(&mut self, factor: &[f32], summand: &[f32]) {
        let channels = self.channels();
        let of = |list: &[f32], channel: usize| list.get(channel % list.len().max(1)).copied();
        if factor.iter().any(|&factor| factor != 1.0) {
            self.factors.resize(channels, 1.0);
            for (channel, own) in self.factors.iter_mut().enumerate() {
                *own *= of(factor, channel).unwrap_or(1.0);
            }
        }
        let bias = self.bias.get_or_insert_with(|| vec![0.0; channels]);
        for (channel, bias) in bias.iter_mut().enumerate() {
            *bias = *bias * of(factor, channel).unwrap_or(1.0) + of(summand, channel).unwrap_or(0.0);
        }
    }

    /// The filter with a spatial axis of one tap (a height) before its own, so that a filter of lines is one of maps.
    pub(crate) fn flat(mut self) -> Self {
        self.extents.insert(2, 1);
        self.order.iter_mut().filter(|axis| **axis >= 2).for_each(|axis| *axis += 1);
        self.order.push(2);
        self
    }

    /// The filter with `bias`, a summand for each output channel; refuses another number of summands.
    pub(crate) fn with_bias(mut self, bias: Vec<f32>) -> Result<Self, Reason> {
        let channels = self.channels();
        if bias.len() != channels {
            return refused!("found a bias of {} for {channels} channels, wanted one for each", bias.len());
        }
        self.bias = Some(bias);
        Ok(self)
    }

    /// All that is made of the weights, in words.
    fn words(&self, wanted: &Arranged<'_>) -> String {
        let mut hashes = [0u64, 1].map(|seed| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher
        });
        for factor in &self.factors {
            hashes.iter_mut().for_each(|hash| hash.write_u32(factor.to_bits()));
        }
        let [a, b] = hashes.map(|hash| hash.finish());
        let Filter { extents, order, groups, factors, .. } = self;
        let Arranged { order: to, ranges, apart } = wanted;
        format!(
            "filter {extents:?} in {order:?} by {groups:?} to {to:?} {ranges:?} {apart:?} times {} {a:x} {b:x}",
            factors.len()
        )
    }

    /// Whether the weights are stored as they are wanted.
    fn is_arranged(&self, wanted: &Arranged<'_>) -> bool {
        let large = |axis: &&usize| self.extents.get(**axis).is_some_and(|&extent| extent > 1);
        let is_whole = |&(axis, range): &(usize, [usize; 2])| self.extents.get(axis) == Some(&range[1]);
        let next = |&(axis, step): &(usize, usize)| step == 1 || self.extents.get(axis) == Some(&1);
        let is_same = self.order.iter().filter(large).eq(wanted.order.iter().filter(large));
        let is_all = wanted.ranges.iter().all(is_whole) && wanted.apart.iter().all(next);
        self.factors.is_empty() && is_same && is_all
    }

    /// The weights as an operator wants them, each multiplied by the factor of its output channel, in these dimensions.
    pub(crate) fn arranged(
        &self,
        b: &mut Builder,
        wanted: &Arranged<'_>,
        extents: &[usize],
    ) -> Result<HostTensor, Reason> {
        let dims = dims_of(extents)?;
        if self.is_arranged(wanted) {
            return Ok(self.weights.clone().reshaped(dims)?);
        }
        b.derived(&self.weights, &self.words(wanted), |b| {
            b.budget.spend(elements_of(extents)?.saturating_mul(8))?;
            let tensor = HostTensor::new(dims, self.copied(wanted)?)?;
            Ok(match self.arranged_scales(wanted) {
                Some((values, axis)) => tensor.with_scales(values, axis),
                None => tensor,
            })
        })
    }

    /// The scales of the weights as an operator wants them, and their axis.
    fn arranged_scales(&self, wanted: &Arranged<'_>) -> Option<(Arc<[f32]>, usize)> {
        let scales = self.weights.scales().filter(|_| self.factors.is_empty())?;
        if scales.values.len() == 1 {
            return Some((scales.values.clone(), 0));
        }
        let own = *self.order.get(scales.axis)?;
        let is_whole = wanted.ranges.iter().all(|(axis, _)| *axis != own);
        let axis = wanted.order.iter().position(|&axis| axis == own)?;
        (is_whole && wanted.order.len() == self.extents.len()).then(|| (scales.values.clone(), axis))
    }

    fn copied(&self, wanted: &Arranged<'_>) -> Result<Vec<f32>, Reason> {
        let rank = self.extents.len();
        let stored: Vec<usize> = self.order.iter().map(|&axis| self.extents[axis]).collect();
        let mut from = vec![0; rank];
        for (&axis, step) in self.order.iter().zip(strides(&stored)) {
            from[axis] = step;
        }
        let (mut begin, mut count, mut apart) = (vec![0; rank], self.extents.clone(), vec![1; rank]);
        for &(axis, range) in wanted.ranges {
            [begin[axis], count[axis]] = range;
        }
        for &(axis, step) in wanted.apart {
            apart[axis] = step;
        }
        let first: usize = (0..rank).map(|axis| begin[axis] * from[axis]).sum();
        let spans: Vec<usize> =
            wanted.order.iter().map(|&axis| (count[axis] - 1) * apart[axis] + 1).collect();
        let mut to = vec![0; rank];
        for (&axis, step) in wanted.order.iter().zip(strides(&spans)) {
            to[axis] = step * apart[axis];
        }
        let Some((&last, outer)) = wanted.order.split_last() else { return refused!("found no axes") };
        let source = self.weights.to_nhwc();
        let mut values = vec![0.0; elements_of(&spans)?];
        let counts: Vec<usize> = outer.iter().map(|&axis| count[axis]).collect();
        let mut every = Indices::new(&counts);
        let mut place = begin.clone();
        while let Some(index) = every.following() {
            let (mut source_at, mut target_at) = (first, 0);
            for (&axis, &at) in outer.iter().zip(index) {
                source_at += at * from[axis];
                target_at += at * to[axis];
                place[axis] = begin[axis] + at;
            }
            for at in 0..count[last] {
                let found = source.get(source_at + at * from[last]);
                let value = *found.ok_or("found fewer weights than their extents say")?;
                place[last] = begin[last] + at;
                values[target_at + at * to[last]] = match self.factors.is_empty() {
                    true => value,
                    false => value * self.factor(place[OUTPUTS], place[INPUTS]),
                };
            }
        }
        Ok(values)
    }

    /// What the weights of a pair of channels are multiplied by.
    fn factor(&self, output: usize, input: usize) -> f32 {
        let channel = match self.groups.transposed {
            false => output,
            true => input / self.inputs().max(1) * self.extents[OUTPUTS] + output,
        };
        self.factors.get(channel).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;

    /// Weights whose elements are their places.
    fn counted(extents: &[usize], order: &[usize], groups: Groups) -> Filter {
        let dims = Dims::new(extents).expect("extents");
        let values: Vec<f32> = (0..dims.elements()).map(|at| at as f32).collect();
        Filter::new(HostTensor::new(dims, values).expect("a tensor"), order, groups).expect("weights")
    }

    #[test]
    fn weights_that_are_stored_as_wanted_are_not_copied() {
        let filter = counted(&[2, 3, 3, 4], &[0, 2, 3, 1], Groups::of(1));
        assert_eq!(filter.extents(), [2, 4, 3, 3]);
        assert!(filter.is_arranged(&Arranged::by(&[0, 2, 3, 1])));
        assert!(!filter.is_arranged(&Arranged::by(&[0, 1, 2, 3])));
        // Of one tap, or one input channel, the order is the same.
        let filter = counted(&[2, 3, 1, 1], &[0, 1, 2, 3], Groups::of(1));
        assert!(filter.is_arranged(&Arranged::by(&[0, 2, 3, 1])));
    }

    #[test]
    fn weights_are_cut_and_put_apart() {
        let filter = counted(&[2, 1, 3], &[0, 1, 2], Groups::of(1));
        assert_eq!(filter.copied(&Arranged::by(&[2, 1, 0])), Ok(vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
        let wanted = Arranged { ranges: &[(0, [1, 1])], apart: &[(2, 2)], ..Arranged::by(&[0, 1, 2]) };
        assert_eq!(filter.copied(&wanted), Ok(vec![3.0, 0.0, 4.0, 0.0, 5.0]));
    }

    #[test]
    fn factors_are_those_of_the_output_channels_of_all_groups() {
        let mut filter = counted(&[2, 2, 1], &[INPUTS, OUTPUTS, 2], Groups { count: 2, transposed: true });
        assert_eq!((filter.channels(), filter.inputs()), (4, 1));
        filter.scale(&[1.0, 10.0, 100.0, 1000.0], &[0.5]);
        assert_eq!(filter.copied(&Arranged::by(&[INPUTS, OUTPUTS, 2])), Ok(vec![0.0, 10.0, 200.0, 3000.0]));
        assert_eq!(filter.bias, Some(vec![0.5; 4]));
        let mut filter = counted(&[2, 1, 2], &[OUTPUTS, INPUTS, 2], Groups::of(2));
        filter.scale(&[2.0, 3.0], &[0.0]);
        assert_eq!(filter.copied(&Arranged::by(&[OUTPUTS, INPUTS, 2])), Ok(vec![0.0, 2.0, 6.0, 9.0]));
    }
}
