//! The one error type of the crate.

mod hint;

pub use hint::{Hint, Setting};

use std::fmt;

/// Shorthand for a result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the values that disagree. If something can be done about it, the text begins with that.
///
/// Questions such as [`Error::is_device_lost`] are answered wherever the error was noticed: at a node, or in a run that
/// requests share.
///
/// What concerns one node of a graph comes as [`Error::AtNode`], with the error itself as its source:
///
/// ```
/// use diptych::{Error, Extras, Graph, HostTensor, Pointwise, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.input("x", Shape::nhwc(1, 8, 8, 3))?;
/// let weights = HostTensor::new(Shape::nhwc(16, 1, 1, 4), vec![0.0; 64])?;
/// let error = graph.pointwise("stem", x, weights, Extras::default(), Pointwise::default()).unwrap_err();
/// assert_eq!(error.node(), Some("stem"));
/// assert!(matches!(error.without_node(), Error::Shape { op: "pointwise", .. }));
/// assert!(error.to_string().starts_with("node \"stem\": pointwise: found "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shape, stride, padding or extent does not fit the op.
    #[error("{op}: found {found}, wanted {wanted}")]
    Shape {
        /// The op that refused.
        op: &'static str,
        /// What was found.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// What was asked for is not supported, for a reason.
    #[error("{what} is not supported: {reason}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it is not supported.
        reason: String,
    },
    /// A kernel variant, tile or work-group cannot run this problem on this device.
    #[error("kernel {kernel} cannot be used: {reason}")]
    Reject {
        /// The kernel's label.
        kernel: String,
        /// The broken constraint, with its values.
        reason: String,
    },
    /// An input or output name, shape or length does not match the graph.
    #[error("{name}: found {found}, wanted {wanted}")]
    Input {
        /// The input, output or file.
        name: String,
        /// What was found.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// No device of the wanted kind; lists what was tried.
    #[error("choose a device that is there, or install its driver: no {backend} device: wanted {wanted}; found {}", tried.join("; "))]
    NoDevice {
        /// The backend that was asked for.
        backend: String,
        /// Which device was wanted.
        wanted: String,
        /// What was tried, and what came of it.
        tried: Vec<String>,
    },
    /// The OpenCL library was not found; lists every place that was tried.
    #[error("install an OpenCL driver, or name its library in DIPTYCH_OPENCL_LIBRARY: no OpenCL library: tried {}", tried.join("; "))]
    OpenClLibrary {
        /// Each path with the loader's answer.
        tried: Vec<String>,
    },
    /// A kernel did not compile: the driver's log and the numbered source.
    #[error("kernel {kernel} does not compile ({api}):\n{log}\n{source_text}")]
    Compile {
        /// The kernel's label.
        kernel: String,
        /// The API whose compiler refused.
        api: &'static str,
        /// The compiler's log.
        log: String,
        /// The source with line numbers.
        source_text: String,
    },
    /// A template could not be rendered.
    #[error("template {template}: {message}")]
    Template {
        /// The template's name.
        template: String,
        /// What the engine said.
        message: String,
    },
    /// A driver or API call failed.
    #[error("{api}: {call} failed: {message}")]
    Driver {
        /// The API.
        api: &'static str,
        /// The call.
        call: &'static str,
        /// The driver's message or code.
        message: String,
    },
    /// The device or its driver has no memory left for the call. Most such calls through wgpu lose the device as well:
    /// then the error is [`Error::DeviceLost`], and its reason says so.
    #[error("use a smaller batch or f16 storage: {api}: {call} failed: out of memory: {message}")]
    OutOfMemory {
        /// The API.
        api: &'static str,
        /// The call.
        call: &'static str,
        /// The driver's message or code.
        message: String,
    },
    /// The device is gone: a driver that was reset, a GPU that was unplugged, an application that destroyed its device.
    /// What was made on it no longer works. [`Context::reopen`](struct.Context.html#method.reopen) opens it anew, and
    /// [`Session::rebuild`](struct.Session.html#method.rebuild) makes a session again.
    #[error("open the device again and rebuild sessions: {api}: the device was lost: {reason}")]
    DeviceLost {
        /// The API.
        api: &'static str,
        /// What the API said.
        reason: String,
    },
    /// The device did not finish within the limit that the application set
    /// ([`ContextBuilder::time_limit`](struct.ContextBuilder.html#method.time_limit)). It may still be at work. If it finishes later, what
    /// was made on it can be used again; [`Context::reopen`](struct.Context.html#method.reopen) opens a device that does not wait for it.
    #[error("reopen the device or set a longer limit: {api}: the device did not finish within {limit:?}")]
    TimedOut {
        /// The API.
        api: &'static str,
        /// The limit of the wait.
        limit: std::time::Duration,
    },
    /// A model file could not be read; names the op where there is one.
    #[error("{file}{}: {message}", AtOp(op))]
    Model {
        /// The file, or `model` for bytes.
        file: String,
        /// The op's index and name.
        op: Option<(usize, String)>,
        /// What was found and what was wanted.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// What went wrong at one node of a graph.
    #[error("node {node:?}: {source}")]
    AtNode {
        /// The node's name; those of several that run as one, joined by ` + `.
        node: String,
        /// What went wrong. This error itself names no node.
        source: Box<Error>,
    },
    /// What went wrong, and an option or a method that would help.
    #[error("{source}{hint}")]
    Hinted {
        /// What went wrong. This error itself has no hint.
        source: Box<Error>,
        /// What would help.
        hint: Hint,
    },
    /// What went wrong in a run that several requests share ([`Batch`](struct.Batch.html)). Each request gets this error.
    #[error("a run of {of} requests: {source}")]
    Shared {
        /// Requests of the run.
        of: usize,
        /// What went wrong.
        source: std::sync::Arc<Error>,
    },
    /// A function that the application gave, such as one of [`Custom`](struct.Custom.html), panicked. The panic was caught:
    /// the caller of the function goes on.
    #[error("{who} panicked: {message}")]
    Panicked {
        /// Which function.
        who: String,
        /// What the panic said.
        message: String,
    },
    /// A broken invariant of the crate itself: a bug to report.
    #[error("internal error (please report): {0}")]
    Internal(String),
}

struct AtOp<'a>(&'a Option<(usize, String)>);

impl fmt::Display for AtOp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((index, name)) => write!(f, ": op {index} ({name})"),
            None => Ok(()),
        }
    }
}

impl Error {
    /// An [`Error::Shape`].
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::shape("sort", "a matrix", "a vector");
    /// assert_eq!(error.to_string(), "sort: found a matrix, wanted a vector");
    /// ```
    pub fn shape(op: &'static str, found: impl Into<String>, wanted: impl Into<String>) -> Self {
        Error::Shape { op, found: found.into(), wanted: wanted.into() }
    }

    /// An [`Error::Input`].
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::input("picture", "nothing", "a tensor");
    /// assert_eq!(error.to_string(), "picture: found nothing, wanted a tensor");
    /// ```
    pub fn input(name: impl Into<String>, found: impl Into<String>, wanted: impl Into<String>) -> Self {
        Error::Input { name: name.into(), found: found.into(), wanted: wanted.into() }
    }

    /// An [`Error::Unsupported`].
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::unsupported("precision f16", "no half arithmetic");
    /// assert_eq!(error.to_string(), "precision f16 is not supported: no half arithmetic");
    /// ```
    pub fn unsupported(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::Unsupported { what: what.into(), reason: reason.into() }
    }

    /// What needs the feature `cpu`, where the crate was built without it.
    #[doc(hidden)]
    pub fn without_cpu(what: impl Into<String>) -> Self {
        Error::unsupported(what, "the crate was built without feature `cpu`")
    }

    /// Adds to the error the name of the graph node at which it arose. An error that names a node keeps it.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::input("x", "nothing", "a tensor").at_node("stem");
    /// assert_eq!(error.to_string(), "node \"stem\": x: found nothing, wanted a tensor");
    /// ```
    #[must_use]
    pub fn at_node(self, name: &str) -> Self {
        match self {
            Error::AtNode { .. } => self,
            source => Error::AtNode { node: name.to_owned(), source: Box::new(source) },
        }
    }

    /// The graph node it arose at, where there is one.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::input("x", "nothing", "a tensor");
    /// assert_eq!(error.node(), None);
    /// assert_eq!(error.at_node("stem").node(), Some("stem"));
    /// ```
    pub fn node(&self) -> Option<&str> {
        match self {
            Error::AtNode { node, .. } => Some(node),
            Error::Hinted { source, .. } => source.node(),
            Error::Shared { source, .. } => source.node(),
            _ => None,
        }
    }

    /// The error itself, without its node, its hint and the run that shared it.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::unsupported("precision f16", "no half arithmetic").at_node("stem");
    /// assert!(matches!(error.root(), Error::Unsupported { .. }));
    /// ```
    pub fn root(&self) -> &Error {
        match self {
            Error::AtNode { source, .. } | Error::Hinted { source, .. } => source.root(),
            Error::Shared { source, .. } => source.root(),
            error => error,
        }
    }

    /// Whether the device was lost: open it again ([`Context::reopen`](struct.Context.html#method.reopen)) and rebuild what was made
    /// on it ([`Session::rebuild`](struct.Session.html#method.rebuild)).
    ///
    /// ```
    /// use diptych::{Context, Result, Session};
    ///
    /// fn rebuilt(context: &mut Context, session: &mut Session) -> Result<()> {
    ///     if let Err(error) = session.run(&[]) {
    ///         if !error.is_device_lost() {
    ///             return Err(error);
    ///         }
    ///         *context = context.reopen()?;
    ///         session.rebuild(context)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn is_device_lost(&self) -> bool {
        matches!(self.root(), Error::DeviceLost { .. })
    }

    /// Whether memory ran out, on the device or on the host: a smaller batch,
    /// [`Precision::F16Storage`](crate::dtype::Precision::F16Storage) or fewer sessions at a time need less.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::OutOfMemory { api: "OpenCL", call: "clCreateBuffer", message: "-4".to_owned() };
    /// assert!(error.at_node("stem").is_out_of_memory());
    /// ```
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.root(), Error::OutOfMemory { .. })
    }

    /// Whether this device, build or version cannot do what was asked for, and others may.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// assert!(Error::unsupported("precision f16", "no half arithmetic").is_unsupported());
    /// ```
    pub fn is_unsupported(&self) -> bool {
        matches!(self.root(), Error::Unsupported { .. } | Error::Reject { .. })
    }

    /// Whether what the caller gave does not fit: a shape, a name, a value out of its range.
    ///
    /// ```
    /// use diptych::{HostTensor, Shape};
    ///
    /// let error = HostTensor::new(Shape::nhwc(1, 2, 2, 3), vec![0.0; 11]).unwrap_err();
    /// assert!(error.is_invalid_input());
    /// ```
    pub fn is_invalid_input(&self) -> bool {
        matches!(self.root(), Error::Shape { .. } | Error::Input { .. })
    }

    /// Whether no device of the wanted kind is there, or no driver for it.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::OpenClLibrary { tried: vec!["libOpenCL.so.1".to_owned()] };
    /// assert!(error.is_no_device());
    /// ```
    pub fn is_no_device(&self) -> bool {
        matches!(self.root(), Error::NoDevice { .. } | Error::OpenClLibrary { .. })
    }

    /// Whether the device did not finish within the limit that the application set
    /// ([`ContextBuilder::time_limit`](struct.ContextBuilder.html#method.time_limit)).
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::TimedOut { api: "Vulkan", limit: std::time::Duration::from_secs(2) };
    /// assert!(error.is_timed_out());
    /// ```
    pub fn is_timed_out(&self) -> bool {
        matches!(self.root(), Error::TimedOut { .. })
    }

    /// Whether a function that the application gave panicked.
    ///
    /// ```
    /// use diptych::{Backend, Context, Custom, Graph, HostTensor, Session, SessionOptions, Shape};
    ///
    /// let broken = Custom::host("broken", |inputs| Ok(inputs.to_vec()), |_, _| panic!("not today"));
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// let y = graph.custom("node", &broken, &[x])?;
    /// graph.output(y[0])?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?;
    /// let error = session.run(&[("x", &x)]).unwrap_err();
    /// assert!(error.is_panic());
    /// assert_eq!(error.node(), Some("node"));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.root(), Error::Panicked { .. })
    }

    /// The error without its node and its hint.
    ///
    /// ```
    /// use diptych::Error;
    ///
    /// let error = Error::input("x", "nothing", "a tensor").at_node("stem");
    /// assert!(matches!(error.without_node(), Error::Input { .. }));
    /// ```
    pub fn without_node(&self) -> &Error {
        match self {
            Error::AtNode { source, .. } | Error::Hinted { source, .. } => source.without_node(),
            error => error,
        }
    }
}

/// `text` with a line number before each line, for compile errors.
pub fn numbered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8 * text.lines().count());
    for (index, line) in text.lines().enumerate() {
        out.push_str(&format!("{:>4} | {line}\n", index + 1));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn every_error_keeps_its_node_and_its_cause() {
        let errors = [
            Error::shape("gemm", "A 1x2x3", "A 1x2x4"),
            Error::unsupported("precision f16", "no half arithmetic"),
            Error::input("x", "nothing", "a tensor"),
            Error::Reject { kernel: "gemm_tiled".to_owned(), reason: "too large".to_owned() },
            Error::Driver { api: "OpenCL", call: "clFinish", message: "-5".to_owned() },
            Error::OutOfMemory { api: "OpenCL", call: "clCreateBuffer", message: "-4".to_owned() },
            Error::DeviceLost { api: "Vulkan", reason: "unplugged".to_owned() },
            Error::TimedOut { api: "Vulkan", limit: std::time::Duration::from_secs(2) },
            Error::Panicked { who: "the function".to_owned(), message: "told to".to_owned() },
        ];
        for error in errors {
            let (alone, lost) = (error.to_string(), matches!(error, Error::DeviceLost { .. }));
            assert_eq!((error.node(), error.without_node().to_string()), (None, alone.clone()));
            let named = error.at_node("stem").at_node("an outer name");
            assert_eq!(named.node(), Some("stem"));
            assert_eq!(named.to_string(), format!("node \"stem\": {alone}"));
            assert_eq!(named.without_node().to_string(), alone);
            assert_eq!(named.source().map(ToString::to_string), Some(alone));
            assert_eq!(named.is_device_lost(), lost);
            let shared = Error::Shared { of: 3, source: std::sync::Arc::new(named) };
            assert_eq!((shared.is_device_lost(), shared.node()), (lost, Some("stem")));
            assert!(matches!(shared, Error::Shared { .. }) && shared.root().node().is_none());
            let questions = [
                shared.is_device_lost(),
                shared.is_out_of_memory(),
                shared.is_unsupported(),
                shared.is_invalid_input(),
                shared.is_no_device(),
                shared.is_timed_out(),
                shared.is_panic(),
            ];
            let wanted = usize::from(!matches!(shared.root(), Error::Driver { .. }));
            assert_eq!(questions.iter().filter(|yes| **yes).count(), wanted, "{shared}");
        }
    }
}
