//! The options that the library's errors name, as the package calls them.

use diptych::{Error, Setting};
use std::borrow::Cow;

fn name(setting: &Setting) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match setting {
        Setting::Files => "externalData",
        Setting::Dimension(_) | Setting::Dimensions | Setting::Open => "dimensions",
        // The package has no such option.
        _ => return None,
    }))
}

/// An error's text in these words.
pub(crate) fn in_javascript(error: &Error) -> String {
    error.told(&name)
}
