//! The work that a file may cause.

use super::reason::Reason;

/// How many times the length of a file may be read and computed from it.
const MOST_WORK: u64 = 32;

/// The work that a file may cause, in bytes read, copied and computed.
///
/// Offsets may make many parts of a file share the same bytes. A valid file does so now and then;
/// a hostile one could make a small file stand for terabytes.
pub(in crate::model) struct Budget {
    left: u64,
    whole: u64,
    /// What lengths in the file may still add.
    #[cfg(feature = "tflite")]
    of_lengths: u64,
}

/// What the matrices of a file's transforms may add: those of the longest one, and some more.
#[cfg(feature = "tflite")]
const MOST_OF_LENGTHS: u64 = 3 << 29;

impl Budget {
    pub(in crate::model) fn new(file_bytes: usize) -> Self {
        let whole = MOST_WORK * file_bytes as u64 + (1 << 16);
        Budget {
            left: whole,
            whole,
            #[cfg(feature = "tflite")]
            of_lengths: MOST_OF_LENGTHS,
        }
    }

    /// More, because another file of so many bytes belongs to the model, or for what needs no length.
    #[cfg(feature = "onnx")]
    pub(in crate::model) fn extend(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
        self.whole = self.whole.saturating_add(bytes);
    }

    /// Allows more.
    #[cfg(feature = "tflite")]
    pub(in crate::model) fn grow(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes as u64);
    }

    /// Allows more for what is made of lengths that the file names, as long as these do not add up to too much.
    #[cfg(feature = "tflite")]
    pub(in crate::model) fn grow_by_lengths(&mut self, bytes: usize) -> Result<(), Reason> {
        self.of_lengths = self.of_lengths.checked_sub(bytes as u64).ok_or_else(|| {
            format!("the transforms' lengths ask for more than {MOST_OF_LENGTHS} bytes of matrices in all")
        })?;
        self.grow(bytes);
        Ok(())
    }

    /// What the file's length allows.
    #[cfg(feature = "tflite")]
    pub(in crate::model) fn whole(&self) -> u64 {
        self.whole
    }

    pub(in crate::model) fn spend(&mut self, bytes: usize) -> Result<(), Reason> {
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(|| {
            format!(
                "the parts of the file add up to more than {} bytes, wanted at most {MOST_WORK} times its length",
                self.whole
            )
        })?;
        Ok(())
    }
}
