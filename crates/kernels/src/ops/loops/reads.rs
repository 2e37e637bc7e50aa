//! Statements of what a nest reads: places, and elements there.

use super::index::{Index, Mirror, Term};
use super::nest::{GatherAxis, Guard, Node, NodeId};
use super::text::{Stored, Text, is_whole};
use crate::dtype::DType;
use crate::emit::{Bits, Operand};

impl Text<'_> {
    /// An expression of an index; sums and quotients have names.
    pub(super) fn index(&mut self, index: &Index) -> String {
        if let Some(number) = index.as_number() {
            return self.whole(number);
        }
        if let Some(Term::Axis(axis)) = index.as_term() {
            return format!("i{axis}");
        }
        if let Some(known) = self.scope.indices.get(index) {
            return known.clone();
        }
        let mut sum = String::new();
        for (term, &factor) in index.terms() {
            let term = self.term(term);
            let product = match factor {
                1 => term,
                factor => format!("{} * {term}", self.whole(factor)),
            };
            sum = if sum.is_empty() { product } else { format!("{sum} + {product}") };
        }
        if index.constant() != 0 {
            sum = format!("{sum} + {}", self.whole(index.constant()));
        }
        let name = self.name('a');
        self.line(&format!("let {name}: u32 = {sum};"));
        self.scope.indices.insert(index.clone(), name.clone());
        name
    }

    fn term(&mut self, term: &Term) -> String {
        match term {
            Term::Axis(axis) => format!("i{axis}"),
            Term::Inside(of, _) => self.index(of),
            Term::Quotient(of, by) => format!("({} / {})", self.index(of), self.whole(*by)),
            Term::Remainder(of, by) => format!("({} % {})", self.index(of), self.whole(*by)),
            Term::Ruled(rule, of, extent) => {
                let (at, extent) = (self.index(of), self.whole(*extent));
                let name = self.name('a');
                self.line(&format!("let {name}: i32 = i32({at});"));
                let last = format!("i32({extent} - 1u)");
                let mirrored = match rule {
                    Mirror::Edge => name,
                    Mirror::Reflect => {
                        format!(
                            "select(select({name}, 2 * {last} - {name}, {name} > {last}), -{name}, {name} < 0)"
                        )
                    }
                    Mirror::Symmetric => {
                        let beyond = format!("2 * {last} + 1 - {name}");
                        format!("select(select({name}, {beyond}, {name} > {last}), -1 - {name}, {name} < 0)")
                    }
                };
                format!("u32(clamp({mirrored}, 0, {last}))")
            }
        }
    }

    /// A condition that all guards hold.
    pub(super) fn holds(&mut self, guards: &[Guard], lane: i64) -> String {
        let each = guards.iter().map(|guard| {
            let index = match self.lanes {
                Some(axis) => guard.index.shifted(axis, lane),
                None => guard.index.clone(),
            };
            let (index, below) = (self.index(&index), self.whole(guard.below));
            format!("{index} < {below}")
        });
        let each: Vec<String> = each.collect();
        each.join(" && ")
    }

    /// An index as a float, or one for each lane: `{name}`.
    pub(super) fn place(&mut self, name: &str, at: &Index) {
        let ty = self.ty();
        let axis = self.lanes.filter(|axis| at.axes() & (1 << axis) != 0);
        let lanes = axis.map_or(0..1, |_| 0..4);
        let each = lanes.map(|lane| axis.map_or_else(|| at.clone(), |axis| at.shifted(axis, lane)));
        let each: Vec<String> = each.map(|at| format!("f32({})", self.index(&at))).collect();
        let each = each.join(", ");
        let value = if self.lanes.is_some() { format!("{ty}({each})") } else { each };
        self.line(&format!("let {name}: {ty} = {value};"));
    }

    /// An integer of type `word`.
    pub(super) fn integer(&mut self, value: i64, word: DType) -> String {
        let number = self.whole(value);
        if word == DType::I32 { format!("bitcast<i32>({number})") } else { number }
    }

    /// What node `id` gives in one lane.
    pub(super) fn in_one_lane(&mut self, id: NodeId) -> String {
        let value = self.value(id);
        match self.types.get(id) {
            Some(DType::F32) if self.lanes.is_some() => format!("{value}[0]"),
            _ => value,
        }
    }

    fn name_of(&self, source: usize) -> &'static str {
        self.sources.get(source).map_or(Operand::Arg(source as u8).name(), |stored| stored.name)
    }

    /// One element of a source.
    fn element(&self, source: usize, at: &str) -> String {
        let name = self.name_of(source);
        match self.sources.get(source) {
            Some(Stored { dtype: DType::F16, is_wide: false, .. }) => format!("f32({name}[{at}])"),
            Some(Stored { dtype: DType::F16, is_wide: true, .. }) if self.native_half => {
                format!("f32({name}[{at} / 4u][{at} % 4u])")
            }
            Some(Stored { dtype: DType::F16, is_wide: true, .. }) => {
                format!("unpack2x16float({name}[{at} / 4u][{at} % 4u / 2u])[{at} % 2u]")
            }
            Some(Stored { dtype: DType::U8, .. }) => {
                format!("f32(({name}[{at} / 4u] >> (8u * ({at} % 4u))) & 255u)")
            }
            Some(Stored { is_wide: true, .. }) => format!("{name}[{at} / 4u][{at} % 4u]"),
            _ => format!("{name}[{at}]"),
        }
    }

    /// Four elements of a source one behind the other, from a multiple of four on.
    fn four(&self, source: usize, at: &str) -> String {
        let name = self.name_of(source);
        match self.sources.get(source) {
            Some(Stored { dtype: DType::F16, .. }) if self.native_half => {
                format!("vec4<f32>({name}[{at} / 4u])")
            }
            Some(Stored { dtype: DType::F16, .. }) => format!("unpack_half4({name}[{at} / 4u])"),
            Some(Stored { dtype: DType::U8, .. }) => format!("vec4<f32>(unpack4xU8({name}[{at} / 4u]))"),
            _ => format!("{name}[{at} / 4u]"),
        }
    }

    /// An element of integers, or one that nodes say: `{name}`, of the type of node `id`.
    pub(super) fn read_where(&mut self, name: &str, id: NodeId, node: &Node) {
        let (ty, mut otherwise) = (self.type_of(id), self.zero_of(id));
        let (mut place, mut conditions) = (String::new(), Vec::new());
        let (Node::Read { source, at, guards, .. } | Node::Gather { source, at, guards, .. }) = node else {
            return;
        };
        match node {
            Node::Read { otherwise: Bits(number), .. } => {
                let word = self.types.get(id).copied().unwrap_or_default();
                otherwise = self.integer(*number as i64, word);
            }
            Node::Gather { by, .. } => {
                for GatherAxis { index, extent, stride } in by {
                    let value = self.in_one_lane(*index);
                    let (extent, stride) = (self.whole(*extent as i64), self.whole(*stride as i64));
                    let own = self.name('g');
                    match self.types.get(*index) {
                        Some(DType::F32) => {
                            let inside = self.name('g');
                            self.line(&format!(
                                "let {inside}: bool = {value} >= 0.0f && {value} < f32({extent});"
                            ));
                            // Within the axis whatever a driver makes of NaN.
                            let whole = format!("u32(select(0.0f, {value}, {inside}))");
                            self.line(&format!("let {own}: u32 = min({whole}, {extent} - 1u);"));
                            conditions.push(inside);
                        }
                        // One that is negative is beyond every axis.
                        _ => {
                            self.line(&format!("let {own}: u32 = u32({value});"));
                            conditions.push(format!("{own} < {extent}"));
                        }
                    }
                    place.push_str(&format!(" + {own} * {stride}"));
                }
            }
            _ => {}
        }
        if !guards.is_empty() {
            conditions.push(self.holds(guards, 0));
        }
        let lanes = self.lanes.filter(|&axis| at.axes() & (1 << axis) != 0);
        let read = |text: &mut Self| {
            let place = format!("{}{place}", text.index(at));
            match lanes {
                Some(_) if text.sources.get(*source).is_some_and(|stored| stored.is_wide) => {
                    text.four(*source, &format!("({place})"))
                }
                Some(_) => {
                    let each = (0..4).map(|lane| text.element(*source, &format!("({place} + {lane}u)")));
                    format!("{ty}({})", each.collect::<Vec<_>>().join(", "))
                }
                None if ty == text.ty() && text.lanes.is_some() => {
                    format!("{ty}({})", text.element(*source, &format!("({place})")))
                }
                None => text.element(*source, &format!("({place})")),
            }
        };
        if conditions.is_empty() {
            let value = read(self);
            return self.line(&format!("let {name}: {ty} = {value};"));
        }
        self.line(&format!("var {name}: {ty} = {otherwise};"));
        self.block(&format!("if ({})", conditions.join(" && ")), &mut |text| {
            let value = read(text);
            text.line(&format!("{name} = {value};"));
        });
    }

    pub(super) fn read(&mut self, name: &str, source: usize, at: &Index, guards: &[Guard], otherwise: Bits) {
        let ty = self.ty();
        let in_lanes = |index: &Index, axis: usize| index.axes() & (1 << axis) != 0;
        let guarded_by_lane =
            self.lanes.is_some_and(|axis| guards.iter().any(|guard| in_lanes(&guard.index, axis)));
        let whole = match self.lanes {
            None => true,
            Some(axis) => !guarded_by_lane && (!in_lanes(at, axis) || self.is_aligned(source, at)),
        };
        if whole {
            let place = self.index(at);
            let value = match self.lanes {
                Some(axis) if in_lanes(at, axis) => self.four(source, &place),
                Some(_) => format!("{ty}({})", self.element(source, &place)),
                None => self.element(source, &place),
            };
            if guards.is_empty() {
                return self.line(&format!("let {name}: {ty} = {value};"));
            }
            let (condition, otherwise) = (self.holds(guards, 0), self.float(otherwise));
            self.line(&format!("var {name}: {ty} = {ty}({otherwise});"));
            return self
                .block(&format!("if ({condition})"), &mut |text| text.line(&format!("{name} = {value};")));
        }
        let Some(axis) = self.lanes else { return };
        let otherwise = self.float(otherwise);
        self.line(&format!("var {name}: {ty} = {ty}({otherwise});"));
        for lane in 0..4 {
            let place = at.shifted(axis, lane);
            if guards.is_empty() {
                let place = self.index(&place);
                let value = self.element(source, &place);
                self.line(&format!("{name}[{lane}] = {value};"));
                continue;
            }
            let condition = self.holds(guards, lane);
            self.block(&format!("if ({condition})"), &mut |text| {
                let place = text.index(&place);
                let value = text.element(source, &place);
                text.line(&format!("{name}[{lane}] = {value};"));
            });
        }
    }

    /// Whether lanes of a read are four elements one behind the other, as the source is bound.
    fn is_aligned(&self, source: usize, at: &Index) -> bool {
        let wide = self.sources.get(source).is_some_and(|stored| stored.is_wide);
        wide && self.lanes.is_some_and(|axis| is_whole(at, axis))
    }
}
