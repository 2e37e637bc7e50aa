//! What nodes of a nest may be: their types, and that no element beyond a source is read.

use super::OP;
use super::index::Index;
use super::nest::{Guard, Nest, Node, elements_in};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::integer::IntegerFunction;
use crate::ops::reduce::Reduction;

/// Up to this one f32 has every whole number.
const LARGEST: i64 = 1 << 24;

fn refuse<T>(found: String, wanted: &str) -> Result<T> {
    Err(Error::unsupported(OP, format!("{found}, wanted {wanted}")))
}

impl Nest {
    /// The type of what each node gives: f32, integers of 32 bits, or a byte.
    pub(in crate::ops) fn node_types(&self) -> Vec<DType> {
        let mut types: Vec<DType> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            types.push(match node {
                Node::Number(_) | Node::Place(_) | Node::Apply(..) => DType::F32,
                Node::Reduce { place: Some(_), .. } => DType::F32,
                Node::Reduce { of, .. } => types.get(*of).copied().unwrap_or_default(),
                Node::Integer { word, .. } => *word,
                // A byte is read as a number.
                Node::Read { source, .. } | Node::Gather { source, .. } => {
                    self.types.get(*source).copied().filter(|&own| own != DType::U8).unwrap_or_default()
                }
                Node::Byte(_) => DType::U8,
                Node::ApplyIntegers { result, .. } => *result,
                Node::Choose { then, .. } => types.get(*then).copied().unwrap_or_default(),
            });
        }
        types
    }

    /// The type of result `order`.
    pub(in crate::ops) fn result_type(&self, order: usize) -> DType {
        let value = self.values().nth(order);
        value.and_then(|value| self.node_types().get(value).copied()).unwrap_or_default()
    }

    /// Whether it has integers or bytes, or elements where nodes say.
    pub fn has_integers(&self) -> bool {
        self.types.iter().any(|&dtype| dtype != DType::F32)
            || self.nodes.iter().any(|node| {
                matches!(
                    node,
                    Node::Integer { .. } | Node::Gather { .. } | Node::ApplyIntegers { .. } | Node::Byte(_)
                )
            })
    }

    /// Whether several rows read the same terms of a loop and each leaves out others, as running sums do.
    pub fn leaves_out_terms(&self) -> bool {
        let (row, looped, depends) = (self.row_axes(), self.loop_axes(), self.dependences());
        self.nodes.iter().any(|node| {
            let (guards, of) = match node {
                Node::Read { at, guards, .. } => (guards, at.axes()),
                Node::Choose { guards, then, .. } => {
                    (guards, depends.get(*then).copied().unwrap_or_default())
                }
                _ => return false,
            };
            let axes = guards.iter().map(|guard| guard.index.axes());
            axes.into_iter().any(|own| own & row & !of != 0 && own & looped != 0)
        })
    }

    /// Checks that an index without a guard stays within the source, `beyond` elements further too.
    fn check_reach(&self, source: usize, at: &Index, guards: &[Guard], beyond: i64) -> Result<()> {
        if !at.is_guarded(&|of, most| guards.iter().any(|guard| guard.index == *of && guard.below <= most)) {
            return refuse(format!("{at} without a guard for each place that may be outside"), "one");
        }
        let Some(dims) = self.sources.get(source) else {
            return refuse(format!("source {source}"), &format!("one of {}", self.sources.len()));
        };
        let [least, most] = at.range(&self.extents);
        let most = most.saturating_add(beyond);
        let elements = elements_in(*dims, self.types.get(source).copied().unwrap_or_default());
        if least < 0 || most >= elements as i64 {
            let found = format!("elements {least} to {most} of {dims}");
            return refuse(found, &format!("0 to {}", elements.saturating_sub(1)));
        }
        Ok(())
    }

    /// Checks what a node reads.
    pub(super) fn check_node(&self, node: &Node) -> Result<()> {
        match node {
            Node::Read { source, at, guards, .. } => self.check_reach(*source, at, guards, 0),
            // f32 rounds a larger one to a neighbour.
            Node::Place(at) if at.range(&self.extents)[0] < 0 || at.range(&self.extents)[1] > LARGEST => {
                refuse(format!("a place at {at}"), &format!("one of 0 to {LARGEST}"))
            }
            Node::Gather { source, at, guards, by } => {
                let beyond = by.iter().map(|own| own.extent.saturating_sub(1).saturating_mul(own.stride));
                let beyond = beyond.fold(0usize, usize::saturating_add);
                if by.is_empty() || by.iter().any(|own| own.extent == 0) {
                    return refuse("an element of an empty axis".to_owned(), "an axis with places");
                }
                self.check_reach(*source, at, guards, i64::try_from(beyond).unwrap_or(i64::MAX))
            }
            Node::Apply(function, arguments) if arguments.len() != function.arity() => {
                let found = format!("{} arguments of {}", arguments.len(), function.name());
                refuse(found, &function.arity().to_string())
            }
            Node::ApplyIntegers { function, arguments, .. } if arguments.len() != function.arity() => {
                let found = format!("{} arguments of {}", arguments.len(), function.name());
                refuse(found, &function.arity().to_string())
            }
            _ => Ok(()),
        }
    }

    /// Checks that nodes are given what they compute with.
    pub(super) fn check_types(&self) -> Result<()> {
        let types = self.node_types();
        let of = |id: usize| types.get(id).copied().unwrap_or_default();
        let is_word = |dtype: DType| matches!(dtype, DType::F32 | DType::I32 | DType::U32 | DType::U8);
        if self.types.len() != self.sources.len() || !types.iter().chain(&self.types).all(|&own| is_word(own))
        {
            let found = format!("sources of {:?} and nodes of {types:?}", self.types);
            return refuse(found, "f32, integers of 32 bits, or bytes");
        }
        for node in &self.nodes {
            let of_byte = |&own: &usize| of(own) == DType::U8;
            let fits = match node {
                _ if node.arguments().iter().any(of_byte) => false,
                Node::Byte(own) => of(*own) == DType::F32,
                Node::Apply(_, arguments) => arguments.iter().all(|&own| of(own) == DType::F32),
                // Local memory has numbers of one type.
                Node::Reduce { of: own, reduction, place, .. } => {
                    let dtype = of(*own);
                    let alike =
                        |node: &Node| !matches!(node, Node::Reduce { of: other, .. } if of(*other) != dtype);
                    let finds = matches!(reduction, Reduction::Max | Reduction::Min);
                    (dtype == DType::F32 || reduction.is_of_integers())
                        && place.is_none_or(|place| finds && of(place) == DType::F32)
                        && self.nodes.iter().all(alike)
                }
                Node::Choose { then, otherwise, .. } => of(*then) == of(*otherwise),
                Node::ApplyIntegers { function, arguments, word, result } => {
                    // A condition may be of floats.
                    let first = usize::from(*function == IntegerFunction::Select);
                    let own = *result == *word
                        || function.compares() && *result == DType::F32
                        || *function == IntegerFunction::Convert;
                    own && arguments.iter().skip(first).all(|&argument| of(argument) == *word)
                        && (*word != DType::F32 || *function == IntegerFunction::Convert)
                }
                _ => true,
            };
            if !fits {
                return refuse(format!("{node:?} of {types:?}"), "nodes of one type");
            }
        }
        Ok(())
    }
}
