//! Sessions whose runs give what each unit writes: the kernels, the forms and the fusions are those of a session that does not.

use super::device::DeviceSession;
use super::flight::Outputs;
use super::lowered::lowered_with_written;
use super::plan::{Plan, checked};
use super::progress::Teller;
use super::run::Next;
use super::runner::Runner;
use super::{Port, Session};
use crate::context::Context;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Graph;
use crate::host::HostTensor;
use crate::lower::Written;
use crate::options::SessionOptions;
use crate::task::block_on;

/// A session on a device with the values of f32 that its units write.
#[derive(Debug)]
pub(super) struct Watched {
    session: Session,
    /// What lies behind the graph's outputs.
    written: Vec<Written>,
}

/// What the units wrote in a run.
#[derive(Debug)]
pub(super) struct WatchedRun<'w> {
    outputs: Outputs,
    /// The first of them among the outputs.
    first: usize,
    written: &'w [Written],
}

impl Watched {
    pub(super) fn new(context: &Context, graph: &Graph, options: &SessionOptions) -> Result<Self> {
        let graph = &*checked(graph, options)?;
        let (program, written) = lowered_with_written(&context.engine, graph, options)?;
        let teller = Teller::new(&|_| {});
        let built = block_on(DeviceSession::of(context.engine.clone(), program, None, &teller))?;
        let runner = Runner::Device(Box::new(built));
        let port = |written: &Written| {
            let name = format!("{} ({})", written.unit, written.place);
            let dims = written.dims;
            Port { name, shape: dims.shape(), dims, dtype: DType::F32, open: Vec::new() }
        };
        let mut outputs = Port::all(graph, graph.outputs())?;
        outputs.extend(written.iter().map(port));
        let inputs = Port::all(graph, graph.inputs())?;
        let session = Session::of(Plan { inputs, outputs: outputs.into(), runner, graph_and_options: None });
        Ok(Watched { session, written })
    }

    /// Sets states back to what they are in the first run.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.session.reset()
    }

    pub(super) fn run(&mut self, inputs: &[(&str, &HostTensor)]) -> Result<WatchedRun<'_>> {
        let inputs = self.session.arrange(inputs)?;
        let outputs = self.session.launch(&inputs, Next::Waits)?.wait()?;
        let first = outputs.len() - self.written.len();
        Ok(WatchedRun { outputs, first, written: &self.written })
    }
}

impl WatchedRun<'_> {
    /// What each unit wrote, value for value.
    pub(super) fn each(&self) -> impl Iterator<Item = Result<(&Written, &[f32])>> {
        let numbered = (self.first..).zip(self.written);
        numbered.map(|(index, written)| Ok((written, self.outputs.get(index)?)))
    }

    /// What `unit` wrote in `place`, if that is a value of the run.
    pub(super) fn of(&self, unit: &str, place: usize) -> Result<Option<&[f32]>> {
        let found = self.written.iter().position(|written| written.unit == unit && written.place == place);
        found.map(|index| self.outputs.get(self.first + index)).transpose()
    }
}
