//! The messages of an ONNX file from its bytes.

use super::schema::{Attribute, Described, Extent, Function, Graph, Model, Node, Tensor};
use super::sorted::sorted;
use super::wire::{Fields, Wire};
use crate::model::budget::Budget;
use crate::model::reason::Reason;

/// The deepest graph within a graph.
const MAX_DEPTH: usize = 16;

/// What a message costs beside its bytes.
const MESSAGE: usize = 128;

/// Reads each field of a message.
fn read<'a>(
    bytes: &'a [u8],
    budget: &mut Budget,
    mut field: impl FnMut(u32, Wire<'a>, &mut Budget) -> Result<(), Reason>,
) -> Result<(), Reason> {
    budget.spend(MESSAGE)?;
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        budget.spend(16)?;
        field(number, value, budget)?;
    }
    Ok(())
}

impl<'a> Model<'a> {
    pub(super) fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, Reason> {
        let mut model = Model::default();
        read(bytes, budget, |number, value, budget| {
            match number {
                2 => model.producer = value.text()?,
                4 => model.domain = value.text().unwrap_or_default(),
                5 => model.version = value.integer().unwrap_or_default(),
                6 => model.description = value.text()?,
                7 => model.graph = Some(Graph::read(value.bytes()?, 0, budget)?),
                8 => model.opsets.push(opset(value.bytes()?, budget)?),
                // A damaged one changes no result, and is left out.
                14 => model.properties.extend(property(value.bytes()?, budget)),
                25 => model.functions.push(Function::read(value.bytes()?, budget)?),
                _ => (),
            }
            Ok(())
        })?;
        Ok(model)
    }
}

fn property<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<(&'a str, &'a str), Reason> {
    let (mut key, mut text) = ("", "");
    read(bytes, budget, |number, value, _| {
        match number {
            1 => key = value.text()?,
            2 => text = value.text()?,
            _ => (),
        }
        Ok(())
    })?;
    Ok((key, text))
}

fn opset<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<(&'a str, i64), Reason> {
    let (mut domain, mut version) = ("", 1);
    read(bytes, budget, |number, value, _| {
        match number {
            1 => domain = value.text()?,
            2 => version = value.integer()?,
            _ => (),
        }
        Ok(())
    })?;
    Ok((if domain == "ai.onnx" { "" } else { domain }, version))
}

impl<'a> Graph<'a> {
    fn read(bytes: &'a [u8], depth: usize, budget: &mut Budget) -> Result<Self, Reason> {
        if depth > MAX_DEPTH {
            return refused!("found graphs {depth} deep in each other, wanted at most {MAX_DEPTH}");
        }
        let mut graph = Graph::default();
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => graph.nodes.push(Node::read(value.bytes()?, depth, budget)?),
                2 => graph.name = value.text()?,
                5 => graph.initializers.push(Tensor::read(value.bytes()?, budget)?),
                11 => graph.inputs.push(Described::read(value.bytes()?, budget)?),
                12 => graph.outputs.push(Described::read(value.bytes()?, budget)?),
                15 => graph.sparse += 1,
                _ => (),
            }
            Ok(())
        })?;
        graph.nodes = sorted(graph.nodes, budget)?;
        Ok(graph)
    }
}

impl<'a> Node<'a> {
    fn read(bytes: &'a [u8], depth: usize, budget: &mut Budget) -> Result<Self, Reason> {
        let mut node = Node::default();
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => node.inputs.push(value.text()?),
                2 => node.outputs.push(value.text()?),
                3 => node.name = value.text()?,
                4 => node.op = value.text()?,
                5 => node.attributes.push(Attribute::read(value.bytes()?, depth, budget)?),
                7 => node.domain = value.text()?,
                8 => node.overload = value.text()?,
                _ => (),
            }
            Ok(())
        })?;
        if node.domain == "ai.onnx" {
            node.domain = "";
        }
        Ok(node)
    }
}

impl<'a> Attribute<'a> {
    fn read(bytes: &'a [u8], depth: usize, budget: &mut Budget) -> Result<Self, Reason> {
        let mut own = Attribute::default();
        budget.spend(2 * bytes.len())?;
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => own.name = value.text()?,
                2 => own.float = value.float()?,
                3 => own.int = value.integer()?,
                4 => own.string = value.bytes()?,
                5 => own.tensor = Some(Box::new(Tensor::read(value.bytes()?, budget)?)),
                6 => own.graph = Some(Box::new(Graph::read(value.bytes()?, depth + 1, budget)?)),
                7 => value.numbers(&mut own.floats, f32::from_le_bytes)?,
                8 => value.integers(&mut own.ints)?,
                9 => own.strings.push(value.bytes()?),
                21 => own.reference = value.text()?,
                _ => (),
            }
            Ok(())
        })?;
        Ok(own)
    }
}

impl<'a> Tensor<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, Reason> {
        let mut tensor = Tensor::default();
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => value.integers(&mut tensor.dims)?,
                2 => tensor.kind = value.integer()?,
                3 => tensor.is_segment = true,
                4 => value.numbers(&mut tensor.floats, f32::from_le_bytes)?,
                5 | 7 | 11 => {
                    if let Wire::Bytes(bytes) = value {
                        budget.spend(8 * bytes.len())?;
                    }
                    value.integers(&mut tensor.ints)?;
                }
                8 => tensor.name = value.text()?,
                9 => tensor.raw = Some(value.bytes()?),
                10 => value.numbers(&mut tensor.doubles, f64::from_le_bytes)?,
                13 => tensor.external.push(pair(value.bytes()?, budget)?),
                14 => tensor.is_external = value.integer()? == 1,
                _ => (),
            }
            Ok(())
        })?;
        Ok(tensor)
    }
}

fn pair<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<(&'a str, &'a str), Reason> {
    let mut pair = ("", "");
    read(bytes, budget, |number, value, _| {
        match number {
            1 => pair.0 = value.text()?,
            2 => pair.1 = value.text()?,
            _ => (),
        }
        Ok(())
    })?;
    Ok(pair)
}

impl<'a> Described<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, Reason> {
        let mut own = Described::default();
        let mut of_tensor = None;
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => own.name = value.text()?,
                2 => read(value.bytes()?, budget, |number, value, _| {
                    if number == 1 {
                        of_tensor = Some(value.bytes()?);
                    }
                    Ok(())
                })?,
                _ => (),
            }
            Ok(())
        })?;
        let Some(of_tensor) = of_tensor else { return Ok(own) };
        let mut shape = None;
        read(of_tensor, budget, |number, value, _| {
            match number {
                1 => own.kind = value.integer()?,
                2 => shape = Some(value.bytes()?),
                _ => (),
            }
            Ok(())
        })?;
        let Some(shape) = shape else { return Ok(own) };
        let mut extents = Vec::new();
        read(shape, budget, |number, value, budget| {
            if number == 1 {
                extents.push(extent(value.bytes()?, budget)?);
            }
            Ok(())
        })?;
        own.extents = Some(extents);
        Ok(own)
    }
}

fn extent<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<Extent<'a>, Reason> {
    let mut extent = Extent::Free("");
    read(bytes, budget, |number, value, _| {
        match number {
            1 => {
                if let Ok(fixed) = usize::try_from(value.integer()?) {
                    extent = Extent::Fixed(fixed);
                }
            }
            2 => extent = Extent::Free(value.text()?),
            _ => (),
        }
        Ok(())
    })?;
    Ok(extent)
}

impl<'a> Function<'a> {
    fn read(bytes: &'a [u8], budget: &mut Budget) -> Result<Self, Reason> {
        let mut own = Function::default();
        read(bytes, budget, |number, value, budget| {
            match number {
                1 => own.name = value.text()?,
                4 => own.inputs.push(value.text()?),
                5 => own.outputs.push(value.text()?),
                7 => own.nodes.push(Node::read(value.bytes()?, 0, budget)?),
                9 => own.opsets.push(opset(value.bytes()?, budget)?),
                10 => own.domain = value.text()?,
                11 => own.defaults.push(Attribute::read(value.bytes()?, 0, budget)?),
                13 => own.overload = value.text()?,
                _ => (),
            }
            Ok(())
        })?;
        own.nodes = sorted(own.nodes, budget)?;
        Ok(own)
    }
}
