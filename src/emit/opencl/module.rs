//! A kernel as a whole: constants, arguments, functions.

use super::analysis::analyse;
use super::expressions::{Body, Text, literal};
use super::images;
use super::names::Names;
use super::places::space_name;
use super::types::{self, Types};
use super::{Options, Outcome, Printed, refuse};
use crate::emit::halves;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, Binding, Block, BuiltIn, Constant, EntryPoint, Expression, Function,
    GlobalVariable, Handle, Module, ScalarKind, ShaderStage, Statement, Type, TypeInner,
};
use std::collections::{HashMap, HashSet};

/// What is known of a variable of the module.
#[derive(Debug, Clone)]
pub(super) struct Known {
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
    constants: HashMap<Handle<Constant>, String>,
    /// Whether a constant's definition has been printed.
    defined: HashSet<Handle<Constant>>,
    definitions: String,
    tables: String,
    pub(super) globals: HashMap<Handle<GlobalVariable>, Known>,
    pub(super) functions: HashMap<Handle<Function>, Callee>,
}

/// Prints the kernel `entry`.
pub(super) fn print(module: &Module, info: &ModuleInfo, entry: &str, options: Options) -> Outcome<Printed> {
    let found = module.entry_points.iter().enumerate().find(|(_, point)| point.name == entry);
    let Some((index, point)) = found else {
        let names: Vec<&str> = module.entry_points.iter().map(|point| point.name.as_str()).collect();
        return refuse(None, format!("the entry point {entry} (there are {names:?})"));
    };
    if point.stage != ShaderStage::Compute || point.workgroup_size_overrides.is_some() {
        return refuse(None, format!("{entry}, which is no compute shader of a known work-group,"));
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
    ) -> Outcome<Printed> {
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
        let prelude = if self.options.halves { halves::ARITHMETIC } else { "" };
        let helpers: String = self.helpers.iter().map(|(_, text)| text.as_str()).collect();
        let parts =
            [self.definitions.as_str(), &self.types.definitions, &self.tables, &helpers, &functions, &kernel];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let binding_of = |handle: &Handle<GlobalVariable>| {
            self.module.global_variables[*handle].binding.map(|binding| binding.binding)
        };
        Ok(Printed {
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
            let mut known = Known {
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
                                format!("the uniform member {member}, which is no scalar,"),
                            );
                        };
                        known.members.push(self.names.claim(member.name.as_deref().unwrap_or("member")));
                    }
                }
                (AddressSpace::Uniform, TypeInner::Scalar(_)) => known.name = self.names.claim(wanted),
                (AddressSpace::Uniform, _) => {
                    return refuse(
                        Some(span),
                        format!("the uniform {wanted}, which is no struct of scalars,"),
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
    fn global_value(&mut self, handle: Handle<Expression>) -> Outcome<Text> {
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

    fn members(&self, ty: Handle<Type>, values: &[String]) -> Outcome<String> {
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

impl Body<'_, '_> {
    /// Declares the module's variables of the work-group and of the invocation.
    fn module_variables(&mut self, point: &EntryPoint) -> Outcome<()> {
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
    fn input(
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

/// How the module's arrays are used.
#[derive(Default)]
struct Usage {
    /// As a whole, not only element by element.
    whole: HashSet<Handle<GlobalVariable>>,
    /// By `arrayLength`.
    measured: HashSet<Handle<GlobalVariable>>,
}

impl Usage {
    fn scan(&mut self, function: &Function) {
        let mut of_elements = HashSet::new();
        let mut all = HashMap::new();
        for (handle, expression) in function.expressions.iter() {
            match *expression {
                Expression::GlobalVariable(global) => {
                    all.insert(handle, global);
                }
                // An index, or a length: neither needs the array as a value.
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                    of_elements.insert(base);
                }
                Expression::ArrayLength(array) => {
                    of_elements.insert(array);
                    if let Expression::GlobalVariable(global) = function.expressions[array] {
                        self.measured.insert(global);
                    }
                }
                _ => {}
            }
        }
        let mut whole = |handle: Handle<Expression>| self.whole.extend(all.get(&handle));
        for (_, expression) in function.expressions.iter() {
            if let Expression::Load { pointer } = *expression {
                whole(pointer);
            }
        }
        arguments(&function.body, &mut whole);
    }
}

/// What statements store to or pass to functions.
fn arguments(block: &Block, visit: &mut dyn FnMut(Handle<Expression>)) {
    for statement in block.iter() {
        match statement {
            Statement::Store { pointer, .. } | Statement::WorkGroupUniformLoad { pointer, .. } => {
                visit(*pointer)
            }
            Statement::Call { arguments, .. } => arguments.iter().for_each(|argument| visit(*argument)),
            _ => nested(statement, &mut |inner| arguments(inner, visit)),
        }
    }
}

fn nested(statement: &Statement, visit: &mut dyn FnMut(&Block)) {
    match statement {
        Statement::Block(inner) => visit(inner),
        Statement::If { accept, reject, .. } => {
            visit(accept);
            visit(reject);
        }
        Statement::Switch { cases, .. } => cases.iter().for_each(|case| visit(&case.body)),
        Statement::Loop { body, continuing, .. } => {
            visit(body);
            visit(continuing);
        }
        _ => {}
    }
}

/// The functions that a body calls, and those that they call.
fn reachable(module: &Module, body: &Block) -> HashSet<Handle<Function>> {
    fn calls(block: &Block, found: &mut Vec<Handle<Function>>) {
        for statement in block.iter() {
            if let Statement::Call { function, .. } = statement {
                found.push(*function);
            }
            nested(statement, &mut |inner| calls(inner, found));
        }
    }
    let mut queue = Vec::new();
    calls(body, &mut queue);
    let mut all = HashSet::new();
    while let Some(function) = queue.pop() {
        if all.insert(function) {
            calls(&module.functions[function].body, &mut queue);
        }
    }
    all
}

/// Whether a function's body only computes its result, so that a call of it may stand in an expression.
fn only_computes(body: &Block, pure: &HashSet<Handle<Function>>) -> bool {
    body.iter().all(|statement| match statement {
        Statement::Emit(_) | Statement::Return { value: Some(_) } => true,
        Statement::Call { function, result: Some(_), .. } => pure.contains(function),
        _ => false,
    })
}
