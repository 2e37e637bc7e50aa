//! What would help, as data: a package for another language, or a command line, says it in words of its own.

use super::Error;
use std::borrow::Cow;
use std::fmt;

/// An option or a method that would help. Its text is its path in Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// [`LoadOptions::values`](struct.LoadOptions.html#structfield.values) of these inputs.
    Values(Vec<String>),
    /// [`LoadOptions::files`](struct.LoadOptions.html#structfield.files).
    Files,
    /// [`LoadOptions::dimensions`](struct.LoadOptions.html#structfield.dimensions): this one.
    Dimension(String),
    /// [`SessionOptions::dimensions`](struct.SessionOptions.html#structfield.dimensions).
    Dimensions,
    /// [`SessionOptions::open`](struct.SessionOptions.html#structfield.open).
    Open,
    /// [`SessionOptions::keep_graph`](struct.SessionOptions.html#structfield.keep_graph).
    KeepGraph,
    /// The field of this name of [`BatchOptions`](struct.BatchOptions.html).
    Batch(&'static str),
    /// [`FastestOptions::inputs`](struct.FastestOptions.html#structfield.inputs).
    MeasuredInputs,
    /// [`Caches::new`](struct.Caches.html#method.new).
    Caches,
    /// [`Caches::with_masks`](struct.Caches.html#method.with_masks).
    Masks,
    /// [`Session::carry`](struct.Session.html#method.carry).
    Carry,
    /// [`Session::cache`](struct.Session.html#method.cache).
    Cache,
    /// [`Session::reset`](struct.Session.html#method.reset).
    Reset,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Setting::Values(_) => "LoadOptions::values",
            Setting::Files => "LoadOptions::files",
            Setting::Dimension(_) => "LoadOptions::dimensions",
            Setting::Dimensions => "SessionOptions::dimensions",
            Setting::Open => "SessionOptions::open",
            Setting::KeepGraph => "SessionOptions::keep_graph",
            Setting::Batch(field) => return write!(f, "BatchOptions::{field}"),
            Setting::MeasuredInputs => "FastestOptions::inputs",
            Setting::Caches => "Caches::new",
            Setting::Masks => "Caches::with_masks",
            Setting::Carry => "Session::carry",
            Setting::Cache => "Session::cache",
            Setting::Reset => "Session::reset",
        })
    }
}

/// A setting that would help, with the words around it at the end of an error's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    before: String,
    setting: Setting,
    after: &'static str,
}

impl Hint {
    #[doc(hidden)]
    pub fn new(before: impl Into<String>, setting: Setting, after: &'static str) -> Self {
        Hint { before: before.into(), setting, after }
    }

    /// What would help.
    ///
    /// ```
    /// use diptych::{Batch, BatchOptions, Backend, Context, Error, Graph, Setting};
    ///
    /// let options = BatchOptions { max_batch: 0, ..Default::default() };
    /// let error = Batch::new(&Context::new(Backend::Cpu)?, &Graph::new(), options).unwrap_err();
    /// let Error::Hinted { hint, .. } = error else { panic!("an error without a hint") };
    /// assert_eq!(*hint.setting(), Setting::Batch("max_batch"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn setting(&self) -> &Setting {
        &self.setting
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.before, self.setting, self.after)
    }
}

impl Error {
    /// Adds to the error what would help, if there is a hint.
    #[doc(hidden)]
    pub fn hinted(self, hint: impl Into<Option<Hint>>) -> Self {
        match hint.into() {
            Some(hint) => Error::Hinted { source: Box::new(self), hint },
            None => self,
        }
    }

    /// An error whose hint is a setting in brackets.
    #[doc(hidden)]
    pub fn with_setting(self, setting: Setting) -> Self {
        self.hinted(Hint::new(" (", setting, ")"))
    }

    /// The text with other names of settings than Rust's paths. What has no name leaves its hint out.
    ///
    /// ```
    /// use diptych::{Backend, Batch, BatchOptions, Context, Graph, Setting};
    ///
    /// let options = BatchOptions { max_batch: 0, ..Default::default() };
    /// let error = Batch::new(&Context::new(Backend::Cpu)?, &Graph::new(), options).unwrap_err();
    /// assert!(error.to_string().ends_with("(BatchOptions::max_batch)"));
    /// let flags = |setting: &Setting| match setting {
    ///     Setting::Batch(field) => Some(format!("--{field}").into()),
    ///     _ => None,
    /// };
    /// assert!(error.told(&flags).ends_with("(--max_batch)"));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn told(&self, names: &dyn Fn(&Setting) -> Option<Cow<'static, str>>) -> String {
        match self {
            Error::Hinted { source, hint: Hint { before, setting, after } } => {
                let hint = names(setting).map(|name| format!("{before}{name}{after}"));
                source.told(names) + &hint.unwrap_or_default()
            }
            Error::AtNode { node, source } => format!("node {node:?}: {}", source.told(names)),
            Error::Shared { of, source } => format!("a run of {of} requests: {}", source.told(names)),
            error => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_hint_is_said_in_the_words_of_whoever_tells_it() {
        let hint = Hint::new("; give its value (", Setting::Values(vec!["size".to_owned()]), ")");
        let error = Error::input("x", "none", "a constant").hinted(hint).at_node("r");
        let error = Error::Shared { of: 2, source: Arc::new(error) };
        let text = "a run of 2 requests: node \"r\": x: found none, wanted a constant; give its value (";
        assert_eq!(error.to_string(), format!("{text}LoadOptions::values)"));
        assert_eq!(error.told(&|setting| Some(setting.to_string().into())), error.to_string());
        let flag = |setting: &Setting| match setting {
            Setting::Values(inputs) => Some(format!("--value {}=...", inputs.join(" ")).into()),
            _ => None,
        };
        assert_eq!(error.told(&flag), format!("{text}--value size=...)"));
        assert!(error.told(&|_| None).ends_with("wanted a constant"));
        assert!(error.is_invalid_input() && error.node() == Some("r"));
        assert!(matches!(error.root(), Error::Input { .. }));
    }
}
