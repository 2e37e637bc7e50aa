//! What `gemm` is, and its kernels.
//!
//! The tile is groups of four columns by rows, unless a kernel says otherwise: `[1, 8, 1]` is the micro-tile
//! of 8 rows by 4 columns of Shimanskiy's *Matrix Multiply on Adreno GPUs* (2016).

use super::places::PlacedKernel;
use super::{
    GemmOp, OP, cpu, image2d, matrix, micro, oracle, split, staged, subgroup, thin, tiled, vec4, wgmma, wide,
};
use crate::cpu::CpuKernel;
use crate::cpu::shelf::Shelf;
use crate::dtype::Precision;
use crate::emit::{Binding, Bits, Epilogue, Operand};
use crate::error::Result;
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::halves::{self, Reach, Reaches};
use crate::ops::kernel::Kernel;
use crate::ops::operands::{OperandInfo, Operands, Role};
use crate::ops::plan::Choice;
use crate::ops::reference::Reference;
use crate::ops::spec::{Params, extent};
use crate::ops::{convolution, expected, problem};
use crate::shape::Shape;

impl Definition for GemmOp {
    const NAME: &'static str = OP;
    const ROWS: bool = true;
    const HALVES: bool = true;
    const CALLS_FUNCTION: bool = true;

    fn kernels() -> &'static [&'static dyn Kernel<Self>] {
        &[
            &tiled::Tiled,
            &thin::Thin,
            &staged::Staged,
            &vec4::Vec4,
            &split::Split,
            &micro::Micro,
            &image2d::Image2d,
            &wide::Wide,
            &subgroup::Subgroup,
            &matrix::MATRIX,
            &matrix::MATRIX_PTX,
            &matrix::MATRIX_SPLIT_PTX,
            &wgmma::WGMMA,
            &wgmma::WGMMA_TF32,
        ]
    }

    fn packing(&self) -> Option<String> {
        Some(format!("n{} k{} {} {} {:?}", self.n, self.k, self.transpose_b, self.ldb, self.precision))
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
        if let Some(places) = &self.places {
            text.push_str(&places.key());
        }
        text + &problem::epilogue(&self.epilogue)
    }

    fn precision(&self) -> Precision {
        self.precision
    }

    fn flops(&self) -> u64 {
        [self.m, self.n, self.k].iter().fold(2 * self.batch as u64, |flops, &extent| flops * extent as u64)
    }

    fn dst_depth(&self) -> u32 {
        extent(self.n.div_ceil(4))
    }

    fn operands(&self) -> Vec<OperandInfo> {
        if let Some(places) = &self.places {
            let [a, b, c] = self.placed_infos(places);
            let extras = convolution::extras(&self.epilogue, self.n, c.shape);
            return [a, b].into_iter().chain(extras).chain([c]).collect();
        }
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

    /// Of a kernel that reads whole vec4s.
    fn bindings(&self, _choice: &Choice) -> Vec<Binding> {
        self.vec4_bindings()
    }

    fn params(&self, _choice: &Choice) -> Params {
        self.vec4_params()
    }

    fn pack(&self, choice: &Choice, _operand: Operand, data: &[f32]) -> Vec<f32> {
        self.pack_columns(choice, data)
    }

    /// A matrix unit is the faster, where there is one for the precision.
    fn untuned(&self, limits: &Limits) -> bool {
        !self.is_for_matrix_unit(limits)
    }

    fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    fn oracle(&self, operands: &Operands<'_>) -> Reference {
        if let Some(places) = &self.places {
            let packed = self.packed_like();
            return self.placed(&packed.oracle(&self.packed_operands(places, operands)));
        }
        let rows: Vec<usize> = (0..self.batch * self.m).collect();
        self.oracle_rows(operands, &rows)
    }

    /// The products of these rows alone: those of a large product take minutes.
    fn oracle_rows(&self, operands: &Operands<'_>, rows: &[usize]) -> Reference {
        if self.places.is_some() {
            return self.oracle(operands).rows(rows, self.destination().shape.c);
        }
        Reference::Sum(oracle::oracle(self, operands, rows))
    }

    fn expected(&self, operands: &Operands<'_>) -> Result<Reference> {
        let plain = Epilogue { bias: self.epilogue.bias, ..Epilogue::default() };
        let [alpha, beta] = [self.alpha, self.beta].map(|factor| Bits(factor.0.abs()));
        let plain = GemmOp { alpha, beta, epilogue: plain, ..*self };
        let terms = self.k + usize::from(self.reads_c());
        expected::of_sum(self, &plain, terms, &self.epilogue, operands)
    }

    fn cpu(&self, constants: &Operands<'_>, _shelf: Shelf<'_>) -> Result<Box<dyn CpuKernel>> {
        if self.places.is_some() {
            let packed = Box::new(cpu::GemmKernel::new(&self.packed_like(), constants)?);
            return Ok(Box::new(PlacedKernel::new(self, packed)?));
        }
        Ok(Box::new(cpu::GemmKernel::new(self, constants)?))
    }

    fn reach(&self, inputs: &Reaches<'_>, constants: &Operands<'_>) -> Reach {
        let factor = f64::from(self.alpha.0.abs()) * self.k as f64;
        let sum = Reach::around(factor * inputs(Operand::A).magnitude() * inputs(Operand::B).magnitude());
        let sum = if self.reads_c() { Reach::ALL } else { sum };
        halves::finished(&self.epilogue, sum, inputs, constants)
    }
}

impl GemmOp {
    /// A product of packed matrices in f32, for tables of examples.
    #[doc(hidden)]
    pub fn packed(m: usize, n: usize, k: usize) -> Self {
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
            places: None,
        }
    }

    /// The problem in words.
    pub(in crate::ops) fn problem(&self) -> String {
        Definition::problem_key(self)
    }
}
