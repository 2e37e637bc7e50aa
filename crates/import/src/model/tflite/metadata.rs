//! What a file says of itself: a description, and of each input and output its normalisation and labels.
//!
//! The metadata are a FlatBuffer of their own in one of the file's buffers. Files that they name are in a zip
//! archive that is appended to the model; those that are stored without compression are read.
//!
//! Source: TensorFlow Lite's published metadata schema, version 1.

use super::schema::Model;
use super::tables::{Offset, Tables, at, slot, verified};
use super::tensors::Budget;
use crate::model::reason::Reason;
use crate::model::{ModelInfo, TensorInfo};
use flatbuffers::{Follow, InvalidFlatbuffer, Table, TableVerifier, Vector, Verifiable, Verifier};

table! {
    /// The metadata of a file.
    Metadata {
        name: 0 => Offset<&'a str>,
        description: 1 => Offset<&'a str>,
        networks: 3 => Offset<Tables<'a, Network<'a>>>,
    }
}

table! {
    /// The metadata of a network.
    Network {
        inputs: 2 => Offset<Tables<'a, Described<'a>>>,
        outputs: 3 => Offset<Tables<'a, Described<'a>>>,
    }
}

table! {
    /// The metadata of an input or output.
    Described {
        name: 0 => Offset<&'a str>,
        description: 1 => Offset<&'a str>,
        steps: 4 => Offset<Tables<'a, Step<'a>>>,
        files: 6 => Offset<Tables<'a, AssociatedFile<'a>>>,
    }
}

table! {
    /// A step before or after the network.
    Step and step_options {
        options_type: 0 => u8 = 0,
    }
}

table! {
    /// Options of a normalisation.
    Normalisation {
        mean: 0 => Offset<Vector<'a, f32>>,
        deviation: 1 => Offset<Vector<'a, f32>>,
    }
}

table! {
    /// A file in the archive.
    AssociatedFile {
        name: 0 => Offset<&'a str>,
        kind: 2 => i8 = 0,
    }
}

union! {
    /// The options of a step.
    step_options: 1 by options_type of Step => {
        normalisation: 1 => Normalisation,
    }
}

/// The kind of a file that has a label for each index of the last axis.
const AXIS_LABELS: i8 = 2;

impl ModelInfo {
    pub(super) fn read(
        model: &Model<'_>,
        network: usize,
        file: &[u8],
        budget: &mut Budget,
    ) -> Result<Self, Reason> {
        let mut info = ModelInfo::default();
        if let Some(description) = model.description() {
            budget.spend(description.len())?;
            info.description = description.to_owned();
        }
        // What metadata say does not change a result: damaged ones are left out.
        let Some(metadata) = buffer(model).and_then(|bytes| verified::<Metadata<'_>>(bytes).ok()) else {
            return Ok(info);
        };
        let text = |text: Option<&str>, budget: &mut Budget| {
            let text = text.unwrap_or("");
            budget.spend(text.len()).map(|()| text.to_owned())
        };
        info.name = text(metadata.name(), budget)?;
        let description = text(metadata.description(), budget)?;
        if !description.is_empty() {
            info.description = description;
        }
        let Some(network) = metadata.networks().and_then(|networks| at(networks, network)) else {
            return Ok(info);
        };
        for (described, infos) in
            [(network.inputs(), &mut info.inputs), (network.outputs(), &mut info.outputs)]
        {
            for described in described.into_iter().flat_map(|described| described.iter()) {
                infos.push(TensorInfo {
                    name: text(described.name(), budget)?,
                    description: text(described.description(), budget)?,
                    normalisation: normalisation(&described, budget)?,
                    labels: labels(&described, file, budget)?,
                });
            }
        }
        Ok(info)
    }
}

/// The bytes of the metadata.
fn buffer<'a>(model: &Model<'a>) -> Option<&'a [u8]> {
    let mut entries = model.metadata()?.iter();
    let entry = entries.find(|entry| entry.name() == Some("TFLITE_METADATA"))?;
    let buffer = at(model.buffers()?, entry.buffer() as usize)?;
    buffer.data().map(|data| data.bytes())
}

fn normalisation(described: &Described<'_>, budget: &mut Budget) -> Result<Vec<(f32, f32)>, Reason> {
    let mut steps = described.steps().into_iter().flat_map(|steps| steps.iter());
    let Some(found) = steps.find_map(|step| step.normalisation()) else { return Ok(Vec::new()) };
    let (Some(means), Some(deviations)) = (found.mean(), found.deviation()) else { return Ok(Vec::new()) };
    budget.spend(8 * means.len())?;
    Ok(means.iter().zip(deviations.iter()).collect())
}

fn labels(described: &Described<'_>, file: &[u8], budget: &mut Budget) -> Result<Vec<String>, Reason> {
    let mut files = described.files().into_iter().flat_map(|files| files.iter());
    let name = files.find(|file| file.kind() == AXIS_LABELS).and_then(|file| file.name());
    let Some(bytes) = name.and_then(|name| stored_file(file, name)) else { return Ok(Vec::new()) };
    budget.spend(8 * bytes.len())?;
    Ok(String::from_utf8_lossy(bytes).lines().map(|line| line.trim_end().to_owned()).collect())
}

/// A file of the zip archive at the end of `archive`, if it is there and stored as it is.
///
/// Source: PKWARE's *.ZIP File Format Specification*, 6.3, sections 4.3.7, 4.3.12 and 4.3.16. Offsets count
/// from the beginning of the archive, which writers take to be that of the model or that of the zip.
fn stored_file<'f>(archive: &'f [u8], wanted: &str) -> Option<&'f [u8]> {
    let u16_at =
        |at: usize| archive.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes).map(usize::from);
    let u32_at =
        |at: usize| archive.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes).map(|n| n as usize);
    // The end record has 22 bytes and a comment of at most 65,535.
    let last = archive.len().checked_sub(22)?;
    let end =
        (last.saturating_sub(65_535)..=last).rev().find(|&at| archive[at..].starts_with(b"PK\x05\x06"))?;
    let (entries, size, offset) = (u16_at(end + 10)?, u32_at(end + 12)?, u32_at(end + 16)?);
    let directory = end.checked_sub(size)?;
    let before = directory.checked_sub(offset)?;
    let mut entry = directory;
    for _ in 0..entries {
        if !archive.get(entry..)?.starts_with(b"PK\x01\x02") {
            return None;
        }
        let (method, length) = (u16_at(entry + 10)?, u32_at(entry + 20)?);
        let [name, extra, comment] = [u16_at(entry + 28)?, u16_at(entry + 30)?, u16_at(entry + 32)?];
        if archive.get(entry + 46..entry + 46 + name)? == wanted.as_bytes() && method == 0 {
            let local = before.checked_add(u32_at(entry + 42)?)?;
            if !archive.get(local..)?.starts_with(b"PK\x03\x04") {
                return None;
            }
            let data = local + 30 + u16_at(local + 26)? + u16_at(local + 28)?;
            return archive.get(data..data.checked_add(length)?);
        }
        entry += 46 + name + extra + comment;
    }
    None
}
