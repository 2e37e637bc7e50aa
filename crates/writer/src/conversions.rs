//! Conversions between scalar types, of scalars and vectors.

use super::expressions::{Body, Text, is_half};
use super::{Outcome, refuse};
use naga::{Expression, Handle, Scalar, ScalarKind, TypeInner};

impl Body<'_, '_> {
    /// `expr` as a value of `kind`: converted, or the same bits where `convert` is `None`.
    pub(super) fn convert(
        &mut self,
        handle: Handle<Expression>,
        expr: Handle<Expression>,
        kind: ScalarKind,
        convert: Option<u8>,
    ) -> Outcome<Text> {
        let (Some(from), Some(to)) = (self.scalar_of(expr), self.scalar_of(handle)) else {
            return refuse(None, "a conversion of what is no number");
        };
        if let TypeInner::Matrix { .. } = self.inner(expr) {
            return if from == to { self.expression(expr) } else { refuse(None, "a conversion of a matrix") };
        }
        let ty = self.type_of(handle)?;
        if convert.is_none() {
            let text = self.expression(expr)?;
            return Ok(if from == to { text } else { Text::atom(format!("as_{ty}({})", text.text)) });
        }
        if is_half(from) && !self.m.options.halves {
            return self.loaded_half(expr, to);
        }
        let text = self.expression(expr)?;
        if from == to {
            return Ok(text);
        }
        let vector = match *self.inner(handle) {
            TypeInner::Vector { size, .. } => Some(size as u8),
            _ => None,
        };
        Ok(match (from.kind, kind, vector) {
            (ScalarKind::Bool, ScalarKind::Float, None) if to.width == 4 => choice(&text, "1.0f", "0.0f"),
            (ScalarKind::Bool, ScalarKind::Float, None) => choice(&text, "1.0h", "0.0h"),
            (ScalarKind::Bool, ScalarKind::Uint, None) => choice(&text, "1u", "0u"),
            (ScalarKind::Bool, _, None) => choice(&text, "1", "0"),
            (ScalarKind::Bool, _, Some(_)) => Text::atom(format!("convert_{ty}(-{})", text.wrap(1))),
            (_, ScalarKind::Bool, None) => Text { text: format!("{} != 0", text.wrap(6)), level: 7 },
            (_, ScalarKind::Bool, Some(_)) if is_half(from) => {
                Text::atom(format!("convert_{ty}({} != 0.0h)", text.wrap(6)))
            }
            (ScalarKind::Float, ScalarKind::Bool, Some(_)) => {
                Text { text: format!("{} != 0.0f", text.wrap(6)), level: 7 }
            }
            (ScalarKind::Uint, ScalarKind::Bool, Some(_)) => {
                Text { text: format!("{} != 0u", text.wrap(6)), level: 7 }
            }
            (_, ScalarKind::Bool, Some(_)) => Text { text: format!("{} != 0", text.wrap(6)), level: 7 },
            (ScalarKind::Float, ScalarKind::Sint | ScalarKind::Uint, _) => {
                self.integer_of(from, kind, vector, &ty, &text)
            }
            (ScalarKind::Sint | ScalarKind::Uint, ScalarKind::Sint | ScalarKind::Uint, _) => {
                Text::atom(format!("as_{ty}({})", text.text))
            }
            (_, _, None) if ty == "half" => Text::atom(format!("convert_half({})", text.text)),
            (_, _, None) => Text { text: format!("({ty}){}", text.wrap(1)), level: 2 },
            // The name that the prelude for halves has for it: see [`crate::emit::halves`].
            (_, _, Some(4)) if is_half(from) => Text::atom(format!("widened({})", text.text)),
            (_, _, Some(_)) => Text::atom(format!("convert_{ty}({})", text.text)),
        })
    }

    /// Towards zero, and to the nearest that both types have where the value is beyond the integers.
    fn integer_of(
        &mut self,
        from: Scalar,
        kind: ScalarKind,
        vector: Option<u8>,
        ty: &str,
        text: &Text,
    ) -> Text {
        let source = format!(
            "{}{}",
            if is_half(from) { "half" } else { "float" },
            vector.map(|size| size.to_string()).unwrap_or_default()
        );
        let name = format!("wgsl_{ty}_of_{source}");
        let (low, high) = match kind {
            ScalarKind::Sint => ("-2147483648.0f", "2147483520.0f"),
            _ => ("0.0f", "4294967040.0f"),
        };
        let wide = source.replace("half", "float");
        let value = match (is_half(from), vector) {
            (false, _) => "x".to_owned(),
            (true, None) => "(float)x".to_owned(),
            (true, Some(4)) => "widened(x)".to_owned(),
            (true, Some(_)) => format!("convert_{wide}(x)"),
        };
        self.m.helper(
            &name,
            format!(
                "static {ty} {name}(const {source} x) {{\n    return convert_{ty}(fmin(fmax({value}, ({wide})({low})), ({wide})({high})));\n}}\n"
            ),
        );
        Text::atom(format!("{name}({})", text.text))
    }

    /// A half of a buffer as f32, on a device that need not compute with halves.
    fn loaded_half(&mut self, expr: Handle<Expression>, to: Scalar) -> Outcome<Text> {
        if let Expression::Load { pointer } = self.function.expressions[expr]
            && !self.values.contains_key(&expr)
            && self.in_storage(pointer)
            && matches!(self.inner(expr), TypeInner::Scalar(_))
            && to == Scalar::F32
        {
            let place = self.place(pointer)?;
            if let Some((name, index)) = place.text.strip_suffix(']').and_then(|text| text.split_once('[')) {
                return Ok(Text::atom(format!("vload_half({index}, {name})")));
            }
        }
        refuse(None, "a half that is not loaded from a buffer and converted to f32 at once")
    }

    /// The statement that stores an f32 to a half of a buffer, if this is one.
    pub(super) fn stored_half(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Outcome<Option<String>> {
        if self.m.options.halves || !self.pointee_scalar(pointer).is_some_and(is_half) {
            return Ok(None);
        }
        if let Expression::As { expr, convert: Some(2), .. } = self.function.expressions[value]
            && !self.values.contains_key(&value)
            && self.in_storage(pointer)
            && self.scalar_of(expr) == Some(Scalar::F32)
        {
            let (value, place) = (self.expression(expr)?, self.place(pointer)?);
            if let Some((name, index)) = place.text.strip_suffix(']').and_then(|text| text.split_once('[')) {
                return Ok(Some(format!("vstore_half_rte({}, {index}, {name});", value.text)));
            }
        }
        refuse(None, "a half that is not converted from f32 where it is stored to a buffer")
    }
}

fn choice(test: &Text, yes: &str, no: &str) -> Text {
    Text { text: format!("{} ? {yes} : {no}", test.wrap(12)), level: 13 }
}
