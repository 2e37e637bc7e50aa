//! The kernels that a session would run, before anything is compiled.

use super::Session;
use super::lowered::lowered;
use super::plan::checked;
use crate::context::{Context, Engine};
use crate::error::Result;
use crate::graph::Graph;
use crate::lower::{By, Step, Work};
use crate::ops::{Choice, Launch, Op};
use crate::options::SessionOptions;
use std::sync::Arc;

/// A step that a device would compute.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    /// The step's name: that of its node.
    pub name: String,
    /// Where its kernel comes from, in words.
    pub source: String,
    /// What decided on its kernel.
    pub by: By,
    /// Its kernel, tile and work-group.
    pub choice: Choice,
    /// What it computes; none for what only moves a value.
    pub unit: Option<Arc<dyn Op>>,
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
        let graph = &*checked(graph, options)?;
        let engine = match &context.engine {
            Engine::Cpu => return Ok(Vec::new()),
            engine => engine,
        };
        let program = lowered(engine, graph, options, None)?;
        let planned = |step: Step| match step.work {
            Work::Device { launch, .. } => {
                let Step { name, from: source, by, choice, unit, .. } = step;
                Some(PlannedStep { name, source, by, choice: choice?, unit, launch: *launch })
            }
            Work::Host { .. } => None,
        };
        Ok(program.setup.into_iter().chain(program.steps).filter_map(planned).collect())
    }
}
