//! What text from outside the crate may ask for, beyond what naga validates.
//!
//! Memory of an invocation's own lies on a stack where kernels run on a CPU, and drivers give a
//! work-group what it asks for without a look at what there is.

use super::{check_module, parse, refusal};
use crate::emit::KernelSource;
use crate::error::Result;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{AddressSpace, Function, Module, TypeInner};

/// Most bytes of a function's variables, and of the module's private ones: the limit of the WGSL
/// specification (13.4, "Limits").
const MAX_VARIABLE_BYTES: u64 = 8192;

/// Most bytes of all that, and of arrays and structs in between, over all functions.
const MAX_TOTAL_BYTES: u64 = 64 << 10;

/// Compares a kernel from outside the crate with its description, on a device with `local_memory` bytes
/// for a work-group.
///
/// # Errors
/// [`Error::Compile`](crate::error::Error::Compile) whose log lists everything that was found.
pub fn check_foreign(source: &KernelSource, local_memory: u32) -> Result<()> {
    let (module, info) = parse(&source.label, &source.text)?;
    let mut findings = check_module(&module, source);
    if let Some((_, constant)) = module.overrides.iter().next() {
        let name = constant.name.as_deref().unwrap_or("(unnamed)");
        findings.push(format!("override {name}: its value is not known here, wanted const"));
    }
    check_globals(&module, u64::from(local_memory), &mut findings);
    check_functions(&module, &info, &mut findings);
    if findings.is_empty() { Ok(()) } else { Err(refusal(source, findings.join("\n"))) }
}

/// Bytes of a value of this type.
fn bytes(module: &Module, ty: &TypeInner) -> u64 {
    ty.try_size(module.to_ctx()).map_or(u64::MAX, u64::from)
}

fn too_many(what: &str, found: u64, most: u64, findings: &mut Vec<String>) {
    if found > most {
        findings.push(format!("{what}: found {found} bytes, wanted at most {most}"));
    }
}

fn check_globals(module: &Module, local_memory: u64, findings: &mut Vec<String>) {
    let of = |space: AddressSpace| {
        let own = module.global_variables.iter().filter(|(_, global)| global.space == space);
        own.map(|(_, global)| bytes(module, &module.types[global.ty].inner)).fold(0, u64::saturating_add)
    };
    too_many("variables of the work-group", of(AddressSpace::WorkGroup), local_memory, findings);
    too_many("private variables", of(AddressSpace::Private), MAX_VARIABLE_BYTES, findings);
}

fn check_functions(module: &Module, info: &ModuleInfo, findings: &mut Vec<String>) {
    let functions = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
    let entries = module.entry_points.iter().enumerate();
    let entries = entries.map(|(index, entry)| (&entry.function, info.get_entry_point(index)));
    let mut all: u64 = 0;
    for (function, info) in functions.chain(entries) {
        let name = function.name.as_deref().unwrap_or("the entry point");
        let own = function.local_variables.iter();
        let own = own.map(|(_, local)| bytes(module, &module.types[local.ty].inner));
        let own = own.fold(0, u64::saturating_add);
        too_many(&format!("variables of {name}"), own, MAX_VARIABLE_BYTES, findings);
        let between = between(module, function, info);
        if values(module, function, info).any(|ty| matches!(ty, TypeInner::CooperativeMatrix { .. })) {
            let why = "its loads and stores are not kept within bounds";
            findings.push(format!("a cooperative matrix in {name}: {why}"));
        }
        all = all.saturating_add(own).saturating_add(between);
    }
    too_many("variables and values of all functions", all, MAX_TOTAL_BYTES, findings);
}

/// The types of what a function computes.
fn values<'a>(
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
) -> impl Iterator<Item = &'a TypeInner> {
    function.expressions.iter().map(|(handle, _)| info[handle].ty.inner_with(&module.types))
}

/// Bytes of the arrays and structs that a function computes as values.
fn between(module: &Module, function: &Function, info: &FunctionInfo) -> u64 {
    let values = values(module, function, info);
    let composites = values.filter(|ty| matches!(ty, TypeInner::Array { .. } | TypeInner::Struct { .. }));
    composites.map(|ty| bytes(module, ty)).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::{Dialect, Interface};

    fn log(declarations: &str, body: &str) -> String {
        let source = KernelSource {
            label: "foreign".to_owned(),
            entry: "foreign".to_owned(),
            dialect: Dialect::Wgsl,
            text: format!("{declarations}\n@compute @workgroup_size(1)\nfn foreign() {{ {body} }}\n"),
            interface: Interface::default(),
            work_group: [1; 3],
        };
        match check_foreign(&source, 16 << 10) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_needs_too_much_memory_is_refused_with_both_numbers() {
        for (declarations, body, found) in [
            ("var<workgroup> staged: array<f32, 4096>;", "staged[0] = 1.0;", ""),
            (
                "var<workgroup> staged: array<f32, 4097>;",
                "staged[0] = 1.0;",
                "found 16388 bytes, wanted at most 16384",
            ),
            ("var<workgroup> a: array<f32, 4096>; var<workgroup> b: f32;", "a[0] = b;", "found 16388 bytes"),
            ("var<private> own: array<f32, 2048>;", "own[0] = 1.0;", ""),
            ("var<private> own: array<f32, 2049>;", "own[0] = 1.0;", "private variables: found 8196 bytes"),
            ("", "var own: array<f32, 2048>; own[0] = 1.0;", ""),
            ("", "var own: array<f32, 2049>; own[0] = 1.0;", "found 8196 bytes, wanted at most 8192"),
            ("", "let value = array<f32, 100000>(); _ = value[0];", "found 400000 bytes"),
            ("override n: u32 = 4;", "", "override n"),
        ] {
            let log = log(declarations, body);
            assert_eq!(log.is_empty(), found.is_empty(), "{declarations} {body}: {log}");
            assert!(log.contains(found), "{declarations} {body}: {log}");
        }
    }

    #[test]
    fn cooperative_matrices_are_for_kernels_of_the_crate() {
        let text = "enable wgpu_cooperative_matrix;\nvar<workgroup> staged: array<f32, 256>;";
        let body = "let a = coopLoad<coop_mat16x16<f32, A>>(&staged[0], 16u); coopStore(a, &staged[0], 16u);";
        let log = log(text, body);
        assert!(log.contains("a cooperative matrix"), "{log}");
    }
}
