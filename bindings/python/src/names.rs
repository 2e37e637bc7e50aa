//! The options that the library's errors name, as a program in Python calls them.

use diptych::{Error, Setting};
use std::borrow::Cow;

fn name(setting: &Setting) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match setting {
        Setting::Values(_) => "values",
        Setting::Files => "files",
        Setting::Dimension(_) | Setting::Dimensions | Setting::Open | Setting::MeasuredInputs => "dims",
        Setting::Caches | Setting::Cache => "caches",
        Setting::Carry => "a session without caches",
        Setting::Reset => "Session.reset",
        // The error names the argument itself, or there is none.
        _ => return None,
    }))
}

/// An error's text in these words.
pub(crate) fn in_python(error: &Error) -> String {
    error.told(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_packages_names() {
        let name = |setting: Setting| name(&setting);
        assert_eq!(name(Setting::Values(vec!["size".to_owned()])).as_deref(), Some("values"));
        assert_eq!(name(Setting::Dimension("x.1".to_owned())).as_deref(), Some("dims"));
        assert_eq!(name(Setting::Batch("max_batch")), None);
    }
}
