//! What the kernels of `gemm` are given.

use super::GemmOp;
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Scalar, Value};
use crate::limits::Limits;
use crate::ops::kernel::Constants;
use crate::ops::operands::{OperandInfo, Role};
use crate::ops::plan::Choice;
use crate::ops::spec::{self, Params, extent, unsigned};
use crate::shape::Shape;

/// Tiles of the kernels that keep no operand in local memory.
pub(super) const TILES: [[u32; 3]; 4] = [[1, 8, 1], [1, 4, 1], [2, 8, 1], [1, 1, 1]];

/// The work-group of a kernel that is made for none. The micro-tile's article advises large groups that no
/// edge leaves half empty; a square of 64 serves any matrix.
pub(super) const SQUARE: [u32; 3] = [8, 8, 1];

/// In which order an untuned session prefers kernels, those that serve.
pub(super) mod preference {
    /// Warp groups that multiply, unless most of their rows would not be there.
    pub(crate) const WARP_GROUPS: u32 = 0;
    pub(crate) const MATRIX: u32 = 1;
    pub(crate) const WIDE: u32 = 2;
    /// Where local memory is a memory of its own.
    pub(crate) const THIN: u32 = 3;
    pub(crate) const TILED: u32 = 4;
    pub(crate) const VEC4: u32 = 5;
    /// Where local memory is a memory of its own, and whole vec4s cannot be read.
    pub(crate) const STAGED: u32 = 5;
    /// Where local memory is a memory of its own, and there is little to do.
    pub(crate) const SPLIT: u32 = 6;
    pub(crate) const MICRO: u32 = 7;
    pub(crate) const IMAGE: u32 = 8;
    /// Behind the kernels without local memory, where it is not.
    pub(crate) const LATE: u32 = 9;
    pub(crate) const SUBGROUP: u32 = 20;
    pub(crate) const LAST: u32 = 21;
}

/// The preference of a kernel that stages: as it is, or behind those that do not.
pub(super) const fn staged(preference: u32, limits: &Limits) -> u32 {
    if limits.family.has_local_memory() { preference } else { preference + preference::LATE }
}

impl GemmOp {
    /// Why the kernels that read whole vec4s cannot serve, if they cannot.
    pub(super) fn vec4_obstacle(&self) -> Option<String> {
        if self.transpose_a || self.transpose_b {
            return Some("whole vec4s are read of neither operand transposed".to_owned());
        }
        let own = [("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb), ("ldc", self.ldc)];
        self.uneven(4, &own)
            .or_else(|| self.uneven(4, &self.distances()))
            .map(|(name, extent)| format!("it needs whole vec4s, {name} is {extent}"))
    }

    /// The product as one of packed rows of A and of the result by one matrix B, read in whole vec4s, if it is one that adds to nothing.
    pub(in crate::ops) fn as_rows(&self) -> Option<Self> {
        let is_one = self.batch == 1 || self.shared_b;
        let is_packed = self.lda == self.k && self.ldc == self.n && self.places.is_none();
        (is_one && is_packed && !self.reads_c() && self.vec4_obstacle().is_none()).then(|| GemmOp {
            m: self.m * self.batch,
            batch: 1,
            shared_b: false,
            precision: self.precision.with_f32_sums().without_matrix_units(),
            ..*self
        })
    }

    /// The first of `extents` that is no multiple of `whole`.
    fn uneven<'a>(&self, whole: usize, extents: &[(&'a str, usize)]) -> Option<(&'a str, usize)> {
        extents.iter().copied().find(|(_, extent)| !extent.is_multiple_of(whole))
    }

    /// Where matrices begin within other values, and how far they are apart.
    fn distances(&self) -> Vec<(&'static str, usize)> {
        let each = self.places.iter().flat_map(|places| places.all());
        each.flat_map(|(name, place)| [(name, place.first), (name, place.outer), (name, place.inner)])
            .collect()
    }

    /// The scalars of places, counted in `unit` elements.
    fn place_params(&self, names: [[&'static str; 2]; 3], unit: usize) -> Params {
        let Some(places) = &self.places else { return Vec::new() };
        let each = names.into_iter().zip(places.all()).flat_map(|([first, within], (_, place))| {
            [(first, unsigned(place.first / unit)), (within, unsigned(place.inner / unit))]
        });
        each.chain([("within", unsigned(places.within))]).collect()
    }

    /// Why a kernel that reads `whole` elements of a row at once cannot serve, if it cannot.
    pub(super) fn row_obstacle(&self, whole: usize, what: &str) -> Option<String> {
        self.uneven(whole, &[("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb)])
            .or_else(|| self.uneven(whole, &self.distances()))
            .map(|(name, extent)| format!("it reads {whole} {what} at once, {name} is {extent}"))
    }

    /// Halves are read one by one only where the language can.
    pub(super) fn scalar_obstacle(&self, limits: &Limits) -> Option<String> {
        let scalar_halves = self.precision.storage() == DType::F16;
        let wgsl = limits.dialect == crate::emit::Dialect::Wgsl;
        (scalar_halves && wgsl && !limits.native_half)
            .then(|| "single halves in a buffer need native half arithmetic".to_owned())
    }

    /// The arguments of a kernel that reads `B` as `right` and everything else as `element`.
    pub(super) fn bindings_of(&self, element: Element, right: Element) -> Vec<Binding> {
        spec::bindings_as(self, |info| match info.operand {
            Operand::B => right,
            Operand::Bias | Operand::Slope => Element::Vec4(DType::F32),
            _ => element,
        })
    }

    /// The arguments of a kernel that reads whole vec4s.
    pub(in crate::ops) fn vec4_bindings(&self) -> Vec<Binding> {
        let element = Element::Vec4(self.precision.storage());
        self.bindings_of(element, element)
    }

    /// Whether `C` is read.
    pub(super) fn reads_c(&self) -> bool {
        self.beta.0 != 0.0
    }

    /// What is written.
    pub(super) fn destination(&self) -> OperandInfo {
        if let Some(places) = &self.places {
            let [.., c] = self.placed_infos(places);
            return c;
        }
        let role = if self.reads_c() { Role::Update } else { Role::Output };
        let shape = Shape::matrix(self.batch, self.m, self.n);
        OperandInfo::new(Operand::C, shape, role).with_pitch(self.ldc)
    }

    /// The scalars that every kernel takes.
    fn factors(&self) -> Params {
        vec![
            ("alpha", Scalar::F32(self.alpha.0)),
            ("beta", Scalar::F32(self.beta.0)),
            ("m", unsigned(self.m)),
            ("batch", unsigned(self.batch)),
        ]
    }

    /// The scalars of a kernel that reads whole vec4s.
    pub(in crate::ops) fn vec4_params(&self) -> Params {
        let own = [
            ("n4", self.n / 4),
            ("k4", self.k / 4),
            ("lda4", self.lda / 4),
            ("ldb4", self.ldb / 4),
            ("ldc4", self.ldc / 4),
            ("a_batch4", self.batch_stride_a() / 4),
            ("b_batch4", self.batch_stride_b() / 4),
            ("c_batch4", self.batch_stride_c() / 4),
        ];
        let names = [
            ["a_batch4_first", "a_batch4_within"],
            ["b_batch4_first", "b_batch4_within"],
            ["c_batch4_first", "c_batch4_within"],
        ];
        let own = own.map(|(name, value)| (name, unsigned(value))).to_vec();
        [self.factors(), own, self.place_params(names, 4)].concat()
    }

    /// The scalars of a kernel that reads single elements, but for those of `B`.
    pub(super) fn scalar_params(&self) -> Params {
        let (a_row, a_step) = if self.transpose_a { (1, self.lda) } else { (self.lda, 1) };
        let own = [
            ("n", self.n),
            ("k", self.k),
            ("a_row", a_row),
            ("a_step", a_step),
            ("c_row", self.ldc),
            ("a_batch", self.batch_stride_a()),
            ("c_batch", self.batch_stride_c()),
        ];
        [self.factors(), own.map(|(name, value)| (name, unsigned(value))).to_vec()].concat()
    }

    /// The arguments of a kernel that reads single elements.
    pub(super) fn element_bindings(&self) -> Vec<Binding> {
        let element = Element::Scalar(self.precision.storage());
        self.bindings_of(element, element)
    }

    /// The scalars of a kernel that reads single elements.
    pub(super) fn element_params(&self) -> Params {
        let (column, step) = if self.transpose_b { (self.ldb, 1) } else { (1, self.ldb) };
        let right = [("b_column", column), ("b_step", step), ("b_batch", self.batch_stride_b())];
        let names = [
            ["a_batch_first", "a_batch_within"],
            ["b_batch_first", "b_batch_within"],
            ["c_batch_first", "c_batch_within"],
        ];
        let right = right.map(|(name, value)| (name, unsigned(value))).to_vec();
        [self.scalar_params(), right, self.place_params(names, 1)].concat()
    }

    /// The constants that every text has.
    pub(super) fn constants(&self, choice: &Choice) -> Constants {
        let [x, y, _] = choice.tile;
        [("BETA", u32::from(self.reads_c())), ("TILE_X", x), ("TILE_Y", y)]
            .map(|(name, value)| (name, Value::U32(value)))
            .to_vec()
    }

    /// The constants that every text has, and `own`.
    pub(super) fn constants_and(&self, choice: &Choice, own: &[(&'static str, u32)]) -> Constants {
        let own = own.iter().map(|&(name, value)| (name, Value::U32(value)));
        self.constants(choice).into_iter().chain(own).collect()
    }

    /// A constant as every kernel reads it: padded to whole tiles of columns.
    pub(super) fn pack_columns(&self, choice: &Choice, data: &[f32]) -> Vec<f32> {
        let slices = self.n.div_ceil(4).next_multiple_of(choice.tile[0].max(1) as usize);
        spec::pack_channels(data, slices)
    }

    /// The grid of a kernel whose invocation computes tiles of `column` columns and `row` rows, `wave` of
    /// them together. A tile's third extent is the number of splits of the sum, and the work-group is as
    /// deep.
    pub(super) fn grid_of(&self, tile: [u32; 3], [column, row, wave]: [u32; 3]) -> [u32; 3] {
        let [columns, rows, splits] = tile;
        let tiles = [extent(self.n).div_ceil(column * columns), extent(self.m).div_ceil(row * rows)];
        [wave.saturating_mul(tiles[0]), tiles[1], splits.saturating_mul(extent(self.batch))]
    }
}
