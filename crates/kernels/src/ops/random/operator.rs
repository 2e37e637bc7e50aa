//! Random numbers as a node of a graph: `Src` is the key; `Arg(0)`, where the node has it, only gives the extents.

use super::{KEY, OP, Random, RandomOp};
use crate::dims::{Dim, Dims};
use crate::dtype::Precision;
use crate::emit::Operand;
use crate::error::{Error, Result};
use crate::ops::op::Op;
use crate::ops::operator::{Arguments, Lowered, Options};
use std::sync::Arc;

/// Random numbers of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Numbered {
    pub options: Random,
    pub stream: u64,
    /// The extents, where no input gives them.
    pub extents: Vec<Dim>,
}

/// The key of the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextKey;

fn check_key(arguments: Arguments<'_>) -> Result<()> {
    let dims = arguments.need(OP, Operand::Src)?;
    if dims.extents() != [KEY] {
        return Err(Error::shape(OP, format!("a key of {dims}"), format!("{KEY} words")));
    }
    Ok(())
}

fn output(op: &dyn Op) -> Vec<Dims> {
    op.as_any().downcast_ref::<RandomOp>().map(|op| op.output).into_iter().collect()
}

impl Numbered {
    fn dims(&self, arguments: Arguments<'_>) -> Result<Dims> {
        if let Some(like) = arguments.get(Operand::Arg(0)) {
            return Ok(like);
        }
        let extent = |dim: &Dim| match dim {
            Dim::Fixed(extent) => Ok(*extent),
            Dim::Named(name) if arguments.dimensions.contains_key(name) => Ok(arguments.dimensions[name]),
            other => {
                let names: Vec<&String> = arguments.dimensions.keys().collect();
                let wanted = format!("a number or one of the dimensions {names:?}");
                Err(Error::shape(OP, format!("extent {other}"), wanted))
            }
        };
        Dims::new(&self.extents.iter().map(extent).collect::<Result<Vec<usize>>>()?)
    }
}

impl Options for Numbered {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        check_key(arguments)?;
        let dims = self.dims(arguments)?;
        Ok(Lowered::Op(Arc::new(RandomOp::new(self.options, self.stream, dims)?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        output(op)
    }

    fn like(&self) -> Option<Operand> {
        Some(Operand::Arg(0))
    }
}

impl Options for NextKey {
    const NAME: &'static str = OP;

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        check_key(arguments)?;
        Ok(Lowered::Op(Arc::new(RandomOp::next_key()?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        output(op)
    }
}
