//! What runs on a device leave to the next ones.

use super::DeviceSession;
use crate::alloc;
use crate::device::{Slice, Wait};
use crate::error::Result;
use crate::graph::Key;
use crate::session::cache_state::rows_of;
use std::ops::Range;

impl DeviceSession {
    /// Takes the states of a session of the same network that ran before. One that has other extents there begins anew.
    pub(in crate::session) async fn follow(&self, before: &DeviceSession, wait: Wait) -> Result<()> {
        let device = self.engine.device()?;
        for (index, (own, initial)) in self.states.iter().enumerate() {
            match before.states.get(index).filter(|(other, _)| other.bytes == own.bytes) {
                Some(_) if self.shares_states && before.shares_states => (),
                Some((other, _)) => device.write(own, &wait.read(device, other).await?)?,
                None => device.write(own, bytemuck::cast_slice(&initial.words()?))?,
            }
        }
        Ok(())
    }

    /// Gives some of the states what they are in the first run.
    pub(super) fn reset_those(&self, which: &dyn Fn(usize) -> bool) -> Result<()> {
        let device = self.engine.device()?;
        let states = self.states.iter().enumerate().filter(|(index, _)| which(*index));
        states
            .map(|(_, state)| state)
            .try_for_each(|(slice, initial)| device.write(slice, bytemuck::cast_slice(&initial.words()?)))
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
        for (own, initial) in self.states.iter().take(caches) {
            let (word, words) = (size_of::<f32>() as u64, own.bytes as usize / size_of::<f32>());
            for range in rows_of(initial.dims(), whole, places, words) {
                let zeros: Vec<f32> = alloc::zeros(range.len(), "places of a cache")?;
                let offset = own.offset + range.start as u64 * word;
                let row = Slice { buffer: own.buffer.clone(), offset, bytes: range.len() as u64 * word };
                device.write(&row, bytemuck::cast_slice(&zeros))?;
            }
        }
        Ok(())
    }

    /// Draws the random numbers of this key in the next run.
    pub(in crate::session) fn draw_by(&self, key: Key) -> Result<()> {
        match self.key.and_then(|place| self.states.get(place)) {
            Some((own, _)) => self.engine.device()?.write(own, bytemuck::cast_slice(&key)),
            None => Ok(()),
        }
    }
}
