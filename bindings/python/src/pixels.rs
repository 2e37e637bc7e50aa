//! Bytes of pictures for inputs of floats.

use crate::errors::exception;
use diptych::{Error, HostTensor, ModelFile, Pixels};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// What the package says: of an input, or of all without a name, the means and deviations of the channels.
pub(crate) type Said = Vec<(Option<String>, Vec<(f64, f64)>)>;

/// The inputs of floats, and how bytes become their numbers, where that is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct PixelsOf(BTreeMap<String, Option<Pixels>>);

impl PixelsOf {
    /// Pixels of all inputs of floats of `file`: as `said`, or else as the file says.
    pub(crate) fn new(file: &ModelFile, said: Said) -> PyResult<Self> {
        let by_file = file.pixels();
        let inputs = file.inputs();
        let floats = inputs.iter().filter(|input| input.dtype.is_float());
        let mut of: BTreeMap<String, Option<Pixels>> =
            floats.map(|input| (input.name.clone(), by_file.get(&input.name).cloned())).collect();
        for (name, pairs) in said {
            let pixels = Pixels::normalized(&pairs).map_err(exception)?;
            match name {
                None => of.values_mut().for_each(|own| *own = Some(pixels.clone())),
                Some(name) => match of.get_mut(&name) {
                    Some(own) => *own = Some(pixels),
                    None => {
                        let names: Vec<String> = of.keys().map(|own| format!("'{own}'")).collect();
                        let wanted = format!("one of the inputs of floats, {}", names.join(", "));
                        return Err(exception(Error::input("pixels", format!("input '{name}'"), wanted)));
                    }
                },
            }
        }
        Ok(PixelsOf(of))
    }

    /// Bytes as the floats of an input; nothing, if they are no picture's.
    pub(crate) fn scaled(&self, name: &str, bytes: &HostTensor) -> Result<Option<HostTensor>, Error> {
        let Some(pixels) = self.0.get(name).filter(|_| bytes.dims().rank() >= 3) else { return Ok(None) };
        let what = format!("input '{name}'");
        match pixels {
            Some(pixels) => pixels.floats(bytes).map(Some).map_err(|error| match error {
                Error::Input { found, wanted, .. } => Error::input(what, found, wanted),
                other => other,
            }),
            None => Err(Error::input(
                what,
                "a picture of uint8, of which the file does not say what numbers they are",
                "pixels=diptych.Pixels.range(0, 1), or the range that the network was trained with; or an array of floats",
            )),
        }
    }
}
