//! What runs on a device leave to the next ones.

use super::DeviceSession;
use crate::alloc;
use crate::device::{Slice, Wait};
use crate::error::Result;
use crate::graph::Key;
use crate::host::HostTensor;
use crate::session::cache_state::rows_of;
use crate::session::uploaded::rounded_rows;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use std::borrow::Cow;
use std::ops::Range;

/// A state, and what it is at first.
#[derive(Debug)]
pub(super) struct DeviceState {
    pub(super) slice: Slice,
    pub(super) initial: HostTensor,
    /// Whether its elements are stored as halves.
    pub(super) halves: bool,
}

impl DeviceState {
    /// The bytes of what it is at first.
    fn first(&self) -> Result<Cow<'_, [u8]>> {
        Ok(match self.initial.words()? {
            words if self.halves => Cow::Owned(rounded_rows(&words)?),
            Cow::Borrowed(words) => Cow::Borrowed(bytemuck::cast_slice(words)),
            Cow::Owned(words) => Cow::Owned(bytemuck::cast_slice(&words).to_vec()),
        })
    }

    /// How many elements its memory has.
    fn elements(&self) -> u64 {
        self.slice.bytes / if self.halves { 2 } else { 4 }
    }
}

/// The bytes of a state that is stored as `found`, in halves or not, as another session stores it.
fn stored(found: &[u8], [from, to]: [bool; 2]) -> Result<Cow<'_, [u8]>> {
    Ok(match (from, to) {
        (false, true) => Cow::Owned(rounded_rows(&bytemuck::pod_collect_to_vec::<u8, f32>(found))?),
        (true, false) => {
            let found: Vec<f16> = bytemuck::pod_collect_to_vec(found);
            let mut words: Vec<f32> = alloc::zeros(found.len(), "a state")?;
            found.convert_to_f32_slice(&mut words);
            Cow::Owned(bytemuck::cast_slice(&words).to_vec())
        }
        _ => Cow::Borrowed(found),
    })
}

impl DeviceSession {
    /// Takes the states of a session of the same network that ran before. One that has other extents there begins anew.
    pub(in crate::session) async fn follow(&self, before: &DeviceSession, wait: Wait) -> Result<()> {
        let device = self.engine.device()?;
        for (index, own) in self.states.iter().enumerate() {
            let other = before.states.get(index).filter(|other| own.elements() == other.elements());
            match other {
                Some(other) if other.halves == own.halves && self.shares_states && before.shares_states => (),
                Some(other) => {
                    let found = wait.read(device, &other.slice).await?;
                    device.write(&own.slice, &stored(&found, [other.halves, own.halves])?)?;
                }
                None => device.write(&own.slice, &own.first()?)?,
            }
        }
        Ok(())
    }

    /// Gives some of the states what they are in the first run.
    pub(super) fn reset_those(&self, which: &dyn Fn(usize) -> bool) -> Result<()> {
        let device = self.engine.device()?;
        let states = self.states.iter().enumerate().filter(|(index, _)| which(*index));
        states.map(|(_, state)| state).try_for_each(|state| device.write(&state.slice, &state.first()?))
    }

    /// Writes zeros to some places of each cache of `whole` places. The last `others` states are no caches.
    pub(in crate::session) fn clear_places(
        &self,
        whole: usize,
        places: &Range<usize>,
        others: usize,
    ) -> Result<()> {
        let device = self.engine.device()?;
        let caches = self.states.len().saturating_sub(others);
        for DeviceState { slice: own, initial, halves } in self.states.iter().take(caches) {
            let word = if *halves { size_of::<f16>() } else { size_of::<f32>() };
            for range in rows_of(initial.dims(), whole, places, own.bytes as usize / word) {
                let zeros: Vec<u8> = alloc::zeros(word * range.len(), "places of a cache")?;
                let offset = own.offset + (word * range.start) as u64;
                let row = Slice { buffer: own.buffer.clone(), offset, bytes: zeros.len() as u64 };
                device.write(&row, &zeros)?;
            }
        }
        Ok(())
    }

    /// Draws the random numbers of this key in the next run.
    pub(in crate::session) fn draw_by(&self, key: Key) -> Result<()> {
        match self.key.and_then(|place| self.states.get(place)) {
            Some(own) => self.engine.device()?.write(&own.slice, bytemuck::cast_slice(&key)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_taken_in_another_type() {
        let words = [1.0f32, -2.5, 0.0, 65504.0];
        let whole: &[u8] = bytemuck::cast_slice(&words);
        let halves = rounded_rows(&words).expect("memory");
        assert_eq!(halves.len(), 8);
        for (found, kinds, wanted) in [
            (whole, [false, true], &halves[..]),
            (&halves, [true, false], whole),
            (whole, [false, false], whole),
            (&halves, [true, true], &halves),
        ] {
            assert_eq!(*stored(found, kinds).expect("memory"), *wanted, "{kinds:?}");
        }
    }
}
