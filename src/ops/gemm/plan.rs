//! The kernels of `gemm`. The tile is groups of four columns by rows: `[1, 8, 1]` is the micro-tile
//! of 8 rows by 4 columns of Shimanskiy's *Matrix Multiply on Adreno GPUs* (2016).

use super::{GemmOp, OP, cpu, matrix, oracle, subgroup, thin, tiled, wgmma, wide};
use crate::cpu::CpuKernel;
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Activation, Binding, Bits, Element, Epilogue, Operand, Scalar, Value};
use crate::error::Result;
use crate::layout::{Form, Layout};
use crate::limits::{Family, Limits};
use crate::ops::convolution;
use crate::ops::expected;
use crate::ops::operands::{self, OperandInfo, Operands, Role};
use crate::ops::plan::{Choice, Launch, Op};
use crate::ops::problem;
use crate::ops::reference::Reference;
use crate::ops::spec::{self, binding, extent, unsigned};
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

const TILES: [[u32; 3]; 4] = [[1, 8, 1], [1, 4, 1], [2, 8, 1], [1, 1, 1]];

/// Whether local memory is a memory of its own. Mobile GPUs and drivers that run on a CPU keep it
/// where they keep everything, so that staging there costs and does not save.
const fn has_local_memory(family: Family) -> bool {
    !matches!(family, Family::CpuDriver | Family::Adreno(_) | Family::Mali(_) | Family::PowerVr)
}

/// Whether all operands of `variant` are buffers of vec4s.
fn reads_vec4s(variant: &str) -> bool {
    matches!(variant, "vec4" | "wide" | "tiled" | "thin" | "subgroup")
        || matrix::is_matrix(variant)
        || wgmma::is(variant)
}

impl GemmOp {
    /// Why the kernels that read whole vec4s cannot serve, if they cannot.
    pub(super) fn vec4_obstacle(&self) -> Option<String> {
        if self.transpose_a || self.transpose_b {
            return Some("whole vec4s are read of neither operand transposed".to_owned());
        }
        [("k", self.k), ("n", self.n), ("lda", self.lda), ("ldb", self.ldb), ("ldc", self.ldc)]
            .into_iter()
            .find(|(_, extent)| extent % 4 != 0)
            .map(|(name, extent)| format!("it needs whole vec4s, {name} is {extent}"))
    }

    /// Why `image2d` cannot serve, if it cannot.
    fn image_obstacle(&self, limits: &Limits) -> Option<String> {
        let Some([width, height]) = limits.max_image else {
            return Some("the device takes no images as kernel arguments".to_owned());
        };
        let matrices = if self.shared_b { 1 } else { self.batch };
        let image = [self.n.div_ceil(4), self.k * matrices];
        if self.transpose_b {
            return Some("image2d reads B as it is stored, not transposed".to_owned());
        }
        if image[0] > width as usize || image[1] > height as usize {
            return Some(format!(
                "B as an image is {} x {} pixels, the device allows {width} x {height}",
                image[0], image[1]
            ));
        }
        None
    }

    /// Halves are read one by one only where the language can.
    fn scalar_obstacle(&self, limits: &Limits) -> Option<String> {
        let scalar_halves = self.precision.storage() == DType::F16;
        let wgsl = limits.dialect == crate::emit::Dialect::Wgsl;
        (scalar_halves && wgsl && !limits.native_half)
            .then(|| "single halves in a buffer need native half arithmetic".to_owned())
    }

    fn bindings(&self, variant: &str) -> Vec<Binding> {
        let storage = self.precision.storage();
        let whole = reads_vec4s(variant);
        let element = if whole { Element::Vec4(storage) } else { Element::Scalar(storage) };
        let right = if variant == "image2d" { Element::Image2d(storage) } else { element };
        let channel = Element::Vec4(DType::F32);
        let mut bindings =
            vec![binding(Operand::A, element, Access::Read), binding(Operand::B, right, Access::Read)];
        if self.epilogue.bias {
            bindings.push(binding(Operand::Bias, channel, Access::Read));
        }
        if self.epilogue.activation == Activation::PRelu {
            bindings.push(binding(Operand::Slope, channel, Access::Read));
        }
        if self.epilogue.residual {
            bindings.push(binding(Operand::Residual, element, Access::Read));
        }
        let access = if self.reads_c() { Access::ReadWrite } else { Access::Write };
        bindings.push(binding(Operand::C, element, access));
        bindings
    }

    /// Whether `C` is read.
    pub(super) fn reads_c(&self) -> bool {
        self.beta.0 != 0.0
    }

    /// What is written.
    pub(super) fn destination(&self) -> OperandInfo {
        let role = if self.reads_c() { Role::Update } else { Role::Output };
        let shape = Shape::matrix(self.batch, self.m, self.n);
        OperandInfo::new(Operand::C, shape, role).with_pitch(self.ldc)
    }

    fn params(&self, variant: &str) -> spec::Params {
        let factors = [("alpha", Scalar::F32(self.alpha.0)), ("beta", Scalar::F32(self.beta.0))];
        let extents = [("m", unsigned(self.m)), ("batch", unsigned(self.batch))];
        let own: Vec<(&'static str, Scalar)> = match variant {
            _ if reads_vec4s(variant) => [
                ("n4", self.n / 4),
                ("k4", self.k / 4),
                ("lda4", self.lda / 4),
                ("ldb4", self.ldb / 4),
                ("ldc4", self.ldc / 4),
                ("a_batch4", self.batch_stride_a() / 4),
                ("b_batch4", self.batch_stride_b() / 4),
                ("c_batch4", self.batch_stride_c() / 4),
            ]
            .map(|(name, value)| (name, unsigned(value)))
            .to_vec(),
            _ => {
                let (a_row, a_step) = if self.transpose_a { (1, self.lda) } else { (self.lda, 1) };
                let (b_column, b_step) = if self.transpose_b { (self.ldb, 1) } else { (1, self.ldb) };
                let mut own = vec![
                    ("n", unsigned(self.n)),
                    ("k", unsigned(self.k)),
                    ("a_row", unsigned(a_row)),
                    ("a_step", unsigned(a_step)),
                    ("c_row", unsigned(self.ldc)),
                    ("a_batch", unsigned(self.batch_stride_a())),
                    ("c_batch", unsigned(self.batch_stride_c())),
                ];
                if variant == "image2d" {
                    let rows = if self.shared_b { 0 } else { self.k };
                    own.push(("n4", unsigned(self.n.div_ceil(4))));
                    own.push(("b_batch", unsigned(rows)));
                } else {
                    own.push(("b_column", unsigned(b_column)));
                    own.push(("b_step", unsigned(b_step)));
                    own.push(("b_batch", unsigned(self.batch_stride_b())));
                }
                own
            }
        };
        factors.into_iter().chain(extents).chain(own).collect()
    }
}

impl Op for GemmOp {
    fn name(&self) -> &'static str {
        OP
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn operands(&self) -> Vec<OperandInfo> {
        let matrices_b = if self.shared_b { 1 } else { self.batch };
        let row_a = if self.transpose_a { self.m } else { self.k };
        let row_b = if self.transpose_b { self.k } else { self.n };
        let a = Shape::matrix(self.batch, self.stored_rows_a(), row_a);
        let b = Shape::matrix(matrices_b, self.stored_rows_b(), row_b);
        // As an image, row `term` of `B` is a row of pixels.
        let pixels = Shape::nhwc(matrices_b, self.stored_rows_b(), 1, row_b);
        let mut operands = vec![
            OperandInfo::new(Operand::A, a, Role::Input).with_pitch(self.lda),
            OperandInfo::new(Operand::B, b, Role::Input).with_pitch(self.ldb).with_map(pixels),
        ];
        let c = self.destination();
        let extras = convolution::extras(&self.epilogue, self.n, c.shape).into_iter();
        operands.extend(extras.map(|info| match info.role {
            Role::Input => info.with_pitch(self.ldc),
            _ => info,
        }));
        operands.push(c);
        operands
    }

    fn form(&self, operand: Operand, choice: &Choice) -> Option<Form> {
        match operand {
            Operand::B if choice.variant == "image2d" => Some(Form::Image),
            Operand::Bias | Operand::Slope => None,
            _ => Some(Form::Rows),
        }
    }

    fn oracle(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let rows: Vec<usize> = (0..self.batch * self.m).collect();
        Ok(Reference::Sum(oracle::oracle(self, operands, &rows)))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        operands::check(self, operands)?;
        let plain = Epilogue { bias: self.epilogue.bias, ..Epilogue::default() };
        let [alpha, beta] = [self.alpha, self.beta].map(|factor| Bits(factor.0.abs()));
        let plain = GemmOp { alpha, beta, epilogue: plain, ..*self };
        let terms = self.k + usize::from(self.reads_c());
        expected::of_sum(self, &plain, terms, &self.epilogue, operands, Vec::new())
    }

    /// The products of these rows alone: those of a large product take minutes.
    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Result<Reference> {
        operands::check(self, operands)?;
        Ok(Reference::Sum(oracle::oracle(self, operands, rows)))
    }

    fn cpu(&self, constants: &Operands<'_>) -> Result<Box<dyn CpuKernel>> {
        Ok(Box::new(cpu::GemmKernel::new(self, constants)?))
    }

    fn with_precision(&self, precision: Precision) -> Arc<dyn Op> {
        Arc::new(GemmOp { precision, ..*self })
    }

    /// Matrices are stored in f32 in a network whatever the convolutions use.
    fn network_precision(&self, wanted: Precision) -> Precision {
        wanted.of_rows()
    }

    fn record_layout(&self) -> Layout {
        Layout::Nhwc
    }

    fn problem_key(&self) -> String {
        let mut text = format!("m{} n{} k{}", self.m, self.n, self.k);
        if self.batch != 1 {
            text.push_str(&format!(" batch{}", self.batch));
        }
        for (word, said) in
            [("shared", self.shared_b && self.batch != 1), ("ta", self.transpose_a), ("tb", self.transpose_b)]
        {
            if said {
                text.push(' ');
                text.push_str(word);
            }
        }
        let row_a = if self.transpose_a { self.m } else { self.k };
        let row_b = if self.transpose_b { self.k } else { self.n };
        for (name, leading, row) in
            [("lda", self.lda, row_a), ("ldb", self.ldb, row_b), ("ldc", self.ldc, self.n)]
        {
            if leading != row {
                text.push_str(&format!(" {name}{leading}"));
            }
        }
        if self.reads_c() {
            text.push_str(" beta");
        }
        text + &problem::epilogue(&self.epilogue)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        2 * (self.batch * self.m * self.n * self.k) as u64
    }

    fn space(&self, limits: &Limits) -> Vec<(&'static str, [u32; 3])> {
        let few_rows = self.thin_tiles().into_iter().map(|tile| ("thin", tile));
        let staged = few_rows.chain(tiled::TILES.map(|tile| ("tiled", tile)));
        let whole = self.vec4_obstacle().is_none();
        let mut variants = Vec::new();
        if whole {
            variants.push("vec4");
        }
        if self.scalar_obstacle(limits).is_none() {
            variants.push("micro");
            if self.image_obstacle(limits).is_none() {
                variants.push("image2d");
            }
        }
        let direct = variants.into_iter().flat_map(|variant| TILES.map(|tile| (variant, tile)));
        let (mut space, mut last) = (self.wgmma_tiles(limits), Vec::new());
        if self.few_rows() {
            // Most of the rows that a warp group multiplies would not be there.
            std::mem::swap(&mut space, &mut last);
        }
        for (variant, tiles) in matrix::tiles(self.precision) {
            if self.matrix_obstacle(variant, limits).is_none() {
                space.extend(tiles.iter().map(|&tile| (variant, tile)));
            }
        }
        if self.wide_obstacle(limits).is_none() {
            space.extend(wide::TILES.map(|tile| ("wide", tile)));
        }
        match (whole, has_local_memory(limits.family)) {
            (false, _) => space.extend(direct),
            (true, true) => space.extend(staged.chain(direct)),
            (true, false) => space.extend(direct.chain(staged)),
        }
        if self.subgroup_obstacle(limits).is_none() {
            space.extend(subgroup::TILES.map(|tile| ("subgroup", tile)));
        }
        space.extend(last);
        space
    }

    /// A tile's third extent is the number of splits of the sum, and the work-group is as deep.
    /// A matrix kernel's tile is computed by a wave, and counts matrices; that of `wgmma` by a work-group.
    fn grid(&self, variant: &'static str, tile: [u32; 3]) -> [u32; 3] {
        let [columns, rows, splits] = tile;
        if wgmma::is(variant) {
            let [x, y] = wgmma::grid(variant, tile, extent(self.n), extent(self.m));
            return [x, y, splits * extent(self.batch)];
        }
        let (column, row, wave) = match variant {
            "wide" => (16, 1, 1),
            variant if matrix::is_matrix(variant) => (matrix::unit_columns(variant), 16, matrix::WAVE),
            _ => (4, 1, 1),
        };
        let tiles = [extent(self.n).div_ceil(column * columns), extent(self.m).div_ceil(row * rows)];
        [wave * tiles[0], tiles[1], splits * extent(self.batch)]
    }

    fn work_groups(&self, variant: &'static str, tile: [u32; 3]) -> Vec<[u32; 3]> {
        match variant {
            "tiled" => tiled::work_groups(tile),
            "thin" => thin::work_groups(tile),
            "wide" => wide::work_groups(),
            "subgroup" => subgroup::WORK_GROUPS.to_vec(),
            variant if matrix::is_matrix(variant) => matrix::work_groups(variant, tile, self.precision),
            variant if wgmma::is(variant) => vec![wgmma::work_group(variant, tile)],
            _ => Vec::new(),
        }
    }

    fn estimate(&self, choice: &Choice, limits: &Limits) -> Option<f64> {
        match choice.variant {
            "wide" => Some(self.wide_cycles(choice, limits)),
            _ if has_local_memory(limits.family) => self.cycles(choice, limits),
            _ => None,
        }
    }

    /// `subgroup` runs where it was measured or asked for.
    fn untuned(&self, variant: &str, _limits: &Limits) -> bool {
        variant != "subgroup"
    }

    fn dst_depth(&self) -> u32 {
        extent(self.n.div_ceil(4))
    }

    fn fits(&self, choice: &Choice, limits: &Limits) -> Result<()> {
        let obstacle = match choice.variant {
            "vec4" | "tiled" | "thin" => self.vec4_obstacle(),
            "wide" => self.wide_obstacle(limits),
            "subgroup" => self.subgroup_obstacle(limits),
            variant if matrix::is_matrix(variant) => self.matrix_obstacle(variant, limits),
            variant if wgmma::is(variant) => self.wgmma_obstacle(variant, limits),
            "image2d" => self.image_obstacle(limits).or_else(|| self.scalar_obstacle(limits)),
            _ => self.scalar_obstacle(limits),
        };
        if let Some(reason) = obstacle {
            return spec::reject(OP, choice, reason);
        }
        let grid = self.grid(choice.variant, choice.tile.map(|extent| extent.max(1)));
        spec::check_choice(OP, choice, &self.space(limits), grid, self.precision, limits)?;
        let obstacle = match choice.variant {
            "tiled" => self.tiled_obstacle(choice, limits),
            "thin" => self.thin_obstacle(choice, limits),
            "subgroup" => subgroup::choice_obstacle(choice),
            variant if matrix::is_matrix(variant) => self.matrix_choice_obstacle(choice, limits),
            variant if wgmma::is(variant) => self.wgmma_choice_obstacle(choice),
            _ => None,
        };
        obstacle.map_or(Ok(()), |reason| spec::reject(OP, choice, reason))
    }

    fn plan(&self, choice: &Choice, limits: &Limits) -> Result<Launch> {
        self.fits(choice, limits)?;
        let params = self.params(choice.variant);
        let mut constants = vec![
            ("BETA", Value::U32(u32::from(self.reads_c()))),
            ("TILE_X", Value::U32(choice.tile[0])),
            ("TILE_Y", Value::U32(choice.tile[1])),
        ];
        match choice.variant {
            "tiled" => constants.extend(self.tiled_constants(choice, limits)),
            "thin" => constants.extend(self.thin_constants(choice, limits)),
            variant if matrix::is_matrix(variant) => {
                constants.extend(self.matrix_constants(choice, limits));
            }
            variant if wgmma::is(variant) => constants.extend(self.wgmma_constants(choice)),
            _ => {}
        }
        let interface = spec::interface(self.bindings(choice.variant), &params);
        let on_matrix_unit = matrix::is_matrix(choice.variant) || wgmma::is(choice.variant);
        let precision = if on_matrix_unit { self.precision } else { self.precision.without_matrix_units() };
        let mut kernel = spec::kernel(OP, choice, constants, precision, self.epilogue, interface);
        kernel.native_half |= choice.variant == "matrix";
        Ok(Launch {
            spec: kernel,
            params: params.into_iter().map(|(_, value)| value).collect(),
            grid: self.grid(choice.variant, choice.tile),
        })
    }

    /// `bias` and `slope` are padded to whole tiles of columns; `B` as a constant stays row-major
    /// (as an image it goes through a conversion).
    fn pack(&self, choice: &Choice, operand: Operand, data: &[f32]) -> Result<Vec<f32>> {
        match operand {
            Operand::Bias | Operand::Slope => {
                spec::expect_len(OP, operand, data, self.n)?;
                let slices = self.n.div_ceil(4).next_multiple_of(choice.tile[0].max(1) as usize);
                Ok(spec::pack_channels(data, slices))
            }
            Operand::B => {
                spec::expect_len(OP, operand, data, self.elements_b())?;
                Ok(data.to_vec())
            }
            _ => spec::no_constant(OP, operand),
        }
    }
}

impl GemmOp {
    /// A product of packed matrices in f32, for tables of examples.
    pub(crate) fn packed(m: usize, n: usize, k: usize) -> Self {
        GemmOp {
            m,
            n,
            k,
            batch: 1,
            shared_b: false,
            transpose_a: false,
            transpose_b: false,
            lda: k,
            ldb: n,
            ldc: n,
            alpha: Bits(1.0),
            beta: Bits(0.0),
            epilogue: crate::emit::Epilogue::default(),
            precision: Precision::F32,
        }
    }
}
