//! Methods that set the options of a session one by one.

use super::{Picking, Rewrite, SessionOptions, Tuning};
use crate::calibration::Calibration;
use crate::dtype::Precision;
use crate::ops::Choice;
use crate::tune::work_group::WorkGroup;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

impl SessionOptions {
    /// The options that apply unless others are set: those of [`Default`].
    ///
    /// ```
    /// use diptych::{Precision, SessionOptions};
    ///
    /// let options = SessionOptions::new().with_precision(Precision::F16Storage).with_dimension("batch", 8);
    /// assert_eq!((options.precision, options.dimensions["batch"]), (Precision::F16Storage, 8));
    /// ```
    pub fn new() -> Self {
        SessionOptions::default()
    }

    /// Sets [`SessionOptions::precision`].
    ///
    /// ```
    /// use diptych::{Precision, SessionOptions};
    ///
    /// let options = SessionOptions::new().with_precision(Precision::F16Storage);
    /// assert_eq!(options.precision, Precision::F16Storage);
    /// ```
    pub fn with_precision(self, precision: Precision) -> Self {
        SessionOptions { precision, ..self }
    }

    /// Sets [`SessionOptions::work_group`].
    ///
    /// ```
    /// use diptych::{SessionOptions, WorkGroup};
    ///
    /// let options = SessionOptions::new().with_work_group(WorkGroup::Fixed([8, 8, 1]));
    /// assert_eq!(options.work_group, WorkGroup::Fixed([8, 8, 1]));
    /// ```
    pub fn with_work_group(self, work_group: WorkGroup) -> Self {
        SessionOptions { work_group, ..self }
    }

    /// Sets [`SessionOptions::tuning`].
    ///
    /// ```
    /// use diptych::{Database, SessionOptions, Tuning};
    /// use std::sync::{Arc, Mutex};
    ///
    /// let record = Arc::new(Mutex::new(Database::in_memory()));
    /// let options = SessionOptions::new().with_tuning(Tuning::Database(record));
    /// assert!(matches!(options.tuning, Tuning::Database(_)));
    /// ```
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        SessionOptions { tuning, ..self }
    }

    /// Sets [`SessionOptions::pick`].
    ///
    /// ```
    /// use diptych::{Picking, SessionOptions};
    ///
    /// let options = SessionOptions::new().with_pick(Picking::Measured);
    /// assert_eq!(options.pick, Picking::Measured);
    /// ```
    pub fn with_pick(self, pick: Picking) -> Self {
        SessionOptions { pick, ..self }
    }

    /// Adds one node's precision to [`SessionOptions::precisions`].
    ///
    /// ```
    /// use diptych::{Precision, SessionOptions};
    ///
    /// let options = SessionOptions::new()
    ///     .with_precision(Precision::F16Storage)
    ///     .with_node_precision("scores", Precision::F32);
    /// assert_eq!(options.precisions["scores"], Precision::F32);
    /// ```
    pub fn with_node_precision(mut self, node: impl Into<String>, precision: Precision) -> Self {
        self.precisions.insert(node.into(), precision);
        self
    }

    /// Sets [`SessionOptions::calibration`].
    ///
    /// ```no_run
    /// use diptych::{Calibration, Precision, SessionOptions};
    ///
    /// let calibration = Calibration::load("model.calibration.json")?;
    /// let options = SessionOptions::new().with_precision(Precision::Auto).with_calibration(calibration);
    /// # let _ = options;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn with_calibration(self, calibration: Calibration) -> Self {
        SessionOptions { calibration: Some(calibration), ..self }
    }

    /// Adds one step's kernel to [`SessionOptions::choices`].
    ///
    /// ```
    /// use diptych::{Choice, SessionOptions};
    ///
    /// let choice = Choice::new("rows", [1, 1, 1], [64, 1, 1]);
    /// let options = SessionOptions::new().with_choice("softmax", choice);
    /// assert_eq!(options.choices["softmax"].work_group, [64, 1, 1]);
    /// ```
    pub fn with_choice(mut self, step: impl Into<String>, choice: Choice) -> Self {
        self.choices.insert(step.into(), choice);
        self
    }

    /// Adds one node to [`SessionOptions::on_cpu`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// let options = SessionOptions::new().with_node_on_cpu("boxes");
    /// assert!(options.on_cpu.contains("boxes"));
    /// ```
    pub fn with_node_on_cpu(mut self, node: impl Into<String>) -> Self {
        self.on_cpu.insert(node.into());
        self
    }

    /// Sets [`SessionOptions::cpu_threads`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    /// use std::num::NonZeroUsize;
    ///
    /// let options = SessionOptions::new().with_cpu_threads(NonZeroUsize::MIN);
    /// assert_eq!(options.cpu_threads, Some(NonZeroUsize::MIN)); // the caller's thread alone
    /// ```
    pub fn with_cpu_threads(self, threads: NonZeroUsize) -> Self {
        SessionOptions { cpu_threads: Some(threads), ..self }
    }

    /// Adds one dimension's extent to [`SessionOptions::dimensions`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// let options = SessionOptions::new().with_dimension("batch", 8);
    /// assert_eq!(options.dimensions["batch"], 8);
    /// ```
    pub fn with_dimension(mut self, name: impl Into<String>, extent: usize) -> Self {
        self.dimensions.insert(name.into(), extent);
        self
    }

    /// Adds one dimension to [`SessionOptions::open`]: with the extents that it may have, or `None` for any.
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// let options = SessionOptions::new().with_open("length", Some(1..=512)).with_open("batch", None);
    /// assert_eq!(options.open["length"], Some(1..=512));
    /// assert_eq!(options.open["batch"], None);
    /// ```
    pub fn with_open(mut self, name: impl Into<String>, extents: Option<RangeInclusive<usize>>) -> Self {
        self.open.insert(name.into(), extents);
        self
    }

    /// Sets [`SessionOptions::seed`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// assert_eq!(SessionOptions::new().with_seed(1234).seed, 1234);
    /// ```
    pub fn with_seed(self, seed: u64) -> Self {
        SessionOptions { seed, ..self }
    }

    /// Sets [`SessionOptions::plans`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    /// use std::num::NonZeroUsize;
    ///
    /// let options = SessionOptions::new().with_plans(NonZeroUsize::MIN);
    /// assert_eq!(options.plans, Some(NonZeroUsize::MIN));
    /// ```
    pub fn with_plans(self, plans: NonZeroUsize) -> Self {
        SessionOptions { plans: Some(plans), ..self }
    }

    /// Sets [`SessionOptions::keep_graph`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// assert!(SessionOptions::new().with_keep_graph(true).keep_graph);
    /// ```
    pub fn with_keep_graph(self, keep_graph: bool) -> Self {
        SessionOptions { keep_graph, ..self }
    }

    /// Sets [`SessionOptions::dequantize`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// assert!(SessionOptions::new().with_dequantize(true).dequantize);
    /// ```
    pub fn with_dequantize(self, dequantize: bool) -> Self {
        SessionOptions { dequantize, ..self }
    }

    /// Sets [`SessionOptions::rounded_activations`].
    ///
    /// ```
    /// use diptych::SessionOptions;
    ///
    /// assert!(SessionOptions::new().with_rounded_activations(true).rounded_activations);
    /// ```
    pub fn with_rounded_activations(self, rounded_activations: bool) -> Self {
        SessionOptions { rounded_activations, ..self }
    }

    /// Adds one rewrite to [`SessionOptions::without_rewrites`].
    ///
    /// ```
    /// use diptych::{Rewrite, SessionOptions};
    ///
    /// let options = SessionOptions::new().without_rewrite(Rewrite::Attention);
    /// assert!(options.without_rewrites.contains(&Rewrite::Attention));
    /// ```
    pub fn without_rewrite(mut self, rewrite: Rewrite) -> Self {
        self.without_rewrites.insert(rewrite);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::db::Database;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Arc, Mutex};

    /// Each method sets its own field, and no field is without one: the struct is written out.
    #[test]
    fn each_field_has_a_method() {
        let choice = Choice::new("rows", [1, 2, 3], [4, 5, 6]);
        let two = NonZeroUsize::MIN.saturating_add(1);
        let calibration = Calibration::new(0.5, Vec::new(), Vec::new());
        let record = Tuning::Database(Arc::new(Mutex::new(Database::in_memory())));
        let found = SessionOptions::new()
            .with_precision(Precision::F16)
            .with_work_group(WorkGroup::Fixed([8, 4, 1]))
            .with_tuning(record.clone())
            .with_pick(Picking::Measured)
            .with_node_precision("a", Precision::F32)
            .with_node_precision("b", Precision::F16Storage)
            .with_calibration(calibration.clone())
            .with_choice("c", choice)
            .with_node_on_cpu("d")
            .with_cpu_threads(two)
            .with_dimension("batch", 3)
            .with_open("length", Some(1..=9))
            .with_open("width", None)
            .with_seed(11)
            .with_plans(two)
            .with_keep_graph(true)
            .with_dequantize(true)
            .with_rounded_activations(true)
            .without_rewrite(Rewrite::Softmax);
        let named = |name: &str| name.to_owned();
        let wanted = SessionOptions {
            precision: Precision::F16,
            work_group: WorkGroup::Fixed([8, 4, 1]),
            tuning: record,
            pick: Picking::Measured,
            precisions: [(named("a"), Precision::F32), (named("b"), Precision::F16Storage)].into(),
            calibration: Some(calibration),
            choices: BTreeMap::from([(named("c"), choice)]),
            on_cpu: BTreeSet::from([named("d")]),
            cpu_threads: Some(two),
            dimensions: [(named("batch"), 3)].into(),
            open: [(named("length"), Some(1..=9)), (named("width"), None)].into(),
            seed: 11,
            plans: Some(two),
            keep_graph: true,
            without_rewrites: [Rewrite::Softmax].into(),
            dequantize: true,
            rounded_activations: true,
        };
        assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
        assert_eq!(format!("{:?}", SessionOptions::new()), format!("{:?}", SessionOptions::default()));
    }
}
