//! Which choices of a kernel compute the same to the bit: those whose sums add the same terms in the same order.

use super::{KernelSource, KernelSpec, Value};

/// What only texts have whose invocations compute a result together, so that the order of its terms may depend on tile and
/// work-group.
const TOGETHER: [&str; 4] = ["var<workgroup>", "subgroup", "__local", "sub_group"];

/// How many parts of a sum are computed side by side.
const PARTS: &str = "SPLITS";

/// What else the order of the terms depends on in kernels that name [`PARTS`]: how many a part takes at a time, and which
/// zeros are added behind the last one; and how many invocations reduce a row.
const STEPS: [&str; 7] = ["STEP", "DEPTH4", "UNROLL", "AHEAD", "SHARED", "RAGGED", "LANES"];

impl KernelSource {
    /// Whether each invocation computes its results alone.
    pub fn computes_alone(&self) -> bool {
        !TOGETHER.iter().any(|word| self.text.contains(word))
    }
}

impl KernelSpec {
    fn constant(&self, name: &str) -> Option<Value> {
        self.constants.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// Whether it computes the same to the bit as `other`, another choice of the same kernel for the same problem, where
    /// that is known. `alone`: what [`KernelSource::computes_alone`] says of one of them.
    pub fn computes_like(&self, other: &KernelSpec, alone: bool) -> bool {
        let same = |name: &str| self.constant(name) == other.constant(name);
        match [self, other].map(|spec| spec.constant(PARTS)) {
            [None, None] => alone,
            _ => same(PARTS) && STEPS.into_iter().all(same),
        }
    }
}
