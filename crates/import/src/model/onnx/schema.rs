//! The messages of an ONNX file, as far as the loader reads them. They borrow from the file.
//!
//! Source: `onnx.proto`, IR version 13.

use crate::model::reason::Reason;
use crate::model::{LoadOptions, ModelInfo, check_outputs};

/// A file.
#[derive(Debug, Default)]
pub(super) struct Model<'a> {
    pub(super) producer: &'a str,
    pub(super) domain: &'a str,
    pub(super) version: i64,
    pub(super) description: &'a str,
    pub(super) properties: Vec<(&'a str, &'a str)>,
    pub(super) opsets: Vec<(&'a str, i64)>,
    pub(super) graph: Option<Graph<'a>>,
    pub(super) functions: Vec<Function<'a>>,
}

impl Model<'_> {
    /// Leaves of the network's outputs those that the options name, if they name some.
    pub(super) fn choose_outputs(&mut self, options: &LoadOptions) -> Result<(), Reason> {
        let Some(network) = self.graph.as_mut().filter(|_| !options.outputs.is_empty()) else {
            return Ok(());
        };
        check_outputs(options, network.outputs.iter().map(|output| output.name))?;
        network.outputs.retain(|output| options.outputs.contains(output.name));
        Ok(())
    }

    /// What it says of itself.
    pub(super) fn info(&self) -> ModelInfo {
        ModelInfo {
            name: self.graph.as_ref().map_or("", |network| network.name).to_owned(),
            description: self.description.to_owned(),
            producer: self.producer.to_owned(),
            domain: self.domain.to_owned(),
            version: self.version,
            properties: self
                .properties
                .iter()
                .map(|&(key, text)| (key.to_owned(), text.to_owned()))
                .collect(),
            ..ModelInfo::default()
        }
    }
}

/// A network, or a part of one.
#[derive(Debug, Default, Clone)]
pub(super) struct Graph<'a> {
    pub(super) name: &'a str,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) initializers: Vec<Tensor<'a>>,
    pub(super) inputs: Vec<Described<'a>>,
    pub(super) outputs: Vec<Described<'a>>,
    pub(super) sparse: usize,
}

/// An operator with its tensors.
#[derive(Debug, Default, Clone)]
pub(super) struct Node<'a> {
    /// Its place in the file's list.
    pub(super) index: usize,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) name: &'a str,
    pub(super) op: &'a str,
    pub(super) domain: &'a str,
    pub(super) overload: &'a str,
    pub(super) attributes: Vec<Attribute<'a>>,
}

/// An option of an operator.
#[derive(Debug, Default, Clone)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    pub(super) float: f32,
    pub(super) int: i64,
    pub(super) string: &'a [u8],
    pub(super) tensor: Option<Box<Tensor<'a>>>,
    pub(super) graph: Option<Box<Graph<'a>>>,
    pub(super) floats: Vec<f32>,
    pub(super) ints: Vec<i64>,
    pub(super) strings: Vec<&'a [u8]>,
    /// The attribute of the function that it stands for, if it does.
    pub(super) reference: &'a str,
}

/// A constant.
#[derive(Debug, Default, Clone)]
pub(super) struct Tensor<'a> {
    pub(super) name: &'a str,
    pub(super) dims: Vec<i64>,
    pub(super) kind: i64,
    pub(super) floats: Vec<f32>,
    pub(super) ints: Vec<i64>,
    pub(super) doubles: Vec<f64>,
    pub(super) raw: Option<&'a [u8]>,
    /// Keys and values of where the data lie, if it is another file.
    pub(super) external: Vec<(&'a str, &'a str)>,
    pub(super) is_external: bool,
    pub(super) is_segment: bool,
}

/// An input or an output.
#[derive(Debug, Default, Clone)]
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    /// The element type; 0 where it is no tensor.
    pub(super) kind: i64,
    pub(super) extents: Option<Vec<Extent<'a>>>,
}

/// An extent as the file declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent<'a> {
    Fixed(usize),
    /// Left open, with a name that may be empty.
    Free(&'a str),
}

/// An operator made of others.
#[derive(Debug, Default)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) domain: &'a str,
    pub(super) overload: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) opsets: Vec<(&'a str, i64)>,
    pub(super) defaults: Vec<Attribute<'a>>,
}

/// Every name that the branches of a node read or return. The file bounds their depth.
pub(super) fn captures<'a>(node: &Node<'a>, into: &mut Vec<&'a str>) {
    for graph in node.attributes.iter().filter_map(|attribute| attribute.graph.as_deref()) {
        for inner in &graph.nodes {
            into.extend(inner.inputs.iter().copied());
            captures(inner, into);
        }
        into.extend(graph.outputs.iter().map(|output| output.name));
    }
}
