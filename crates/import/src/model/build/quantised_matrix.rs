//! Matrices of integers of few bits that stand for floats.

use crate::emit::Bits;
use crate::graph::QuantizedMatrix;
use crate::host::HostTensor;
use crate::model::constant::{Constant, dims_of};
use crate::model::reason::Reason;
use crate::ops::quantized_gemm::QuantizedGemm;
use std::sync::{Arc, OnceLock};

/// Which weights share a scale and a zero point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// All.
    All,
    /// The weights with the same index along this axis.
    Index(usize),
    /// So many neighbours along an axis.
    Block { axis: usize, size: usize },
}

/// A matrix of integers `q` that stand for `(q - zero) scale`.
#[derive(Debug)]
pub(crate) struct Quantised {
    extents: [usize; 2],
    /// How many bits the integers have, from 0 on.
    bits: usize,
    integers: Arc<[u8]>,
    shared: Shared,
    /// A scale for each set of weights that share one, in the order of the sets.
    scales: Vec<f32>,
    /// A zero point for each scale; without them all weights have [`QuantizedGemm::zero`].
    zeros: Option<Vec<u8>>,
    floats: OnceLock<HostTensor>,
    turned: OnceLock<Arc<Quantised>>,
    /// Packed with the rows of outputs along each axis.
    packed: [OnceLock<Option<Packed>>; 2],
}

/// A packed matrix, of which each row is that of an output.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    pub(crate) matrix: QuantizedMatrix,
    pub(crate) options: QuantizedGemm,
    /// Outputs.
    pub(crate) rows: usize,
    /// What each is a sum of.
    pub(crate) columns: usize,
}

impl Quantised {
    /// Refuses scales and zero points that there are not as many of as are needed.
    pub(crate) fn new(
        extents: [usize; 2],
        bits: usize,
        integers: Vec<u8>,
        shared: Shared,
        scales: Vec<f32>,
        zeros: Option<Vec<u8>>,
    ) -> Result<Self, Reason> {
        let wanted = match shared {
            Shared::All => 1,
            Shared::Index(axis) => extents[axis],
            Shared::Block { axis, size } => extents[axis].div_ceil(size.max(1)) * extents[1 - axis],
        };
        let count = zeros.as_ref().map_or(wanted, Vec::len);
        if integers.len() != extents[0] * extents[1] || scales.len() != wanted || count != wanted {
            return refused!(
                "found {} integers, {} scales and {count} zero points for {extents:?}, wanted {wanted} scales",
                integers.len(),
                scales.len()
            );
        }
        Ok(Quantised {
            extents,
            bits,
            integers: integers.into(),
            shared,
            scales,
            zeros,
            floats: OnceLock::new(),
            turned: OnceLock::new(),
            packed: [OnceLock::new(), OnceLock::new()],
        })
    }

    /// Which scale the weight at these indices has.
    fn place(&self, at: [usize; 2]) -> usize {
        match self.shared {
            Shared::All => 0,
            Shared::Index(axis) => at[axis],
            Shared::Block { axis: 0, size } => at[0] / size * self.extents[1] + at[1],
            Shared::Block { size, .. } => at[0] * self.extents[1].div_ceil(size) + at[1] / size,
        }
    }

    /// The zero point of all.
    fn middle(&self) -> Bits {
        QuantizedGemm::new(self.bits).zero
    }

    /// The floats that the integers stand for.
    pub(crate) fn floats(&self) -> Result<Constant, Reason> {
        if let Some(known) = self.floats.get() {
            return Ok(Constant::Floats(known.clone()));
        }
        let [rows, columns] = self.extents;
        let mut values = crate::alloc::reserved(rows * columns, "a constant")?;
        let of = |place: usize| {
            let zero = match &self.zeros {
                Some(zeros) => zeros.get(place).copied().map_or(0.0, f32::from),
                None => self.middle().0,
            };
            (zero, self.scales.get(place).copied().unwrap_or(0.0))
        };
        let mut shares = vec![(0.0, 0.0); columns];
        for (row, integers) in self.integers.chunks(columns.max(1)).enumerate() {
            // Each row has the same ones where they are those of columns, or all.
            if row == 0 || !matches!(self.shared, Shared::All | Shared::Index(1)) {
                shares.iter_mut().enumerate().for_each(|(column, own)| *own = of(self.place([row, column])));
            }
            let row = integers.iter().zip(&shares);
            values.extend(row.map(|(&integer, (zero, scale))| (f32::from(integer) - zero) * scale));
        }
        let tensor = HostTensor::new(dims_of(&self.extents)?, values)?;
        let positive = self.scales.iter().all(|&scale| scale > 0.0 && scale.is_finite());
        let tensor = match self.shared {
            Shared::All if positive => tensor.with_scales(self.scales.clone(), 0),
            Shared::Index(axis) if positive => tensor.with_scales(self.scales.clone(), axis),
            _ => tensor,
        };
        Ok(Constant::Floats(self.floats.get_or_init(|| tensor).clone()))
    }

    /// The matrix packed with the outputs along `axis`; `None` if those of a word would not share a scale.
    pub(crate) fn packed(&self, axis: usize) -> Option<Packed> {
        self.packed[axis].get_or_init(|| self.made(axis)).clone()
    }

    fn made(&self, axis: usize) -> Option<Packed> {
        let (rows, columns) = (self.extents[axis], self.extents[1 - axis]);
        let block = match self.shared {
            Shared::All => None,
            Shared::Index(own) if own == axis => None,
            Shared::Block { axis: along, size } if along != axis && size >= columns => None,
            Shared::Block { axis: along, size } if along != axis && size.is_multiple_of(32 / self.bits) => {
                Some(size)
            }
            Shared::Index(_) | Shared::Block { .. } => return None,
        };
        let at = |row: usize, column: usize| if axis == 0 { [row, column] } else { [column, row] };
        let blocks = block.map_or(1, |block| columns.div_ceil(block));
        let places = (0..rows).flat_map(|row| (0..blocks).map(move |part| (row, part * block.unwrap_or(0))));
        let places: Vec<usize> = places.map(|(row, column)| self.place(at(row, column))).collect();
        let of =
            |values: &[f32]| places.iter().map(|&place| values.get(place).copied().unwrap_or(0.0)).collect();
        let scales: Vec<f32> = of(&self.scales);
        let turned: Vec<u8>;
        let integers = match axis {
            0 => &self.integers[..],
            _ => {
                turned = transposed(&self.integers, [columns, rows]);
                &turned[..]
            }
        };
        let matrix = QuantizedMatrix::pack(self.bits, [rows, columns], integers, scales).ok()?;
        // What all have alike needs no memory.
        let same = match self.zeros.as_deref() {
            None => Some(self.middle()),
            Some([first, rest @ ..]) if rest.iter().all(|zero| zero == first) => {
                Some(Bits(f32::from(*first)))
            }
            Some(_) => None,
        };
        let matrix = match &self.zeros {
            Some(zeros) if same.is_none() => {
                let zeros: Vec<u8> = places.iter().filter_map(|&place| zeros.get(place).copied()).collect();
                matrix.with_zeros(self.bits, &zeros).ok()?
            }
            _ => matrix,
        };
        let options = QuantizedGemm { block, ..QuantizedGemm::new(self.bits) };
        let options = QuantizedGemm { zero: same.unwrap_or(options.zero), ..options };
        Some(Packed { matrix, options, rows, columns })
    }

    /// The matrix with its axes exchanged.
    pub(crate) fn turned(&self) -> Result<Arc<Self>, Reason> {
        if let Some(known) = self.turned.get() {
            return Ok(Arc::clone(known));
        }
        let [rows, columns] = self.extents;
        let integers = transposed(&self.integers, self.extents);
        let (shared, order): (Shared, Option<[usize; 2]>) = match self.shared {
            Shared::All => (Shared::All, None),
            Shared::Index(axis) => (Shared::Index(1 - axis), None),
            Shared::Block { axis, size } => {
                let mut extents = self.extents;
                extents[axis] = extents[axis].div_ceil(size);
                (Shared::Block { axis: 1 - axis, size }, Some(extents))
            }
        };
        let places: Vec<usize> = match order {
            None => (0..self.scales.len()).collect(),
            Some([rows, columns]) => {
                (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column)).collect()
            }
        };
        let scales = places.iter().filter_map(|&place| self.scales.get(place).copied()).collect();
        let zeros = self.zeros.as_ref();
        let zeros = zeros.map(|own| places.iter().filter_map(|&place| own.get(place).copied()).collect());
        let made = Arc::new(Quantised::new([columns, rows], self.bits, integers, shared, scales, zeros)?);
        Ok(Arc::clone(self.turned.get_or_init(|| made)))
    }
}

/// A matrix with its axes exchanged, by tiles whose rows stay in the cache.
fn transposed(matrix: &[u8], [rows, columns]: [usize; 2]) -> Vec<u8> {
    const TILE: usize = 64;
    let mut turned = vec![0; matrix.len()];
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for at in column..columns.min(column + TILE) {
                let to =
                    turned.get_mut(at * rows + row..at * rows + rows.min(row + TILE)).unwrap_or_default();
                let from = matrix.get(row * columns + at..).unwrap_or_default();
                to.iter_mut().zip(from.iter().step_by(columns)).for_each(|(to, from)| *to = *from);
            }
        }
    }
    turned
}
