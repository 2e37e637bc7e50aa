//! Elements around the source.

use super::{Move, Moved, check_rank};
use crate::dims::Dims;
use crate::emit::Bits;
use crate::error::{Error, Result};
use crate::ops::remap::axes::{self, Rule};
use crate::shape::Border;
use std::collections::BTreeMap;

/// What is added around a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PadMode {
    /// This value. Where halves are stored, one beyond their range becomes the largest.
    Constant(Bits),
    /// The mirror image without the edge: fewer elements than the axis has.
    Reflect,
    /// The mirror image with the edge: no more elements than the axis has.
    Symmetric,
    /// The nearest element.
    Edge,
}

/// Elements before and after those of each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    /// How many before, for each axis.
    pub before: Vec<usize>,
    /// How many after, for each axis.
    pub after: Vec<usize>,
    /// What they are.
    pub mode: PadMode,
}

impl Move for Pad {
    const NAME: &'static str = "pad";

    fn moved(&self, source: Dims, _dimensions: &BTreeMap<String, usize>) -> Result<Moved> {
        check_rank(Self::NAME, "numbers before", self.before.len(), source)?;
        check_rank(Self::NAME, "numbers after", self.after.len(), source)?;
        let mut axes = axes::whole(source);
        for (index, axis) in axes.iter_mut().enumerate() {
            let (before, after) = (self.before[index], self.after[index]);
            let most = match self.mode {
                PadMode::Reflect => axis.extent.saturating_sub(1),
                PadMode::Symmetric => axis.extent,
                PadMode::Constant(_) | PadMode::Edge => i32::MAX as usize / 4,
            };
            if before.max(after) > most {
                let found = format!("{before} before and {after} after axis {index} of {source}");
                return Err(Error::shape(Self::NAME, found, format!("at most {most} ({:?})", self.mode)));
            }
            axis.extent += before + after;
            axis.start = -(before as isize);
        }
        let extents: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
        let rule = match self.mode {
            PadMode::Constant(value) => Rule::Fill(value),
            PadMode::Reflect => Rule::Reflect,
            PadMode::Symmetric => Rule::Symmetric,
            PadMode::Edge => Rule::Edge,
        };
        Ok(Moved { target: Dims::new(&extents)?, axes, rule })
    }

    fn border(&self) -> Option<(Border, [usize; 4])> {
        let border = match self.mode {
            PadMode::Constant(Bits(0.0)) => Border::Zeros,
            PadMode::Constant(_) => return None,
            PadMode::Reflect => Border::Reflect,
            PadMode::Symmetric => Border::Symmetric,
            PadMode::Edge => Border::Edge,
        };
        match (&self.before[..], &self.after[..]) {
            (&[0, top, left, 0], &[0, bottom, right, 0]) => Some((border, [top, bottom, left, right])),
            _ => None,
        }
    }
}
