//! Validates emitted WGSL with naga: parses it, validates it, compares its interface, and lints it.
//!
//! | checked | against |
//! |---|---|
//! | the text parses and validates | the WGSL specification, as naga implements it |
//! | entry point, stage, work-group size | [`KernelSource::entry`], [`KernelSource::work_group`] |
//! | name, address space, access and element type of each buffer | [`super::Interface::bindings`] |
//! | names, types and offsets of the uniform struct's members | [`super::Interface::params`] |
//! | no dynamic index into an invocation's own array | registers cannot be indexed, so it falls out of them |

#[cfg(feature = "wgpu")]
mod clamped;
mod foreign;

#[cfg(feature = "wgpu")]
pub use clamped::clamped;
pub use foreign::check_foreign;

use super::{Access, Binding, Dialect, Element, Interface, KernelSource, ParamType};
use crate::dtype::DType;
use crate::error::{Error, Result, numbered};
use naga::valid::{Capabilities, FunctionInfo, ModuleInfo, ValidationFlags, Validator};
use naga::{
    AddressSpace, ArraySize, Expression, Function, GlobalVariable, Handle, ImageClass, ImageDimension,
    Module, Scalar, ScalarKind, ShaderStage, StorageAccess, Type, TypeInner, VectorSize,
};

/// The name of the uniform block, as [`super::Param::name`] promises.
const PARAMS: &str = "params";

/// Compares a WGSL kernel with its own description.
///
/// # Errors
/// [`Error::Compile`] whose log lists everything that was found, not only the first.
pub fn check(source: &KernelSource) -> Result<()> {
    if source.dialect != Dialect::Wgsl {
        return Err(refusal(source, format!("the source is {}, wanted {}", source.dialect, Dialect::Wgsl)));
    }
    let (module, info) = parse(&source.label, &source.text)?;
    let mut findings = check_module(&module, source);
    lint(&module, &info, &source.text, &mut findings);
    if findings.is_empty() { Ok(()) } else { Err(refusal(source, findings.join("\n"))) }
}

/// Compares a WGSL kernel with its own description, and allows what only costs time: a dynamic index into an invocation's own
/// array, which [`check`] refuses.
#[cfg(feature = "wgpu")]
pub fn check_interface(source: &KernelSource) -> Result<()> {
    let (module, _) = parse(&source.label, &source.text)?;
    let findings = check_module(&module, source);
    if findings.is_empty() { Ok(()) } else { Err(refusal(source, findings.join("\n"))) }
}

/// The error of a kernel with these findings.
fn refusal(source: &KernelSource, log: String) -> Error {
    Error::Compile { kernel: source.label.clone(), api: "naga", log, source_text: numbered(&source.text) }
}

/// Everything in which a module differs from its description.
fn check_module(module: &Module, source: &KernelSource) -> Vec<String> {
    let mut findings = Vec::new();
    check_entry(module, source, &mut findings);
    check_buffers(module, &source.interface, &mut findings);
    check_params(module, &source.interface, &mut findings);
    check_strangers(module, &source.interface, &mut findings);
    findings
}

/// What naga makes of a text that it accepts.
///
/// # Errors
/// [`Error::Compile`] with its findings.
pub fn parse(label: &str, text: &str) -> Result<(Module, ModuleInfo)> {
    let refuse = |log: String| Error::Compile {
        kernel: label.to_owned(),
        api: "naga",
        log,
        source_text: numbered(text),
    };
    let module = naga::front::wgsl::parse_str(text)
        .map_err(|error| refuse(error.emit_to_string_with_path(text, label)))?;
    let info = Validator::new(ValidationFlags::all(), capabilities())
        .validate(&module)
        .map_err(|error| refuse(error.emit_to_string_with_path(text, label)))?;
    Ok((module, info))
}

/// What a kernel may use: a device without the feature is refused when the kernel is planned.
fn capabilities() -> Capabilities {
    Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::COOPERATIVE_MATRIX
}

fn check_entry(module: &Module, source: &KernelSource, findings: &mut Vec<String>) {
    let Some(entry) = module.entry_points.iter().find(|entry| entry.name == source.entry) else {
        let names: Vec<&str> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        findings.push(format!("entry point: found {names:?}, wanted {:?}", source.entry));
        return;
    };
    if entry.stage != ShaderStage::Compute {
        findings.push(format!("entry point {}: found stage {:?}, wanted compute", entry.name, entry.stage));
    }
    if entry.workgroup_size_overrides.is_some() {
        findings.push(format!("entry point {}: the work-group size is an override", entry.name));
    } else if entry.workgroup_size != source.work_group {
        findings.push(format!(
            "entry point {}: found work-group {:?}, wanted {:?}",
            entry.name, entry.workgroup_size, source.work_group
        ));
    }
}

/// The global at `@group(0) @binding(index)`.
fn global_at(module: &Module, index: usize) -> Option<&GlobalVariable> {
    module.global_variables.iter().map(|(_, global)| global).find(|global| {
        global.binding.as_ref().is_some_and(|binding| binding.group == 0 && binding.binding as usize == index)
    })
}

fn name_of(global: &GlobalVariable) -> &str {
    global.name.as_deref().unwrap_or("(unnamed)")
}

fn check_buffers(module: &Module, interface: &Interface, findings: &mut Vec<String>) {
    for (index, binding) in interface.bindings.iter().enumerate() {
        let wanted = binding.operand.name();
        let Some(global) = global_at(module, index) else {
            findings.push(format!("binding {index}: found nothing, wanted {wanted}"));
            continue;
        };
        if binding.operand.is_named() && name_of(global) != wanted {
            findings.push(format!("binding {index}: found {}, wanted {wanted}", name_of(global)));
        }
        let access = match binding.access {
            Access::Read => StorageAccess::LOAD,
            // WGSL has no write-only storage buffers.
            Access::Write | Access::ReadWrite => StorageAccess::LOAD | StorageAccess::STORE,
        };
        let space = match binding.element {
            Element::Image2d(_) => AddressSpace::Handle,
            _ => AddressSpace::Storage { access },
        };
        if global.space != space {
            findings.push(format!(
                "binding {index} ({wanted}): found address space {}, wanted {}",
                describe_space(global.space),
                describe_space(space)
            ));
        }
        if !holds(module, global.ty, binding) {
            findings.push(format!(
                "binding {index} ({wanted}): found {}, wanted {}",
                describe(module, global.ty),
                wanted_type(binding)
            ));
        }
    }
}

/// Whether `ty` is an unsized array of the binding's elements, or the texture that it reads.
fn holds(module: &Module, ty: Handle<Type>, binding: &Binding) -> bool {
    if let (Element::Image2d(_), Access::Read) = (binding.element, binding.access) {
        let class = ImageClass::Sampled { kind: ScalarKind::Float, multi: false };
        return module.types[ty].inner == TypeInner::Image { dim: ImageDimension::D2, arrayed: false, class };
    }
    let TypeInner::Array { base, size: ArraySize::Dynamic, .. } = module.types[ty].inner else {
        return false;
    };
    let element = &module.types[base].inner;
    let vec4 = |scalar| TypeInner::Vector { size: VectorSize::Quad, scalar };
    match binding.element {
        Element::Scalar(DType::F32) => *element == TypeInner::Scalar(Scalar::F32),
        Element::Scalar(DType::F16) => *element == TypeInner::Scalar(Scalar::F16),
        Element::Scalar(DType::I32) => *element == TypeInner::Scalar(Scalar::I32),
        Element::Scalar(DType::U32) => *element == TypeInner::Scalar(Scalar::U32),
        Element::Vec4(DType::F32) => *element == vec4(Scalar::F32),
        Element::Vec4(DType::I32) => *element == vec4(Scalar::I32),
        Element::Vec4(DType::U32) => *element == vec4(Scalar::U32),
        Element::Atomic => *element == TypeInner::Atomic(Scalar::U32),
        // Two u32 of two halves each where the device has no f16.
        Element::Vec4(DType::F16) => {
            *element == vec4(Scalar::F16)
                || *element == TypeInner::Vector { size: VectorSize::Bi, scalar: Scalar::U32 }
        }
        Element::Image2d(_) | Element::Scalar(_) | Element::Vec4(_) => false,
    }
}

fn wanted_type(binding: &Binding) -> &'static str {
    match binding.element {
        Element::Scalar(DType::F32) => "array<f32>",
        Element::Scalar(DType::F16) => "array<f16>",
        Element::Vec4(DType::F32) => "array<vec4<f32>>",
        Element::Vec4(DType::F16) => "array<vec4<f16>> or array<vec2<u32>>",
        Element::Scalar(DType::I32) => "array<i32>",
        Element::Scalar(DType::U32) => "array<u32>",
        Element::Vec4(DType::I32) => "array<vec4<i32>>",
        Element::Vec4(DType::U32) => "array<vec4<u32>>",
        Element::Atomic => "array<atomic<u32>>",
        Element::Scalar(_) | Element::Vec4(_) => "words of 32 bits or halves",
        Element::Image2d(_) if binding.access == Access::Read => "texture_2d<f32>",
        Element::Image2d(_) => "a buffer: images are arguments in OpenCL C only",
    }
}

fn check_params(module: &Module, interface: &Interface, findings: &mut Vec<String>) {
    if interface.params.is_empty() {
        return;
    }
    let index = interface.bindings.len();
    let Some(global) = global_at(module, index) else {
        findings.push(format!("binding {index}: found nothing, wanted the uniform block {PARAMS}"));
        return;
    };
    let named = interface.params.iter().any(|param| !param.name.is_empty());
    if named && name_of(global) != PARAMS {
        findings.push(format!("binding {index}: found {}, wanted {PARAMS}", name_of(global)));
    }
    if global.space != AddressSpace::Uniform {
        findings.push(format!(
            "binding {index} ({PARAMS}): found address space {}, wanted uniform",
            describe_space(global.space)
        ));
    }
    let TypeInner::Struct { members, .. } = &module.types[global.ty].inner else {
        findings.push(format!(
            "binding {index} ({PARAMS}): found {}, wanted a struct",
            describe(module, global.ty)
        ));
        return;
    };
    let found: Vec<String> = members
        .iter()
        .map(|member| {
            let name = if named { member.name.as_deref().unwrap_or("(unnamed)") } else { "" };
            format!("{name}: {} at {}", describe(module, member.ty), member.offset)
        })
        .collect();
    let wanted: Vec<String> = interface
        .params
        .iter()
        .enumerate()
        .map(|(position, param)| format!("{}: {} at {}", param.name, param_type(param.ty), 4 * position))
        .collect();
    if found != wanted {
        findings.push(format!(
            "{PARAMS}: found [{}], wanted [{}] (type and byte offset)",
            found.join(", "),
            wanted.join(", ")
        ));
    }
}

const fn param_type(ty: ParamType) -> &'static str {
    match ty {
        ParamType::U32 => "u32",
        ParamType::I32 => "i32",
        ParamType::F32 => "f32",
    }
}

/// Resources that the interface does not name: nothing would be bound to them.
fn check_strangers(module: &Module, interface: &Interface, findings: &mut Vec<String>) {
    let expected = interface.bindings.len() + usize::from(!interface.params.is_empty());
    for (_, global) in module.global_variables.iter() {
        if let Some(at) = &global.binding
            && (at.group != 0 || at.binding as usize >= expected)
        {
            findings.push(format!(
                "group {} binding {}: found {}, wanted nothing",
                at.group,
                at.binding,
                name_of(global)
            ));
        }
        if global.space == AddressSpace::Immediate {
            findings.push(format!("{}: immediate data is not part of the interface", name_of(global)));
        }
    }
}

fn lint(module: &Module, info: &ModuleInfo, text: &str, findings: &mut Vec<String>) {
    for (handle, function) in module.functions.iter() {
        let name = function.name.as_deref().unwrap_or("(unnamed)");
        lint_function(module, function, &info[handle], name, text, findings);
    }
    for (index, entry) in module.entry_points.iter().enumerate() {
        lint_function(module, &entry.function, info.get_entry_point(index), &entry.name, text, findings);
    }
}

/// Finds dynamic indices into arrays that belong to one invocation.
///
/// Compilers keep such an array in registers only if every index is a constant; otherwise it is
/// spilled to memory, or copied there before each access when it is a value and not a variable.
/// A loop over a constant bound counts as dynamic: whether it is unrolled is the driver's choice.
fn lint_function(
    module: &Module,
    function: &Function,
    info: &FunctionInfo,
    name: &str,
    text: &str,
    findings: &mut Vec<String>,
) {
    for (handle, expression) in function.expressions.iter() {
        let Expression::Access { base, index } = *expression else { continue };
        let own_array = match *info[base].ty.inner_with(&module.types) {
            TypeInner::Pointer { base, space: AddressSpace::Function | AddressSpace::Private } => {
                matches!(module.types[base].inner, TypeInner::Array { .. })
            }
            TypeInner::Array { .. } => true,
            _ => false,
        };
        if !own_array || is_constant(function, index) {
            continue;
        }
        let span = function.expressions.get_span(handle);
        let spelled = span.to_range().and_then(|range| text.get(range)).unwrap_or("(expression)");
        findings.push(format!(
            "line {}: {spelled} in {name} indexes the array {} dynamically, which takes it out of registers",
            span.location(text).line_number,
            root(module, function, base)
        ));
    }
}

/// Whether an index is known when the kernel is compiled: built of constants alone.
fn is_constant(function: &Function, index: Handle<Expression>) -> bool {
    match function.expressions[index] {
        Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => true,
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => is_constant(function, expr),
        Expression::Binary { left, right, .. } => is_constant(function, left) && is_constant(function, right),
        _ => false,
    }
}

/// The name of the variable that a chain of accesses starts from.
fn root<'a>(module: &'a Module, function: &'a Function, mut handle: Handle<Expression>) -> &'a str {
    let name = loop {
        if let Some(name) = function.named_expressions.get(&handle) {
            break Some(name);
        }
        match function.expressions[handle] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => handle = base,
            Expression::Load { pointer } => handle = pointer,
            Expression::LocalVariable(local) => break function.local_variables[local].name.as_ref(),
            Expression::GlobalVariable(global) => break module.global_variables[global].name.as_ref(),
            Expression::Constant(constant) => break module.constants[constant].name.as_ref(),
            Expression::FunctionArgument(index) => {
                break function.arguments.get(index as usize).and_then(|argument| argument.name.as_ref());
            }
            _ => break None,
        }
    };
    name.map_or("(unnamed)", String::as_str)
}

fn describe_space(space: AddressSpace) -> String {
    match space {
        AddressSpace::Uniform => "uniform".to_owned(),
        AddressSpace::Storage { access } if access == StorageAccess::LOAD => "storage, read".to_owned(),
        AddressSpace::Storage { access } if access == StorageAccess::LOAD | StorageAccess::STORE => {
            "storage, read_write".to_owned()
        }
        other => format!("{other:?}"),
    }
}

fn describe(module: &Module, ty: Handle<Type>) -> String {
    let scalar = |scalar: Scalar| {
        let kind = match scalar.kind {
            ScalarKind::Sint => "i",
            ScalarKind::Uint => "u",
            ScalarKind::Float => "f",
            ScalarKind::Bool => return "bool".to_owned(),
            ScalarKind::AbstractInt | ScalarKind::AbstractFloat => return "abstract".to_owned(),
        };
        format!("{kind}{}", 8 * u32::from(scalar.width))
    };
    match &module.types[ty].inner {
        TypeInner::Scalar(of) => scalar(*of),
        TypeInner::Vector { size, scalar: of } => format!("vec{}<{}>", *size as u8, scalar(*of)),
        TypeInner::Atomic(of) => format!("atomic<{}>", scalar(*of)),
        TypeInner::Array { base, size: ArraySize::Dynamic, .. } => {
            format!("array<{}>", describe(module, *base))
        }
        TypeInner::Array { base, size: ArraySize::Constant(length), .. } => {
            format!("array<{}, {length}>", describe(module, *base))
        }
        TypeInner::Struct { .. } => {
            format!("struct {}", module.types[ty].name.as_deref().unwrap_or("(unnamed)"))
        }
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests;
