//! A nest as a function of another kernel's text: what that kernel computes in the place of an operand that it would load.

use super::flat::{bindings, lanes, sources};
use super::text::Text;
use super::written::Written;
use super::{LoopsOp, flat};
use crate::dtype::DType;
use crate::emit::{Binding, Element, Operand, Prologue};
use crate::layout::Form;
use crate::limits::Limits;
use crate::ops::definition::Definition;
use crate::ops::op::Op;
use crate::ops::operands::OperandInfo;
use crate::ops::spec::Params;
use crate::ops::stored::least;

/// A nest within the kernel of another op.
pub(in crate::ops) struct NestWithin {
    /// The function.
    pub(in crate::ops) text: Prologue,
    /// What it reads.
    pub(in crate::ops) bindings: Vec<Binding>,
    /// The scalars that it names.
    pub(in crate::ops) params: Params,
}

impl LoopsOp {
    /// Whether four elements of its only result, which lies in rows, follow from what it reads without a reduction.
    pub(in crate::ops) fn gives_vectors(&self) -> bool {
        let float = self.stored.result_type(0) == DType::F32;
        self.results() == 1
            && float
            && !self.maps.has_result(0)
            && !self.stored.reduces()
            && lanes(&self.stored).is_some()
            && self.within(false).has_all
    }

    /// How many elements it gives.
    pub(in crate::ops) fn elements(&self) -> usize {
        self.nest.target.elements()
    }

    /// The op with other names of its sources.
    #[must_use]
    pub(in crate::ops) fn with_sources(&self, name: impl Fn(usize) -> Operand) -> Self {
        let sources = (0..self.nest.sources.len()).map(name).collect();
        LoopsOp { sources, ..self.clone() }
    }

    /// The form of one of its sources.
    pub(in crate::ops) fn source_form(&self, operand: Operand) -> Option<Form> {
        let op: &dyn Op = self;
        let kernel = op.kernel(flat::NAME).ok()?;
        kernel.form(operand, &kernel.choice([1; 3], [1; 3]))
    }

    /// Whether such a device reads its sources as they are stored.
    pub(in crate::ops) fn runs_on(&self, limits: &Limits) -> bool {
        let op: &dyn Op = self;
        op.kernel(flat::NAME).is_ok_and(|kernel| !kernel.offers(limits).is_empty())
    }

    /// Its function's statements and scalars.
    fn within(&self, native_half: bool) -> Written {
        let (nest, lanes) = (&*self.stored, lanes(&self.stored));
        let sources = sources(self, lanes);
        let mut text = Text::new(nest, lanes, &sources).within_another(native_half);
        text.places(&nest.written.clone(), "i");
        let value = text.value(nest.value);
        text.line(&format!("return {value};"));
        text.written()
    }

    /// The nest as what a kernel computes in the place of `operand`, which would be bound as `element`.
    pub(in crate::ops) fn prologue(
        &self,
        operand: Operand,
        element: Element,
        native_half: bool,
    ) -> NestWithin {
        let written = self.within(native_half);
        let sources = sources(self, lanes(&self.stored));
        let infos: Vec<OperandInfo> = Definition::operands(self);
        let form = |operand: Operand| self.source_form(operand).unwrap_or(Form::Rows);
        let bound = |binding: Binding| Binding { least: least(&infos, &form, &binding), ..binding };
        NestWithin {
            text: Prologue {
                operand,
                element,
                statements: written.body.statements,
                calls: written.body.calls,
            },
            bindings: bindings(&sources, &[]).into_iter().map(bound).collect(),
            params: written.params,
        }
    }
}
