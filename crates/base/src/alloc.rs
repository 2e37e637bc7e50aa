//! Memory of the host, asked for before it is used: where there is none, that is an error and not the end of the process.

use crate::error::{Error, Result};
use bytemuck::Zeroable;
use std::sync::Arc;

/// Blocks of fewer bytes are not asked for apart from being made ([`expect`]): a process without so much ends anyway.
const MIN_ASKED: usize = 1 << 20;

/// The error of memory that there is not.
fn refusal(bytes: Option<usize>, what: &str) -> Error {
    let wanted = match bytes {
        Some(bytes) => format!("{bytes} bytes"),
        None => "more bytes than an address counts".to_owned(),
    };
    let message =
        format!("wanted {wanted} for {what}; a smaller input, or fewer runs at once, would take fewer");
    Error::OutOfMemory { api: "host", call: "allocation", message }
}

/// An empty vector with room for so many elements.
pub fn reserved<T>(elements: usize, what: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    match values.try_reserve_exact(elements) {
        Ok(()) => Ok(values),
        Err(_) => Err(refusal(elements.checked_mul(size_of::<T>()), what)),
    }
}

/// So many zeros. The system gives large ones page by page as they are written.
pub fn zeros<T: Zeroable>(elements: usize, what: &str) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(elements)
        .map_err(|()| refusal(elements.checked_mul(size_of::<T>()), what))
}

/// A copy of `values`.
pub fn copied<T: Copy>(values: &[T], what: &str) -> Result<Vec<T>> {
    let mut copy = reserved(values.len(), what)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Asks whether there is room for so many elements that something is to be made of which cannot refuse: an `Arc<[T]>`.
pub fn expect<T>(elements: usize, what: &str) -> Result<()> {
    match elements.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes < MIN_ASKED => Ok(()),
        _ => reserved::<T>(elements, what).map(drop),
    }
}

/// These values, shared, in memory that was asked for before.
///
/// # Errors
/// [`Error::OutOfMemory`] if there is none.
pub fn shared<T>(values: impl ExactSizeIterator<Item = T>, what: &str) -> Result<Arc<[T]>> {
    expect::<T>(values.len(), what)?;
    Ok(values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused_with_what_was_wanted() {
        // More than half of all addresses, which no allocator gives.
        let elements = usize::MAX / 8;
        let refusals = [
            reserved::<f32>(elements, "a test").map(drop),
            zeros::<f32>(elements, "a test").map(drop),
            expect::<f32>(elements, "a test"),
            shared((0..elements).map(|at| at as f32), "a test").map(drop),
            expect::<f32>(usize::MAX, "a test"),
        ];
        let all = Some(4 * elements);
        for (refused, wanted) in refusals.into_iter().zip([all, all, all, all, None]) {
            let error = refused.expect_err("too much");
            assert!(matches!(error, Error::OutOfMemory { api: "host", .. }), "{error}");
            let found = error.to_string();
            let wanted =
                wanted.map_or("more bytes".to_owned(), |bytes| format!("wanted {bytes} bytes for a test"));
            assert!(found.contains(&wanted), "{found}");
        }
        assert_eq!(copied(&[1.0f32, 2.0], "a test").expect("two"), [1.0, 2.0]);
        assert_eq!(*shared([1u8, 2].into_iter(), "a test").expect("two"), [1, 2]);
        assert_eq!(zeros::<u16>(3, "a test").expect("three"), [0; 3]);
    }
}
