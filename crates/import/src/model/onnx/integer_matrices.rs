//! Constant matrices of integers that `DequantizeLinear` makes floats: they stay integers until an operator reads them, which
//! may take them packed.

use super::import::{Import, Op, Unread};
use crate::model::build::{Kind, Operand, Packed, Quantised, Shared, axis};
use crate::model::constant::{Constant, Integers};
use crate::model::constant_cache::ConstantCache;
use crate::model::reason::Reason;
use std::sync::Arc;

/// The bits of a type, and what is added to its integers so that they begin with 0.
fn bits_of(kind: Kind) -> Option<(usize, i64)> {
    Some(match kind {
        Kind::U4 => (4, 0),
        Kind::I4 => (4, 8),
        Kind::U8 => (8, 0),
        Kind::I8 => (8, 128),
        _ => return None,
    })
}

/// Integers of a type from 0 on.
fn from_zero(integers: &Integers, (bits, more): (usize, i64)) -> Option<Vec<u8>> {
    let range = -more..(1 << bits) - more;
    // Two loops without ways out: of vectors.
    let fits = integers.values.iter().fold(true, |fits, value| fits & range.contains(value));
    fits.then(|| integers.values.iter().map(|value| (value + more) as u8).collect())
}

/// Keeps what an operator writes as integers if that can be: a constant matrix less its zero points and times its scales, or
/// one that is kept so already with its axes exchanged. Whether it did.
pub(super) fn kept<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<bool, Reason> {
    let found = match (op.node.domain, op.node.op) {
        ("" | "com.microsoft", "DequantizeLinear") => matrix(i, op)?,
        ("", "Transpose") => match op.node.inputs.first().and_then(|name| i.unread(name)) {
            Some((own, kind)) if matches!(op.ints("perm"), None | Some([] | [1, 0])) => {
                Some((own.turned()?, kind))
            }
            _ => None,
        },
        _ => None,
    };
    let (Some((found, kind)), Some(&name)) = (found, op.node.outputs.first()) else { return Ok(false) };
    i.set_unread(name, (found, kind))?;
    Ok(true)
}

/// The matrix that a `DequantizeLinear` is given, and the type of the floats.
fn matrix<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Result<Option<Unread>, Reason> {
    let of = |index: usize| match op.has(index).then(|| i.any(op, index)) {
        Some(Ok(Operand::Constant(constant, kind))) => Some((constant, kind)),
        _ => None,
    };
    let (Some((Constant::Integers(integers), kind)), Some((scales, result))) = (of(0), of(1)) else {
        return Ok(None);
    };
    let zeros = of(2);
    let (Some(range), &[rows, columns]) = (bits_of(kind), &integers.dims[..]) else { return Ok(None) };
    let (extents, shape) = ([rows, columns], scales.extents());
    if rows < 2 || columns < 2 || scales.is_integers() || op.has(2) && zeros.is_none() {
        return Ok(None);
    }
    let size = usize::try_from(op.int("block_size", 0)).unwrap_or(0);
    let Ok(along) = axis(op.int("axis", 1), 2) else { return Ok(None) };
    let mut in_blocks = extents;
    in_blocks[along] = in_blocks[along].div_ceil(size.max(1));
    let shared = match &shape[..] {
        [] | [1] if size == 0 => Shared::All,
        &[count] if size == 0 && count == extents[along] => Shared::Index(along),
        shape if size > 0 && shape == in_blocks => Shared::Block { axis: along, size },
        _ => return Ok(None),
    };
    let parts = Parts { extents, range, shared, kind, integers, scales, zeros };
    let kept = i.kept.clone();
    let name = kept.as_ref().and_then(|kept| parts.name(kept));
    let found = match kept.zip(name) {
        Some((kept, name)) => kept.quantised(name, || parts.made(i))?,
        None => parts.made(i)?,
    };
    Ok(found.map(|found| (found, result)))
}

/// What a matrix is made of.
struct Parts {
    extents: [usize; 2],
    range: (usize, i64),
    shared: Shared,
    kind: Kind,
    integers: Integers,
    scales: Constant,
    zeros: Option<(Constant, Kind)>,
}

impl Parts {
    /// What it is kept under where the file is read several times.
    fn name(&self, kept: &ConstantCache) -> Option<String> {
        let integers = kept.identity(&Constant::Integers(self.integers.clone()))?;
        let scales = kept.identity(&self.scales)?;
        let zeros = match &self.zeros {
            Some((zeros, _)) => kept.identity(zeros)?,
            None => String::new(),
        };
        Some(format!("{:?} {:?} {integers} | {scales} | {zeros}", self.shared, self.kind))
    }

    fn made(&self, i: &mut Import<'_>) -> Result<Option<Arc<Quantised>>, Reason> {
        let [rows, columns] = self.extents;
        i.budget.spend(rows.saturating_mul(columns).saturating_mul(8))?;
        let scales = self.scales.floats(&mut i.budget)?.to_nhwc().into_owned();
        let zeros = match &self.zeros {
            // Signed integers without zero points have the middle of the range.
            None if self.range.1 > 0 => None,
            None => Some(vec![0; scales.len()]),
            Some((Constant::Integers(zeros), own))
                if *own == self.kind && zeros.values.len() == scales.len() =>
            {
                let Some(zeros) = from_zero(zeros, self.range) else { return Ok(None) };
                Some(zeros)
            }
            Some(_) => return Ok(None),
        };
        let Some(integers) = from_zero(&self.integers, self.range) else { return Ok(None) };
        Quantised::new(self.extents, self.range.0, integers, self.shared, scales, zeros)
            .map(|made| Some(Arc::new(made)))
    }
}

impl<'a> Import<'a> {
    /// A matrix that is kept as integers, and the type of the floats that they stand for.
    pub(super) fn unread(&self, name: &str) -> Option<Unread> {
        for scope in self.scopes.iter().rev() {
            if scope.slots.contains_key(name) {
                return None;
            }
            if let Some(found) = scope.unread.get(name) {
                return Some(found.clone());
            }
            if !scope.sees_outer {
                break;
            }
        }
        None
    }

    /// The matrix that input `index` is, packed with the outputs along axis `along`; `None` if it is not kept as integers, or
    /// cannot be packed so.
    pub(super) fn packed(&self, op: &Op<'a>, index: usize, along: usize) -> Option<Packed> {
        // Of quantized values products are computed on bytes.
        let is_quantized = |index: usize| match self.slot(op, index) {
            Ok(Operand::Value(mapped)) => self.graph.quantization(mapped.value).is_some(),
            _ => false,
        };
        if op.has(0) && is_quantized(0) {
            return None;
        }
        self.unread(op.input_name(index).ok()?)?.0.packed(along)
    }

    fn set_unread(&mut self, name: &'a str, matrix: Unread) -> Result<(), Reason> {
        self.written.push(name);
        let scope = self.scopes.last_mut().ok_or("found no scope")?;
        let twice = scope.slots.contains_key(name) || scope.unread.insert(name, matrix).is_some();
        if twice {
            return refused!("found {name:?} written twice, wanted a tensor that is written once");
        }
        Ok(())
    }
}
