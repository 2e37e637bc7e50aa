//! What functions call, and how they use the module's variables.

use super::{Outcome, refuse};
use naga::{AddressSpace, Block, Expression, Function, GlobalVariable, Handle, Module, Statement, Type};
use std::collections::{HashMap, HashSet};

/// Most bytes of a function's variables, and of the module's private ones: the limit of the WGSL
/// specification (13.4, "Limits").
const MAX_VARIABLE_BYTES: u64 = 8192;

/// How the module's arrays are used.
#[derive(Default)]
pub(super) struct Usage {
    /// Arrays that are used as a whole, not only element by element.
    pub(super) whole: HashSet<Handle<GlobalVariable>>,
    /// Arrays of which `arrayLength` is taken.
    pub(super) measured: HashSet<Handle<GlobalVariable>>,
}

impl Usage {
    pub(super) fn scan(&mut self, function: &Function) {
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
pub(super) fn reachable(module: &Module, body: &Block) -> HashSet<Handle<Function>> {
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
pub(super) fn only_computes(body: &Block, pure: &HashSet<Handle<Function>>) -> bool {
    body.iter().all(|statement| match statement {
        Statement::Emit(_) | Statement::Return { value: Some(_) } => true,
        Statement::Call { function, result: Some(_), .. } => pure.contains(function),
        _ => false,
    })
}

/// Refuses variables of an invocation that no implementation of WGSL needs to have room for: drivers
/// that run kernels on a CPU keep them on a stack.
pub(super) fn check_variables(module: &Module, function: &Function) -> Outcome<()> {
    let bytes = |ty: Handle<Type>| u64::from(module.types[ty].inner.size(module.to_ctx()));
    let own = function.local_variables.iter().map(|(_, variable)| bytes(variable.ty));
    let private = module
        .global_variables
        .iter()
        .filter(|(_, global)| global.space == AddressSpace::Private)
        .map(|(_, global)| bytes(global.ty));
    for (space, total) in [("function", own.sum::<u64>()), ("private", private.sum())] {
        if total > MAX_VARIABLE_BYTES {
            return refuse(
                None,
                format!(
                    "variables of {total} bytes in the address space {space}, where WGSL promises {MAX_VARIABLE_BYTES}"
                ),
            );
        }
    }
    Ok(())
}
