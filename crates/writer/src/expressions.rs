//! Values.

use super::analysis::Analysis;
use super::module::Printer;
use super::names::Names;
use super::places::LANES;
use super::types;
use super::{Outcome, refuse};
use naga::valid::FunctionInfo;
use naga::{
    Expression, Function, Handle, Literal, LocalVariable, MathFunction, Scalar, ScalarKind, SwizzleComponent,
    Type, TypeInner, VectorSize,
};
use std::collections::HashMap;

/// The text of an expression and how loosely it binds: 0 for a name, a call or an index, 2 for a unary
/// operator, 3 for a product, 4 for a sum and so on, 13 for a choice.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) level: u8,
}

impl Text {
    pub(super) fn atom(text: impl Into<String>) -> Self {
        Text { text: text.into(), level: 0 }
    }

    /// The text where something of `level` may stand.
    pub(super) fn wrap(&self, level: u8) -> String {
        if self.level > level { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// A function while its body is printed.
pub(super) struct Body<'m, 'a> {
    pub(super) m: &'m mut Printer<'a>,
    pub(super) function: &'a Function,
    pub(super) info: &'a FunctionInfo,
    pub(super) analysis: Analysis,
    pub(super) names: Names,
    /// The names of values that have a variable.
    pub(super) values: HashMap<Handle<Expression>, String>,
    pub(super) locals: HashMap<Handle<LocalVariable>, String>,
    pub(super) arguments: Vec<String>,
    /// Whether it is the kernel itself, where the variables of the module are declared.
    pub(super) entry: bool,
    pub(super) out: String,
    pub(super) depth: usize,
    /// Whether nothing follows the statement that is printed.
    pub(super) tail: bool,
    /// Where `continue` goes, from the outermost loop to the innermost.
    pub(super) continues: Vec<Option<String>>,
}

impl<'a> Body<'_, 'a> {
    /// The type of a value.
    pub(super) fn inner(&self, handle: Handle<Expression>) -> &'a TypeInner {
        self.info[handle].ty.inner_with(&self.m.module.types)
    }

    /// The type of a value in OpenCL C.
    pub(super) fn type_of(&mut self, handle: Handle<Expression>) -> Outcome<String> {
        match &self.info[handle].ty {
            naga::proc::TypeResolution::Handle(ty) => self.m.type_name(*ty),
            naga::proc::TypeResolution::Value(inner) => self.m.inner_name(inner),
        }
    }

    pub(super) fn scalar_kind(&self, handle: Handle<Expression>) -> Option<ScalarKind> {
        self.scalar_of(handle).map(|scalar| scalar.kind)
    }

    /// The scalar that a value is, or is a vector or matrix of.
    pub(super) fn scalar_of(&self, handle: Handle<Expression>) -> Option<Scalar> {
        match *self.inner(handle) {
            TypeInner::Scalar(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. } => Some(scalar),
            _ => None,
        }
    }

    /// The text of a value.
    pub(super) fn expression(&mut self, handle: Handle<Expression>) -> Outcome<Text> {
        if let Some(name) = self.values.get(&handle) {
            return Ok(Text::atom(name.clone()));
        }
        let span = self.function.expressions.get_span(handle);
        self.computed(handle).map_err(|refusal| refusal.at(span))
    }

    /// The text that computes a value, whether or not it has a variable.
    pub(super) fn computed(&mut self, handle: Handle<Expression>) -> Outcome<Text> {
        let function = self.function;
        match function.expressions[handle] {
            Expression::Literal(value) => literal(value),
            Expression::Constant(constant) => self.m.constant(constant),
            Expression::ZeroValue(ty) => self.m.zero(ty),
            Expression::Compose { ty, ref components } => {
                if let Some(packed) = self.packed_halves(handle, components)? {
                    return Ok(packed);
                }
                let parts = components
                    .iter()
                    .map(|component| self.component(*component))
                    .collect::<Outcome<Vec<_>>>()?;
                self.m.compose(ty, &parts)
            }
            Expression::Splat { size, value } => self.splat(size, value),
            Expression::Access { base, index } => self.access(base, index),
            Expression::AccessIndex { base, index } => self.access_index(base, index),
            Expression::Swizzle { size, vector, pattern } => {
                let base = self.expression(vector)?;
                let lanes: String = pattern.iter().take(size as usize).map(|lane| lane_name(*lane)).collect();
                Ok(Text::atom(format!("{}.{lanes}", base.wrap(0))))
            }
            Expression::FunctionArgument(index) => self.argument(index).map(Text::atom),
            Expression::Load { pointer } => self.load(pointer),
            Expression::Unary { op, expr } => self.unary(op, expr),
            Expression::Binary { op, left, right } => self.binary(handle, op, left, right),
            Expression::Select { condition, accept, reject } => self.select(condition, accept, reject),
            Expression::Relational { fun, argument } => self.relational(fun, argument),
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let arguments: Vec<_> = [Some(arg), arg1, arg2, arg3].into_iter().flatten().collect();
                self.math(handle, fun, &arguments)
            }
            Expression::As { expr, kind, convert } => self.convert(handle, expr, kind, convert),
            Expression::CallResult(_) => {
                let Some((callee, arguments)) = self.analysis.pure_calls.get(&handle).cloned() else {
                    return refuse(None, "the result of a call before the call");
                };
                self.call(callee, &arguments).map(Text::atom)
            }
            Expression::ImageLoad { image, coordinate, array_index: None, sample: None, .. } => {
                self.image_load(image, coordinate)
            }
            Expression::ArrayLength(array) => self.length(array).map(Text::atom),
            Expression::GlobalVariable(_) | Expression::LocalVariable(_) => self.address(handle),
            ref other => refuse(None, describe(other)),
        }
    }

    /// A part of a composed value: those of a vector of bool are 0 and -1.
    fn component(&mut self, handle: Handle<Expression>) -> Outcome<(Text, bool)> {
        let is_bool =
            matches!(self.inner(handle), TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Bool);
        Ok((self.expression(handle)?, is_bool))
    }

    fn splat(&mut self, size: VectorSize, value: Handle<Expression>) -> Outcome<Text> {
        let Some(scalar) = self.scalar_of(value) else { return refuse(None, "a splat of what is no scalar") };
        let text = self.expression(value)?;
        let text = if scalar.kind == ScalarKind::Bool { format!("-(int)({})", text.text) } else { text.text };
        Ok(Text { text: format!("({})({text})", types::vector(size, scalar)?), level: 2 })
    }

    /// An element of a value that has no place in memory.
    fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Outcome<Text> {
        let known = self.literal_index(index);
        if let Some(half) = self.unpacked_half(base, index)? {
            return Ok(half);
        }
        let length = match *self.inner(base) {
            TypeInner::Vector { size, scalar } => {
                let [base, index] = [self.expression(base)?, self.expression(index)?];
                let lane = self.lane(size, scalar)?;
                return Ok(Text::atom(format!("{lane}({}, {})", base.text, index.text)));
            }
            TypeInner::Array { size: naga::ArraySize::Constant(length), .. } => length.get(),
            TypeInner::Matrix { columns, .. } => columns as u32,
            // A pointer: its place is printed where it is loaded from.
            _ => return refuse(None, "an address as a value"),
        };
        let field = if matches!(self.inner(base), TypeInner::Matrix { .. }) { "c" } else { "e" };
        let [base, index] = [self.expression(base)?, self.expression(index)?];
        let clamp = self.m.options.checked && known.is_none_or(|known| known >= length);
        let index = if clamp { format!("min((uint)({}), {}u)", index.text, length - 1) } else { index.text };
        Ok(Text::atom(format!("{}.{field}[{index}]", base.wrap(0))))
    }

    /// The function that takes a lane out of a vector; registers cannot be indexed.
    fn lane(&mut self, size: VectorSize, scalar: Scalar) -> Outcome<String> {
        let vector = types::vector(size, scalar)?;
        let name =
            format!("wgsl_lane_{vector}{}", if scalar.kind == ScalarKind::Bool { "_bool" } else { "" });
        let component = types::scalar(scalar)?;
        let test = if scalar.kind == ScalarKind::Bool { " != 0" } else { "" };
        let last = size as usize - 1;
        let choices: String =
            (0..last).map(|lane| format!("index == {lane}u ? v.{}{test} : ", LANES[lane])).collect();
        let text = format!(
            "static {component} {name}(const {vector} v, const uint index) {{\n    return {choices}v.{}{test};\n}}\n",
            LANES[last]
        );
        self.m.helper(&name, text);
        Ok(name)
    }

    fn access_index(&mut self, base: Handle<Expression>, index: u32) -> Outcome<Text> {
        let text = match *self.inner(base) {
            TypeInner::Vector { scalar, .. } => {
                let lane = LANES[index as usize % 4];
                let text = format!("{}.{lane}", self.expression(base)?.wrap(0));
                if scalar.kind == ScalarKind::Bool {
                    return Ok(Text { text: format!("{text} != 0"), level: 7 });
                }
                text
            }
            TypeInner::Struct { .. } => {
                let naga::proc::TypeResolution::Handle(ty) = self.info[base].ty else {
                    return refuse(None, "a struct without a type");
                };
                let base = self.expression(base)?.wrap(0);
                self.m.type_name(ty)?;
                format!("{base}.{}", self.m.types.member(ty, index)?)
            }
            TypeInner::Matrix { .. } => format!("{}.c[{index}]", self.expression(base)?.wrap(0)),
            TypeInner::Array { .. } => format!("{}.e[{index}]", self.expression(base)?.wrap(0)),
            _ => return refuse(None, "an address as a value"),
        };
        Ok(Text::atom(text))
    }

    /// What a place holds.
    fn load(&mut self, pointer: Handle<Expression>) -> Outcome<Text> {
        if let Expression::LocalVariable(local) = self.function.expressions[pointer]
            && let Some(logical) = self.analysis.logicals.get(&local).copied()
        {
            let (level, op) =
                if logical.op == naga::BinaryOperator::LogicalAnd { (11, "&&") } else { (12, "||") };
            let (left, right) = (self.expression(logical.left)?, self.expression(logical.right)?);
            // Compilers ask for parentheses around `&&` within `||`.
            let [left, right] = [left, right]
                .map(|side| if side.level == 11 && level == 12 { side.wrap(10) } else { side.wrap(level) });
            return Ok(Text { text: format!("{left} {op} {right}"), level });
        }
        let place = self.place(pointer)?;
        if self.is_bool_lane(pointer) {
            return Ok(Text { text: format!("{} != 0", place.wrap(6)), level: 7 });
        }
        match *self.pointee(pointer)? {
            TypeInner::Atomic(scalar) => {
                let ty = types::scalar(scalar)?;
                let space = self.atomic_space(pointer)?;
                Ok(Text { text: format!("*(volatile {space}{ty}*)&{}", place.wrap(0)), level: 2 })
            }
            TypeInner::Scalar(scalar) if is_half(scalar) && !self.m.options.halves => {
                refuse(None, "a half that is not converted to f32 where it is loaded")
            }
            TypeInner::Vector { size: VectorSize::Quad, scalar }
                if is_half(scalar) && self.in_storage(pointer) =>
            {
                if !self.m.options.halves {
                    return refuse(None, "a vector of halves without `Options::halves`");
                }
                self.load_half4(place)
            }
            _ => Ok(place),
        }
    }

    /// Four halves come as NVIDIA's compiler can load them: see [`crate::emit::halves`].
    fn load_half4(&self, place: Text) -> Outcome<Text> {
        match place.text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, index)) => Ok(Text::atom(format!("load_half4({name}, {index})"))),
            None => Ok(place),
        }
    }

    /// Whether a pointer is an element of a storage buffer.
    pub(super) fn in_storage(&self, pointer: Handle<Expression>) -> bool {
        matches!(self.function.expressions[pointer],
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } if self.is_storage(base))
    }

    /// Whether a pointer is a storage buffer.
    pub(super) fn is_storage(&self, pointer: Handle<Expression>) -> bool {
        matches!(self.function.expressions[pointer], Expression::GlobalVariable(global)
            if matches!(self.m.module.global_variables[global].space, naga::AddressSpace::Storage { .. }))
    }

    /// The text of a call.
    pub(super) fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
    ) -> Outcome<String> {
        let mut parts = Vec::new();
        for &argument in arguments {
            let pointer =
                matches!(self.inner(argument), TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. });
            let text = match pointer
                && !matches!(self.function.expressions[argument], Expression::FunctionArgument(_))
            {
                true => self.address(argument)?,
                false => self.expression(argument)?,
            };
            parts.push(text.text);
        }
        let Some(known) = self.m.functions.get(&callee).cloned() else {
            return refuse(None, "a call of a function that is not printed");
        };
        for handle in &known.globals {
            parts.extend(self.m.passed(*handle, self.entry));
        }
        Ok(format!("{}({})", known.name, parts.join(", ")))
    }

    /// The type that a value's handle names, for zeros of it.
    pub(super) fn handle_of_type(&self, handle: Handle<Expression>) -> Option<Handle<Type>> {
        self.info[handle].ty.handle()
    }

    /// Whether a value is `fun` of one argument, and which.
    pub(super) fn math_argument(
        &self,
        handle: Handle<Expression>,
        wanted: MathFunction,
    ) -> Option<Handle<Expression>> {
        if self.values.contains_key(&handle) {
            return None;
        }
        match self.function.expressions[handle] {
            Expression::Math { fun, arg, .. } if fun == wanted => Some(arg),
            _ => None,
        }
    }
}

pub(super) fn is_half(scalar: Scalar) -> bool {
    scalar.kind == ScalarKind::Float && scalar.width == 2
}

fn lane_name(lane: SwizzleComponent) -> &'static str {
    LANES[lane as usize]
}

/// The text of a literal.
pub(super) fn literal(value: Literal) -> Outcome<Text> {
    let signed = |text: String| {
        let level = if text.starts_with('-') { 2 } else { 0 };
        Ok(Text { text, level })
    };
    match value {
        Literal::U32(value) => Ok(Text::atom(format!("{value}u"))),
        Literal::I32(i32::MIN) => Ok(Text::atom("(-2147483647 - 1)")),
        Literal::I32(value) => signed(value.to_string()),
        Literal::F32(value) if value.is_finite() => signed(format!("{value:?}f")),
        Literal::F16(value) if value.is_finite() => signed(format!("{:?}h", value.to_f32())),
        Literal::Bool(value) => Ok(Text::atom(value.to_string())),
        other => refuse(None, format!("the literal {other:?}")),
    }
}

/// An expression that is not printed, in the words of an error.
fn describe(expression: &Expression) -> String {
    match expression {
        Expression::Override(_) => "an override".to_owned(),
        Expression::ImageSample { .. } | Expression::ImageLoad { .. } | Expression::ImageQuery { .. } => {
            "a texture".to_owned()
        }
        Expression::Derivative { .. } => "a derivative".to_owned(),
        Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. } => {
            "a subgroup operation".to_owned()
        }
        Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
            "a cooperative matrix".to_owned()
        }
        Expression::RayQueryVertexPositions { .. }
        | Expression::RayQueryProceedResult
        | Expression::RayQueryGetIntersection { .. } => "ray tracing".to_owned(),
        other => {
            let text = format!("{other:?}");
            let name = text.split([' ', '(', '{']).next().unwrap_or_default();
            format!("the expression {name}")
        }
    }
}
