//! Constants, and values made of parts.

use super::expressions::{Text, literal};
use super::module::Printer;
use super::types;
use super::{Outcome, refuse};
use naga::{Constant, Expression, Handle, ScalarKind, Type, TypeInner};

impl Printer<'_> {
    /// A named constant: a macro for a scalar, a table in constant memory for an array.
    pub(super) fn constant(&mut self, handle: Handle<Constant>) -> Outcome<Text> {
        let constant = &self.module.constants[handle];
        let Some(name) = self.constants.get(&handle).cloned() else {
            return self.global_value(constant.init);
        };
        match self.module.types[constant.ty].inner {
            TypeInner::Scalar(_) => {
                if self.defined.insert(handle) {
                    let value = self.global_value(constant.init)?;
                    self.definitions.push_str(&format!("#define {name} {}\n", value.wrap(0)));
                }
            }
            TypeInner::Array { .. } | TypeInner::Struct { .. } | TypeInner::Matrix { .. } => {
                if self.defined.insert(handle) {
                    let ty = self.type_name(constant.ty)?;
                    let value = self.initialiser(constant.init)?;
                    self.tables.push_str(&format!("__constant {ty} {name} = {value};\n"));
                }
            }
            _ => return self.global_value(constant.init),
        }
        Ok(Text::atom(name))
    }

    /// A constant's value as a declaration takes it: without the type before the braces.
    fn initialiser(&mut self, handle: Handle<Expression>) -> Outcome<String> {
        let module = self.module;
        match module.global_expressions[handle] {
            Expression::Compose { ty, ref components } => {
                let parts =
                    components.iter().map(|part| self.initialiser(*part)).collect::<Outcome<Vec<_>>>()?;
                match &module.types[ty].inner {
                    TypeInner::Array { .. } | TypeInner::Matrix { .. } => {
                        Ok(format!("{{ {{ {} }} }}", parts.join(", ")))
                    }
                    TypeInner::Struct { .. } => self.members(ty, &parts),
                    _ => Ok(self.global_value(handle)?.text),
                }
            }
            Expression::Constant(constant) => self.initialiser(module.constants[constant].init),
            Expression::ZeroValue(ty) => match &module.types[ty].inner {
                TypeInner::Array { .. } | TypeInner::Struct { .. } | TypeInner::Matrix { .. } => {
                    Ok("{ 0 }".to_owned())
                }
                _ => Ok(self.zero(ty)?.text),
            },
            _ => Ok(self.global_value(handle)?.text),
        }
    }

    /// The value of a constant expression of the module.
    pub(super) fn global_value(&mut self, handle: Handle<Expression>) -> Outcome<Text> {
        let module = self.module;
        let span = module.global_expressions.get_span(handle);
        match module.global_expressions[handle] {
            Expression::Literal(value) => literal(value),
            Expression::Constant(constant) => self.constant(constant),
            Expression::ZeroValue(ty) => self.zero(ty),
            Expression::Compose { ty, ref components } => {
                let parts = components
                    .iter()
                    .map(|part| {
                        let bool = matches!(
                            module.global_expressions[*part],
                            Expression::Literal(naga::Literal::Bool(_))
                        );
                        Ok((self.global_value(*part)?, bool))
                    })
                    .collect::<Outcome<Vec<_>>>()?;
                self.compose(ty, &parts)
            }
            Expression::Splat { size, value } => {
                let part = self.global_value(value)?;
                let scalar = match module.global_expressions[value] {
                    Expression::Literal(value) => value.scalar(),
                    _ => return refuse(Some(span), "a constant vector of what is no literal"),
                };
                Ok(Text { text: format!("({})({})", types::vector(size, scalar)?, part.text), level: 2 })
            }
            ref other => refuse(Some(span), format!("the constant expression {other:?}")),
        }
    }

    /// Zeros of a type.
    pub(super) fn zero(&mut self, ty: Handle<Type>) -> Outcome<Text> {
        let scalar = |of: naga::Scalar| match (of.kind, of.width) {
            (ScalarKind::Bool, _) => "false",
            (ScalarKind::Float, 2) => "0.0h",
            (ScalarKind::Float, _) => "0.0f",
            (ScalarKind::Uint, _) => "0u",
            _ => "0",
        };
        let name = self.type_name(ty)?;
        Ok(match &self.module.types[ty].inner {
            TypeInner::Scalar(of) | TypeInner::Atomic(of) => Text::atom(scalar(*of)),
            TypeInner::Vector { scalar: of, .. } => {
                let zero = if of.kind == ScalarKind::Bool { "0" } else { scalar(*of) };
                Text { text: format!("({name})({zero})"), level: 2 }
            }
            TypeInner::Matrix { columns, rows, scalar: of } => {
                let column = format!("({})({})", types::vector(*rows, *of)?, scalar(*of));
                let all = vec![column; *columns as usize].join(", ");
                Text { text: format!("({name}){{ {{ {all} }} }}"), level: 2 }
            }
            // What the braces leave out is zero.
            TypeInner::Array { base, .. } => {
                let first = self.zero(*base)?;
                Text { text: format!("({name}){{ {{ {} }} }}", first.text), level: 2 }
            }
            TypeInner::Struct { members, .. } => {
                let zeros = members
                    .iter()
                    .map(|member| Ok(self.zero(member.ty)?.text))
                    .collect::<Outcome<Vec<_>>>()?;
                Text { text: format!("({name}){}", self.members(ty, &zeros)?), level: 2 }
            }
            _ => return refuse(None, format!("zeros of {name}")),
        })
    }

    pub(super) fn members(&self, ty: Handle<Type>, values: &[String]) -> Outcome<String> {
        let named = (0..)
            .zip(values)
            .map(|(index, value)| Ok(format!(".{} = {value}", self.types.member(ty, index)?)))
            .collect::<Outcome<Vec<_>>>()?;
        Ok(format!("{{ {} }}", named.join(", ")))
    }

    /// A value made of parts, each with whether it is a scalar bool.
    pub(super) fn compose(&mut self, ty: Handle<Type>, parts: &[(Text, bool)]) -> Outcome<Text> {
        let name = self.type_name(ty)?;
        let texts: Vec<String> = parts.iter().map(|(text, _)| text.text.clone()).collect();
        let text = match &self.module.types[ty].inner {
            TypeInner::Vector { .. } => {
                let lanes: Vec<String> = parts
                    .iter()
                    .map(
                        |(text, bool)| {
                            if *bool { format!("-(int)({})", text.text) } else { text.text.clone() }
                        },
                    )
                    .collect();
                format!("({name})({})", lanes.join(", "))
            }
            TypeInner::Array { .. } | TypeInner::Matrix { .. } => {
                format!("({name}){{ {{ {} }} }}", texts.join(", "))
            }
            TypeInner::Struct { .. } => format!("({name}){}", self.members(ty, &texts)?),
            _ => return refuse(None, format!("a value of type {name} made of parts")),
        };
        Ok(Text { text, level: 2 })
    }
}
