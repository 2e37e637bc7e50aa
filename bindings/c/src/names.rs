//! The options that the library's errors name, as a program in C calls them.

use diptych::{Error, Setting};
use std::borrow::Cow;

fn name(setting: &Setting) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match setting {
        Setting::Values(_) => "diptych_options_value",
        Setting::Files => "diptych_options_file",
        Setting::Dimension(_) | Setting::Dimensions | Setting::Open | Setting::MeasuredInputs => {
            "diptych_options_dimension"
        }
        Setting::Batch(field) => return Some(format!("diptych_batch_options.{field}").into()),
        Setting::Caches | Setting::Cache => "diptych_options_caches",
        Setting::Carry => "a session without diptych_options_caches",
        Setting::Reset => "diptych_reset",
        // The header has none.
        _ => return None,
    }))
}

/// An error's text in these words.
pub(crate) fn in_c(error: &Error) -> String {
    error.told(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Backend, Batch, BatchOptions, Context, Graph};

    #[test]
    fn messages_name_the_headers_functions() {
        let options = BatchOptions { max_batch: 0, ..Default::default() };
        let context = Context::new(Backend::Cpu).expect("the CPU");
        let error = Batch::new(&context, &Graph::new(), options).expect_err("a batch of none");
        assert!(in_c(&error).ends_with("(diptych_batch_options.max_batch)"), "{error}");
        assert_eq!(name(&Setting::Values(Vec::new())).as_deref(), Some("diptych_options_value"));
        assert_eq!(name(&Setting::KeepGraph), None);
    }
}
