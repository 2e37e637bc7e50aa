//! Random numbers: drawn at each run, and never known while a file is read.

use super::builder::Builder;
use super::constants::floats;
use super::kind::Kind;
use super::operand::{Mapped, Operand};
use super::rows::{Extreme, arg};
use crate::dims::Dim;
use crate::model::constant::elements_of;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::random::Random;

/// Random numbers of these extents.
pub(crate) fn drawn(
    b: &mut Builder,
    part: &str,
    options: Random,
    extents: &[usize],
) -> Result<Operand, Reason> {
    if elements_of(extents)? == 0 {
        return Ok(Operand::Constant(floats(extents, Vec::new())?, Kind::F32));
    }
    let dims: Vec<Dim> = extents.iter().map(|&extent| Dim::Fixed(extent)).collect();
    let value = b.add(part, |graph, name| graph.random(name, options, &dims))?;
    Ok(Operand::Value(Mapped::plain(value, extents.len(), Kind::F32)))
}

/// Random numbers in the shape of `like` and, where it is a value, in its order of axes.
pub(crate) fn drawn_like(
    b: &mut Builder,
    part: &str,
    options: Random,
    like: &Operand,
) -> Result<Operand, Reason> {
    match like {
        Operand::Constant(constant, _) => drawn(b, part, options, &constant.extents()),
        Operand::Value(mapped) => {
            let value = b.add(part, |graph, name| graph.random_like(name, options, mapped.value))?;
            Ok(Operand::Value(Mapped { value, kind: Kind::F32, ..mapped.clone() }))
        }
    }
}

/// For each row of logarithms of weights so many places, each drawn by these weights: that of the largest sum of a
/// logarithm and a number of Gumbel's distribution (Gumbel, *Statistical Theory of Extreme Values*, 1954). The weights need
/// no sum, and what is drawn does not depend on how a device rounds.
pub(crate) fn chosen(b: &mut Builder, logs: Operand, count: usize, seed: u64) -> Result<Operand, Reason> {
    let extents = b.shape(&logs)?;
    let [rows, places] = extents[..] else {
        return refused!("found logarithms of {extents:?}, wanted rows and columns");
    };
    if places == 0 || rows == 0 || count == 0 {
        return refused!(
            "found {count} draws of each of {rows} rows of {places} places, wanted at least one"
        );
    }
    let noise = drawn(b, "noise", Random::gumbel().seed(seed), &[rows, count, places])?;
    let logs = b.with_extents("rows", logs, &[rows, 1, places])?;
    let sums = b.apply("sums", Function::Add, &[noise.into(), logs.into()])?;
    arg(b, sums, 2, Extreme { largest: true, last: false, keep: false })
}
