//! The steps of a run, and where its time goes.

use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::ops::Choice;
use std::fmt;
use std::time::Duration;

/// One step of a run: a node, several that run as one, or what the session inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The node's name; for a step that the session inserted, that of the value.
    pub name: String,
    /// Whether the session inserted the step, such as to move a value into another layout. It is then no node of the graph.
    pub inserted: bool,
    /// The op.
    pub op: &'static str,
    /// The kernel's label.
    pub kernel: String,
    /// What it computes in, and stores feature maps as.
    pub precision: Precision,
    /// Invocations per work-group; zeros on the CPU, which has none.
    pub work_group: [u32; 3],
    /// The kernel with its tile and work-group, to be changed and given to another session under the step's name
    /// ([`SessionOptions::choices`](crate::SessionOptions::choices)); none on the CPU, and for copies between it and a device.
    pub choice: Option<Choice>,
    /// Where the kernel and work-group came from: by hand, by rule, or which row of the record.
    pub source: String,
    /// Its floating-point operations.
    pub flops: u64,
}

/// A step of a run that was timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedStep {
    /// The step, as [`Session::steps`](crate::Session::steps) gives it.
    pub step: Step,
    /// Its time on the device; on the host's clock where the CPU computes it.
    pub time: Duration,
}

/// Each of `steps` with its time.
pub(super) fn timed(steps: Vec<Step>, times: Vec<Duration>) -> Result<Vec<TimedStep>> {
    if steps.len() != times.len() {
        return Err(Error::Internal(format!("{} times of {} steps", times.len(), steps.len())));
    }
    Ok(steps.into_iter().zip(times).map(|(step, time)| TimedStep { step, time }).collect())
}

/// How long the stages of one run took, on the host's clock, each with its wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// The inputs' way to the device; nothing on the CPU backend.
    pub upload: Duration,
    /// The network itself.
    pub network: Duration,
    /// The outputs' way back; nothing on the CPU backend.
    pub download: Duration,
}

/// Bytes of memory that a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryUse {
    /// For values: the buffers of the memory plan, and those of inputs and outputs. Runs of all extents of a session of a
    /// [`ModelFile`](crate::ModelFile) use the same.
    pub planned: u64,
    /// For values if no two shared a buffer.
    pub unshared: u64,
    /// For values at least: what is alive at once, in the order in which the steps run.
    pub least: u64,
    /// For constants: packed for their kernels, or as kernels read them.
    pub constants: u64,
    /// What each run downloads, outputs aside, for nodes that the CPU computes in a session on a GPU.
    pub downloads: u64,
    /// What each run uploads of their results.
    pub uploads: u64,
}

impl MemoryUse {
    /// Of two sessions together.
    pub(super) fn and(self, other: Self) -> Self {
        MemoryUse {
            planned: self.planned + other.planned,
            unshared: self.unshared + other.unshared,
            least: self.least + other.least,
            constants: self.constants + other.constants,
            downloads: self.downloads + other.downloads,
            uploads: self.uploads + other.uploads,
        }
    }
}

impl fmt::Display for MemoryUse {
    /// In megabytes: `14.5 MB of constants, 2.4 MB of values`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{:.1} MB of constants, {:.1} MB of values",
            megabytes(self.constants),
            megabytes(self.planned)
        )
    }
}

/// The time of every step of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The clock: GPU timestamps, profiling events or the host's.
    pub clock: &'static str,
    /// The steps in order of execution, changes of layout included.
    pub steps: Vec<TimedStep>,
}

impl Profile {
    /// The sum of the steps' times: less than a run's, which also starts kernels and waits.
    ///
    /// ```
    /// use diptych::{Backend, Context, Extras, Graph, HostTensor, Pointwise, Session, SessionOptions, Shape};
    ///
    /// # let mut graph = Graph::new();
    /// # let x = graph.input("x", Shape::nhwc(1, 1, 1, 2))?;
    /// # let sum = HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 1.0])?;
    /// # let y = graph.pointwise("sum", x, sum, Extras::default(), Pointwise::default())?;
    /// # graph.output(y)?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let profile = session.profile(&[("x", &HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![1.0, 2.0])?)])?;
    /// println!("{profile}\n{:?} in {} steps", profile.total(), profile.steps.len());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn total(&self) -> Duration {
        self.steps.iter().map(|timed| timed.time).sum()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64();
        let name = self.steps.iter().map(|timed| timed.step.name.len()).max().unwrap_or(0).max(4);
        let kernel = self.steps.iter().map(|timed| timed.step.kernel.len()).max().unwrap_or(0).max(6);
        writeln!(
            f,
            "{:>3}  {:name$}  {:9}  {:kernel$}  {:>9}  {:>6}  {:>8}  source",
            "#", "name", "op", "kernel", "us", "%", "GFLOP/s"
        )?;
        for (index, TimedStep { step, time }) in self.steps.iter().enumerate() {
            let seconds = time.as_secs_f64();
            let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
            let rate = if seconds > 0.0 { step.flops as f64 / seconds / 1e9 } else { 0.0 };
            writeln!(
                f,
                "{:>3}  {:name$}  {:9}  {:kernel$}  {:>9.1}  {share:>6.1}  {rate:>8.1}  {}",
                index + 1,
                step.name,
                step.op,
                step.kernel,
                seconds * 1e6,
                step.source
            )?;
        }
        write!(f, "total {:.1} us ({})", total * 1e6, self.clock)
    }
}
