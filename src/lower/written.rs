//! A program that has what its units write as outputs, behind those of the graph: the units, their kernels and their forms
//! are those of the program without.

use super::builder::Builder;
use super::choose::ChangeTimes;
use super::program::Program;
use super::step::Part;
use crate::device::DeviceInfo;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::options::SessionOptions;

/// A value that a unit writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// The unit's name.
    pub(crate) unit: String,
    /// Its place among what the unit writes.
    pub(crate) place: usize,
    pub(crate) dims: Dims,
}

impl Program {
    /// [`Program::of`] with the values of f32 that units write, in rows, as outputs behind the graph's.
    pub(crate) fn with_written(
        graph: &Graph,
        asked: &SessionOptions,
        info: &DeviceInfo,
        changes: &ChangeTimes<'_>,
    ) -> Result<(Self, Vec<Written>)> {
        let mut all: Vec<(Written, Part)> = Vec::new();
        let mut program = Self::built(graph, asked, info, (changes, None), &mut |builder, unit| {
            for (place, &value) in unit.outputs.iter().enumerate() {
                if let Some(part) = builder.kept(value)? {
                    let dims = builder.network.dims(value)?;
                    all.push((Written { unit: unit.name.clone(), place, dims }, part));
                }
            }
            Ok(())
        })?;
        let (written, parts): (Vec<Written>, Vec<Part>) = all.into_iter().unzip();
        program.output_words.extend(parts.iter().map(|_| DType::F32));
        program.outputs.extend(parts);
        Ok((program, written))
    }
}

impl Builder<'_, '_> {
    /// The rows of a value of f32, which stay to the end of the run. No step reads them: what is stored beside them does
    /// not change what the others read.
    fn kept(&mut self, value: Value) -> Result<Option<Part>> {
        let Some(places) = self.places.get(&value).cloned() else { return Ok(None) };
        if self.network.word(value) != DType::F32 {
            return Ok(None);
        }
        let part = self.read(value, self.rows(value)?)?;
        self.places.insert(value, places);
        if let Some(stored) = self.program.stored.get_mut(part.stored) {
            stored.pinned = true;
        }
        Ok(Some(part))
    }
}
