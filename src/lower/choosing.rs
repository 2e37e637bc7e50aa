//! What the choice of a kernel depends on beside its unit.

use super::by::By;
use super::known::CompiledKernels;
use crate::error::Result;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{Choice, Op};
use crate::options::SessionOptions;
use crate::tune::db::{self, Chosen};
use crate::tune::key::DeviceKey;
use crate::tune::work_group::untuned_in;
use std::borrow::Cow;
use std::sync::PoisonError;

/// What a choice depends on beside the unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choosing<'a> {
    pub(crate) options: &'a SessionOptions,
    /// What the device is in the tuner's record.
    pub(crate) device: &'a DeviceKey,
    pub(crate) limits: &'a Limits,
    /// Kernels that are compiled for other extents.
    pub(crate) known: Option<&'a CompiledKernels>,
}

/// The limits of a device, with what was measured of it where the session's record has that.
pub(crate) fn known_limits<'a>(
    options: &SessionOptions,
    device: &DeviceKey,
    limits: &'a Limits,
) -> Cow<'a, Limits> {
    let Some(database) = options.tuning.database() else { return Cow::Borrowed(limits) };
    database.lock().unwrap_or_else(PoisonError::into_inner).known_limits(device, limits)
}

impl Choosing<'_> {
    /// What the record of the options has on an op with its feature maps in `layout`.
    pub(super) fn recorded(&self, op: &dyn Op, layout: Layout) -> Option<Chosen> {
        db::choose(self.options.tuning.database()?, self.device, op, layout, self.limits)
    }

    /// The choice for an op of this name with its feature maps in `layout`: by hand, by the record, or by rule.
    pub(super) fn decided(&self, name: &str, op: &dyn Op, layout: Layout) -> Result<(Choice, By)> {
        if let Some(choice) = self.options.choices.get(name) {
            op.fits(choice, self.limits)?;
            return Ok((*choice, By::Hand));
        }
        Ok(match self.recorded(op, layout) {
            Some(found) => (found.choice, By::Record(found.from)),
            None => (untuned_in(op, self.options.work_group, layout, self.limits)?, By::Rule),
        })
    }
}
