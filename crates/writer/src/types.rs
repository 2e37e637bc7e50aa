//! Types of WGSL in OpenCL C.
//!
//! | WGSL | OpenCL C |
//! |---|---|
//! | `u32`, `i32`, `f32`, `f16`, `bool` | `uint`, `int`, `float`, `half`, `bool` |
//! | `vec4<f32>` | `float4` |
//! | `vec4<bool>` | `int4` of 0 and -1, what comparisons give |
//! | `mat3x2<f32>` | a struct of its columns, `c` |
//! | `array<f32, 8>` | a struct with the array `e`, so that it is a value |
//! | `atomic<u32>` | `uint` |

use super::names::Names;
use super::{Outcome, refuse};
use naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Type, TypeInner, VectorSize};
use std::collections::{HashMap, HashSet};

/// The types that have been named, and their definitions in order.
#[derive(Debug, Default)]
pub(super) struct Types {
    names: HashMap<Handle<Type>, String>,
    matrices: Vec<String>,
    members: HashMap<(Handle<Type>, u32), String>,
    /// The types of buffers' elements: the host decides where their members lie.
    in_buffers: HashSet<Handle<Type>>,
    pub(super) definitions: String,
}

/// The name of a scalar type.
pub(super) fn scalar(of: Scalar) -> Outcome<&'static str> {
    Ok(match (of.kind, of.width) {
        (ScalarKind::Bool, _) => "bool",
        (ScalarKind::Sint, 4) => "int",
        (ScalarKind::Uint, 4) => "uint",
        (ScalarKind::Float, 4) => "float",
        (ScalarKind::Float, 2) => "half",
        (kind, width) => return refuse(None, format!("scalars of kind {kind:?} and {width} bytes")),
    })
}

/// The name of a vector type.
pub(super) fn vector(size: VectorSize, of: Scalar) -> Outcome<String> {
    let component = if of.kind == ScalarKind::Bool { "int" } else { scalar(of)? };
    Ok(format!("{component}{}", size as u8))
}

impl Types {
    /// Notes that values of `ty` lie in a buffer.
    pub(super) fn lies_in_buffer(&mut self, module: &Module, ty: Handle<Type>) {
        if !self.in_buffers.insert(ty) {
            return;
        }
        match &module.types[ty].inner {
            TypeInner::Array { base, .. } => self.lies_in_buffer(module, *base),
            TypeInner::Struct { members, .. } => {
                members.iter().for_each(|member| self.lies_in_buffer(module, member.ty));
            }
            _ => {}
        }
    }

    /// The name of a type that has a handle, defined first where it needs to be.
    pub(super) fn name(&mut self, module: &Module, names: &mut Names, ty: Handle<Type>) -> Outcome<String> {
        if let Some(name) = self.names.get(&ty) {
            return Ok(name.clone());
        }
        let declared = &module.types[ty];
        let name = match &declared.inner {
            TypeInner::Array { base, size: ArraySize::Constant(length), stride } => {
                let element = self.name(module, names, *base)?;
                let (bytes, _) = extent(module, *base);
                if bytes != *stride && self.in_buffers.contains(&ty) {
                    return refuse(
                        None,
                        format!("an array whose elements of {bytes} bytes are {stride} bytes apart"),
                    );
                }
                let name = names.claim(&format!("array{length}_{element}"));
                self.definitions.push_str(&format!("typedef struct {{ {element} e[{length}]; }} {name};\n"));
                name
            }
            TypeInner::Struct { .. } => self.structure(module, names, ty)?,
            inner => return self.inner(names, inner),
        };
        self.names.insert(ty, name.clone());
        Ok(name)
    }

    /// The name of a type that may have no handle: scalars, vectors and matrices.
    pub(super) fn inner(&mut self, names: &mut Names, inner: &TypeInner) -> Outcome<String> {
        match *inner {
            TypeInner::Scalar(of) | TypeInner::Atomic(of) => scalar(of).map(str::to_owned),
            TypeInner::Vector { size, scalar } => vector(size, scalar),
            TypeInner::Matrix { columns, rows, scalar } => {
                let column = vector(rows, scalar)?;
                let name = matrix(columns, rows, scalar)?;
                if !self.matrices.contains(&name) {
                    names.claim(&name);
                    let columns = columns as u8;
                    self.definitions
                        .push_str(&format!("typedef struct {{ {column} c[{columns}]; }} {name};\n"));
                    self.matrices.push(name.clone());
                }
                Ok(name)
            }
            ref other => refuse(None, describe(other)),
        }
    }

    fn structure(&mut self, module: &Module, names: &mut Names, ty: Handle<Type>) -> Outcome<String> {
        let TypeInner::Struct { members, span } = &module.types[ty].inner else {
            return refuse(None, "a struct that is none");
        };
        let mut fields = Names::default();
        let mut lines = String::new();
        let mut at = 0;
        let mut pads = 0;
        let mut pad = |lines: &mut String, bytes: u32| {
            if bytes > 0 {
                lines.push_str(&format!("    uchar padding{pads}[{bytes}];\n"));
                pads += 1;
            }
        };
        for (index, member) in (0..).zip(members) {
            let element = self.name(module, names, member.ty)?;
            let name = fields.claim(member.name.as_deref().unwrap_or("member"));
            if !self.in_buffers.contains(&ty) {
                lines.push_str(&format!("    {element} {name};\n"));
                self.members.insert((ty, index), name);
                continue;
            }
            let (bytes, align) = extent(module, member.ty);
            let natural = u32::next_multiple_of(at, align);
            if natural > member.offset {
                return refuse(
                    None,
                    format!(
                        "the struct member {name} at byte {}, where the one before it ends at {at} in OpenCL C \
                         (a vec3 takes the bytes of a vec4 there)",
                        member.offset
                    ),
                );
            }
            if natural < member.offset {
                pad(&mut lines, member.offset - at);
            }
            at = member.offset + bytes;
            lines.push_str(&format!("    {element} {name};\n"));
            self.members.insert((ty, index), name);
        }
        let (_, align) = extent(module, ty);
        if self.in_buffers.contains(&ty) && u32::next_multiple_of(at, align) < *span {
            pad(&mut lines, span - at);
        }
        let name = names.claim(module.types[ty].name.as_deref().unwrap_or("Struct"));
        self.definitions.push_str(&format!("typedef struct {{\n{lines}}} {name};\n"));
        Ok(name)
    }

    /// The name of a struct's member; the struct has been named before.
    pub(super) fn member(&self, ty: Handle<Type>, index: u32) -> Outcome<&str> {
        match self.members.get(&(ty, index)) {
            Some(name) => Ok(name),
            None => refuse(None, "a member of a struct that has no name"),
        }
    }
}

/// The name of a matrix type.
pub(super) fn matrix(columns: VectorSize, rows: VectorSize, of: Scalar) -> Outcome<String> {
    Ok(format!("matrix{}x{}_{}", columns as u8, rows as u8, scalar(of)?))
}

/// Bytes and alignment of a type in OpenCL C.
fn extent(module: &Module, ty: Handle<Type>) -> (u32, u32) {
    let of_vector = |size: VectorSize, width: u8| {
        let bytes = u32::from(width) * if size == VectorSize::Bi { 2 } else { 4 };
        (bytes, bytes)
    };
    match module.types[ty].inner {
        TypeInner::Scalar(of) | TypeInner::Atomic(of) => (u32::from(of.width), u32::from(of.width)),
        TypeInner::Vector { size, scalar } => of_vector(size, scalar.width),
        TypeInner::Matrix { columns, rows, scalar } => {
            let (bytes, align) = of_vector(rows, scalar.width);
            (bytes * columns as u32, align)
        }
        TypeInner::Array { base, size: ArraySize::Constant(length), .. } => {
            let (bytes, align) = extent(module, base);
            (bytes * length.get(), align)
        }
        TypeInner::Struct { ref members, span } => {
            let align = members.iter().map(|member| extent(module, member.ty).1).max().unwrap_or(1);
            (span, align)
        }
        _ => (0, 1),
    }
}

/// A type that the writer does not print, in the words of an error.
fn describe(inner: &TypeInner) -> String {
    match inner {
        TypeInner::Image { .. } => "a texture".to_owned(),
        TypeInner::Sampler { .. } => "a sampler".to_owned(),
        TypeInner::CooperativeMatrix { .. } => "a cooperative matrix".to_owned(),
        TypeInner::Array { size: ArraySize::Dynamic, .. } => {
            "an array of run-time length that is not a whole storage buffer".to_owned()
        }
        TypeInner::Array { size: ArraySize::Pending(_), .. } => "an array sized by an override".to_owned(),
        TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => "a pointer as a value".to_owned(),
        TypeInner::AccelerationStructure { .. } | TypeInner::RayQuery { .. } => "ray tracing".to_owned(),
        TypeInner::BindingArray { .. } => "a binding array".to_owned(),
        other => format!("the type {other:?}"),
    }
}
