//! A nest in words.

use super::nest::{FurtherResult, Guard, Nest, Node, NodeId, axes_of};
use crate::dims::Dims;
use crate::dtype::DType;
use crate::ops::rows::word_key;

impl Nest {
    /// What a node is, in one line without spaces.
    pub(in crate::ops) fn formula(&self, of: NodeId) -> String {
        self.formulas().0.get(of).cloned().unwrap_or_default()
    }

    /// What each node is, and those that are long by their names.
    fn formulas(&self) -> (Vec<String>, Vec<String>) {
        let mut named = Vec::new();
        let mut texts: Vec<String> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let text = |id: &NodeId| texts[*id].clone();
            let own = match node {
                Node::Number(number) => format!("{:?}", number.0),
                Node::Read { source, .. } => format!("x{source}"),
                Node::Place(at) => format!("place[{at}]"),
                Node::Integer { value, .. } => value.to_string(),
                Node::Gather { source, by, .. } => {
                    let by: Vec<String> = by.iter().map(|own| text(&own.index)).collect();
                    format!("x{source}[{}]", by.join(","))
                }
                Node::ApplyIntegers { function, arguments, result, .. } => {
                    let arguments: Vec<String> = arguments.iter().map(text).collect();
                    format!("{}:{result}({})", function.name(), arguments.join(","))
                }
                Node::Apply(function, arguments) => {
                    let arguments: Vec<String> = arguments.iter().map(text).collect();
                    format!("{}({})", function.name(), arguments.join(","))
                }
                Node::Reduce { reduction, of, place: Some(place), .. } => {
                    format!("arg{}({},{})", reduction.name(), text(of), text(place))
                }
                Node::Reduce { reduction, of, .. } => format!("{}({})", reduction.name(), text(of)),
                Node::Choose { then, otherwise, .. } => format!("either({},{})", text(then), text(otherwise)),
                Node::Byte(of) => format!("byte({})", text(of)),
            };
            let name = format!("v{}", texts.len());
            let is_long = own.len() > 160;
            if is_long {
                named.push(format!("{name}={own}"));
            }
            texts.push(if is_long { name } else { own });
        }
        (texts, named)
    }

    /// All that the nest is, in one line of words.
    pub(in crate::ops) fn key(&self) -> String {
        let numbers = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let source = |(dims, &dtype): (&Dims, &DType)| format!("{dims}{}", word_key(dtype));
        let sources: Vec<String> = self.sources.iter().zip(&self.types).map(source).collect();
        let mut key =
            format!("along{} to{} from{}", numbers(&self.extents), numbers(&self.written), sources.join(","));
        let mut places: Vec<String> = Vec::new();
        for node in &self.nodes {
            let guarded = |guards: &[Guard]| {
                let each = guards.iter().map(|guard| format!("?{}<{}", guard.index, guard.below));
                each.collect::<String>()
            };
            match node {
                Node::Read { source, at, guards, otherwise } => {
                    let fill = if guards.is_empty() { String::new() } else { format!(":{}", otherwise.0) };
                    places.push(format!("x{source}[{at}{}{fill}]", guarded(guards)));
                }
                Node::Gather { source, at, guards, by } => {
                    let by = by.iter().map(|own| format!("+{}*v{}<{}", own.stride, own.index, own.extent));
                    places.push(format!("x{source}[{at}{}{}]", by.collect::<String>(), guarded(guards)));
                }
                Node::Choose { guards, .. } => places.push(guarded(guards)),
                Node::Reduce { over, .. } => {
                    places.push(format!("over{}", numbers(&axes_of(*over).collect::<Vec<_>>())));
                }
                _ => {}
            }
        }
        let (texts, named) = self.formulas();
        let text = |of: NodeId| texts.get(of).cloned().unwrap_or_default();
        key.push_str(&format!(" {} {}", text(self.value), places.join(" ")));
        for FurtherResult { value, at, target } in &self.further {
            key.push_str(&format!(" further{target}[{at}]={}", text(*value)));
        }
        for own in named {
            key.push_str(&format!(" {own}"));
        }
        key
    }
}
