//! Panics as errors: what an application's function does must not end a thread that others wait for.

use crate::error::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` gives; if it panics, an error that says who did and what the panic said. `who` is a noun.
///
/// Where panics abort, as in a browser, nothing is caught.
pub fn caught<T>(who: impl Into<String>, work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| Error::Panicked { who: who.into(), message: message(&*panic) })
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(caught("the sum", || 2 + 3).expect("no panic"), 5);
        type Function = fn(u32) -> u32;
        let panics: [(Function, &str); 3] = [
            (|_| panic!("always"), "always"),
            (|number| panic!("{number} times"), "3 times"),
            (|number| std::panic::panic_any(number), "no message"),
        ];
        for (panic, wanted) in panics {
            let error = caught("the function", || panic(3)).expect_err("a panic").to_string();
            assert_eq!(error, format!("the function panicked: {wanted}"));
        }
    }
}
