//! Moves a feature map from one layout to another, on the device.
//!
//! The lanes of the last slice beyond the channels are written as zero in C4 and Image2d. The
//! host side (NHWC, NCHW) is f32, or f16 where rows of a network are; the device side (C4, Image2d) has the
//! precision's storage type. A C4 map or rows may also stay where their elements are, in another type.
//!
//! NaN and infinities stay; as a half, what is beyond 65504 becomes infinite in a map, and 65504 in rows that were of f32.

mod cast;
mod examples;
mod moves;
mod oracle;
mod plan;

pub(super) use examples::{NUMBERS, examples};

use crate::dtype::{DType, Precision};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;

const OP: &str = "convert";

/// The most maps that one map is taken apart into.
pub const MOST_PARTS: usize = 8;

/// A change of layout of concrete shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvertOp {
    /// The feature map's shape.
    pub(crate) shape: Shape,
    /// The layout that is read.
    pub(crate) from: Layout,
    /// The layout that is written.
    pub(crate) to: Layout,
    /// Storage of the device side.
    pub(crate) precision: Precision,
    /// The types of what is read and written of the device side: two where only they change.
    pub(crate) stored: [DType; 2],
    /// The type of the host side.
    pub(crate) rows: DType,
    /// Where the host side is several maps, one behind the other, each with the next channels of
    /// the device's: their channels, zeros after the last. All zeros where it is one map.
    pub(crate) parts: [usize; MOST_PARTS],
}

impl ConvertOp {
    /// Checks the shape and that one side is a host layout and the other a device layout, or
    /// that both are device layouts that differ.
    ///
    /// # Errors
    /// If there is nothing to convert, or the shape is empty or too large.
    pub fn new(shape: Shape, from: Layout, to: Layout, precision: Precision) -> Result<Self> {
        shape.check(OP)?;
        let host = |layout| matches!(layout, Layout::Nhwc | Layout::Nchw);
        if from == to || (host(from) && host(to)) {
            return Err(Error::shape(
                OP,
                format!("{from} to {to}"),
                "two layouts that differ, at least one of them c4 or image2d",
            ));
        }
        let precision = precision.without_matrix_units();
        let stored = [precision.storage(); 2];
        let (rows, parts) = (DType::F32, [0; MOST_PARTS]);
        Ok(ConvertOp { shape, from, to, precision, stored, rows, parts })
    }

    /// A C4 map of `shape` whose elements become `to`.
    ///
    /// # Errors
    /// If they are already, or the shape is empty or too large.
    pub fn storage(shape: Shape, from: DType, to: DType) -> Result<Self> {
        Self::cast(shape, Layout::C4, [from, to])
    }

    /// Rows of `shape` whose elements become `to`.
    ///
    /// # Errors
    /// If [`ConvertOp::storage`] refuses them.
    pub fn of_rows(shape: Shape, from: DType, to: DType) -> Result<Self> {
        Self::cast(shape, Layout::Nhwc, [from, to])
    }

    fn cast(shape: Shape, layout: Layout, stored: [DType; 2]) -> Result<Self> {
        shape.check(OP)?;
        let [from, to] = stored;
        if from == to {
            return Err(Error::shape(OP, format!("{from} to {to}"), "two types that differ"));
        }
        let (precision, parts) = (Precision::F16Storage, [0; MOST_PARTS]);
        Ok(ConvertOp { shape, from: layout, to: layout, precision, stored, rows: DType::F32, parts })
    }

    /// The conversion with rows of halves on the host side.
    #[must_use]
    pub const fn with_half_rows(self) -> Self {
        ConvertOp { rows: DType::F16, ..self }
    }

    /// Whether rows stay rows.
    fn stays_in_rows(&self) -> bool {
        self.from == self.to && self.from == Layout::Nhwc
    }

    /// A C4 map of `shape` to NHWC maps of `channels` channels each, one behind the other.
    ///
    /// # Errors
    /// If there are fewer than two parts or more than [`MOST_PARTS`], one has no channels, or they
    /// are not the map's channels together.
    pub fn parts(shape: Shape, channels: &[usize], precision: Precision) -> Result<Self> {
        let counts = 2..=MOST_PARTS;
        let whole = channels.iter().sum::<usize>() == shape.c && !channels.contains(&0);
        if !counts.contains(&channels.len()) || !whole {
            return Err(Error::shape(
                OP,
                format!("parts of {channels:?} channels of {shape}"),
                format!("2 to {MOST_PARTS} parts, {} channels in all", shape.c),
            ));
        }
        let mut parts = [0; MOST_PARTS];
        parts[..channels.len()].copy_from_slice(channels);
        Ok(ConvertOp { parts, ..Self::new(shape, Layout::C4, Layout::Nhwc, precision)? })
    }

    /// First channel and number of channels of each part, if there are parts.
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let channels = self.parts.iter().copied().take_while(|&channels| channels > 0);
        channels.scan(0, |next, channels| {
            let first = *next;
            *next += channels;
            Some((first, channels))
        })
    }
}
