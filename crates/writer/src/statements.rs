//! Statements.

use super::analysis::{Declared, id};
use super::expressions::{Body, Text, literal};
use super::types;
use super::{Outcome, refuse};
use naga::{
    AddressSpace, AtomicFunction, Barrier, BinaryOperator, Block, Expression, Handle, LocalVariable,
    ScalarKind, Statement, SwitchValue, TypeInner,
};

/// The declaration of a variable that a loop alone uses.
pub(super) struct Init {
    pub(super) local: Handle<LocalVariable>,
    pub(super) text: String,
}

impl Body<'_, '_> {
    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(&"    ".repeat(self.depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Prints the statements of a block from number `from` on. Names are unique in a function, so that
    /// only control flow needs braces.
    pub(super) fn statements(&mut self, block: &Block, from: usize) -> Outcome<()> {
        let mut init: Option<Init> = None;
        let tail = self.tail;
        for (number, (statement, span)) in block.span_iter().enumerate().skip(from) {
            self.tail = tail && number + 1 == block.len();
            // Declared by the store before: only a loop takes it into its head.
            if !matches!(statement, Statement::Loop { .. })
                && let Some(Init { text, .. }) = init.take()
            {
                self.line(&format!("{text};"));
            }
            self.declare_before(block, number, statement, &mut init).map_err(|refusal| refusal.at(*span))?;
            self.statement(statement, &mut init).map_err(|refusal| refusal.at(*span))?;
        }
        if let Some(Init { text, .. }) = init {
            self.line(&format!("{text};"));
        }
        self.tail = tail;
        Ok(())
    }

    fn declare_before(
        &mut self,
        block: &Block,
        number: usize,
        statement: &Statement,
        init: &mut Option<Init>,
    ) -> Outcome<()> {
        let here = id(block);
        let declared: Vec<(Handle<LocalVariable>, bool)> = self
            .analysis
            .declared
            .iter()
            .filter_map(|(local, declared)| match declared {
                Declared::Before { block, number: at, for_loop } => {
                    (*block == here && *at == number).then_some((*local, *for_loop))
                }
                Declared::ByStore { .. } => None,
            })
            .collect();
        for (local, for_loop) in declared {
            let value = match self.function.local_variables[local].init {
                Some(value) => self.expression(value)?,
                None => self.m.zero(self.function.local_variables[local].ty)?,
            };
            let text = self.declaration(local, &value)?;
            if for_loop && matches!(statement, Statement::Loop { .. }) && init.is_none() {
                *init = Some(Init { local, text });
            } else {
                self.line(&format!("{text};"));
            }
        }
        Ok(())
    }

    /// Declares a variable with its first value.
    fn declaration(&mut self, local: Handle<LocalVariable>, value: &Text) -> Outcome<String> {
        let variable = &self.function.local_variables[local];
        let ty = self.m.type_name(variable.ty)?;
        let name = self.names.claim(variable.name.as_deref().unwrap_or("value"));
        self.locals.insert(local, name.clone());
        Ok(format!("{ty} {name} = {}", value.text))
    }

    fn statement(&mut self, statement: &Statement, init: &mut Option<Init>) -> Outcome<()> {
        match statement {
            _ if self.is_silent(statement) => {}
            Statement::Emit(range) => {
                for handle in range.clone() {
                    if self.analysis.kept.contains(&handle) {
                        let value = self
                            .computed(handle)
                            .map_err(|refusal| refusal.at(self.function.expressions.get_span(handle)))?;
                        self.keep(handle, &value.text)?;
                    }
                }
            }
            Statement::Block(inner) => self.statements(inner, 0)?,
            Statement::If { condition, accept, reject } => self.print_if(*condition, accept, reject)?,
            Statement::Switch { selector, cases } => self.print_switch(*selector, cases)?,
            Statement::Loop { body, continuing, break_if } => {
                self.print_loop(body, continuing, *break_if, init.take())?;
            }
            Statement::Break => self.line("break;"),
            Statement::Continue => match self.continues.last() {
                Some(Some(label)) => self.line(&format!("goto {label};")),
                _ => self.line("continue;"),
            },
            // naga ends every branch that ends a function with a return.
            Statement::Return { value: None } if self.tail => {}
            Statement::Return { value: None } => self.line("return;"),
            Statement::Return { value: Some(value) } => {
                let value = self.expression(*value)?;
                self.line(&format!("return {};", value.text));
            }
            Statement::ControlBarrier(flags) => self.barrier(*flags)?,
            Statement::MemoryBarrier(flags) => {
                let fences = fences(*flags)?;
                self.line(&format!("mem_fence({fences});"));
            }
            Statement::Store { pointer, value } => {
                if let Some((first, for_loop)) = self.first_store(*pointer, *value)? {
                    match for_loop {
                        true => *init = Some(first),
                        false => self.line(&format!("{};", first.text)),
                    }
                    return Ok(());
                }
                let text = self.store(*pointer, *value)?;
                self.line(&text);
            }
            Statement::Call { function, arguments, result } => {
                let text = self.call(*function, arguments)?;
                match result {
                    Some(result) => self.keep(*result, &text)?,
                    None => self.line(&format!("{text};")),
                }
            }
            Statement::Atomic { pointer, fun, value, result } => {
                self.atomic(*pointer, *fun, *value, *result)?;
            }
            Statement::ImageStore { image, coordinate, array_index: None, value } => {
                self.image_store(*image, *coordinate, *value)?;
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let place = self.place(*pointer)?;
                self.barrier(Barrier::WORK_GROUP)?;
                self.keep(*result, &place.text)?;
                self.barrier(Barrier::WORK_GROUP)?;
            }
            other => return refuse(None, describe(other)),
        }
        Ok(())
    }

    /// Gives a value a variable.
    fn keep(&mut self, handle: Handle<Expression>, value: &str) -> Outcome<()> {
        let ty = self.type_of(handle)?;
        let wanted = self.function.named_expressions.get(&handle).map_or("value", String::as_str);
        let name = self.names.claim(wanted);
        self.line(&format!("const {ty} {name} = {value};"));
        self.values.insert(handle, name);
        Ok(())
    }

    /// The declaration by a variable's first store, and whether the next statement is the only one that
    /// uses it, which may be a loop.
    fn first_store(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Outcome<Option<(Init, bool)>> {
        let Expression::LocalVariable(local) = self.function.expressions[pointer] else { return Ok(None) };
        let Some(Declared::ByStore { for_loop }) = self.analysis.declared.get(&local).copied() else {
            return Ok(None);
        };
        if self.locals.contains_key(&local) {
            return Ok(None);
        }
        let value = self.expression(value)?;
        let text = self.declaration(local, &value)?;
        Ok(Some((Init { local, text }, for_loop)))
    }

    /// An assignment.
    pub(super) fn store(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Outcome<String> {
        if let Some(text) = self.stored_half(pointer, value)? {
            return Ok(text);
        }
        if let Some(text) = self.compound(pointer, value)? {
            return Ok(text);
        }
        let text = self.expression(value)?;
        let place = self.place(pointer)?;
        if let TypeInner::Atomic(_) = *self.pointee(pointer)? {
            return Ok(format!("atomic_xchg(&{}, {});", place.wrap(0), text.text));
        }
        let text = if self.is_bool_lane(pointer) { format!("-(int)({})", text.text) } else { text.text };
        Ok(format!("{} = {text};", place.text))
    }

    /// `x += y` for `x = x + y`.
    fn compound(
        &mut self,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
    ) -> Outcome<Option<String>> {
        let Expression::LocalVariable(local) = self.function.expressions[pointer] else { return Ok(None) };
        let Expression::Binary { op, left, right } = self.function.expressions[value] else {
            return Ok(None);
        };
        let Expression::Load { pointer: from } = self.function.expressions[left] else { return Ok(None) };
        let same =
            matches!(self.function.expressions[from], Expression::LocalVariable(other) if other == local);
        let sign = match op {
            BinaryOperator::Add => "+=",
            BinaryOperator::Subtract => "-=",
            BinaryOperator::Multiply => "*=",
            _ => return Ok(None),
        };
        let number = matches!(self.scalar_kind(value), Some(ScalarKind::Uint | ScalarKind::Float));
        let matrix = [value, right].iter().any(|side| matches!(self.inner(*side), TypeInner::Matrix { .. }));
        let kept = [value, left].iter().any(|handle| self.values.contains_key(handle));
        if !same || !number || matrix || kept {
            return Ok(None);
        }
        let name = self.local(local)?;
        let right = self.expression(right)?;
        Ok(Some(format!("{} {sign} {};", name.text, right.text)))
    }

    fn print_if(&mut self, condition: Handle<Expression>, accept: &Block, reject: &Block) -> Outcome<()> {
        let condition = self.expression(condition)?;
        let nothing = |block: &Block| {
            block.is_empty() || (self.tail && matches!(&block[..], [Statement::Return { value: None }]))
        };
        let reject_is_empty = nothing(reject);
        let (first, second) = match nothing(accept) && !reject_is_empty {
            true => {
                self.line(&format!("if (!{}) {{", condition.wrap(2)));
                (reject, None)
            }
            false => {
                self.line(&format!("if ({}) {{", condition.text));
                (accept, (!reject_is_empty).then_some(reject))
            }
        };
        self.inside(first)?;
        if let Some(second) = second {
            self.line("} else {");
            self.inside(second)?;
        }
        self.line("}");
        Ok(())
    }

    fn inside(&mut self, block: &Block) -> Outcome<()> {
        self.depth += 1;
        self.statements(block, 0)?;
        self.depth -= 1;
        Ok(())
    }

    fn print_switch(&mut self, selector: Handle<Expression>, cases: &[naga::SwitchCase]) -> Outcome<()> {
        self.tail = false;
        let selector = self.expression(selector)?;
        self.line(&format!("switch ({}) {{", selector.text));
        for case in cases {
            let label = match case.value {
                SwitchValue::I32(value) => format!("case {}:", literal(naga::Literal::I32(value))?.text),
                SwitchValue::U32(value) => format!("case {value}u:"),
                SwitchValue::Default => "default:".to_owned(),
            };
            if case.fall_through && case.body.is_empty() {
                self.line(&label);
                continue;
            }
            self.line(&format!("{label} {{"));
            self.inside(&case.body)?;
            if !case.fall_through {
                self.depth += 1;
                self.line("break;");
                self.depth -= 1;
            }
            self.line("}");
        }
        self.line("}");
        Ok(())
    }

    pub(super) fn barrier(&mut self, flags: Barrier) -> Outcome<()> {
        let fences = fences(flags)?;
        self.line(&format!("barrier({fences});"));
        Ok(())
    }

    /// The address space of an atomic, as a pointer to it has it.
    pub(super) fn atomic_space(&self, pointer: Handle<Expression>) -> Outcome<&'static str> {
        match *self.inner(pointer) {
            TypeInner::Pointer { space: AddressSpace::WorkGroup, .. } => Ok("__local "),
            TypeInner::Pointer { space: AddressSpace::Storage { .. }, .. } => Ok("__global "),
            _ => refuse(None, "an atomic outside of storage buffers and the work-group's memory"),
        }
    }

    fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        function: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Outcome<()> {
        let (value, place) = (self.expression(value)?.text, self.place(pointer)?.wrap(0));
        let name = match function {
            AtomicFunction::Add => "add",
            AtomicFunction::Subtract => "sub",
            AtomicFunction::And => "and",
            AtomicFunction::ExclusiveOr => "xor",
            AtomicFunction::InclusiveOr => "or",
            AtomicFunction::Min => "min",
            AtomicFunction::Max => "max",
            AtomicFunction::Exchange { compare: None } => "xchg",
            AtomicFunction::Exchange { compare: Some(compare) } => {
                let Some(result) = result else { return refuse(None, "an exchange without a result") };
                let Some(of) = self.handle_of_type(result) else {
                    return refuse(None, "a struct without a type");
                };
                let scalar = match *self.pointee(pointer)? {
                    TypeInner::Atomic(scalar) => types::scalar(scalar)?,
                    _ => return refuse(None, "an exchange of what is no atomic"),
                };
                let compare = self.expression(compare)?.text;
                let ty = self.m.type_name(of)?;
                let [expected, old] = ["expected", "old"].map(|name| self.names.claim(name));
                self.line(&format!("const {scalar} {expected} = {compare};"));
                self.line(&format!("const {scalar} {old} = atomic_cmpxchg(&{place}, {expected}, {value});"));
                let (first, second) = (self.m.types.member(of, 0)?, self.m.types.member(of, 1)?);
                let made = format!("({ty}){{ .{first} = {old}, .{second} = {old} == {expected} }}");
                return self.keep(result, &made);
            }
        };
        let text = format!("atomic_{name}(&{place}, {value})");
        match result {
            Some(result) => self.keep(result, &text),
            None => {
                self.line(&format!("{text};"));
                Ok(())
            }
        }
    }
}

fn fences(flags: Barrier) -> Outcome<&'static str> {
    if flags.contains(Barrier::SUB_GROUP) {
        return refuse(None, "a subgroup's barrier");
    }
    let storage = flags.intersects(Barrier::STORAGE | Barrier::TEXTURE);
    Ok(match (flags.contains(Barrier::WORK_GROUP), storage) {
        (true, true) => "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE",
        (false, true) => "CLK_GLOBAL_MEM_FENCE",
        _ => "CLK_LOCAL_MEM_FENCE",
    })
}

/// A statement that is not printed, in the words of an error.
fn describe(statement: &Statement) -> String {
    match statement {
        Statement::Kill => "discard".to_owned(),
        Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => "a texture".to_owned(),
        Statement::SubgroupBallot { .. }
        | Statement::SubgroupGather { .. }
        | Statement::SubgroupCollectiveOperation { .. } => "a subgroup operation".to_owned(),
        Statement::CooperativeStore { .. } => "a cooperative matrix".to_owned(),
        Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => "ray tracing".to_owned(),
        other => {
            let text = format!("{other:?}");
            let name = text.split([' ', '(', '{']).next().unwrap_or_default();
            format!("the statement {name}")
        }
    }
}
