//! Which values get a variable.

use super::analysis::Walk;
use naga::{AddressSpace, Expression, Handle, StorageAccess, TypeInner};

impl Walk<'_> {
    pub(super) fn choose_kept<'b>(&mut self, inner: &dyn Fn(Handle<Expression>) -> &'b TypeInner) {
        let emitted: Vec<(Handle<Expression>, u32)> = self.emitted.iter().map(|(h, e)| (*h, *e)).collect();
        for &(handle, _) in &emitted {
            let uses = self.out.uses.get(&handle).copied().unwrap_or(0);
            let pointer = matches!(inner(handle), TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. });
            let named = self.function.named_expressions.contains_key(&handle);
            if uses > 0 && !pointer && (named || (uses > 1 && !self.is_cheap(handle))) {
                self.out.kept.insert(handle);
            }
        }
        loop {
            let mut late = Vec::new();
            for &(handle, epoch) in &self.printed {
                self.find_late(handle, epoch, &mut late);
            }
            for (handle, epoch) in &emitted {
                if self.out.kept.contains(handle) {
                    self.children(*handle, &mut |child| self.find_late(child, *epoch, &mut late));
                }
            }
            if late.is_empty() {
                return;
            }
            self.out.kept.extend(late);
        }
    }

    /// Finds what is read from memory, directly under `handle`, before the epoch at which it is printed.
    fn find_late(&self, handle: Handle<Expression>, epoch: u32, late: &mut Vec<Handle<Expression>>) {
        if self.out.kept.contains(&handle) {
            return;
        }
        if let Expression::Load { pointer } = self.function.expressions[handle]
            && self.logical_of(handle).is_none()
            && self.may_change(pointer)
            && self.emitted.get(&handle).is_some_and(|emitted| *emitted != epoch)
        {
            late.push(handle);
            return;
        }
        self.children(handle, &mut |child| self.find_late(child, epoch, late));
    }

    /// Whether what `pointer` points to may be written while the kernel runs.
    fn may_change(&self, mut pointer: Handle<Expression>) -> bool {
        loop {
            match self.function.expressions[pointer] {
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => pointer = base,
                Expression::GlobalVariable(global) => {
                    return match self.module.global_variables[global].space {
                        AddressSpace::Uniform => false,
                        AddressSpace::Storage { access } => access.contains(StorageAccess::STORE),
                        _ => true,
                    };
                }
                _ => return true,
            }
        }
    }

    /// Whether printing it twice costs nothing: a component of what has a name, or a parameter.
    fn is_cheap(&self, handle: Handle<Expression>) -> bool {
        match self.function.expressions[handle] {
            Expression::AccessIndex { base, .. } => {
                self.function.named_expressions.contains_key(&base)
                    || matches!(
                        self.function.expressions[base],
                        Expression::FunctionArgument(_) | Expression::GlobalVariable(_)
                    )
                    || (!self.emitted.contains_key(&base))
                    || self.is_cheap(base)
            }
            Expression::Load { pointer } => {
                self.logical_of(handle).is_none() && self.is_cheap(pointer) && self.is_uniform(pointer)
            }
            Expression::Literal(_) | Expression::Constant(_) | Expression::FunctionArgument(_) => true,
            _ => false,
        }
    }

    fn is_uniform(&self, mut pointer: Handle<Expression>) -> bool {
        while let Expression::AccessIndex { base, .. } = self.function.expressions[pointer] {
            pointer = base;
        }
        matches!(self.function.expressions[pointer], Expression::GlobalVariable(global)
            if self.module.global_variables[global].space == AddressSpace::Uniform)
    }
}

/// The operands of an expression.
pub(super) fn operands(expression: &Expression, visit: &mut dyn FnMut(Handle<Expression>)) {
    match *expression {
        Expression::Compose { ref components, .. } => components.iter().for_each(|part| visit(*part)),
        Expression::Access { base, index } => {
            visit(base);
            visit(index);
        }
        Expression::AccessIndex { base, .. } => visit(base),
        Expression::Splat { value, .. } => visit(value),
        Expression::Swizzle { vector, .. } => visit(vector),
        Expression::Load { pointer } => visit(pointer),
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => visit(expr),
        Expression::Binary { left, right, .. } => {
            visit(left);
            visit(right);
        }
        Expression::Select { condition, accept, reject } => {
            visit(condition);
            visit(accept);
            visit(reject);
        }
        Expression::Relational { argument, .. } => visit(argument),
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            [Some(arg), arg1, arg2, arg3].into_iter().flatten().for_each(visit);
        }
        Expression::ArrayLength(array) => visit(array),
        Expression::ImageLoad { image, coordinate, .. } => {
            visit(image);
            visit(coordinate);
        }
        _ => {}
    }
}
