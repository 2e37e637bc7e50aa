//! What a kernel computes in the place of an operand that it would read.

use super::{Element, Operand};

/// How a kernel finds the vec4s of an operand that it does not bind: a function of its text computes each one where the
/// text would read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prologue {
    /// The operand.
    pub operand: Operand,
    /// How it would be bound.
    pub element: Element,
    /// Statements of WGSL that compute vec4 `i` of it in f32, the last of which returns it. They read bindings and scalars of the
    /// kernel.
    pub statements: Vec<String>,
    /// Which functions of `shaders/shared/functions.wgsl` they call.
    pub calls: Vec<&'static str>,
}

/// The function's name in a kernel's text.
const NAME: &str = "of_operand";

impl Prologue {
    /// The function in WGSL.
    pub(super) fn wgsl(&self) -> String {
        let statements: String = self.statements.iter().map(|line| format!("    {line}\n")).collect();
        format!("fn {NAME}(i: u32) -> vec4<f32> {{\n{statements}}}\n\n")
    }

    /// An expression of vec4 `index` of the operand, in f32.
    pub(super) fn call(&self, index: &str) -> String {
        format!("{NAME}({index})")
    }
}
