//! `matrix`: a work-group sums whole rows of a product of halves by cooperative matrices, keeps them in local memory, and computes the
//! nest there.
//!
//! A tile is matrices of 16 columns and of 16 rows that a wave of 32 invocations sums, and layers, each of which sums a part of the
//! terms. A work-group has as many waves as the columns need, in each of its layers.

use super::GemmRowsOp;
use super::sharing::Sharing;
use crate::dtype::Precision;
use crate::emit::{Binding, Body};
use crate::limits::{Limits, MatrixUnit};
use crate::ops::definition::Definition;
use crate::ops::effort::{Effort, groups};
use crate::ops::kernel::{Constants, Kernel, Offer, VariantEntry};
use crate::ops::plan::Choice;
use crate::ops::spec::{Params, extent, local_obstacle};

/// Invocations that work on one small matrix together.
const WAVE: u32 = 32;

/// Rows, columns and terms of a small matrix.
const SIDE: u32 = 16;

/// Matrices of columns and of rows of a wave.
const TILES: [[u32; 2]; 7] = [[1, 1], [2, 1], [3, 1], [4, 1], [1, 2], [2, 2], [3, 2]];

/// Layers, the most first.
const LAYERS: [u32; 4] = [8, 4, 2, 1];

/// Terms of a layer, at least.
const LAYER_TERMS: u32 = 64;

/// The most waves of a work-group, and how many there are first.
const MOST_WAVES: u32 = 16;
const USUAL_WAVES: u32 = 6;

/// Preferences of kernels without matrix units are larger.
pub(super) const LAST: u32 = 1 << 10;

/// Terms that a layer stages at a time, the most first.
const STEPS: [u32; 3] = [64, 32, 16];

/// Products of halves that a matrix unit sums while one of f32 is.
const SPEED: u64 = 8;

/// Vec4s of halves that keep the rows of a staged operand in different banks.
const PADDING4: u32 = 2;

/// The most vec4s that an invocation has on their way to local memory.
const LOADS: u32 = 16;

#[derive(Debug)]
pub(super) struct Matrix;

/// Waves along the columns.
fn waves(op: &GemmRowsOp, tile: [u32; 3]) -> u32 {
    extent(op.product.n()) / (SIDE * tile[0].max(1))
}

fn sharing(op: &GemmRowsOp, tile: [u32; 3]) -> Sharing {
    op.sharing(SIDE * tile[1], WAVE * waves(op, tile) * tile[2])
}

/// How a work-group stages; lengths are in vec4s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Staging {
    step: u32,
    /// From one row of A, and of B, to the next.
    a_row: u32,
    b_row: u32,
    /// Vec4s of A and of B that a layer stages, and those that an invocation brings at most.
    counts: [u32; 2],
    loads: [u32; 2],
    /// Vec4s that a layer stages.
    layer: u32,
    /// Sums of all layers.
    staged: u32,
}

impl Staging {
    /// With the most terms at a time that `limits` allow.
    fn of(op: &GemmRowsOp, tile: [u32; 3], limits: &Limits) -> Option<Self> {
        let [_, rows, layers] = tile;
        let (rows, columns4, threads) = (SIDE * rows, extent(op.product.n() / 4), WAVE * waves(op, tile));
        if threads == 0 {
            return None;
        }
        let of_step = |step: u32| {
            let (a_row, b_row) = (step / 4 + PADDING4, columns4 + PADDING4);
            let counts = [rows * step / 4, step * columns4];
            let loads = counts.map(|count| count.div_ceil(threads));
            let (layer, staged) = (rows * a_row + step * b_row, layers * rows * columns4);
            let bytes = 8 * layers * layer + op.local_bytes_of(staged, sharing(op, tile));
            // A second step where there are more terms.
            let few = step == SIDE || extent(op.product.k()) > step * layers;
            let fits = few && loads[0] + loads[1] <= LOADS && local_obstacle(bytes.into(), limits).is_none();
            fits.then_some(Staging { step, a_row, b_row, counts, loads, layer, staged })
        };
        STEPS.into_iter().find_map(of_step)
    }
}

/// Whether such a work-group has few enough waves, and each layer terms enough.
fn fits(op: &GemmRowsOp, tile: [u32; 3], limits: &Limits) -> bool {
    let [columns, rows, layers] = tile;
    let [n, k] = [op.product.n(), op.product.k()].map(extent);
    let waves = waves(op, tile) * layers;
    let most = MOST_WAVES.min(limits.max_invocations / WAVE);
    n.is_multiple_of(SIDE * columns)
        && waves <= most
        // An invocation for each row at least.
        && WAVE * waves >= SIDE * rows
        && (layers == 1 || k >= LAYER_TERMS * layers)
        && Staging::of(op, tile, limits).is_some()
}

impl Kernel<GemmRowsOp> for Matrix {
    fn entry(&self) -> VariantEntry {
        VariantEntry::vulkan(
            "matrix",
            crate::emit::text!("../../../shaders/gemm_rows/matrix.wgsl"),
            "OpenCL C has no cooperative matrices",
        )
        .with_native_half()
        .in_rows()
        .by_estimate()
    }

    fn offers(&self, op: &GemmRowsOp, limits: &Limits) -> Vec<Offer> {
        if self.obstacle(op, limits).is_some() {
            return Vec::new();
        }
        let each = LAYERS.into_iter().flat_map(|layers| TILES.map(|[columns, rows]| [columns, rows, layers]));
        let all = each.filter(|&tile| fits(op, tile, limits));
        // On an H200 four to eight waves took the least time, of few rows each.
        let preference = |tile: [u32; 3]| {
            let [columns, rows, layers] = tile;
            64 * (rows - 1) + 4 * (waves(op, tile) * layers).abs_diff(USUAL_WAVES) + layers + columns
        };
        all.map(|tile| Offer { preference: preference(tile), tile }).collect()
    }

    fn grid(&self, op: &GemmRowsOp, tile: [u32; 3]) -> [u32; 3] {
        [WAVE * waves(op, tile), extent(op.product.m()).div_ceil(SIDE * tile[1]), tile[2]]
    }

    fn obstacle(&self, op: &GemmRowsOp, limits: &Limits) -> Option<String> {
        let product = &op.product;
        if product.precision != Precision::F16Storage {
            return Some(format!("it multiplies halves, the precision is {}", product.precision));
        }
        match limits.matrix_unit {
            Some(MatrixUnit::Cooperative { subgroup: WAVE }) if limits.native_half => {}
            Some(MatrixUnit::Cooperative { subgroup }) => {
                return Some(format!(
                    "it is made for halves in subgroups of {WAVE}, the device has {subgroup}"
                ));
            }
            _ => return Some("the device does not offer matrix instructions to this API".to_owned()),
        }
        let uneven = !product.n().is_multiple_of(SIDE as usize);
        uneven.then(|| format!("it sums matrices of {SIDE} columns, n is {}", product.n()))
    }

    fn choice_obstacle(&self, op: &GemmRowsOp, choice: &Choice, _limits: &Limits) -> Option<String> {
        let wanted = self.work_groups(op, choice.tile);
        (!wanted.contains(&choice.work_group))
            .then(|| format!("a work-group of {:?}, its tile wants {wanted:?}", choice.work_group))
    }

    fn work_groups(&self, op: &GemmRowsOp, tile: [u32; 3]) -> Vec<[u32; 3]> {
        vec![[WAVE * waves(op, tile), 1, tile[2]]]
    }

    fn bindings(&self, op: &GemmRowsOp, choice: &Choice) -> Vec<Binding> {
        let own = Definition::bindings(op, choice);
        own.into_iter().chain(op.rows_within(sharing(op, choice.tile), true).bindings).collect()
    }

    fn params(&self, op: &GemmRowsOp, choice: &Choice) -> Params {
        let own = Definition::params(op, choice);
        own.into_iter().chain(op.rows_within(sharing(op, choice.tile), true).params).collect()
    }

    fn body(&self, op: &GemmRowsOp, choice: &Choice) -> Body {
        op.rows_within(sharing(op, choice.tile), true).body
    }

    fn constants(&self, op: &GemmRowsOp, choice: &Choice, limits: &Limits) -> Constants {
        let Some(staging) = Staging::of(op, choice.tile, limits) else { return Vec::new() };
        let Staging { step, a_row, b_row, counts, loads, layer, staged } = staging;
        let [columns, rows, layers] = choice.tile;
        let waves = waves(op, choice.tile);
        let threads = WAVE * waves;
        let uneven = counts.map(|count| u32::from(!count.is_multiple_of(threads)));
        let own = [
            ("TILE_X", columns),
            ("TILE_Y", rows),
            ("LAYERS", layers),
            ("WAVES_X", waves),
            ("THREADS", threads),
            ("ROWS", SIDE * rows),
            ("COLUMNS4", extent(op.product.n() / 4)),
            ("STEP", step),
            ("RAGGED", u32::from(!op.product.k().is_multiple_of((step * layers) as usize))),
            ("A_ROW", a_row),
            ("B_ROW", b_row),
            ("LAYER", layer),
            ("OPERANDS", layers * layer),
            ("LOADS_A", loads[0]),
            ("LOADS_B", loads[1]),
            ("A_UNEVEN", uneven[0]),
            ("B_UNEVEN", uneven[1]),
        ];
        op.constants_and(&own, staged, sharing(op, choice.tile))
    }

    fn effort(&self, op: &GemmRowsOp, choice: &Choice, limits: &Limits) -> Option<Effort> {
        let Staging { step, loads, layer, staged, .. } = Staging::of(op, choice.tile, limits)?;
        let [columns, rows, layers] = choice.tile;
        let steps = extent(op.product.k()).div_ceil(step * layers);
        let sixteens = u64::from(steps * step / SIDE);
        // Vec4s of an invocation.
        let sums = 2 * columns * rows;
        Some(Effort {
            groups: groups(self.grid(op, choice.tile), choice.work_group),
            invocations: choice.work_group.iter().product(),
            registers: 40 + 4 * sums + 4 * (rows + columns) + 2 * (loads[0] + loads[1]),
            local_bytes: 8 * layers * layer + op.local_bytes_of(staged, sharing(op, choice.tile)),
            steps,
            ahead: true,
            barriers: 2 * steps,
            multiplies: 64 * u64::from(sums) * sixteens / SPEED,
            loads: u64::from((loads[0] + loads[1]) * steps).div_ceil(2),
            staged: u64::from(rows + columns) * sixteens,
            added: if layers > 1 { u64::from(sums) } else { 0 },
            reads: op.product.reads(SIDE * rows, extent(op.product.n())),
            traffic: op.product.traffic(),
        })
    }

    /// A matrix unit needs fewer invocations.
    fn counted(&self, op: &GemmRowsOp, choice: &Choice) -> u64 {
        4 * self.grid(op, choice.tile).iter().map(|&extent| u64::from(extent)).product::<u64>()
    }
}
