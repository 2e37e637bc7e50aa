//! `transpose`: rows that are columns of the source, a tile at a time through local memory, so that both sides
//! are read and written in lines.

use super::RemapOp;
use super::axes::Part;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Binding, Element, Operand, Value};
use crate::limits::Limits;
use crate::limits::machine::Machine;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::rows::wide_obstacle;
use crate::ops::spec::{Params, binding, extent, unsigned};

/// Rows and columns of a tile, a line of which is read or written at once.
const SIDE: usize = 32;

/// Lines of a tile that are read or written at once.
const LINES: usize = 8;

/// Elements from which on lines that are read in part are felt.
const LARGE: usize = 1 << 18;

/// Fewer rows or columns leave most of a tile empty.
const LEAST: usize = 8;

#[derive(Debug)]
pub(super) struct Transpose;

/// `y[n, i, j] = x[first + apart * n + i + pitch * j]`.
#[derive(Debug, Clone, Copy)]
struct Matrices {
    batch: usize,
    apart: usize,
    rows: usize,
    columns: usize,
    pitch: usize,
}

impl Matrices {
    fn of(op: &RemapOp) -> Option<Self> {
        let one = Part { extent: 1, stride: 0, start: 0, step: 1, source: 1 };
        let (batch, [rows, columns]) = match op.parts[..] {
            [rows, columns] => (one, [rows, columns]),
            [batch, rows, columns] => (batch, [rows, columns]),
            _ => return None,
        };
        let forward = |part: &Part| usize::try_from(part.stride).ok().filter(|_| part.is_linear());
        let (apart, 1, pitch) = (forward(&batch)?, forward(&rows)?, forward(&columns)?) else { return None };
        let large = rows.extent.min(columns.extent) >= LEAST && pitch >= LEAST;
        large.then_some(Matrices {
            batch: batch.extent,
            apart,
            rows: rows.extent,
            columns: columns.extent,
            pitch,
        })
    }
}

impl Kernel<RemapOp> for Transpose {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("transpose", crate::emit::text!("../../../shaders/remap/transpose.wgsl")).in_rows()
    }

    fn offers(&self, op: &RemapOp, limits: &Limits) -> Vec<Offer> {
        let Some(Matrices { rows, columns, batch, .. }) = Matrices::of(op) else { return Vec::new() };
        // Where lines of memory that are read in part cost more than a barrier, and local memory is memory of its own.
        let pays = rows.min(columns) >= SIDE && rows * columns * batch >= LARGE;
        let is_local = Machine::of(limits).is_some_and(|machine| machine.local_is_known);
        offers(if pays && is_local { 0 } else { 2 }, [[1, 1, 1]])
    }

    /// Columns, lines of tiles, batch.
    fn grid(&self, op: &RemapOp, _tile: [u32; 3]) -> [u32; 3] {
        let Some(Matrices { batch, rows, columns, .. }) = Matrices::of(op) else { return [0; 3] };
        [extent(columns), extent(rows.div_ceil(SIDE) * LINES), extent(batch)]
    }

    fn work_groups(&self, _op: &RemapOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![[extent(SIDE), extent(LINES), 1]]
    }

    fn choice_obstacle(&self, op: &RemapOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let wanted = self.work_groups(op, choice.tile);
        if !wanted.contains(&choice.work_group) {
            return Some(format!("work-group {:?}, a tile is moved by {wanted:?}", choice.work_group));
        }
        let bytes = extent(SIDE * (SIDE + 1) * DType::F32.bytes());
        (bytes > limits.local_memory)
            .then(|| format!("{bytes} bytes of local memory, the device has {}", limits.local_memory))
    }

    fn precision(&self, op: &RemapOp) -> Option<Precision> {
        Some(op.precision_of_rows())
    }

    fn obstacle(&self, op: &RemapOp, _limits: &Limits) -> Option<String> {
        wide_obstacle(op.dtype)
    }

    fn bindings(&self, op: &RemapOp, _choice: &Choice) -> Vec<Binding> {
        let element = Element::Scalar(op.stored());
        vec![binding(Operand::Src, element, Access::Read), binding(Operand::Dst, element, Access::Write)]
    }

    fn params(&self, op: &RemapOp, _choice: &Choice) -> Params {
        let Some(Matrices { apart, rows, columns, pitch, .. }) = Matrices::of(op) else { return Vec::new() };
        vec![
            ("first", unsigned(op.first)),
            ("apart", unsigned(apart)),
            ("rows", unsigned(rows)),
            ("columns", unsigned(columns)),
            ("pitch", unsigned(pitch)),
        ]
    }

    fn constants(&self, _op: &RemapOp, _choice: &Choice, _limits: &Limits) -> Constants {
        vec![("SIDE", Value::U32(extent(SIDE))), ("LINES", Value::U32(extent(LINES)))]
    }
}
