//! One step of the cells of recurrent layers (`recurrent`).

use super::builder::Builder;
use super::each::Arg;
use super::moves::{columns, rows};
use super::operand::{Mapped, Operand};
use super::products::dense;
use crate::emit::Bits;
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function::{self, Add, Clamp, Mul, Sub};
use crate::ops::normalize::Normalize;

/// What a cell leaves for its next step: its output, and what an LSTM keeps beside it.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) output: Operand,
    pub(crate) cell: Option<Operand>,
}

/// A cell with its weights. What it makes of the input alone comes to it as `sums`, a column for each gate's units.
#[derive(Clone)]
pub(crate) enum Cell {
    Lstm(Box<Lstm>),
    Gru(Box<Gru>),
    Plain(Plain),
}

impl Cell {
    /// The state after one more step; before the first one there may be none, which is zeros.
    pub(crate) fn step(
        &self,
        b: &mut Builder,
        sums: Operand,
        before: Option<State>,
    ) -> Result<State, Reason> {
        match self {
            Cell::Lstm(cell) => cell.step(b, sums, before),
            Cell::Gru(cell) => cell.step(b, sums, before),
            Cell::Plain(cell) => cell.step(b, sums, before),
        }
    }

    /// Its weights, of which those that the graph has are values.
    pub(super) fn operands(&mut self) -> Vec<&mut Operand> {
        match self {
            Cell::Lstm(cell) => {
                let Lstm { recurrent, peepholes, projection, .. } = &mut **cell;
                let mut all: Vec<&mut Operand> = recurrent.iter_mut().collect();
                all.extend(peepholes.iter_mut().flatten());
                if let Some(Projection { weights, bias }) = projection {
                    all.push(weights);
                    all.extend(bias.iter_mut());
                }
                all
            }
            Cell::Gru(cell) => {
                let Gru { recurrent, late, .. } = &mut **cell;
                recurrent.iter_mut().chain(late.iter_mut()).collect()
            }
            Cell::Plain(Plain { recurrent, .. }) => vec![recurrent],
        }
    }

    /// How many units its output has, and what it keeps beside that.
    pub(super) fn widths(&self, b: &Builder) -> Result<(usize, Option<usize>), Reason> {
        let rows = |operand: &Operand| -> Result<usize, Reason> {
            b.shape(operand)?.first().copied().ok_or_else(|| "found weights without rows".into())
        };
        Ok(match self {
            Cell::Lstm(cell) => match &cell.projection {
                Some(projection) => (rows(&projection.weights)?, Some(cell.units)),
                None => (cell.units, Some(cell.units)),
            },
            Cell::Gru(cell) => (cell.units, None),
            Cell::Plain(cell) => (rows(&cell.recurrent)?, None),
        })
    }
}

/// What `function` gives of `x`, which is first bounded by `clip` if that is above 0.
fn activated(
    b: &mut Builder,
    part: &str,
    function: Option<Function>,
    x: Operand,
    clip: f32,
) -> Result<Operand, Reason> {
    let x = clipped(b, x, clip)?;
    match function {
        Some(function) => b.apply(part, function, &[x.into()]),
        None => Ok(x),
    }
}

fn clipped(b: &mut Builder, x: Operand, clip: f32) -> Result<Operand, Reason> {
    match clip > 0.0 {
        true => b.apply("clip", Clamp, &[x.into(), (-clip).into(), clip.into()]),
        false => Ok(x),
    }
}

/// The two gates of which one may be what the other leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coupled {
    /// Each has weights.
    No,
    /// The input gate is `1 - f`.
    Input,
    /// The forget gate is `1 - i`.
    Forget,
}

/// `c' = f c + i g`, `h = o a(c')`. The gates `i`, `f` and `o` see the cell through peepholes.
#[derive(Clone)]
pub(crate) struct Lstm {
    pub(crate) units: usize,
    /// Which columns of the sums are those of the input gate, the forget gate, the update and the output gate.
    pub(crate) places: [usize; 4],
    pub(crate) coupled: Coupled,
    /// `columns units`; nothing if the sums have the state's share.
    pub(crate) recurrent: Option<Operand>,
    /// The weights by which the input, the forget and the output gate see the cell.
    pub(crate) peepholes: [Option<Operand>; 3],
    pub(crate) norms: Option<Norms>,
    pub(crate) projection: Option<Projection>,
    /// The activations of the gates, of the update and of the cell.
    pub(crate) functions: [Option<Function>; 3],
    pub(crate) clips: Clips,
}

/// Bounds; 0 is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clips {
    /// The bound of the sums that the gates and the update read, the peepholes' share included.
    pub(crate) sums: f32,
    /// The bound of the cell.
    pub(crate) cell: f32,
    /// The bound of a projection's result.
    pub(crate) projection: f32,
}

/// Each gate has mean 0 and variance 1 before these factors and summands, which lie as the sums do.
#[derive(Clone)]
pub(crate) struct Norms {
    pub(crate) scale: Operand,
    pub(crate) bias: Operand,
    pub(crate) epsilon: f32,
}

/// What becomes of an output: `P h + b`.
#[derive(Clone)]
pub(crate) struct Projection {
    pub(crate) weights: Operand,
    pub(crate) bias: Option<Operand>,
}

impl Lstm {
    fn step(&self, b: &mut Builder, sums: Operand, before: Option<State>) -> Result<State, Reason> {
        let sums = match (&before, &self.recurrent) {
            (Some(before), Some(weights)) => {
                dense(b, "gates", before.output.clone(), weights, None, Some(sums))?
            }
            _ => sums,
        };
        let before = before.and_then(|before| before.cell);
        let cell = before.as_ref();
        let [gates, update, bounded] = self.functions;
        let input = match self.coupled {
            Coupled::Input => None,
            _ => Some(self.gate(b, ("input", gates), &sums, 0, (cell, 0))?),
        };
        let forget = match self.coupled {
            Coupled::Forget => None,
            _ => Some(self.gate(b, ("forget", gates), &sums, 1, (cell, 1))?),
        };
        let rest = |b: &mut Builder, other: &Option<Operand>| -> Result<Operand, Reason> {
            let other = other.clone().ok_or("found no gate")?;
            b.apply("rest", Sub, &[1.0.into(), other.into()])
        };
        let update = self.gate(b, ("update", update), &sums, 2, (None, 0))?;
        let kept = match (before.clone(), &forget) {
            (None, _) => None,
            (Some(cell), Some(forget)) => {
                Some(b.apply("kept", Mul, &[forget.clone().into(), cell.into()])?)
            }
            (Some(cell), None) => {
                let forget = rest(b, &input)?;
                Some(b.apply("kept", Mul, &[forget.into(), cell.into()])?)
            }
        };
        let input = match input {
            Some(input) => input,
            None => rest(b, &forget)?,
        };
        let mut cell = b.apply("new", Mul, &[input.into(), update.into()])?;
        if let Some(kept) = kept {
            cell = b.apply("cell", Add, &[kept.into(), cell.into()])?;
        }
        let cell = clipped(b, cell, self.clips.cell)?;
        let output = self.gate(b, ("output", gates), &sums, 3, (Some(&cell), 2))?;
        let bounded = activated(b, "bounded", bounded, cell.clone(), 0.0)?;
        let mut result = b.apply("result", Mul, &[output.into(), bounded.into()])?;
        if let Some(Projection { weights, bias }) = &self.projection {
            result = dense(b, "projected", result, weights, bias.as_ref(), None)?;
            result = clipped(b, result, self.clips.projection)?;
        }
        Ok(State { output: result, cell: Some(cell) })
    }

    /// Gate `gate` of the sums, with what its peephole sees of a cell.
    fn gate(
        &self,
        b: &mut Builder,
        (part, function): (&str, Option<Function>),
        sums: &Operand,
        gate: usize,
        (cell, peephole): (Option<&Operand>, usize),
    ) -> Result<Operand, Reason> {
        let first = self.places[gate] * self.units;
        let mut sum = columns(b, "gate", sums, first, self.units)?;
        if let (Some(cell), Some(peephole)) = (cell, &self.peepholes[peephole]) {
            let seen = b.apply("peephole", Mul, &[cell.clone().into(), peephole.clone().into()])?;
            sum = b.apply("sum", Add, &[sum.into(), seen.into()])?;
        }
        if let Some(norms) = &self.norms {
            let own = |b: &mut Builder, of: &Operand| -> Result<_, Reason> {
                let own = columns(b, "norm", of, first, self.units)?;
                Ok(Some(HostTensor::vector(b.known_list(&own)?)?))
            };
            let (scale, bias) = (own(b, &norms.scale)?, own(b, &norms.bias)?);
            let options = Normalize { axes: vec![-1], epsilon: Bits(norms.epsilon), ..Normalize::default() };
            let mapped = b.mapped(sum)?;
            let value =
                b.add("norm", |graph, name| graph.normalize(name, mapped.value, options, scale, bias))?;
            sum = Operand::Value(Mapped { value, ..mapped });
        }
        activated(b, part, function, sum, self.clips.sums)
    }
}

/// `h' = (1 - z) n + z h`, `n = a(x + r (R h + late))` or `a(x + R (r h))`.
#[derive(Clone)]
pub(crate) struct Gru {
    pub(crate) units: usize,
    /// `columns units`: of the update gate `z`, the reset gate `r` and the new output `n`, one below the other.
    pub(crate) recurrent: [Operand; 2],
    /// Whether the reset gate takes its share of the product and not of the state.
    pub(crate) resets_product: bool,
    /// What is added to that product.
    pub(crate) late: Option<Operand>,
    /// The activations of the gates and of the new output.
    pub(crate) functions: [Option<Function>; 2],
    pub(crate) clip: f32,
}

impl Gru {
    /// The weights of both gates, and those of the new output, of which each is a value once for all steps.
    pub(crate) fn split(b: &mut Builder, recurrent: &Operand, units: usize) -> Result<[Operand; 2], Reason> {
        let (gates, new) = (rows(b, recurrent, 0, 2 * units)?, rows(b, recurrent, 2 * units, units)?);
        Ok([b.kept("recurrent", gates)?, b.kept("recurrent", new)?])
    }

    fn step(&self, b: &mut Builder, sums: Operand, before: Option<State>) -> Result<State, Reason> {
        let Gru { units, recurrent: [gates, new], .. } = self;
        let before = before.map(|before| before.output);
        let mut own = columns(b, "gates", &sums, 0, 2 * units)?;
        if let Some(before) = &before {
            own = dense(b, "gates", before.clone(), gates, None, Some(own))?;
        }
        let open = activated(b, "open", self.functions[0], own, self.clip)?;
        let update = columns(b, "update", &open, 0, *units)?;
        let mut sum = columns(b, "new", &sums, 2 * units, *units)?;
        let reset = |b: &mut Builder, of: Operand| -> Result<Operand, Reason> {
            let reset = columns(b, "reset", &open, *units, *units)?;
            b.apply("reset", Mul, &[reset.into(), of.into()])
        };
        if self.resets_product {
            let late = self.late.as_ref();
            let seen = match &before {
                Some(before) => Some(dense(b, "seen", before.clone(), new, late, None)?),
                None => late.cloned(),
            };
            if let Some(seen) = seen {
                let seen = reset(b, seen)?;
                sum = b.apply("sum", Add, &[sum.into(), seen.into()])?;
            }
        } else if let Some(before) = &before {
            let kept = reset(b, before.clone())?;
            sum = dense(b, "sum", kept, new, None, Some(sum))?;
        }
        let new = activated(b, "new", self.functions[1], sum, self.clip)?;
        let before: Arg = before.map_or(0.0.into(), Arg::from);
        let difference = b.apply("difference", Sub, &[before, new.clone().into()])?;
        let kept = b.apply("kept", Mul, &[update.into(), difference.into()])?;
        Ok(State { output: b.apply("y", Add, &[new.into(), kept.into()])?, cell: None })
    }
}

/// `h' = a(x + R h)`.
#[derive(Clone)]
pub(crate) struct Plain {
    pub(crate) recurrent: Operand,
    pub(crate) function: Option<Function>,
    pub(crate) clip: f32,
}

impl Plain {
    fn step(&self, b: &mut Builder, sums: Operand, before: Option<State>) -> Result<State, Reason> {
        let sum = match before {
            Some(before) => dense(b, "sum", before.output, &self.recurrent, None, Some(sums))?,
            None => sums,
        };
        Ok(State { output: activated(b, "y", self.function, sum, self.clip)?, cell: None })
    }
}
