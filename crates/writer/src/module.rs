//! A kernel as a whole: constants, arguments, functions.

use super::analysis::analyse;
use super::expressions::Body;
use super::halves::HALF_ARITHMETIC;
use super::images;
use super::names::Names;
use super::places::space_name;
use super::types::Types;
use super::usage::{Usage, check_variables, only_computes, reachable};
use super::{Error, Kernel, Options, Outcome, refuse};
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, Constant, EntryPoint, Function, GlobalVariable, Handle, Module, ShaderStage,
    Type, TypeInner,
};
use std::collections::{HashMap, HashSet};

/// What is known of a variable of the module.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// An array of which elements alone are used: its name is a pointer to the first.
    pub(super) plain: bool,
    /// The arguments of a uniform's members.
    pub(super) members: Vec<String>,
    /// The argument that says how many elements there are.
    pub(super) length: Option<String>,
}

/// What is known of a function.
#[derive(Debug, Clone)]
pub(super) struct Callee {
    pub(super) name: String,
    /// The module's variables that it is passed.
    pub(super) globals: Vec<Handle<GlobalVariable>>,
}

/// A kernel while it is printed.
pub(super) struct Printer<'a> {
    pub(super) module: &'a Module,
    pub(super) options: Options,
    pub(super) types: Types,
    names: Names,
    helpers: Vec<(String, String)>,
    pub(super) constants: HashMap<Handle<Constant>, String>,
    /// The constants whose definitions have been printed.
    pub(super) defined: HashSet<Handle<Constant>>,
    pub(super) definitions: String,
    pub(super) tables: String,
    pub(super) globals: HashMap<Handle<GlobalVariable>, Variable>,
    pub(super) functions: HashMap<Handle<Function>, Callee>,
}

/// Writes the kernel `entry`.
pub(super) fn write(module: &Module, info: &ModuleInfo, entry: &str, options: Options) -> Outcome<Kernel> {
    let found = module.entry_points.iter().enumerate().find(|(_, point)| point.name == entry);
    let Some((index, point)) = found else {
        let names: Vec<&str> = module.entry_points.iter().map(|point| point.name.as_str()).collect();
        return Err(Error {
            span: None,
            message: format!("found the entry points {names:?}, wanted {entry}"),
        });
    };
    if point.stage != ShaderStage::Compute || point.workgroup_size_overrides.is_some() {
        let message =
            format!("found the entry point {entry}, wanted a compute shader whose work-group is constant");
        return Err(Error { span: None, message });
    }
    if let Some((handle, _)) = module.overrides.iter().next() {
        return refuse(Some(module.overrides.get_span(handle)), "an override");
    }
    let mut printer = Printer {
        module,
        options,
        types: Types::default(),
        names: Names::default(),
        helpers: Vec::new(),
        constants: HashMap::new(),
        defined: HashSet::new(),
        definitions: String::new(),
        tables: String::new(),
        globals: HashMap::new(),
        functions: HashMap::new(),
    };
    printer.kernel(info, point, info.get_entry_point(index))
}

impl<'a> Printer<'a> {
    fn kernel(
        &mut self,
        info: &'a ModuleInfo,
        point: &'a EntryPoint,
        of: &'a FunctionInfo,
    ) -> Outcome<Kernel> {
        let name = self.names.claim(&point.name);
        let reachable = reachable(self.module, &point.function.body);
        let bound = self.name_globals(point, &reachable, of)?;
        for (handle, constant) in self.module.constants.iter() {
            if let Some(wanted) = &constant.name {
                self.constants.insert(handle, self.names.claim(wanted));
            }
        }
        let mut functions = String::new();
        let mut pure = HashSet::new();
        for (handle, function) in
            self.module.functions.iter().filter(|(handle, _)| reachable.contains(handle))
        {
            let name = self.names.claim(function.name.as_deref().unwrap_or("function"));
            let globals = self.used(&info[handle]);
            if globals.is_empty() && only_computes(&function.body, &pure) {
                pure.insert(handle);
            }
            let text = self
                .function(function, &info[handle], &name, &globals, &pure)
                .map_err(|refusal| refusal.at(self.module.functions.get_span(handle)))?;
            // A function that only calls one of the writer's own with the same argument is that one.
            let alias = self.helpers.iter().map(|(helper, _)| helper).find(|helper| {
                text.lines().nth(1).is_some_and(|line| {
                    let of =
                        line.strip_prefix("    return ").and_then(|call| call.strip_prefix(helper.as_str()));
                    let argument = function.arguments.first().and_then(|argument| argument.name.as_deref());
                    function.arguments.len() == 1
                        && of.is_some_and(|of| Some(of) == argument.map(|a| format!("({a});")).as_deref())
                })
            });
            match alias.cloned() {
                Some(alias) => self.functions.insert(handle, Callee { name: alias, globals }),
                None => {
                    functions += &text;
                    self.functions.insert(handle, Callee { name, globals })
                }
            };
        }
        let mut arguments = Vec::new();
        for handle in &bound {
            arguments.extend(self.declared(*handle, true)?);
        }
        let lengths: Vec<_> =
            bound.iter().filter(|handle| self.globals[handle].length.is_some()).copied().collect();
        for handle in &lengths {
            arguments.extend(self.globals[handle].length.iter().map(|length| format!("const uint {length}")));
        }
        let body = self.entry_body(point, of, &pure)?;
        let [x, y, z] = point.workgroup_size;
        let opening = match self.options.fixed_work_group {
            true => format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid"),
            false => "__kernel void".to_owned(),
        };
        let kernel = format!("{opening} {name}(\n    {}\n) {{\n{body}}}\n", arguments.join(",\n    "));
        let prelude = if self.options.halves { HALF_ARITHMETIC } else { "" };
        let helpers: String = self.helpers.iter().map(|(_, text)| text.as_str()).collect();
        let parts =
            [self.definitions.as_str(), &self.types.definitions, &self.tables, &helpers, &functions, &kernel];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let binding_of = |handle: &Handle<GlobalVariable>| {
            self.module.global_variables[*handle].binding.map(|binding| binding.binding)
        };
        Ok(Kernel {
            text: format!("{prelude}{}", parts.join("\n")),
            entry: name,
            lengths: lengths.iter().filter_map(binding_of).collect(),
        })
    }

    /// Names the module's variables that are bound or used, and returns those that are bound, in order.
    fn name_globals(
        &mut self,
        point: &EntryPoint,
        reachable: &HashSet<Handle<Function>>,
        of: &FunctionInfo,
    ) -> Outcome<Vec<Handle<GlobalVariable>>> {
        let module = self.module;
        let mut usage = Usage::default();
        usage.scan(&point.function);
        for (_, function) in module.functions.iter().filter(|(handle, _)| reachable.contains(handle)) {
            usage.scan(function);
        }
        let mut bound: Vec<_> =
            module.global_variables.iter().filter(|(_, global)| global.binding.is_some()).collect();
        bound.sort_by_key(|(_, global)| global.binding.map(|at| (at.group, at.binding)));
        let rest = module
            .global_variables
            .iter()
            .filter(|(handle, global)| global.binding.is_none() && !of[*handle].is_empty());
        let all: Vec<_> = bound.iter().copied().chain(rest).collect();
        for &(handle, global) in &all {
            if let AddressSpace::Storage { .. } = global.space {
                self.types.lies_in_buffer(module, global.ty);
            }
            let span = module.global_variables.get_span(handle);
            let wanted = global.name.as_deref().unwrap_or("variable");
            let array = matches!(module.types[global.ty].inner, TypeInner::Array { .. });
            let dynamic =
                matches!(module.types[global.ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. });
            let mut known = Variable {
                name: String::new(),
                plain: array && global.space != AddressSpace::Private && !usage.whole.contains(&handle),
                members: Vec::new(),
                length: None,
            };
            match (global.space, &module.types[global.ty].inner) {
                (AddressSpace::Uniform, TypeInner::Struct { members, .. }) => {
                    known.name = wanted.to_owned();
                    for member in members {
                        let TypeInner::Scalar(_) = module.types[member.ty].inner else {
                            let member = member.name.as_deref().unwrap_or("member");
                            return refuse(
                                Some(span),
                                format!("the uniform member {member}, which is no scalar"),
                            );
                        };
                        known.members.push(self.names.claim(member.name.as_deref().unwrap_or("member")));
                    }
                }
                (AddressSpace::Uniform, TypeInner::Scalar(_)) => known.name = self.names.claim(wanted),
                (AddressSpace::Uniform, _) => {
                    return refuse(
                        Some(span),
                        format!("the uniform {wanted}, which is no struct of scalars"),
                    );
                }
                (AddressSpace::Storage { .. } | AddressSpace::WorkGroup | AddressSpace::Private, _) => {
                    known.name = self.names.claim(wanted);
                }
                (AddressSpace::Handle, inner)
                    if images::argument(inner).is_some() && !self.options.checked =>
                {
                    known.name = self.names.claim(wanted);
                }
                (AddressSpace::Handle, _) => {
                    return refuse(Some(span), format!("the texture or sampler {wanted}"));
                }
                (space, _) => return refuse(Some(span), format!("{wanted} in the address space {space:?}")),
            }
            if dynamic && (usage.measured.contains(&handle) || self.options.checked) {
                known.length = Some(self.names.claim(&format!("{}_length", known.name)));
            }
            self.globals.insert(handle, known);
        }
        Ok(bound.into_iter().map(|(handle, _)| handle).collect())
    }

    /// The variables of the module that a function uses.
    fn used(&self, of: &FunctionInfo) -> Vec<Handle<GlobalVariable>> {
        self.module.global_variables.iter().map(|(handle, _)| handle).filter(|h| !of[*h].is_empty()).collect()
    }

    /// The parameters that a variable of the module is.
    fn declared(&mut self, handle: Handle<GlobalVariable>, entry: bool) -> Outcome<Vec<String>> {
        let global = &self.module.global_variables[handle];
        let Some(known) = self.globals.get(&handle).cloned() else {
            return refuse(None, "a variable that the entry point does not use");
        };
        if global.space == AddressSpace::Uniform {
            return match &self.module.types[global.ty].inner {
                TypeInner::Struct { members, .. } => members
                    .iter()
                    .zip(&known.members)
                    .map(|(member, name)| Ok(format!("const {} {name}", self.type_name(member.ty)?)))
                    .collect(),
                _ => Ok(vec![format!("const {} {}", self.type_name(global.ty)?, known.name)]),
            };
        }
        if let Some(image) = images::argument(&self.module.types[global.ty].inner) {
            return Ok(vec![format!("{image} {}", known.name)]);
        }
        let element = match (known.plain, &self.module.types[global.ty].inner) {
            (true, TypeInner::Array { base, .. }) => *base,
            _ => global.ty,
        };
        let span = self.module.global_variables.get_span(handle);
        let ty = self.type_name(element).map_err(|refusal| refusal.at(span))?;
        let restrict = if entry { " restrict" } else { "" };
        let mut all = vec![format!("{}{ty}*{restrict} {}", space_name(global.space)?, known.name)];
        if !entry {
            all.extend(known.length.map(|length| format!("const uint {length}")));
        }
        Ok(all)
    }

    /// The arguments that pass a variable of the module on to a function.
    pub(super) fn passed(&self, handle: Handle<GlobalVariable>, entry: bool) -> Vec<String> {
        let Some(known) = self.globals.get(&handle) else { return Vec::new() };
        match self.module.global_variables[handle].space {
            AddressSpace::Uniform if known.members.is_empty() => vec![known.name.clone()],
            AddressSpace::Uniform => known.members.clone(),
            AddressSpace::WorkGroup | AddressSpace::Private if entry && !known.plain => {
                vec![format!("&{}", known.name)]
            }
            _ => [Some(known.name.clone()), known.length.clone()].into_iter().flatten().collect(),
        }
    }

    fn function(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
        name: &str,
        globals: &[Handle<GlobalVariable>],
        pure: &HashSet<Handle<Function>>,
    ) -> Outcome<String> {
        let result = match &function.result {
            Some(result) => self.type_name(result.ty)?,
            None => "void".to_owned(),
        };
        let mut names = self.names.clone();
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let name = names.claim(argument.name.as_deref().unwrap_or("argument"));
            parameters.push(match self.module.types[argument.ty].inner {
                TypeInner::Pointer { base, space } => {
                    format!("{}{}* {name}", space_name(space)?, self.type_name(base)?)
                }
                TypeInner::ValuePointer { .. } => return refuse(None, "a pointer to a lane as an argument"),
                _ => format!("const {} {name}", self.type_name(argument.ty)?),
            });
            arguments.push(name);
        }
        for handle in globals {
            parameters.extend(self.declared(*handle, false)?);
        }
        let body = self.body(function, info, names, arguments, false, pure, |_| Ok(()))?;
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        Ok(format!("static {result} {name}({parameters}) {{\n{body}}}\n"))
    }

    #[expect(clippy::too_many_arguments, reason = "what a body is made of has no other name")]
    fn body(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
        names: Names,
        arguments: Vec<String>,
        entry: bool,
        pure: &HashSet<Handle<Function>>,
        first: impl FnOnce(&mut Body<'_, 'a>) -> Outcome<()>,
    ) -> Outcome<String> {
        let module = self.module;
        if self.options.checked {
            check_variables(module, function)?;
        }
        let analysis = analyse(module, function, pure, &|handle| info[handle].ty.inner_with(&module.types));
        let mut body = Body {
            m: self,
            function,
            info,
            analysis,
            names,
            values: HashMap::new(),
            locals: HashMap::new(),
            arguments,
            entry,
            out: String::new(),
            depth: 1,
            tail: true,
            continues: Vec::new(),
        };
        first(&mut body)?;
        body.statements(&function.body, 0)?;
        Ok(body.out)
    }

    fn entry_body(
        &mut self,
        point: &'a EntryPoint,
        info: &'a FunctionInfo,
        pure: &HashSet<Handle<Function>>,
    ) -> Outcome<String> {
        let mut names = self.names.clone();
        let arguments: Vec<String> = point
            .function
            .arguments
            .iter()
            .map(|argument| names.claim(argument.name.as_deref().unwrap_or("argument")))
            .collect();
        let inputs = arguments.clone();
        self.body(&point.function, info, names, arguments, true, pure, |body| {
            body.module_variables(point)?;
            for (argument, name) in point.function.arguments.iter().zip(&inputs) {
                body.input(point, argument.ty, argument.binding.as_ref(), name)?;
            }
            Ok(())
        })
    }

    /// Adds a function of the writer's own, once.
    pub(super) fn helper(&mut self, name: &str, text: String) {
        if !self.helpers.iter().any(|(known, _)| known == name) {
            self.helpers.push((name.to_owned(), text));
        }
    }

    pub(super) fn type_name(&mut self, ty: Handle<Type>) -> Outcome<String> {
        self.types.name(self.module, &mut self.names, ty)
    }

    pub(super) fn inner_name(&mut self, inner: &TypeInner) -> Outcome<String> {
        self.types.inner(&mut self.names, inner)
    }
}
