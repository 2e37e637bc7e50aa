//! `tiled`: rows and unpacked weights are staged in local memory.
//!
//! A work-group of `WG_X x WG_Y` covers `4 tile[0] WG_X` columns and `tile[1] WG_Y` rows, of which it stages [`STEP`] terms at a
//! time: each row and column in vec4s, and one vec4 more so that neighbours' reads fall into different banks.

use super::QuantizedGemmOp;
use super::row::FEW;
use crate::dtype::DType;
use crate::emit::{Binding, Element};
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry, offers};
use crate::ops::plan::Choice;
use crate::ops::registers::{self, Registers};
use crate::ops::spec::{Params, extent, local_obstacle};

/// Terms staged at a time: whole words of any bits.
const STEP: u32 = 32;

/// From one staged row or column to the next, in vec4s.
const PITCH: u32 = STEP / 4 + 1;

/// Groups of four columns, and rows; the largest reuse first.
const TILES: [[u32; 3]; 5] = [[1, 8, 1], [2, 4, 1], [1, 4, 1], [1, 2, 1], [1, 1, 1]];

/// Work-groups along columns and rows, the default first.
const GROUPS: [[u32; 2]; 4] = [[16, 8], [8, 8], [16, 4], [8, 4]];

#[derive(Debug)]
pub(super) struct Tiled;

/// Rows and columns of a work-group.
fn covered(choice: &Choice) -> [u32; 2] {
    let ([groups, rows, _], [x, y, _]) = (choice.tile, choice.work_group);
    [rows * y, 4 * groups * x]
}

impl QuantizedGemmOp {
    /// Vec4s of rows and words of columns that an invocation brings for each step; `None` if they are not shared evenly.
    fn loads(&self, choice: &Choice) -> Option<[u32; 2]> {
        let [rows, columns] = covered(choice);
        let threads = choice.work_group[0] * choice.work_group[1];
        let (vec4s, words) = (rows * STEP / 4, columns * STEP / extent(self.per_word()));
        let even = threads > 0 && vec4s.is_multiple_of(threads) && words.is_multiple_of(threads);
        even.then(|| [vec4s / threads, words / threads])
    }
}

impl Kernel<QuantizedGemmOp> for Tiled {
    fn entry(&self) -> VariantEntry {
        VariantEntry::wgsl("tiled", crate::emit::text!("../../../shaders/quantized_gemm/tiled.wgsl"))
            .listed_as(Layout::Nhwc)
    }

    fn offers(&self, op: &QuantizedGemmOp, _limits: &Limits) -> Vec<Offer> {
        let fits = |tile: &[u32; 3]| op.m > FEW || tile[1] <= 2;
        offers(1, TILES.into_iter().filter(fits))
    }

    /// A tile of a product, and what the loads of the next step are, where they go and come from, and a word's scale and zero.
    fn registers(&self, op: &QuantizedGemmOp, choice: &Choice, _limits: &Limits) -> Option<Registers> {
        let [loads_x, loads_w] = op.loads(choice)?;
        let product = registers::of_product(choice.tile[0], choice.tile[1]);
        Some(Registers::with_barriers(product + 6 * loads_x + 6 * loads_w))
    }

    fn grid(&self, op: &QuantizedGemmOp, tile: [u32; 3]) -> [u32; 3] {
        let [groups, rows, _] = tile;
        [extent(op.n).div_ceil(4 * groups.max(1)), extent(op.m).div_ceil(rows.max(1)), 1]
    }

    fn choice_obstacle(&self, op: &QuantizedGemmOp, choice: &Choice, limits: &Limits) -> Option<String> {
        let [x, y, z] = choice.work_group;
        if z != 1 {
            return Some(format!("the work-group is {z} deep, wanted 1"));
        }
        if op.loads(choice).is_none() {
            return Some(format!("{x} x {y} invocations do not share the loads of {STEP} terms evenly"));
        }
        let bytes = u64::from(16 * PITCH * covered(choice).iter().sum::<u32>());
        local_obstacle(bytes, limits)
    }

    fn work_groups(&self, op: &QuantizedGemmOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        let even = |size: &[u32; 3]| op.loads(&self.choice_of(tile, *size)).is_some();
        GROUPS.into_iter().map(|[x, y]| [x, y, 1]).filter(even).collect()
    }

    fn bindings(&self, op: &QuantizedGemmOp, _choice: &Choice) -> Vec<Binding> {
        op.bindings(Element::Scalar(DType::U32))
    }

    fn params(&self, op: &QuantizedGemmOp, _choice: &Choice) -> Params {
        let mut params = op.params(op.words());
        params.push(("steps", crate::ops::spec::unsigned(op.k.div_ceil(STEP as usize))));
        params
    }

    fn constants(&self, op: &QuantizedGemmOp, choice: &Choice, _limits: &Limits) -> Constants {
        let Some([loads_x, loads_w]) = op.loads(choice) else { return Vec::new() };
        let ([groups, rows, _], [x, y, _]) = (choice.tile, choice.work_group);
        let staged = covered(choice).map(|lines| lines * PITCH);
        op.constants(&[
            ("STEP", STEP),
            ("STEP_WORDS", STEP / extent(op.per_word())),
            ("PITCH", PITCH),
            ("RAGGED", u32::from(!op.k.is_multiple_of(STEP as usize))),
            ("TILE_X", groups),
            ("TILE_Y", rows),
            ("THREADS", x * y),
            ("LOADS_X", loads_x),
            ("LOADS_W", loads_w),
            ("STAGED_ROWS", staged[0]),
            ("STAGED_COLUMNS", staged[1]),
        ])
    }
}

impl Tiled {
    fn choice_of(&self, tile: [u32; 3], work_group: [u32; 3]) -> Choice {
        Choice::new("tiled", tile, work_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::ops::quantized_gemm::examples::NUMBERS;

    #[test]
    fn each_tile_has_work_groups_that_share_the_loads_within_webgpus_local_memory() {
        for bits in [2, 4, 8] {
            let op = (NUMBERS.op)(&[64, 64, 64, bits, 32], None, Precision::F32).expect("extents");
            let limits = Limits::webgpu();
            let kernel = op.kernel("tiled").expect("a kernel");
            for tile in TILES {
                let sizes = kernel.work_groups(tile);
                let fits = |size: &[u32; 3]| kernel.fits(&kernel.choice(tile, *size), &limits).is_ok();
                assert!(sizes.iter().any(fits), "{bits} bits, {tile:?}: {sizes:?}");
            }
        }
    }
}
