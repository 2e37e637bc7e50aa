//! Maps as rows of pixels, read at computed places.

use super::import::Import;
use crate::model::build::{Arg, Mapped, Operand, channels_last};
use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function as F;

/// Pixels that f32 counts.
const MAX_PIXELS: usize = 1 << 24;

/// Pixels of maps.
pub(super) struct Pixels {
    /// The channels of each group of each pixel of each map: a row each.
    rows: Operand,
    /// The spatial extents.
    pub(super) extents: Vec<usize>,
    groups: usize,
    /// The channels of a group.
    wide: usize,
}

impl Import<'_> {
    /// A function of each element, a part of an operator.
    pub(super) fn e(&mut self, function: F, args: &[Arg]) -> Result<Arg, Reason> {
        self.apply("part", function, args).map(Arg::Operand)
    }

    /// The pixels of maps `n c d...`, their channels in groups that are read at places of their own.
    pub(super) fn pixels(&mut self, maps: Operand, groups: usize) -> Result<Pixels, Reason> {
        let own = self.shape(&maps)?;
        let [n, c, spatial @ ..] = &own[..] else {
            return refused!("found {own:?}, wanted maps");
        };
        if groups == 0 || !c.is_multiple_of(groups) || spatial.is_empty() {
            return refused!("found {own:?}, wanted maps of {groups} groups of channels");
        }
        let count = elements_of(&[&[*n, groups], spatial].concat())?;
        if count > MAX_PIXELS {
            return refused!("found {count} pixels, wanted at most {MAX_PIXELS}");
        }
        let mapped = self.mapped_slot(maps, None)?;
        let value = self.in_order(&mapped, &channels_last(own.len()))?;
        let rows = Operand::Value(Mapped::plain(value, own.len(), mapped.kind));
        let rows = self.with_extents("pixels", rows, &[count, c / groups])?;
        Ok(Pixels { rows, extents: spatial.to_vec(), groups, wide: c / groups })
    }
}

impl Pixels {
    /// The channels at whole places, one argument for each spatial axis, of maps by their numbers and groups by
    /// theirs: zero outside of the map. All arguments broadcast to `target`; behind it are the channels.
    pub(super) fn at(
        &self,
        i: &mut Import<'_>,
        map: Option<Arg>,
        group: Option<Arg>,
        places: &[Arg],
        target: &[usize],
    ) -> Result<Operand, Reason> {
        let mut inside: Option<Arg> = None;
        let mut index = map;
        for (place, &extent) in places.iter().zip(&self.extents) {
            let low = i.e(F::GreaterEqual, &[place.clone(), 0.0.into()])?;
            let high = i.e(F::Less, &[place.clone(), (extent as f32).into()])?;
            let within = i.e(F::LogicalAnd, &[low, high])?;
            inside = Some(match inside {
                None => within,
                Some(inside) => i.e(F::LogicalAnd, &[inside, within])?,
            });
            index = Some(match index {
                None => place.clone(),
                Some(index) => {
                    let scaled = i.e(F::Mul, &[index, (extent as f32).into()])?;
                    i.e(F::Add, &[scaled, place.clone()])?
                }
            });
        }
        let (mut index, inside) = (index.ok_or("found no places")?, inside.ok_or("found no places")?);
        if let Some(group) = group {
            let scaled = i.e(F::Mul, &[index, (self.groups as f32).into()])?;
            index = i.e(F::Add, &[scaled, group])?;
        }
        // Elements of no pixel are zero.
        let Arg::Operand(index) = i.e(F::Select, &[inside, index, (-1.0).into()])? else {
            return refused!("found no places");
        };
        let index = i.with_extents("index", index, target)?;
        let (index, rows) = (i.mapped_slot(index, None)?, i.mapped_slot(self.rows.clone(), None)?);
        let kind = rows.kind;
        let (index, rows) = (i.logical(&index)?, i.logical(&rows)?);
        // Few axes are asked for: a gather has no more than a tensor.
        let count = elements_of(target)?;
        let flat = i.reshaped("places", index, &[count])?;
        let value = i.add("tap", |graph, name| graph.gather(name, rows, flat, 0, 0))?;
        let extents = [target, &[self.wide]].concat();
        let value = i.reshaped("taps", value, &extents)?;
        Ok(Operand::Value(Mapped::plain(value, extents.len(), kind)))
    }

    /// The sum over the taps of every axis of weight times pixel. A tap is a place and its weight, of the extents
    /// `target`, to which all broadcast.
    pub(super) fn sum(
        &self,
        i: &mut Import<'_>,
        map: Option<&Arg>,
        group: Option<&Arg>,
        axes: &[Vec<(Arg, Arg)>],
        target: &[usize],
    ) -> Result<Operand, Reason> {
        let mut sum: Option<Operand> = None;
        for (tap, weight) in self.weighted(i, map, group, axes, target)? {
            let term = match weight {
                None => tap,
                Some(weight) => i.apply("term", F::Mul, &[tap.into(), weight])?,
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => i.apply("sum", F::Add, &[sum.into(), term.into()])?,
            });
        }
        sum.ok_or_else(|| "found no taps".into())
    }

    /// The pixels at every choice of one tap of each axis, and the product of its weights.
    pub(super) fn weighted(
        &self,
        i: &mut Import<'_>,
        map: Option<&Arg>,
        group: Option<&Arg>,
        axes: &[Vec<(Arg, Arg)>],
        target: &[usize],
    ) -> Result<Vec<(Operand, Option<Arg>)>, Reason> {
        let counts: Vec<usize> = axes.iter().map(Vec::len).collect();
        let mut terms = Vec::new();
        for choice in crate::model::constant::indices(&counts) {
            let (mut places, mut weight) = (Vec::with_capacity(axes.len()), None);
            for (taps, &tap) in axes.iter().zip(&choice) {
                let (place, own) = &taps[tap];
                places.push(place.clone());
                weight = match (weight, own) {
                    (weight, Arg::Number(1.0)) => weight,
                    (None, own) => Some(own.clone()),
                    (Some(weight), own) => Some(i.e(F::Mul, &[weight, own.clone()])?),
                };
            }
            let pixels = self.at(i, map.cloned(), group.cloned(), &places, target)?;
            let weight = match weight {
                Some(Arg::Operand(weight)) => {
                    let mut extents = i.shape(&weight)?;
                    extents.push(1);
                    Some(i.with_extents("weight", weight, &extents)?.into())
                }
                other => other,
            };
            terms.push((pixels, weight));
        }
        Ok(terms)
    }
}

/// The two taps of a linear interpolation: the whole places around one, and what each counts.
pub(super) fn linear(i: &mut Import<'_>, place: Arg) -> Result<Vec<(Arg, Arg)>, Reason> {
    let first = i.e(F::Floor, std::slice::from_ref(&place))?;
    let share = i.e(F::Sub, &[place, first.clone()])?;
    let rest = i.e(F::Sub, &[1.0.into(), share.clone()])?;
    let second = i.e(F::Add, &[first.clone(), 1.0.into()])?;
    Ok(vec![(first, rest), (second, share)])
}
