//! What goes wrong, as GStreamer's elements say it: a message with a domain, a code and a text.

use gst::glib;
use gst::subclass::prelude::ElementImplExt;

/// A kind of failure, which decides the code of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file or a device is not there.
    Missing,
    /// A property has a value that does not fit.
    Setting,
    /// A model's file is not valid or not supported, or its outputs are not what was wanted.
    Model,
    /// A device or a driver failed.
    Device,
}

/// What was found and what was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn setting(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Setting, text: text.into() }
    }

    pub(crate) fn model(text: impl Into<String>) -> Self {
        Failure { kind: Kind::Model, text: text.into() }
    }

    /// The failure as the message of an element that does not start.
    pub(crate) fn message(&self) -> gst::ErrorMessage {
        match self.kind {
            Kind::Missing => gst::error_msg!(gst::ResourceError::NotFound, ("{}", self.text)),
            Kind::Setting => gst::error_msg!(gst::ResourceError::Settings, ("{}", self.text)),
            Kind::Model => gst::error_msg!(gst::StreamError::WrongType, ("{}", self.text)),
            Kind::Device => gst::error_msg!(gst::ResourceError::Failed, ("{}", self.text)),
        }
    }

    /// Tells the application, by a message of the element, that the stream ends here.
    pub(crate) fn post<T>(&self, imp: &T) -> gst::FlowError
    where
        T: gst::subclass::prelude::ElementImpl,
        <T as gst::subclass::prelude::ObjectSubclass>::Type: glib::object::IsA<gst::Element>,
    {
        imp.post_error_message(self.message());
        gst::FlowError::Error
    }
}

impl From<diptych::Error> for Failure {
    fn from(error: diptych::Error) -> Self {
        let kind = if matches!(error, diptych::Error::Io { .. }) || error.is_no_device() {
            Kind::Missing
        } else if error.is_invalid_input() {
            Kind::Setting
        } else if error.is_device_lost() || error.is_out_of_memory() || error.is_timed_out() {
            Kind::Device
        } else {
            Kind::Model
        };
        // What would help is an option of Rust's programs.
        Failure { kind, text: error.told(&|_| None) }
    }
}

impl From<diptych_decode::Error> for Failure {
    fn from(error: diptych_decode::Error) -> Self {
        Failure::model(error.to_string())
    }
}
