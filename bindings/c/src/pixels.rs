//! Bytes of pictures for inputs of floats.

use crate::calls::Given;
use crate::errors::{Failure, printable, wrong};
use diptych::{DType, Error, Pixels, Port};
use std::collections::BTreeMap;

/// How bytes become the numbers of inputs: by the file, and by the options.
#[derive(Debug, Clone, Default)]
pub(crate) struct PixelsOf {
    /// What the options say of all inputs.
    pub(crate) all: Option<Pixels>,
    /// What the options say of some, or else the file.
    pub(crate) named: BTreeMap<String, Pixels>,
}

impl PixelsOf {
    /// Adds what the file says of inputs about which the options say nothing.
    pub(crate) fn or(mut self, file: BTreeMap<String, Pixels>) -> Self {
        for (name, pixels) in file {
            if self.all.is_none() {
                self.named.entry(name).or_insert(pixels);
            }
        }
        self
    }

    /// Refuses names that no input has.
    pub(crate) fn check(&self, names: &[&str]) -> Result<(), Failure> {
        match self.named.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => {
                let found = format!("input {name:?}");
                Err(wrong(
                    "diptych_options_pixels",
                    found,
                    format!("one of {}", printable(names.iter().copied())),
                ))
            }
            None => Ok(()),
        }
    }

    /// What an input is given: bytes of a picture as floats, everything else as it is.
    pub(crate) fn scaled<'a>(&self, port: &Port, given: Given<'a>) -> Result<Given<'a>, Failure> {
        let Given::Tensor(tensor) = &given else { return Ok(given) };
        if tensor.dtype() != DType::U8 || !Pixels::are_for(port.dtype, tensor.dims()) {
            return Ok(given);
        }
        let what = format!("input {:?}", port.name);
        match self.named.get(&port.name).or(self.all.as_ref()) {
            Some(pixels) => {
                let floats = pixels.floats(tensor);
                Ok(Given::Tensor(floats.map_err(|error| match error {
                    Error::Input { found, wanted, .. } => Error::input(what, found, wanted),
                    other => other,
                })?))
            }
            None => Err(wrong(
                &what,
                "a picture of bytes, of which the file does not say what numbers they are",
                "diptych_options_pixels before the session is opened, or floats",
            )),
        }
    }
}
