//! Operators, with WGSL's meaning: signed integers wrap, a division by zero gives the dividend, and
//! a comparison of vectors is a vector of 0 and -1.

use super::expressions::{Body, Text, is_half};
use super::types;
use super::{Outcome, refuse};
use naga::{
    BinaryOperator, Expression, Handle, Literal, RelationalFunction, ScalarKind, TypeInner, UnaryOperator,
};

/// How an operator is spelled and how loosely it binds.
fn spelling(op: BinaryOperator) -> (&'static str, u8) {
    match op {
        BinaryOperator::Multiply => ("*", 3),
        BinaryOperator::Divide => ("/", 3),
        BinaryOperator::Modulo => ("%", 3),
        BinaryOperator::Add => ("+", 4),
        BinaryOperator::Subtract => ("-", 4),
        BinaryOperator::ShiftLeft => ("<<", 5),
        BinaryOperator::ShiftRight => (">>", 5),
        BinaryOperator::Less => ("<", 6),
        BinaryOperator::LessEqual => ("<=", 6),
        BinaryOperator::Greater => (">", 6),
        BinaryOperator::GreaterEqual => (">=", 6),
        BinaryOperator::Equal => ("==", 7),
        BinaryOperator::NotEqual => ("!=", 7),
        BinaryOperator::And => ("&", 8),
        BinaryOperator::ExclusiveOr => ("^", 9),
        BinaryOperator::InclusiveOr => ("|", 10),
        BinaryOperator::LogicalAnd => ("&&", 11),
        BinaryOperator::LogicalOr => ("||", 12),
    }
}

fn is_comparison(op: BinaryOperator) -> bool {
    matches!(spelling(op).1, 6 | 7)
}

/// Two operands and an operator that needs nothing else. The levels between comparisons and `||` get
/// parentheses that C would not need, because few readers know its order there.
fn infix(op: BinaryOperator, left: &Text, right: &Text) -> Text {
    let (sign, level) = spelling(op);
    let (of_left, of_right) = match level {
        5 | 8..=10 => (2, 2),
        11 => (7, 7),
        12 => (7, 7),
        _ => (level, level - 1),
    };
    Text { text: format!("{} {sign} {}", left.wrap(of_left), right.wrap(of_right)), level }
}

impl Body<'_, '_> {
    pub(super) fn unary(&mut self, op: UnaryOperator, of: Handle<Expression>) -> Outcome<Text> {
        let operand = self.expression(of)?;
        let signed = self.scalar_kind(of) == Some(ScalarKind::Sint);
        if op == UnaryOperator::Negate && signed && self.integer(of).is_none() {
            let ty = self.type_of(of)?;
            return Ok(Text::atom(format!("as_{ty}(0u - as_u{ty}({}))", operand.text)));
        }
        let sign = match op {
            UnaryOperator::Negate => "-",
            UnaryOperator::LogicalNot => "!",
            UnaryOperator::BitwiseNot => "~",
        };
        // A sign before a sign would be one operator.
        let inner = if operand.text.starts_with('-') { operand.wrap(1) } else { operand.wrap(2) };
        Ok(Text { text: format!("{sign}{inner}"), level: 2 })
    }

    pub(super) fn binary(
        &mut self,
        handle: Handle<Expression>,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Outcome<Text> {
        let matrices = [left, right].map(|side| matches!(self.inner(side), TypeInner::Matrix { .. }));
        if matrices.contains(&true) {
            return self.matrix_operator(op, left, right);
        }
        let (a, b) = (self.expression(left)?, self.expression(right)?);
        let Some(scalar) = self.scalar_of(left) else {
            return refuse(None, "an operator on what is no number");
        };
        let vector = [left, right].iter().any(|side| matches!(self.inner(*side), TypeInner::Vector { .. }));
        if is_comparison(op) {
            let text = infix(op, &a, &b);
            if vector && is_half(scalar) {
                let ty = self.type_of(handle)?;
                return Ok(Text::atom(format!("convert_{ty}({})", text.text)));
            }
            return Ok(text);
        }
        match (op, scalar.kind) {
            (BinaryOperator::Modulo, ScalarKind::Float) => {
                let ty = self.type_of(handle)?;
                let [a, b] = [(left, a), (right, b)].map(|(side, text)| self.widened(side, &text, &ty));
                Ok(Text::atom(format!("fmod({a}, {b})")))
            }
            (BinaryOperator::Divide | BinaryOperator::Modulo, ScalarKind::Sint | ScalarKind::Uint) => {
                self.divide(handle, op, left, right, &a, &b)
            }
            (BinaryOperator::Add | BinaryOperator::Subtract | BinaryOperator::Multiply, ScalarKind::Sint) => {
                let result = self.type_of(handle)?;
                let [a, b] = [(left, a), (right, b)].map(|(side, text)| self.unsigned(side, &text));
                let text = infix(op, &a?, &b?);
                Ok(Text::atom(format!("as_{result}({})", text.text)))
            }
            _ => Ok(infix(op, &a, &b)),
        }
    }

    /// The bits of a signed value as unsigned ones.
    fn unsigned(&mut self, side: Handle<Expression>, text: &Text) -> Outcome<Text> {
        if let Some(value) = self.integer(side).and_then(|value| u32::try_from(value).ok())
            && matches!(self.inner(side), TypeInner::Scalar(_))
        {
            return Ok(Text::atom(format!("{value}u")));
        }
        let ty = self.type_of(side)?;
        Ok(Text::atom(format!("as_u{ty}({})", text.text)))
    }

    /// A scalar operand as the vector type that a function asks for.
    fn widened(&self, side: Handle<Expression>, text: &Text, ty: &str) -> String {
        let scalar = matches!(self.inner(side), TypeInner::Scalar(_));
        if scalar && ty.ends_with(|c: char| c.is_ascii_digit()) {
            format!("({ty})({})", text.text)
        } else {
            text.text.clone()
        }
    }

    /// The value of an integer that is known when the kernel is printed.
    fn integer(&self, handle: Handle<Expression>) -> Option<i64> {
        let known = |expression: &Expression| match *expression {
            Expression::Literal(Literal::I32(value)) => Some(i64::from(value)),
            Expression::Literal(Literal::U32(value)) => Some(i64::from(value)),
            _ => None,
        };
        match self.function.expressions[handle] {
            Expression::Constant(constant) => {
                known(&self.m.module.global_expressions[self.m.module.constants[constant].init])
            }
            Expression::Splat { value, .. } => self.integer(value),
            ref expression => known(expression),
        }
    }

    /// WGSL: `x / 0` is `x`, `x % 0` is 0, and so are both of the least integer and -1.
    fn divide(
        &mut self,
        handle: Handle<Expression>,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        a: &Text,
        b: &Text,
    ) -> Outcome<Text> {
        let signed = self.scalar_kind(left) == Some(ScalarKind::Sint);
        let safe = self.integer(right).is_some_and(|divisor| divisor != 0 && divisor != -1);
        if safe || (!signed && !self.m.options.checked) {
            return Ok(infix(op, a, b));
        }
        let ty = self.type_of(handle)?;
        let vector = ty.ends_with(|c: char| c.is_ascii_digit());
        let (word, sign) = if op == BinaryOperator::Divide { ("divide", '/') } else { ("remainder", '%') };
        let name = format!("wgsl_{word}_{ty}");
        let zero = if signed { "0" } else { "0u" };
        let one = if signed { "1" } else { "1u" };
        let bad = match (signed, vector) {
            (false, _) => format!("b == {zero}"),
            (true, false) => "b == 0 || (a == (-2147483647 - 1) && b == -1)".to_owned(),
            (true, true) => "(b == 0) | ((a == (-2147483647 - 1)) & (b == -1))".to_owned(),
        };
        let divisor = match vector {
            true => format!("select(b, ({ty})({one}), {bad})"),
            false => format!("({bad} ? {one} : b)"),
        };
        self.m.helper(
            &name,
            format!(
                "static {ty} {name}(const {ty} a, const {ty} b) {{\n    return a {sign} {divisor};\n}}\n"
            ),
        );
        let [a, b] = [(left, a), (right, b)].map(|(side, text)| self.widened(side, text, &ty));
        Ok(Text::atom(format!("{name}({a}, {b})")))
    }

    pub(super) fn select(
        &mut self,
        condition: Handle<Expression>,
        accept: Handle<Expression>,
        reject: Handle<Expression>,
    ) -> Outcome<Text> {
        let [test, yes, no] =
            [self.expression(condition)?, self.expression(accept)?, self.expression(reject)?];
        if let TypeInner::Vector { size, .. } = *self.inner(condition) {
            let narrow = self.scalar_of(accept).is_some_and(is_half);
            let test = match narrow {
                true => format!("convert_short{}({})", size as u8, test.text),
                false => test.text,
            };
            return Ok(Text::atom(format!("select({}, {}, {test})", no.text, yes.text)));
        }
        Ok(Text { text: format!("{} ? {} : {}", test.wrap(12), yes.wrap(12), no.wrap(12)), level: 13 })
    }

    pub(super) fn relational(
        &mut self,
        function: RelationalFunction,
        argument: Handle<Expression>,
    ) -> Outcome<Text> {
        let text = self.expression(argument)?;
        let name = match function {
            RelationalFunction::All | RelationalFunction::Any
                if matches!(self.inner(argument), TypeInner::Scalar(_)) =>
            {
                return Ok(text);
            }
            RelationalFunction::All => "all",
            RelationalFunction::Any => "any",
            RelationalFunction::IsNan => "isnan",
            RelationalFunction::IsInf => "isinf",
        };
        Ok(Text::atom(format!("{name}({})", text.text)))
    }

    fn matrix_operator(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Outcome<Text> {
        let (a, b) = (self.expression(left)?, self.expression(right)?);
        let (of_a, of_b) = (self.type_of(left)?, self.type_of(right)?);
        let (name, result, body) = match (self.inner(left), self.inner(right), op) {
            (
                &TypeInner::Matrix { columns, rows, scalar },
                &TypeInner::Matrix { columns: others, .. },
                BinaryOperator::Multiply,
            ) => {
                let ty = self.m.inner_name(&TypeInner::Matrix { columns: others, rows, scalar })?;
                let column = |c: u8| {
                    let terms: Vec<_> = (0..columns as usize)
                        .map(|k| format!("a.c[{k}] * b.c[{c}].{}", super::places::LANES[k]))
                        .collect();
                    format!("    result.c[{c}] = {};\n", terms.join(" + "))
                };
                let lines: String = (0..others as u8).map(column).collect();
                ("multiply", ty, lines)
            }
            (&TypeInner::Matrix { columns, rows, scalar }, TypeInner::Vector { .. }, _) => {
                let terms: Vec<_> = (0..columns as usize)
                    .map(|k| format!("a.c[{k}] * b.{}", super::places::LANES[k]))
                    .collect();
                ("multiply", types::vector(rows, scalar)?, format!("    result = {};\n", terms.join(" + ")))
            }
            (TypeInner::Vector { .. }, &TypeInner::Matrix { columns, scalar, .. }, _) => {
                let lanes: Vec<_> = (0..columns as u8).map(|k| format!("dot(a, b.c[{k}])")).collect();
                let ty = types::vector(columns, scalar)?;
                let value = format!("    result = ({ty})({});\n", lanes.join(", "));
                ("multiply", ty, value)
            }
            (&TypeInner::Matrix { columns, .. }, other, _) => {
                let lane = |c: u8| match other {
                    TypeInner::Matrix { .. } => format!("b.c[{c}]"),
                    _ => "b".to_owned(),
                };
                by_column(op, &of_a, columns as u8, |c| (format!("a.c[{c}]"), lane(c)))
            }
            (_, &TypeInner::Matrix { columns, .. }, _) => {
                by_column(op, &of_b, columns as u8, |c| ("a".to_owned(), format!("b.c[{c}]")))
            }
            _ => return refuse(None, "an operator on what is no matrix"),
        };
        let name = format!("wgsl_{name}_{of_a}_{of_b}");
        self.m.helper(
            &name,
            format!(
                "static {result} {name}(const {of_a} a, const {of_b} b) {{\n    {result} result;\n{body}    return result;\n}}\n"
            ),
        );
        Ok(Text::atom(format!("{name}({}, {})", a.text, b.text)))
    }
}

/// An operator on each column.
fn by_column(
    op: BinaryOperator,
    ty: &str,
    columns: u8,
    sides: impl Fn(u8) -> (String, String),
) -> (&'static str, String, String) {
    let name = match op {
        BinaryOperator::Add => "add",
        BinaryOperator::Subtract => "subtract",
        _ => "multiply",
    };
    let lines = (0..columns)
        .map(|c| {
            let (a, b) = sides(c);
            format!("    result.c[{c}] = {a} {} {b};\n", spelling(op).0)
        })
        .collect();
    (name, ty.to_owned(), lines)
}
