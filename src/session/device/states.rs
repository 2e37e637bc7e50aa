//! What runs on a device leave to the next ones.

use super::DeviceSession;
use crate::device::Wait;
use crate::error::Result;
use crate::graph::Key;

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

    /// Draws the random numbers of this key in the next run.
    pub(in crate::session) fn draw_by(&self, key: Key) -> Result<()> {
        match self.key.and_then(|place| self.states.get(place)) {
            Some((own, _)) => self.engine.device()?.write(own, bytemuck::cast_slice(&key)),
            None => Ok(()),
        }
    }
}
