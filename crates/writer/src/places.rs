//! What values are read from and written to: variables, elements, members, lanes.

use super::expressions::{Body, Text};
use super::types;
use super::{Outcome, refuse};
use naga::{
    AddressSpace, ArraySize, BinaryOperator, Expression, Handle, Scalar, ScalarKind, StorageAccess, Type,
    TypeInner, VectorSize,
};
use std::borrow::Cow;

/// The names of a vector's lanes.
pub(super) const LANES: [&str; 4] = ["x", "y", "z", "w"];

impl<'a> Body<'_, 'a> {
    /// What a pointer points to, as something that can be assigned to.
    pub(super) fn place(&mut self, pointer: Handle<Expression>) -> Outcome<Text> {
        let span = self.function.expressions.get_span(pointer);
        self.place_of(pointer).map_err(|refusal| refusal.at(span))
    }

    fn place_of(&mut self, pointer: Handle<Expression>) -> Outcome<Text> {
        match self.function.expressions[pointer] {
            Expression::GlobalVariable(handle) => self.global(handle),
            Expression::LocalVariable(local) => self.local(local),
            Expression::FunctionArgument(index) => Ok(Text::atom(format!("(*{})", self.argument(index)?))),
            Expression::Access { base, index } => {
                let index = self.index(index, base)?;
                self.element(base, index)
            }
            Expression::AccessIndex { base, index } => match *self.pointee(base)? {
                TypeInner::Struct { .. } => self.member(base, index),
                TypeInner::Vector { .. } => {
                    let place = self.place(base)?;
                    Ok(Text::atom(format!("{}.{}", place.wrap(0), LANES[index as usize % 4])))
                }
                TypeInner::Array { .. } => {
                    let index = self.clamped(format!("{index}u"), Some(index), base)?;
                    self.element(base, index)
                }
                _ => self.element(base, index.to_string()),
            },
            _ => refuse(None, "a pointer that is computed"),
        }
    }

    fn global(&mut self, handle: Handle<naga::GlobalVariable>) -> Outcome<Text> {
        let global = &self.m.module.global_variables[handle];
        let Some(known) = self.m.globals.get(&handle) else {
            return refuse(None, "a variable that the entry point does not use");
        };
        let by_pointer = match global.space {
            AddressSpace::Storage { .. } => true,
            AddressSpace::WorkGroup | AddressSpace::Private => !self.entry,
            AddressSpace::Uniform
                if matches!(self.m.module.types[global.ty].inner, TypeInner::Struct { .. }) =>
            {
                return refuse(None, format!("the uniform struct {} as a whole", known.name));
            }
            _ => false,
        };
        Ok(Text::atom(if by_pointer { format!("(*{})", known.name) } else { known.name.clone() }))
    }

    /// The member of a struct; those of a uniform are arguments.
    fn member(&mut self, base: Handle<Expression>, index: u32) -> Outcome<Text> {
        if let Expression::GlobalVariable(handle) = self.function.expressions[base]
            && self.m.module.global_variables[handle].space == AddressSpace::Uniform
        {
            let members = self.m.globals.get(&handle).map(|known| &known.members);
            return match members.and_then(|members| members.get(index as usize)) {
                Some(name) => Ok(Text::atom(name.clone())),
                None => refuse(None, "a uniform member that has no argument"),
            };
        }
        let Some(ty) = self.pointee_handle(base) else { return refuse(None, "a struct without a type") };
        self.m.type_name(ty)?;
        let name = self.m.types.member(ty, index)?.to_owned();
        let place = self.place(base)?;
        Ok(Text::atom(format!("{}.{name}", place.wrap(0))))
    }

    /// An element of an array, a column of a matrix, or a lane of a vector that is chosen at run time.
    fn element(&mut self, base: Handle<Expression>, index: String) -> Outcome<Text> {
        match *self.pointee(base)? {
            TypeInner::Array { .. } => {
                if let Expression::GlobalVariable(handle) = self.function.expressions[base]
                    && let Some(known) = self.m.globals.get(&handle)
                    && known.plain
                {
                    return Ok(Text::atom(format!("{}[{index}]", known.name)));
                }
                let place = self.place(base)?;
                Ok(Text::atom(format!("{}.e[{index}]", place.wrap(0))))
            }
            TypeInner::Matrix { .. } => {
                let place = self.place(base)?;
                Ok(Text::atom(format!("{}.c[{index}]", place.wrap(0))))
            }
            TypeInner::Vector { size, scalar } => {
                let lane = if scalar.kind == ScalarKind::Bool { "int" } else { types::scalar(scalar)? };
                let space = self.qualifier(base)?;
                // One index into the scalars under an array's vectors: compilers add two of them later.
                if let Expression::Access { base: array, index: of_vector } = self.function.expressions[base]
                    && let Expression::GlobalVariable(handle) = self.function.expressions[array]
                    && let Some(known) = self.m.globals.get(&handle)
                    && known.plain
                {
                    let (name, lanes) = (known.name.clone(), if size == VectorSize::Bi { 2 } else { 4 });
                    let vector = self.index(of_vector, array)?;
                    return Ok(Text::atom(format!(
                        "(({space}{lane}*){name})[{lanes}u * ({vector}) + {index}]"
                    )));
                }
                let place = self.place(base)?;
                Ok(Text::atom(format!("(({space}{lane}*)&{})[{index}]", place.wrap(0))))
            }
            ref other => refuse(None, format!("an index into {other:?}")),
        }
    }

    /// The text of an index into what `base` points to.
    pub(super) fn index(&mut self, index: Handle<Expression>, base: Handle<Expression>) -> Outcome<String> {
        if !self.m.options.checked
            && self.is_storage(base)
            && let Some(sum) = self.signed_sum(index)?
        {
            return Ok(sum);
        }
        let known = self.literal_index(index);
        let mut text = self.expression(index)?;
        if self.m.options.checked && self.scalar_kind(index) == Some(ScalarKind::Sint) {
            text = Text::atom(format!("as_uint({})", text.text));
        }
        self.clamped(text.text, known, base)
    }

    /// A sum of an index without sign and a constant, as one of numbers with a sign, which may not overflow: a compiler
    /// adds the constant to an address that several places share, where a sum that may wrap is an address of its own
    /// for each. The sum is the same, for no tensor has 2^31 elements, also where the index is a difference below 0.
    fn signed_sum(&mut self, index: Handle<Expression>) -> Outcome<Option<String>> {
        if self.values.contains_key(&index) || self.scalar_kind(index) != Some(ScalarKind::Uint) {
            return Ok(None);
        }
        let Expression::Binary { op: BinaryOperator::Add, left, right } = self.function.expressions[index]
        else {
            return Ok(None);
        };
        let constant = |term| self.literal_index(term).and_then(|literal| i32::try_from(literal).ok());
        let (rest, constant) = match (constant(left), constant(right)) {
            (_, Some(constant)) => (left, constant),
            (Some(constant), None) => (right, constant),
            (None, None) => return Ok(None),
        };
        let rest = match self.signed_sum(rest)? {
            Some(sum) => sum,
            None => format!("(int){}", self.expression(rest)?.wrap(2)),
        };
        Ok(Some(format!("{rest} + {constant}")))
    }

    /// `index`, no larger than the last of what `base` points to where indices are checked.
    fn clamped(&mut self, index: String, known: Option<u32>, base: Handle<Expression>) -> Outcome<String> {
        if !self.m.options.checked {
            return Ok(index);
        }
        let length = match *self.pointee(base)? {
            TypeInner::Array { size: ArraySize::Constant(length), .. } => length.get(),
            TypeInner::Vector { size, .. } => size as u32,
            TypeInner::Matrix { columns, .. } => columns as u32,
            TypeInner::Array { size: ArraySize::Dynamic, .. } => {
                let name = self.length(base)?;
                return Ok(format!("min({index}, {name} - 1u)"));
            }
            _ => return Ok(index),
        };
        if known.is_some_and(|known| known < length) {
            return Ok(index);
        }
        Ok(format!("min({index}, {}u)", length - 1))
    }

    /// The argument that holds the length of the storage buffer that `array` points to.
    pub(super) fn length(&mut self, array: Handle<Expression>) -> Outcome<String> {
        if let Expression::GlobalVariable(handle) = self.function.expressions[array]
            && let Some(length) = self.m.globals.get(&handle).and_then(|known| known.length.clone())
        {
            return Ok(length);
        }
        refuse(None, "the length of an array that is not a whole storage buffer")
    }

    pub(super) fn literal_index(&self, index: Handle<Expression>) -> Option<u32> {
        match self.function.expressions[index] {
            Expression::Literal(naga::Literal::U32(value)) => Some(value),
            Expression::Literal(naga::Literal::I32(value)) => value.try_into().ok(),
            _ => None,
        }
    }

    /// The type that a pointer points to.
    pub(super) fn pointee(&self, pointer: Handle<Expression>) -> Outcome<Cow<'a, TypeInner>> {
        Ok(match *self.inner(pointer) {
            TypeInner::Pointer { base, .. } => Cow::Borrowed(&self.m.module.types[base].inner),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                Cow::Owned(TypeInner::Vector { size, scalar })
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => Cow::Owned(TypeInner::Scalar(scalar)),
            _ => return refuse(None, "a place that is no pointer"),
        })
    }

    pub(super) fn pointee_handle(&self, pointer: Handle<Expression>) -> Option<Handle<Type>> {
        match self.inner(pointer) {
            TypeInner::Pointer { base, .. } => Some(*base),
            _ => None,
        }
    }

    /// The scalar that a pointer points to, if it is one.
    pub(super) fn pointee_scalar(&self, pointer: Handle<Expression>) -> Option<Scalar> {
        match *self.inner(pointer) {
            TypeInner::ValuePointer { size: None, scalar, .. } => Some(scalar),
            TypeInner::Pointer { base, .. } => match self.m.module.types[base].inner {
                TypeInner::Scalar(scalar) => Some(scalar),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is a lane of a vector of bool, which is kept as 0 or -1.
    pub(super) fn is_bool_lane(&self, pointer: Handle<Expression>) -> bool {
        matches!(self.inner(pointer), TypeInner::ValuePointer { size: None, scalar, .. }
            if scalar.kind == ScalarKind::Bool)
            || matches!(self.function.expressions[pointer],
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. }
                    if self.pointee(base).is_ok_and(|inner| matches!(*inner,
                        TypeInner::Vector { scalar, .. } if scalar.kind == ScalarKind::Bool)))
    }

    /// The address space of a pointer as it stands before the type, with `const` where it is only read.
    pub(super) fn qualifier(&self, pointer: Handle<Expression>) -> Outcome<&'static str> {
        let space = match *self.inner(pointer) {
            TypeInner::Pointer { space, .. } | TypeInner::ValuePointer { space, .. } => space,
            _ => return refuse(None, "a lane of what is not a place"),
        };
        space_name(space)
    }

    pub(super) fn argument(&self, index: u32) -> Outcome<String> {
        match self.arguments.get(index as usize) {
            Some(name) => Ok(name.clone()),
            None => refuse(None, "an argument that the function does not have"),
        }
    }

    pub(super) fn local(&mut self, local: Handle<naga::LocalVariable>) -> Outcome<Text> {
        match self.locals.get(&local) {
            Some(name) => Ok(Text::atom(name.clone())),
            None => refuse(None, "a variable that is used before it is declared"),
        }
    }

    /// The call argument that a pointer is.
    pub(super) fn address(&mut self, pointer: Handle<Expression>) -> Outcome<Text> {
        let place = self.place(pointer)?;
        // The address of what a pointer points to is the pointer.
        match place.text.strip_prefix("(*").and_then(|rest| rest.strip_suffix(')')) {
            Some(name) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                Ok(Text::atom(name.to_owned()))
            }
            _ => Ok(Text { text: format!("&{}", place.wrap(0)), level: 2 }),
        }
    }
}

/// An address space as it stands before a type.
pub(super) fn space_name(space: AddressSpace) -> Outcome<&'static str> {
    Ok(match space {
        AddressSpace::Function | AddressSpace::Private => "",
        AddressSpace::WorkGroup => "__local ",
        AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => "__global ",
        AddressSpace::Storage { .. } => "__global const ",
        other => return refuse(None, format!("a pointer into the address space {other:?}")),
    })
}
