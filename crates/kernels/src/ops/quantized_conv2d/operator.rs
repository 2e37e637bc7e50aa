//! A convolution of bytes as a node of a graph: `Src`, `Weights`, `Bias` and `Scale`.

use super::{OP, QuantizedConv2d};
use crate::dtype::Precision;
use crate::error::Result;
use crate::ops::byte_windows;
use crate::ops::operator::{Arguments, Lowered, Options};

impl Options for QuantizedConv2d {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        byte_windows::lower(self, arguments)
    }
}
