//! `tiled`: a work-group of `WG_X x WG_Y` invocations has `tile[1] WG_Y` queries of a head of keys, and takes
//! `4 tile[0] WG_X` keys at a time.

use super::{AttentionOp, Sizes, effort};
use crate::emit::Binding;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::effort::Effort;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{Params, extent, local_obstacle};

/// Groups of four keys and queries of an invocation, the largest reuse first.
const TILES: [[u32; 3]; 5] = [[1, 4, 1], [2, 4, 1], [2, 2, 1], [1, 2, 1], [1, 1, 1]];

/// Its work-groups, the default first.
const WORK_GROUPS: [[u32; 3]; 5] = [[16, 8, 1], [8, 16, 1], [16, 4, 1], [8, 8, 1], [16, 16, 1]];

/// Vec4s of keys, and of values, that an invocation keeps on their way.
const MOST_LOADS: usize = 16;

/// The fewest queries for which reading keys together pays.
const FEW: usize = 5;

/// Vec4s that a work-group keeps.
struct LocalMemory {
    queries: usize,
    staged: usize,
    shares: usize,
    largest: usize,
}

/// From a row of features, or of shares, to the next: odd, so that rows side by side are in different banks.
const fn odd(vec4s: usize) -> usize {
    vec4s | 1
}

fn kept(op: &AttentionOp, choice: &Choice) -> LocalMemory {
    let ([x, y, _], [groups, rows, _]) = (choice.work_group, choice.tile);
    let [x, y, groups, rows] = [x, y, groups, rows].map(|extent| extent as usize);
    let (rows, keys4) = (rows * y, groups * x);
    let Sizes { depth, width, .. } = op.sizes;
    LocalMemory {
        queries: rows * odd(depth / 4),
        staged: (4 * keys4 * odd(depth / 4)).max(keys4 * width),
        shares: rows * odd(keys4),
        largest: rows * x / 4,
    }
}

/// Vec4s of queries, keys and values that an invocation brings at a time.
fn loads(op: &AttentionOp, choice: &Choice) -> [usize; 3] {
    let ([x, y, _], [groups, rows, _]) = (choice.work_group, choice.tile);
    let [x, y, groups, rows] = [x, y, groups, rows].map(|extent| extent as usize);
    let Sizes { depth, width, .. } = op.sizes;
    [rows * y * depth, 4 * groups * x * depth, 4 * groups * x * width].map(|all| (all / 4).div_ceil(x * y))
}

#[derive(Debug)]
pub(super) struct Tiled;

impl Kernel<AttentionOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/attention/tiled.wgsl"))
            .listed_as(Layout::Nhwc)
            .by_estimate()
    }

    fn offers(&self, op: &AttentionOp, _limits: &Limits) -> Vec<Offer> {
        let tiles = TILES.into_iter().filter(|_| op.is_wide() && op.parts == 1);
        offers(if op.all_rows() < FEW { 2 } else { 0 }, tiles)
    }

    /// One work-group for all keys.
    fn grid(&self, op: &AttentionOp, tile: [u32; 3]) -> [u32; 3] {
        [1, extent(op.all_rows()).div_ceil(tile[1]), extent(op.sizes.batch * op.sizes.heads)]
    }

    fn counted(&self, op: &AttentionOp, choice: &Choice) -> u64 {
        let [_, y, z] = self.grid(op, choice.tile).map(u64::from);
        u64::from(choice.work_group[0]) * y * z
    }

    fn work_groups(&self, _op: &AttentionOp, _tile: [u32; 3]) -> Vec<[u32; 3]> {
        WORK_GROUPS.to_vec()
    }

    fn obstacle(&self, op: &AttentionOp, _limits: &Limits) -> Option<String> {
        let uneven = (!op.is_wide()).then(|| "rows that are not of whole vec4s".to_owned());
        uneven.or_else(|| op.count_obstacle()).or_else(|| op.parts_obstacle())
    }

    fn choice_obstacle(&self, op: &AttentionOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, _, z] = choice.work_group;
        if !x.is_multiple_of(4) || z != 1 {
            return Some(format!(
                "a work-group of {:?}, wanted a multiple of 4 by any number",
                choice.work_group
            ));
        }
        let [_, keys, values] = loads(op, choice);
        if keys.max(values) > MOST_LOADS {
            let found = format!("{keys} vec4s of keys and {values} of values");
            return Some(format!("{found} for an invocation at a time, wanted at most {MOST_LOADS}"));
        }
        let LocalMemory { queries, staged, shares, largest } = kept(op, choice);
        let bytes = 16 * (queries + staged + shares + largest) as u64;
        local_obstacle(bytes, limits)
    }

    fn registers(&self, _op: &AttentionOp, choice: &Choice, limits: &Limits) -> Option<Registers> {
        let others = if limits.family.is_early_adreno() { 64 } else { 12 };
        Some(Registers::with_barriers(others + registers::of_product(2 * choice.tile[0], choice.tile[1])))
    }

    fn effort(&self, op: &AttentionOp, choice: &Choice, _limits: &Limits) -> Option<Effort> {
        let LocalMemory { queries, staged, shares, largest } = kept(op, choice);
        let bytes = extent(16 * (queries + staged + shares + largest));
        let [_, keys, values] = loads(op, choice);
        Some(effort::tiled(op, choice, self.grid(op, choice.tile), bytes, extent(keys + values)))
    }

    fn bindings(&self, op: &AttentionOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings(4)
    }

    fn params(&self, op: &AttentionOp, _choice: &Choice) -> Params {
        op.params(4)
    }

    fn constants(&self, op: &AttentionOp, choice: &Choice, _limits: &Limits) -> Constants {
        let LocalMemory { queries, staged, shares, largest } = kept(op, choice);
        let ([x, y, _], [groups, rows, _]) = (choice.work_group, choice.tile);
        let [x, y, groups, rows] = [x, y, groups, rows].map(|extent| extent as usize);
        let Sizes { depth, width, .. } = op.sizes;
        let loads = loads(op, choice);
        op.constants(&[
            ("THREADS", x * y),
            ("ROWS", rows * y),
            ("KEYS", 4 * groups * x),
            ("KEYS4", groups * x),
            ("D", depth / 4),
            ("E", width / 4),
            ("ROW", odd(depth / 4)),
            ("SHARES_ROW", odd(groups * x)),
            ("COLUMNS", (width / 4).div_ceil(x)),
            ("WHOLE", usize::from((width / 4).is_multiple_of(x))),
            ("LOADS_Q", loads[0]),
            ("LOADS_K", loads[1]),
            ("LOADS_V", loads[2]),
            ("QUERIES", queries),
            ("STAGED", staged),
            ("SHARES", shares),
            ("LARGEST", largest),
        ])
    }
}
