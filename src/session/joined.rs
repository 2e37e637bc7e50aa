//! A run whose inputs are in several parts.

use super::device::{DeviceFlight, DeviceSession};
use super::stream::UnderWay;
use super::{Flight, Runner, Session};
use crate::device::Slice;
use crate::error::{Error, Result};
use std::borrow::Cow;

impl Session {
    /// A run up to the wait, with the inputs' elements in the order of the ports, as many as each has.
    pub(super) fn start_arranged(&mut self, inputs: &[Cow<'_, [f32]>]) -> Result<Flight> {
        let flight = match &mut self.runner {
            Runner::Device(session) => session.start(inputs).map(UnderWay::Device),
            Runner::Cpu(session) => session.start(inputs).map(UnderWay::Cpu),
        };
        Ok(Flight(flight?))
    }

    /// A run up to the wait, with each input's elements in parts, one behind the other. What is behind the last part of
    /// an input is anything.
    pub(crate) fn start_joined(&mut self, inputs: &[Vec<&[f32]>]) -> Result<Flight> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::Internal(format!("{} inputs of {}", inputs.len(), self.inputs.len())));
        }
        for (port, parts) in self.inputs.iter().zip(inputs) {
            let (found, wanted) = (parts.iter().map(|part| part.len()).sum::<usize>(), port.dims.elements());
            if found > wanted {
                return Err(Error::Internal(format!(
                    "{found} elements for {:?} of {}",
                    port.name, port.dims
                )));
            }
        }
        // A device is given the parts where they are.
        if let Runner::Device(session) = &mut self.runner
            && let Some(flight) = session.start_parts(inputs)?
        {
            return Ok(Flight(UnderWay::Device(flight)));
        }
        let joined: Vec<Cow<'_, [f32]>> = self
            .inputs
            .iter()
            .zip(inputs)
            .map(|(port, parts)| match parts[..] {
                [whole] if whole.len() == port.dims.elements() => Cow::Borrowed(whole),
                _ => {
                    let mut joined = Vec::with_capacity(port.dims.elements());
                    parts.iter().for_each(|part| joined.extend_from_slice(part));
                    joined.resize(port.dims.elements(), 0.0);
                    Cow::Owned(joined)
                }
            })
            .collect();
        self.start_arranged(&joined)
    }
}

impl DeviceSession {
    /// [`DeviceSession::start`] with inputs in parts. Nothing, if the CPU computes a step before the last submission: it
    /// reads whole inputs.
    fn start_parts(&mut self, inputs: &[Vec<&[f32]>]) -> Result<Option<DeviceFlight>> {
        if !self.segments.lead().is_empty() {
            return Ok(None);
        }
        let mut places = Vec::new();
        for (slice, parts) in self.inputs.iter().zip(inputs) {
            let mut at = slice.offset;
            for part in parts {
                let own = slice.buffer.slice(at, size_of_val(*part) as u64)?;
                at += own.bytes;
                places.push((own, *part));
            }
        }
        let writes: Vec<(&Slice, &[u8])> =
            places.iter().map(|(slice, part)| (slice, bytemuck::cast_slice(part))).collect();
        let reads: Vec<&Slice> = self.reads.iter().collect();
        self.engine
            .device()?
            .start(&writes, &self.segments.last().recording, &reads)
            .map(DeviceFlight)
            .map(Some)
    }
}
