//! Buffers of an application as this crate's handles.

use super::handle::{Buffer, Slice};

/// An application's buffer, and what may be done with it.
#[derive(Debug, Clone)]
pub struct Adopted {
    pub buffer: Buffer,
    /// Whether kernels may read it, whether they may read and write it.
    pub kernels: [bool; 2],
    /// Whether copies may be made from it, and to it.
    pub copies: [bool; 2],
    /// Which part of the handle's buffer it is: where it begins, and its bytes.
    pub part: (u64, u64),
    /// What it allows, in the API's words.
    pub said: String,
}

impl Adopted {
    /// A buffer of the device's own.
    pub fn own(buffer: Buffer) -> Self {
        let said = "a buffer of the session".to_owned();
        let part = (0, buffer.bytes());
        Adopted { buffer, kernels: [true; 2], copies: [true; 2], part, said }
    }

    /// Whether it is the same buffer as `other`, or another part of it.
    pub fn shares(&self, other: &Adopted) -> bool {
        self.buffer.is(&other.buffer)
    }
}

/// A copy between buffers.
#[derive(Debug, Clone)]
pub struct Transfer {
    pub from: Slice,
    pub to: Slice,
}
