//! The kernels that a session would run, before anything is compiled.

use super::{Session, build, device};
use crate::context::{Context, Engine};
use crate::error::Result;
use crate::graph::Graph;
use crate::lower::{Step, Work};
use crate::ops::Launch;
use crate::options::SessionOptions;

/// A step that a device would compute.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    /// The step's name: that of its node.
    pub name: String,
    /// Where its kernel comes from.
    pub source: String,
    /// Its kernel.
    pub launch: Launch,
}

impl Session {
    /// The kernels of a session, those that run once when it is built among them; none of the CPU's. Nothing is compiled,
    /// and the record is asked for what it has now.
    ///
    /// # Errors
    /// Those of [`Session::plan_memory`].
    #[doc(hidden)]
    pub fn planned_steps(
        context: &Context,
        graph: &Graph,
        options: &SessionOptions,
    ) -> Result<Vec<PlannedStep>> {
        let graph = &*build::checked(graph, options)?;
        let engine = match &context.engine {
            Engine::Cpu => return Ok(Vec::new()),
            engine => engine,
        };
        let program = device::lowered(engine, graph, options, None)?;
        let planned = |step: Step| match step.work {
            Work::Device { launch, .. } => {
                Some(PlannedStep { name: step.name, source: step.from, launch: *launch })
            }
            Work::Host { .. } => None,
        };
        Ok(program.setup.into_iter().chain(program.steps).filter_map(planned).collect())
    }
}
