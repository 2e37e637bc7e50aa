//! How a session runs its network: options as plain data, read by the passes, the tuner and sessions.

mod methods;
mod rewrites;

pub use rewrites::Rewrite;

use crate::calibration::Calibration;
use crate::device::DeviceInfo;
use crate::dtype::Precision;
use crate::error::{Error, Result};
use crate::ops::Choice;
use crate::pick::Place;
use crate::tune::db::SharedDatabase;
use crate::tune::work_group::WorkGroup;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Where a session's kernels and work-groups come from, for the nodes that are not chosen by hand.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Tuning {
    /// The rule for untuned nodes.
    #[default]
    Default,
    /// The tuner's record. A session looks for a verdict on this device, then on a near shape, on the other API and on
    /// the same family of GPUs. Where the record has none of these, the rule decides.
    Database(SharedDatabase),
    /// The tuner's record, used as by [`Tuning::Database`]. The session first tunes what has no exact verdict in the record, or
    /// one of a search that was cut short, for at most the budget in all. Verdicts go to the record. A journal beside its file
    /// names what is being tried.
    Online {
        /// The record.
        database: SharedDatabase,
        /// Time for tuning while the session is built. A session of a [`ModelFile`](crate::ModelFile) tunes its first plan
        /// alone.
        budget: Duration,
    },
}

impl Tuning {
    pub(crate) fn database(&self) -> Option<&SharedDatabase> {
        match self {
            Tuning::Default => None,
            Tuning::Database(database) | Tuning::Online { database, .. } => Some(database),
        }
    }
}

/// How a session picks a node's kernel among those that can run it. Each step's
/// [`crate::Step::source`] says why it runs what it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Picking {
    /// The record's verdict where there is one, else the rule for untuned nodes; feature maps in
    /// buffers.
    #[default]
    Rule,
    /// The kernel of the highest grade against these places, the most wanted
    /// first: precisions of the session's storage, and layouts of feature maps. Its tile and
    /// work-group are the record's or the rule's.
    Preference(Vec<Place>),
    /// The kernels whose measured times make the network as a whole fastest: for each node the
    /// record's verdict with feature maps in buffers or in images, changes of layout between nodes
    /// counted (they are timed while the session is built). Needs a record with an exact verdict on
    /// every node.
    Measured,
}

/// How a session runs its network.
///
/// ```
/// use diptych::{Precision, SessionOptions};
///
/// let options = SessionOptions::new().with_precision(Precision::F16Storage).with_seed(1234);
/// # assert_eq!((options.precision, options.seed), (Precision::F16Storage, 1234));
/// ```
///
/// A later version will make it `#[non_exhaustive]`, and its methods will then be how a program sets options. This version
/// takes `SessionOptions { seed: 1234, ..Default::default() }` as well.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct SessionOptions {
    /// Storage and arithmetic on a GPU. The CPU backend computes in f32; matrix products in a graph
    /// sum in f32 in every precision.
    pub precision: Precision,
    /// Where work-groups come from if the record has nothing.
    pub work_group: WorkGroup,
    /// Whether the session uses the tuner's record, and tunes.
    pub tuning: Tuning,
    /// How a kernel is picked among those that can run a node.
    pub pick: Picking,
    /// The precision of some nodes, by name, instead of the session's: [`Precision::F32`],
    /// [`Precision::F16Storage`] or [`Precision::F16`]. What lies between nodes of different storage is converted.
    pub precisions: BTreeMap<String, Precision>,
    /// Which nodes [`Precision::Auto`] keeps in f32. Without a calibration, a node is in f16 storage only where halves hold
    /// what follows from the nodes' constants, for inputs of at most 256.
    pub calibration: Option<Calibration>,
    /// Kernels chosen by hand, by node name; the others are picked. A node that is named so is not computed together with
    /// others. Nodes that run as one are named as [`Session::steps`](crate::Session::steps) names the step, `conv + relu`, and
    /// stay together.
    ///
    /// ```
    /// use diptych::{Backend, Context, Function, Graph, Session, SessionOptions, Shape, Term};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 8, 8, 4))?;
    /// let double = graph.elementwise("double", Function::Mul, &[Term::Value(x), Term::Number(2.0)])?;
    /// graph.output(double)?;
    /// let context = Context::new(Backend::Auto)?;
    /// let session = Session::new(&context, &graph, SessionOptions::default())?;
    /// // Each kernel as it was chosen, with another work-group: none on the CPU, which has none.
    /// let steps = session.steps().into_iter().filter(|step| !step.inserted);
    /// let mut options = SessionOptions::default();
    /// for (name, mut choice) in steps.filter_map(|step| Some((step.name, step.choice?))) {
    ///     choice.work_group = [32, 1, 1];
    ///     options.choices.insert(name, choice);
    /// }
    /// let session = Session::new(&context, &graph, options)?;
    /// # let _ = session;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub choices: BTreeMap<String, Choice>,
    /// Nodes, by name, that the CPU computes in a session on a GPU. At each run the session downloads what they read and
    /// uploads what they write, as it does for functions without a shader ([`crate::Custom::host`]).
    pub on_cpu: BTreeSet<String>,
    /// How many threads a session on the CPU uses at most, the caller's included: all of rayon's pool, unless set. The
    /// session rounds a smaller number down to a power of two. A small network uses fewer. On any device as many threads at most
    /// prepare the session: they read the network, pack weights and compile kernels.
    /// [`LoadOptions::threads`](crate::LoadOptions::threads) is for reading the file.
    pub cpu_threads: Option<NonZeroUsize>,
    /// Other extents for the graph's named dimensions ([`crate::Graph::dimension`]).
    pub dimensions: BTreeMap<String, usize>,
    /// Named dimensions whose extents each run decides, and the extents that they may have; any, if there is no range. Such
    /// a session of a [`Graph`](crate::Graph) plans for the extents of each run, as one of a
    /// [`ModelFile`](crate::ModelFile) does. In that all dimensions are open that the file leaves open, and a range here bounds one.
    pub open: BTreeMap<String, Option<RangeInclusive<usize>>>,
    /// The seed of random numbers ([`Graph::random`](crate::Graph::random), and the operators of files that draw): 0
    /// unless set. Two sessions of the same seed draw the same numbers, run for run, on every device to the bit; those of
    /// another seed are others.
    ///
    /// ```
    /// use diptych::SessionOptions;
    /// use std::time::SystemTime;
    ///
    /// let same_each_time = SessionOptions::new().with_seed(1234);
    /// let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    /// let other_each_time = SessionOptions::new().with_seed(since.as_nanos() as u64);
    /// # assert_ne!(same_each_time.seed, other_each_time.seed);
    /// # Ok::<(), std::time::SystemTimeError>(())
    /// ```
    pub seed: u64,
    /// How many plans a session of open extents keeps at most, each for certain extents; 32 unless set.
    /// It drops the least recently used one first.
    pub plans: Option<NonZeroUsize>,
    /// Whether the session keeps the graph, with its constants in the host's memory, so that
    /// [`Session::rebuild`](crate::Session::rebuild) can make it again. A session with a record keeps it in any case.
    pub keep_graph: bool,
    /// Rewrites of the network that the session leaves out, to see whether one of them is at fault: see [`Rewrite`].
    pub without_rewrites: BTreeSet<Rewrite>,
    /// Whether quantized operators are computed on floats, which are rounded to their integers, and not on bytes. That is slower,
    /// and sums of many products are not exact; everything else is the same.
    pub dequantize: bool,
    /// Whether sessions on the CPU may round what products with weights of 4 and 8 bits multiply: each 32 numbers of a row to bytes by a
    /// scale of their own, the largest of them by 127. A number is then off by at most 1/254 of the largest of its 32, and with
    /// AVX-512 VNNI a decoder writes its next token in less time. `false` unless set: the CPU computes in f32.
    /// [`QuantizedGemm::rounded`](crate::nn::QuantizedGemm::rounded) says so of one product.
    pub rounded_activations: bool,
}

impl SessionOptions {
    /// Refuses a precision that the device has no arithmetic for, before anything is built.
    pub(crate) fn check_precision(&self, device: &DeviceInfo) -> Result<()> {
        let wanted = std::iter::once(&self.precision).chain(self.precisions.values());
        if device.limits.native_half || !wanted.into_iter().any(|precision| *precision == Precision::F16) {
            return Ok(());
        }
        let missing = match device.api {
            "OpenCL" => "its driver does not list the extension cl_khr_fp16",
            _ => "it does not have the feature `shader-f16`",
        };
        Err(Error::unsupported(
            format!("Precision::F16 on {device}"),
            format!(
                "{missing}, so that it has no native half arithmetic; Precision::F16Storage keeps values in halves and \
                 computes in f32, on any device"
            ),
        ))
    }

    /// Whether something is said of the node `name`: it stays a unit by itself.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.choices.contains_key(name) || self.precisions.contains_key(name) || self.on_cpu.contains(name)
    }
}
