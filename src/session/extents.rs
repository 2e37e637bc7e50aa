//! Who decides the extents of a session's runs.

use super::plan::Plan;
use super::plans::Plans;

/// Who decides the extents of a session's runs.
#[derive(Debug)]
pub(super) enum Extents {
    /// Its graph.
    Fixed(Plan),
    /// Each run.
    Open(Box<Plans>),
}

impl Extents {
    /// What runs: where each run decides the extents, for those of the last run.
    pub(super) fn plan(&self) -> &Plan {
        match self {
            Extents::Fixed(plan) => plan,
            Extents::Open(plans) => plans.current(),
        }
    }

    /// [`Extents::plan`], to change.
    pub(super) fn plan_mut(&mut self) -> &mut Plan {
        match self {
            Extents::Fixed(plan) => plan,
            Extents::Open(plans) => plans.current_mut(),
        }
    }

    /// The plans, if each run decides the extents.
    pub(super) fn open(&self) -> Option<&Plans> {
        match self {
            Extents::Fixed(_) => None,
            Extents::Open(plans) => Some(plans),
        }
    }

    /// [`Extents::open`], to change.
    pub(super) fn open_mut(&mut self) -> Option<&mut Plans> {
        match self {
            Extents::Fixed(_) => None,
            Extents::Open(plans) => Some(plans),
        }
    }
}
