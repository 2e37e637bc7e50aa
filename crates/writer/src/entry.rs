//! How a kernel's body begins: the module's variables and the built-in values.

use super::expressions::Body;
use super::{Outcome, refuse};
use naga::{AddressSpace, ArraySize, Binding, BuiltIn, EntryPoint, Handle, Type, TypeInner};

impl Body<'_, '_> {
    /// Declares the module's variables of the work-group and of the invocation.
    pub(super) fn module_variables(&mut self, point: &EntryPoint) -> Outcome<()> {
        let module = self.m.module;
        let mut cleared = Vec::new();
        for (handle, global) in module.global_variables.iter() {
            let Some(known) = self.m.globals.get(&handle).cloned() else { continue };
            match (global.space, &module.types[global.ty].inner) {
                (
                    AddressSpace::WorkGroup,
                    TypeInner::Array { base, size: ArraySize::Constant(length), .. },
                ) if known.plain => {
                    let ty = self.m.type_name(*base)?;
                    self.line(&format!("__local {ty} {}[{length}];", known.name));
                    cleared.push((known.name.clone(), known.name));
                }
                (AddressSpace::WorkGroup, _) => {
                    let ty = self.m.type_name(global.ty)?;
                    self.line(&format!("__local {ty} {};", known.name));
                    cleared.push((format!("&{}", known.name), known.name));
                }
                (AddressSpace::Private, _) => {
                    let ty = self.m.type_name(global.ty)?;
                    let value = match global.init {
                        Some(init) => self.m.global_value(init)?,
                        None => self.m.zero(global.ty)?,
                    };
                    self.line(&format!("{ty} {} = {};", known.name, value.text));
                }
                _ => {}
            }
        }
        if !self.m.options.checked || cleared.is_empty() {
            return Ok(());
        }
        // WGSL promises zeros.
        let (index, step) = (self.names.claim("byte"), point.workgroup_size.iter().product::<u32>());
        let first = invocation_index(point, true);
        for (pointer, name) in cleared {
            self.line(&format!(
                "for (uint {index} = {first}; {index} < sizeof({name}); {index} += {step}u) {{"
            ));
            self.line(&format!("    ((__local uchar*){pointer})[{index}] = 0;"));
            self.line("}");
        }
        self.barrier(naga::Barrier::WORK_GROUP)
    }

    /// Declares an input of the entry point.
    pub(super) fn input(
        &mut self,
        point: &EntryPoint,
        ty: Handle<Type>,
        binding: Option<&Binding>,
        name: &str,
    ) -> Outcome<()> {
        let of = self.m.type_name(ty)?;
        if let Some(Binding::BuiltIn(builtin)) = binding {
            let value = self.builtin(point, builtin)?;
            self.line(&format!("const {of} {name} = {value};"));
            return Ok(());
        }
        let TypeInner::Struct { members, .. } = &self.m.module.types[ty].inner else {
            return refuse(None, format!("the input {name}"));
        };
        let mut values = Vec::new();
        for member in members {
            let Some(Binding::BuiltIn(builtin)) = &member.binding else {
                return refuse(None, format!("a member of the input {name} that is not built in"));
            };
            values.push(self.builtin(point, builtin)?);
        }
        let value = self.m.members(ty, &values)?;
        self.line(&format!("const {of} {name} = {value};"));
        Ok(())
    }

    fn builtin(&self, point: &EntryPoint, builtin: &BuiltIn) -> Outcome<String> {
        let three = |function: &str| format!("(uint3)({function}(0), {function}(1), {function}(2))");
        Ok(match builtin {
            BuiltIn::GlobalInvocationId => three("get_global_id"),
            BuiltIn::LocalInvocationId => three("get_local_id"),
            BuiltIn::WorkGroupId => three("get_group_id"),
            BuiltIn::NumWorkGroups => three("get_num_groups"),
            BuiltIn::WorkGroupSize => three("get_local_size"),
            BuiltIn::LocalInvocationIndex => invocation_index(point, self.m.options.fixed_work_group),
            other => return refuse(None, format!("the built-in value {other:?}")),
        })
    }
}

fn invocation_index(point: &EntryPoint, fixed: bool) -> String {
    let [x, y, _] = point.workgroup_size;
    let [x, y] = match fixed {
        true => [format!("{x}u"), format!("{y}u")],
        false => ["get_local_size(0)".to_owned(), "get_local_size(1)".to_owned()],
    };
    format!("get_local_id(0) + {x} * (get_local_id(1) + {y} * get_local_id(2))")
}
