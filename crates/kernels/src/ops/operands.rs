//! What an op reads and writes, and its values on the host.

use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::layout::{Form, Layout};
use crate::shape::Shape;
use crate::sorted;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Host values by operand, each in the op's public layout ([`OperandInfo::shape`]): words of 32 bits, which are f32 or
/// the bits of an integer ([`OperandInfo::dtype`]).
pub type Operands<'a> = BTreeMap<Operand, Cow<'a, [f32]>>;

/// The part that an operand plays for the op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read: a value of a network, or a constant as it is.
    Input,
    /// Read: a constant that is packed for its kernel ([`super::BoundKernel::pack`]).
    Constant,
    /// Written.
    Output,
    /// Written, and what it held before is read: `C` of a matrix product where `beta` is not 0.
    Update,
}

impl Role {
    /// Whether the op writes it.
    pub const fn writes(self) -> bool {
        matches!(self, Role::Output | Role::Update)
    }
}

/// An operand of an op of concrete shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandInfo {
    /// Which one.
    pub operand: Operand,
    /// Its extents, in the op's public layout: rows of `c` values.
    pub shape: Shape,
    /// Elements from one row to the next; `shape.c` where rows are packed.
    pub pitch: usize,
    /// Its extents as a feature map in [`Form::C4`] and [`Form::Image`]: `shape`, but for the right
    /// operand of a matrix product, of which each row is a row of pixels.
    pub map: Shape,
    /// What is done with it.
    pub role: Role,
    /// The type of its words where it lies in rows: f32, or an integer. Feature maps are of the op's storage type.
    pub dtype: DType,
}

impl OperandInfo {
    /// An operand with packed rows.
    pub const fn new(operand: Operand, shape: Shape, role: Role) -> Self {
        OperandInfo { operand, shape, pitch: shape.c, map: shape, role, dtype: DType::F32 }
    }

    /// The operand with elements of another type.
    #[must_use]
    pub const fn of(self, dtype: DType) -> Self {
        OperandInfo { dtype, ..self }
    }

    /// A constant of one value for each of `channels` channels.
    pub const fn vector(operand: Operand, channels: usize) -> Self {
        OperandInfo::new(operand, Shape::nhwc(1, 1, 1, channels), Role::Constant)
    }

    /// The operand with rows `pitch` apart.
    #[must_use]
    pub const fn with_pitch(self, pitch: usize) -> Self {
        OperandInfo { pitch, ..self }
    }

    /// The operand with other extents as a feature map.
    #[must_use]
    pub const fn with_map(self, map: Shape) -> Self {
        OperandInfo { map, ..self }
    }

    /// Elements of the public layout. The last row is not padded to the pitch.
    pub const fn elements(&self) -> usize {
        let rows = self.shape.n * self.shape.h * self.shape.w;
        rows.saturating_sub(1) * self.pitch + self.shape.c
    }

    /// Words of 32 bits of the public layout, in which the host has it.
    pub const fn words(&self) -> usize {
        self.elements() * self.dtype.words()
    }

    /// Where element `index`, counted without gaps between rows, lies in the public layout.
    pub const fn place(&self, index: usize) -> usize {
        index / self.shape.c * self.pitch + index % self.shape.c
    }

    /// Elements that a buffer in `form` holds. An image is counted as C4.
    pub const fn stored_elements(&self, form: Form) -> usize {
        match form {
            Form::Rows | Form::HalfRows => self.elements(),
            Form::C4 | Form::Image => Layout::C4.elements(&self.map),
        }
    }

    /// Where element `index`, counted without gaps between rows, lies in a buffer in `form`. An image
    /// is counted as C4.
    pub const fn stored_place(&self, form: Form, index: usize) -> usize {
        match form {
            Form::Rows | Form::HalfRows => self.place(index),
            Form::C4 | Form::Image => {
                let Shape { h, w, c, .. } = self.map;
                let (pixel, channel) = (index / c, index % c);
                let (row, column) = (pixel / w, pixel % w);
                Layout::C4.index(&self.map, row / h, row % h, column, channel)
            }
        }
    }

    /// `values` of the public layout as a buffer in `form` holds them, `spare` in the lanes beyond the
    /// channels. An image is filled from C4.
    ///
    /// # Errors
    /// If there are not as many values as the public layout has.
    pub fn stored(&self, form: Form, values: &[f32], spare: f32) -> Result<Vec<f32>> {
        if values.len() != self.elements() {
            return Err(Error::input(
                self.operand.name(),
                format!("{} values", values.len()),
                format!("{}", self.elements()),
            ));
        }
        if form.is_rows() {
            return Ok(values.to_vec());
        }
        let mut stored = vec![spare; self.stored_elements(form)];
        for index in 0..self.shape.elements() {
            if let (Some(slot), Some(&value)) =
                (stored.get_mut(self.stored_place(form, index)), values.get(self.place(index)))
            {
                *slot = value;
            }
        }
        Ok(stored)
    }
}

/// Operands of an op as those of another one that it is made of.
pub(super) trait Renamed {
    /// Those named first in `names`, under the second name.
    fn renamed(&self, names: &[(Operand, Operand)]) -> Operands<'_>;
}

impl Renamed for Operands<'_> {
    fn renamed(&self, names: &[(Operand, Operand)]) -> Operands<'_> {
        let one = |&(from, to)| Some((to, Cow::Borrowed(get(self, from)?)));
        sorted::map(names.iter().filter_map(one))
    }
}

/// The values of `operand`, if there are any.
pub(super) fn get<'a>(operands: &'a Operands<'_>, operand: Operand) -> Option<&'a [f32]> {
    operands.get(&operand).map(|values| &**values)
}

/// The values of a constant that `op` must be given.
pub(super) fn need<'a>(op: &'static str, constants: &'a Operands<'_>, operand: Operand) -> Result<&'a [f32]> {
    let values = get(constants, operand);
    values.ok_or_else(|| Error::input(format!("{op} {}", operand.name()), "none", "values"))
}

/// Refuses operands of `op` that are missing, too many, or of another length than `infos` say. What
/// is given for an output that is only written is not looked at.
pub(super) fn check(op: &'static str, infos: &[OperandInfo], operands: &Operands<'_>) -> Result<()> {
    for info in infos.iter().filter(|info| info.role != Role::Output) {
        let found = get(operands, info.operand).map(<[f32]>::len);
        if found != Some(info.words()) {
            let found = found.map_or("none".to_owned(), |found| format!("{found} values"));
            let wanted = format!("{} values", info.words());
            return Err(Error::input(format!("{op} {}", info.operand.name()), found, wanted));
        }
    }
    match operands.keys().find(|operand| infos.iter().all(|info| info.operand != **operand)) {
        None => Ok(()),
        Some(operand) => {
            let what = format!("{op} {}", operand.name());
            Err(Error::input(what, format!("a {}", operand.name()), "none, as the op says"))
        }
    }
}

/// Operands as the tests of oracles write them down.
#[cfg(test)]
pub(super) fn of<'a>(values: &[(Operand, &'a [f32])]) -> Operands<'a> {
    values.iter().map(|&(operand, values)| (operand, Cow::Borrowed(values))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_a_pitch_are_stored_without_their_gaps() {
        let info = OperandInfo::new(Operand::B, Shape::matrix(1, 2, 5), Role::Input)
            .with_pitch(7)
            .with_map(Shape::nhwc(1, 2, 1, 5));
        assert_eq!((info.elements(), info.place(5), info.place(9)), (12, 7, 11));
        let values: Vec<f32> = (0..12).map(|value| value as f32).collect();
        assert_eq!(info.stored(Form::Rows, &values, 0.0).expect("rows"), values);
        let image = info.stored(Form::Image, &values, 9.0).expect("slices of four");
        let wanted = [0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 10.0, 4.0, 9.0, 9.0, 9.0, 11.0, 9.0, 9.0, 9.0];
        assert_eq!(image, wanted);
        assert!(info.stored(Form::Rows, &values[1..], 0.0).is_err());
    }
}
