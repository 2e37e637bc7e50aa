//! About how long a choice of the kernels for matrix units takes, of which `ops/cost.rs` has no count.
//!
//! A unit runs its share of the work-groups, some of them side by side. A step of keys takes what the products of all of these
//! take, and once what its loads and barriers make them wait. The constants were fitted to the times of 16 choices by cooperative
//! matrices (to 9 %) and of 150 by PTX (to 7 %) on an NVIDIA H200.

use super::AttentionOp;
use crate::limits::Limits;
use crate::limits::machine::Machine;

/// What a step of keys costs.
struct Costs {
    /// What products take on a matrix unit against those of f32.
    products: f64,
    /// Clocks that a step makes a wave wait for each key, once and for each 16 of its queries.
    key: f64,
    /// Clocks that a step makes a wave wait besides.
    step: f64,
    /// Clocks that a wave waits for each unit of keys and values that an invocation brings.
    load: f64,
}

/// By cooperative matrices, whose scores pass through local memory.
const COOPERATIVE: Costs = Costs { products: 0.24, key: 8.0, step: 600.0, load: 51.0 };
/// By PTX.
const PTX: Costs = Costs { products: 0.18, key: 0.7, step: 230.0, load: 33.0 };

/// Work-groups that a unit has at once, at most.
const MOST_RESIDENT: u64 = 16;

/// What a work-group of a choice has.
pub(super) struct Group {
    pub(super) invocations: u32,
    /// Queries, and keys at a time.
    pub(super) rows: usize,
    pub(super) keys: usize,
    /// Units of keys and of values that an invocation brings at a time.
    pub(super) loads: usize,
    /// Bytes of local memory.
    pub(super) bytes: u64,
    /// Whether the matrices are cooperative ones.
    pub(super) cooperative: bool,
    /// Times 16 queries of a wave.
    pub(super) blocks: u32,
}

/// Clocks until the last unit is done; `None` where kernels run on a CPU.
pub(super) fn clocks(op: &AttentionOp, group: &Group, limits: &Limits) -> Option<f64> {
    let machine = Machine::of(limits)?;
    let sizes = &op.sizes;
    let groups = (op.parts * op.all_rows().div_ceil(group.rows) * sizes.batch * sizes.heads) as f64;
    let each = (groups / f64::from(machine.units)).ceil();
    let resident = (u64::from(machine.local_memory) / group.bytes.max(1))
        .min(u64::from(machine.invocations / group.invocations.max(1)))
        .clamp(1, MOST_RESIDENT);
    let together = each.min(resident as f64);
    let pairs = (group.rows * group.keys * (sizes.depth + sizes.width)) as f64;
    let costs = if group.cooperative { &COOPERATIVE } else { &PTX };
    let loads = costs.load * group.loads as f64;
    let wait = costs.step + loads + costs.key * group.keys as f64 * (1.0 + f64::from(group.blocks));
    let step = together * costs.products * pairs / machine.lanes() + wait;
    Some(machine.launch + each / together * op.span().div_ceil(group.keys) as f64 * step)
}
