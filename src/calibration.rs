//! Which nodes of a network f16 storage serves, found by running it: plain data, kept as JSON.

use crate::error::{Error, Result};
use crate::file;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// The version of the format.
const FORMAT: u32 = 1;

/// The most bytes of a file: a hundred for each of a hundred thousand nodes.
const MAX_BYTES: u64 = 10 << 20;

/// What f16 storage does to a network, from runs on samples of its inputs ([`crate::Session::calibrate`]).
///
/// Errors are relative to the largest magnitude of the same value in the f32 run, the largest of all samples.
/// An infinite one is a value beyond 65504, where halves end, or a NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    format: u32,
    tolerance: f32,
    nodes: Vec<CalibratedNode>,
    outputs: Vec<CalibratedOutput>,
}

/// What a calibration says of one step of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CalibratedNode {
    /// The name of the node, or of the nodes that run as one, as [`crate::Session::steps`] has it.
    pub name: String,
    /// The largest magnitude of what it writes in f32.
    pub largest: f32,
    /// How far off its result is where every node that may be is in f16; `None` if that is infinite.
    pub error: Option<f32>,
    /// Why it is kept in f32, if it is.
    pub kept: Option<String>,
}

/// What a calibration reached for an output of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CalibratedOutput {
    /// Its name.
    pub name: String,
    /// Its error with the nodes that are kept in f32.
    pub error: f32,
}

impl Calibration {
    /// How far an output may be off, relative to its largest magnitude, where nothing else is said.
    pub const TOLERANCE: f32 = 1e-2;

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn new(tolerance: f32, nodes: Vec<CalibratedNode>, outputs: Vec<CalibratedOutput>) -> Self {
        Calibration { format: FORMAT, tolerance, nodes, outputs }
    }

    /// How far an output may be off.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// println!("outputs may be off by {}", calibration.tolerance());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn tolerance(&self) -> f32 {
        self.tolerance
    }

    /// What runs as one step, in order of execution.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// for node in calibration.nodes() {
    ///     println!("{}: up to {}", node.name, node.largest);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn nodes(&self) -> &[CalibratedNode] {
        &self.nodes
    }

    /// The errors of the outputs, in the graph's order.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// for output in calibration.outputs() {
    ///     println!("{} is off by {}", output.name, output.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn outputs(&self) -> &[CalibratedOutput] {
        &self.outputs
    }

    /// The nodes that are kept in f32.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// for node in calibration.kept() {
    ///     println!("{}: {}", node.name, node.kept.as_deref().unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn kept(&self) -> impl Iterator<Item = &CalibratedNode> {
        self.nodes.iter().filter(|node| node.kept.is_some())
    }

    /// What the calibration says of the node `name`.
    pub(crate) fn node(&self, name: &str) -> Option<&CalibratedNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The calibration as JSON, which [`Calibration::from_json`] reads.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// let again = Calibration::from_json(&calibration.to_json()?)?;
    /// # let _ = again;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If memory runs out.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Error::Internal(error.to_string()))
    }

    /// Reads a calibration from JSON that [`Calibration::to_json`] wrote.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// assert!(Calibration::from_json("[]").is_err());
    /// ```
    ///
    /// # Errors
    /// If it is no calibration, or of another version.
    pub fn from_json(text: &str) -> Result<Self> {
        let refuse = |found: String| Error::input("calibration", found, "what Calibration::to_json gives");
        let found: Self = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        if found.format != FORMAT {
            return Err(refuse(format!("format {}, this is {FORMAT}", found.format)));
        }
        Ok(found)
    }

    /// Writes it to a file.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// # fn shown(calibration: &Calibration) -> diptych::Result<()> {
    /// calibration.save("network.calibration.json")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_json()?)
            .map_err(|source| Error::Io { path: path.display().to_string(), source })
    }

    /// Reads it from a file.
    ///
    /// ```
    /// use diptych::Calibration;
    ///
    /// match Calibration::load("network.calibration.json") {
    ///     Ok(calibration) => println!("{calibration}"),
    ///     Err(error) => println!("{error}"), // names the file
    /// }
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or is no calibration.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::Io { path: path.display().to_string(), source };
        let bytes = file::read(path, MAX_BYTES).map_err(failed)?;
        Calibration::from_json(&String::from_utf8_lossy(&bytes))
    }
}

impl fmt::Display for Calibration {
    /// Prints what is kept in f32 and why, and the outputs' errors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept().count();
        writeln!(f, "{kept} of {} nodes in f32, tolerance {}", self.nodes.len(), self.tolerance)?;
        for node in self.kept() {
            writeln!(f, "  {}: {}", node.name, node.kept.as_deref().unwrap_or_default())?;
        }
        for output in &self.outputs {
            writeln!(f, "  output {}: off by {:.2e}", output.name, output.error)?;
        }
        Ok(())
    }
}
