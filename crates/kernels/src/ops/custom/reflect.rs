//! What an application's shader takes, read from its text.

use crate::emit::{Access, Element, ParamType};

/// The interface of a shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reflection {
    pub(super) entry: String,
    pub(super) work_group: [u32; 3],
    /// The storage buffers in the order of their bindings.
    pub(super) buffers: Vec<(Access, Element)>,
    /// The members of the uniform in their order.
    pub(super) members: Vec<(String, ParamType)>,
}

impl Reflection {
    /// How many buffers it has of an access.
    pub(super) fn count(&self, access: Access) -> usize {
        self.buffers.iter().filter(|(own, _)| *own == access).count()
    }
}

#[cfg(not(feature = "shaders"))]
pub(super) fn reflect(name: &str, _text: &str) -> crate::error::Result<Reflection> {
    let reason = "the crate was built without feature `shaders`";
    Err(crate::error::Error::unsupported(format!("kernel {name:?}"), reason))
}

#[cfg(feature = "shaders")]
pub(super) use naga_reflection::reflect;

#[cfg(feature = "shaders")]
mod naga_reflection {
    use super::Reflection;
    use crate::dtype::DType;
    use crate::emit::depth::on_large_stack;
    use crate::emit::{Access, Element, ParamType, check};
    use crate::error::{Error, Result, numbered};
    use crate::sorted;
    use naga::{
        AddressSpace, ArraySize, GlobalVariable, Module, Scalar, ShaderStage, StorageAccess, TypeInner,
        VectorSize,
    };

    /// Inputs and outputs that every device binds in one kernel (WebGPU's limit of storage buffers).
    const MAX_BUFFERS: usize = 8;

    /// The interface of the only entry point of `text`.
    pub(in super::super) fn reflect(name: &str, text: &str) -> Result<Reflection> {
        on_large_stack(name, text, || read(name, text))
    }

    fn read(name: &str, text: &str) -> Result<Reflection> {
        let (module, _) = check::parse(name, text)?;
        let mut findings = Vec::new();
        let reflection = find(&module, &mut findings);
        if findings.is_empty() {
            return Ok(reflection);
        }
        let (log, source_text) = (findings.join("\n"), numbered(text));
        Err(Error::Compile { kernel: name.to_owned(), api: "naga", log, source_text })
    }

    fn find(module: &Module, findings: &mut Vec<String>) -> Reflection {
        let mut reflection =
            Reflection { entry: String::new(), work_group: [1; 3], buffers: Vec::new(), members: Vec::new() };
        match &module.entry_points[..] {
            [entry] if entry.stage == ShaderStage::Compute && entry.workgroup_size_overrides.is_none() => {
                reflection.entry.clone_from(&entry.name);
                reflection.work_group = entry.workgroup_size;
            }
            entries => {
                let found: Vec<String> =
                    entries.iter().map(|entry| format!("{} ({:?})", entry.name, entry.stage)).collect();
                let wanted = "one compute shader with a work-group size in numbers";
                findings.push(format!("entry points: found {found:?}, wanted {wanted}"));
            }
        }
        if !module.overrides.is_empty() {
            findings.push("found an override, wanted a const or a member of the uniform".to_owned());
        }
        let mut bound: Vec<(u32, u32, &GlobalVariable)> = Vec::new();
        for (_, global) in module.global_variables.iter() {
            bound.extend(global.binding.as_ref().map(|at| (at.group, at.binding, global)));
        }
        sorted::sort_by_key(&mut bound, |(group, binding, _)| (*group, *binding));
        for (place, &(group, binding, global)) in bound.iter().enumerate() {
            let name = global.name.as_deref().unwrap_or("(unnamed)");
            if (group, binding as usize) != (0, place) {
                findings.push(format!(
                    "{name}: found group {group} binding {binding}, wanted group 0 binding {place}"
                ));
            }
            let last = place + 1 == bound.len();
            match global.space {
                AddressSpace::Uniform if last => uniform(module, global, name, &mut reflection, findings),
                AddressSpace::Storage { access } => {
                    let access = if access.contains(StorageAccess::STORE) { Access::ReadWrite } else { Access::Read };
                    match element(module, global) {
                        Some(element) => reflection.buffers.push((access, element)),
                        None => findings.push(format!(
                            "binding {place} ({name}): found another type, wanted array<f32> or array<vec4<f32>>"
                        )),
                    }
                }
                other => findings.push(format!(
                    "binding {place} ({name}): found {other:?}, wanted storage, or a uniform as the last binding"
                )),
            }
        }
        let outputs = reflection.count(Access::ReadWrite);
        if outputs == 0 || reflection.buffers.len() > MAX_BUFFERS {
            findings.push(format!(
                "found {} storage buffers, {outputs} of them read_write, wanted 1 to {MAX_BUFFERS}, one of \
                 them read_write",
                reflection.buffers.len()
            ));
        }
        reflection
    }

    /// The elements of an unsized array of f32, alone or in fours.
    fn element(module: &Module, global: &GlobalVariable) -> Option<Element> {
        let TypeInner::Array { base, size: ArraySize::Dynamic, .. } = module.types[global.ty].inner else {
            return None;
        };
        match module.types[base].inner {
            TypeInner::Scalar(Scalar::F32) => Some(Element::Scalar(DType::F32)),
            TypeInner::Vector { size: VectorSize::Quad, scalar: Scalar::F32 } => {
                Some(Element::Vec4(DType::F32))
            }
            _ => None,
        }
    }

    fn uniform(
        module: &Module,
        global: &GlobalVariable,
        name: &str,
        reflection: &mut Reflection,
        findings: &mut Vec<String>,
    ) {
        let TypeInner::Struct { members, .. } = &module.types[global.ty].inner else {
            findings.push(format!("{name}: found another uniform, wanted a struct"));
            return;
        };
        for member in members {
            let own = member.name.clone().unwrap_or_default();
            let ty = match module.types[member.ty].inner {
                TypeInner::Scalar(Scalar::F32) => ParamType::F32,
                TypeInner::Scalar(Scalar::U32) => ParamType::U32,
                TypeInner::Scalar(Scalar::I32) => ParamType::I32,
                _ => {
                    findings.push(format!("{name}.{own}: found another type, wanted f32, u32 or i32"));
                    continue;
                }
            };
            if member.offset as usize != 4 * reflection.members.len() {
                findings.push(format!("{name}.{own}: found a gap before it, wanted members without @align"));
            }
            reflection.members.push((own, ty));
        }
    }
}
