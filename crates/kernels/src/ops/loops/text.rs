//! What a nest computes as statements of a kernel's text.
//!
//! | name | what |
//! |---|---|
//! | `i0`, `i1`, ... | the place along an axis |
//! | `a0`, `a1`, ... | an index, or a part of one |
//! | `v0`, `v1`, ... | what a node gives |
//! | `params.n0`, ... | whole numbers: extents, strides, what is divided by |
//! | `params.f0`, ... | numbers of the formula |
//!
//! Whole numbers are unsigned and wrap, so that one that is negative where a guard keeps its element from being read is one
//! beyond the guard.

use super::index::{AxisSet, Index, Term};
use super::nest::{Nest, Node, NodeId, axes_of};
use super::scalars::{FLOATS, FLOATS_WITHIN, WHOLE, WHOLE_WITHIN};
use super::written::Written;
use crate::dtype::DType;
use crate::emit::{Bits, Body, Operand, Scalar};
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use std::collections::HashMap;

/// How a source or the result is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) operand: Operand,
    pub(super) dtype: DType,
    /// Whether it is bound in vec4s.
    pub(super) is_wide: bool,
    /// Its name in the text.
    pub(super) name: &'static str,
}

/// The statements of a kernel as they are written.
pub(super) struct Text<'a> {
    pub(super) nest: &'a Nest,
    /// The axis along which four elements are computed at once, if they are.
    pub(super) lanes: Option<usize>,
    pub(super) sources: &'a [Stored],
    pub(super) types: Vec<DType>,
    pub(super) body: Body,
    whole: Vec<u32>,
    floats: Vec<Bits>,
    /// Names of the scalars that are whole numbers, and of those that are numbers of the formula.
    whole_named: &'static [&'static str],
    floats_named: &'static [&'static str],
    /// Whether vec4s of halves are bound as such.
    pub(super) native_half: bool,
    pub(super) scope: Scope,
    depth: usize,
    count: usize,
}

/// What has a name where the next statement is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) indices: HashMap<Index, String>,
    values: HashMap<NodeId, String>,
}

impl<'a> Text<'a> {
    pub(super) fn new(nest: &'a Nest, lanes: Option<usize>, sources: &'a [Stored]) -> Self {
        let mut body = Body::default();
        for (place, value) in nest.values().enumerate() {
            let name = if place == 0 { "y".to_owned() } else { format!("y{place}") };
            body.statements.push(format!("// {name} = {}", nest.formula(value)));
        }
        let (whole, floats, scope) = (Vec::new(), Vec::new(), Scope::default());
        let types = nest.node_types();
        let (whole_named, floats_named, native_half) = (&WHOLE[..], &FLOATS[..], false);
        Text {
            nest,
            lanes,
            sources,
            types,
            body,
            whole,
            floats,
            whole_named,
            floats_named,
            native_half,
            scope,
            depth: 0,
            count: 0,
        }
    }

    /// The text as that of a function in the kernel of another op, which binds vec4s of halves as such if it has a `native_half`
    /// type, and may have scalars of its own.
    pub(super) fn within_another(self, native_half: bool) -> Self {
        Text { whole_named: &WHOLE_WITHIN, floats_named: &FLOATS_WITHIN, native_half, ..self }
    }

    /// What was written.
    pub(super) fn written(self) -> Written {
        let has_all =
            self.whole.len() <= self.whole_named.len() && self.floats.len() <= self.floats_named.len();
        let whole = self.whole_named.iter().copied().zip(&self.whole);
        let whole = whole.map(|(name, &number)| (name, Scalar::U32(number)));
        let floats = self.floats_named.iter().copied().zip(&self.floats);
        let floats = floats.map(|(name, number)| (name, Scalar::F32(number.0)));
        Written { params: whole.chain(floats).collect(), body: self.body, has_all }
    }

    pub(super) fn line(&mut self, text: &str) {
        let indent = "    ".repeat(self.depth);
        self.body.statements.push(format!("{indent}{text}"));
    }

    /// Begins a block with `text`; what is named in it ends with it.
    pub(super) fn block(&mut self, text: &str, inner: &mut dyn FnMut(&mut Self)) {
        self.line(format!("{text} {{").trim_start());
        let scope = self.scope.clone();
        self.depth += 1;
        inner(self);
        self.depth -= 1;
        self.scope = scope;
        self.line("}");
    }

    pub(super) fn name(&mut self, letter: char) -> String {
        self.count += 1;
        format!("{letter}{}", self.count - 1)
    }

    /// A whole number.
    pub(super) fn whole(&mut self, number: i64) -> String {
        match number {
            0 => return "0u".to_owned(),
            1 => return "1u".to_owned(),
            _ => {}
        }
        let number = number as u32;
        let place = self.whole.iter().position(|&known| known == number).unwrap_or_else(|| {
            self.whole.push(number);
            self.whole.len() - 1
        });
        // Beyond as many as a kernel takes they are written out.
        self.whole_named.get(place).map_or_else(|| format!("{number}u"), |name| format!("params.{name}"))
    }

    /// A number of the formula.
    pub(super) fn float(&mut self, number: Bits) -> String {
        if number.0.to_bits() == 0 {
            return "0.0f".to_owned();
        }
        let place = self.floats.iter().position(|known| *known == number).unwrap_or_else(|| {
            self.floats.push(number);
            self.floats.len() - 1
        });
        self.floats_named
            .get(place)
            .map_or_else(|| format!("{:?}f", number.0), |name| format!("params.{name}"))
    }

    /// Gives each of these axes its place: `flat` counts them, the last one fastest, and may be counted in fours along the
    /// axis of lanes.
    pub(super) fn places(&mut self, axes: &[usize], flat: &str) {
        let mut rest = flat.to_owned();
        for (order, &axis) in axes.iter().enumerate().rev() {
            let wide = self.lanes == Some(axis);
            let extent = self.nest.extents[axis] / if wide { 4 } else { 1 };
            let mut place = rest.clone();
            if order > 0 {
                let extent = self.whole(extent as i64);
                place = if extent == "1u" { "0u".to_owned() } else { format!("{rest} % {extent}") };
                let next = self.name('a');
                self.line(&format!("let {next}: u32 = {rest} / {extent};"));
                rest = next;
            }
            let place = if wide { format!("4u * ({place})") } else { place };
            self.line(&format!("let i{axis}: u32 = {place};"));
        }
    }

    /// The type of what nodes give.
    pub(super) const fn ty(&self) -> &'static str {
        if self.lanes.is_some() { "vec4<f32>" } else { "f32" }
    }

    /// The type of what node `id` gives: integers are the same for all lanes.
    pub(super) fn type_of(&self, id: NodeId) -> &'static str {
        match self.types.get(id) {
            Some(DType::I32) => "i32",
            Some(DType::U32) => "u32",
            _ => self.ty(),
        }
    }

    /// Zero, of the type of what node `id` gives.
    pub(super) fn zero_of(&self, id: NodeId) -> String {
        match self.types.get(id) {
            Some(DType::I32) => "0i".to_owned(),
            Some(DType::U32) => "0u".to_owned(),
            _ => format!("{}(0.0f)", self.ty()),
        }
    }

    /// The name of what node `id` gives, which is written if it has none.
    pub(super) fn value(&mut self, id: NodeId) -> String {
        if let Some(known) = self.scope.values.get(&id) {
            return known.clone();
        }
        let node = self.nest.nodes[id].clone();
        let (name, ty) = (format!("v{id}"), self.ty());
        match node {
            Node::Number(number) => {
                let number = self.float(number);
                return format!("{ty}({number})");
            }
            Node::Place(at) => self.place(&name, &at),
            Node::Integer { value, word } => return self.integer(value, word),
            Node::Read { .. } if self.types.get(id) != Some(&DType::F32) => self.read_where(&name, id, &node),
            Node::Gather { .. } => self.read_where(&name, id, &node),
            Node::Read { source, at, guards, otherwise } => self.read(&name, source, &at, &guards, otherwise),
            Node::ApplyIntegers { function, arguments, word, result } => {
                let given: Vec<String> =
                    arguments.iter().map(|&argument| self.in_one_lane(argument)).collect();
                let (ty, zero) = (self.type_of(id), self.zero_of(id));
                self.line(&format!("var {name}: {ty} = {zero};"));
                self.block("", &mut |text| {
                    for (place, given) in given.iter().enumerate() {
                        text.line(&format!("let x{place} = {given};"));
                    }
                    for statement in function.statements(word, result) {
                        text.line(&statement);
                    }
                    let wide = result == DType::F32 && text.lanes.is_some();
                    let y = if wide { format!("{ty}(y)") } else { "y".to_owned() };
                    text.line(&format!("{name} = {y};"));
                });
            }
            Node::Apply(function, arguments) => {
                let names: Vec<String> = arguments.iter().map(|&argument| self.value(argument)).collect();
                let wide = self.lanes.is_some();
                let text = function.expression(&names, wide, &mut self.body.calls);
                self.line(&format!("let {name}: {ty} = {text};"));
            }
            Node::Choose { guards, then, otherwise } => {
                let (then, otherwise) = (self.value(then), self.value(otherwise));
                let ty = self.type_of(id);
                let text = match self.lanes.filter(|_| ty == self.ty()) {
                    None => format!("select({otherwise}, {then}, {})", self.holds(&guards, 0)),
                    Some(axis) => {
                        let of_lane = guards.iter().any(|guard| guard.index.axes() & (1 << axis) != 0);
                        let lanes = if of_lane { 0..4 } else { 0..1 };
                        let each: Vec<String> = lanes.map(|lane| self.holds(&guards, lane)).collect();
                        format!("select({otherwise}, {then}, vec4<bool>({}))", each.join(", "))
                    }
                };
                self.line(&format!("let {name}: {ty} = {text};"));
            }
            // It becomes a byte when it is written.
            Node::Byte(of) => return self.value(of),
            // Its loop comes before all that reads it (`rows`).
            Node::Reduce { .. } => {}
        }
        self.scope.values.insert(id, name.clone());
        name
    }

    /// Gives a node a name that is known already.
    pub(super) fn known(&mut self, id: NodeId, name: &str) {
        self.scope.values.insert(id, name.to_owned());
    }

    /// Two parts of a reduction, of numbers of this type, as one.
    pub(super) fn joined(&mut self, reduction: Reduction, dtype: DType, a: &str, b: &str) -> String {
        if dtype != DType::F32 {
            return match reduction {
                Reduction::Product => format!("{a} * {b}"),
                Reduction::Max => format!("max({a}, {b})"),
                Reduction::Min => format!("min({a}, {b})"),
                _ => format!("{a} + {b}"),
            };
        }
        let names = [a.to_owned(), b.to_owned()];
        let function = match reduction {
            Reduction::Sum | Reduction::Mean => Function::Add,
            Reduction::Product => Function::Mul,
            Reduction::Max | Reduction::Any => Function::Maximum,
            Reduction::Min | Reduction::All => Function::Minimum,
        };
        function.expression(&names, self.lanes.is_some(), &mut self.body.calls)
    }

    /// Has reduction `id` of `of` take `x` at place `at` where it is the better one: `r{id}` is the best so far, `p{id}` its place.
    pub(super) fn take(&mut self, id: NodeId, reduction: Reduction, of: NodeId, [x, at]: [&str; 2]) {
        let (better, ty) = (self.name('b'), self.bools());
        let function = if reduction == Reduction::Max { "larger" } else { "smaller" };
        self.body.calls.push(function);
        if self.types.get(of) == Some(&DType::F32) {
            self.body.calls.push("is_nan");
        }
        self.line(&format!("let {better}: {ty} = {function}({x}, {at}, r{id}, p{id});"));
        self.line(&format!("r{id} = select(r{id}, {x}, {better});"));
        self.line(&format!("p{id} = select(p{id}, {at}, {better});"));
    }

    const fn bools(&self) -> &'static str {
        if self.lanes.is_some() { "vec4<bool>" } else { "bool" }
    }

    /// An element as it takes part in a reduction.
    pub(super) fn term_of(&self, reduction: Reduction, value: &str) -> String {
        let ty = self.ty();
        match reduction {
            Reduction::Any | Reduction::All => {
                format!("select({ty}(1.0f), {ty}(0.0f), {value} == {ty}(0.0f))")
            }
            _ => value.to_owned(),
        }
    }

    /// What a reduction of nothing is, of numbers of this type.
    pub(super) fn first_of(&mut self, reduction: Reduction, dtype: DType) -> String {
        if dtype != DType::F32 {
            return self.integer(reduction.first_of_integers(dtype), dtype);
        }
        self.float(Bits(reduction.first()))
    }

    /// Names everything that depends on the axes of `row` alone and that `root` needs; nodes that were `visited` are done.
    pub(super) fn known_of_row(
        &mut self,
        root: NodeId,
        row: AxisSet,
        depends: &[AxisSet],
        visited: &mut [bool],
    ) {
        if std::mem::replace(&mut visited[root], true) {
            return;
        }
        if depends[root] & !row == 0 {
            self.value(root);
            return;
        }
        for argument in self.nest.nodes[root].arguments() {
            self.known_of_row(argument, row, depends, visited);
        }
    }
}

/// Whether four places along `axis`, from a multiple of four on, are four elements one behind the other from such a multiple on.
pub(super) fn is_whole(at: &Index, axis: usize) -> bool {
    let own = Term::Axis(axis as u8);
    at.stride(axis) == Some(1)
        && at.constant() % 4 == 0
        && at.terms().iter().all(|(term, factor)| *term == own || factor % 4 == 0)
}

/// The axes of a set in an order: as they are written, and then the others.
pub(super) fn ordered(nest: &Nest, set: AxisSet) -> Vec<usize> {
    let mut axes: Vec<usize> = axes_of(set).filter(|axis| !nest.written.contains(axis)).collect();
    let written = nest.written.iter().copied().filter(|axis| set & (1 << axis) != 0);
    axes.splice(0..0, written);
    axes
}
