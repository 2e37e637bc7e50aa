//! Which values of a function get a variable, and where its variables are declared.
//!
//! naga's statements say when an expression is evaluated. It is printed where it is used instead, unless
//! that could change its value or compute it twice: a value gets a variable where it has a name, where it
//! is used more than once, and where it was read from memory that a statement between the two may write.

use super::kept::operands;
use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Statement,
    TypeInner, UnaryOperator,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// `left && right` or `left || right`, which naga takes apart into statements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logical {
    pub(super) op: BinaryOperator,
    pub(super) left: Handle<Expression>,
    pub(super) right: Handle<Expression>,
}

/// A function and what it is called with.
pub(super) type Call = (Handle<Function>, Vec<Handle<Expression>>);

/// A block, by its address: naga gives blocks no handles.
pub(super) type BlockId = usize;

pub(super) fn id(block: &Block) -> BlockId {
    std::ptr::from_ref(block).addr()
}

/// Where a variable is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    /// By the statement that first stores to it; `for_loop` if only the next statement uses it.
    ByStore { for_loop: bool },
    /// Before the statement of this number of the block; `for_loop` if only that one uses it.
    Before { block: BlockId, number: usize, for_loop: bool },
}

/// The decisions about one function.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    /// Values with a variable of their own.
    pub(super) kept: HashSet<Handle<Expression>>,
    /// What a temporary of naga's stands for.
    pub(super) logicals: HashMap<Handle<LocalVariable>, Logical>,
    pub(super) declared: BTreeMap<Handle<LocalVariable>, Declared>,
    /// How often a value is used in the text.
    pub(super) uses: HashMap<Handle<Expression>, usize>,
    /// The arguments of calls of functions that only compute, by their results.
    pub(super) pure_calls: HashMap<Handle<Expression>, Call>,
}

/// The parent of a block, the number of the statement that it belongs to, and whether it is repeated.
pub(super) type Parent = (BlockId, usize, bool);

pub(super) struct Walk<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    pure_functions: &'a HashSet<Handle<Function>>,
    epoch: u32,
    pub(super) emitted: HashMap<Handle<Expression>, u32>,
    /// Operands of statements, with the epoch at which they are printed.
    pub(super) printed: Vec<(Handle<Expression>, u32)>,
    pub(super) parents: HashMap<BlockId, Parent>,
    /// Where variables occur: the block and the statement's number in it, and whether it stores the whole.
    pub(super) occurrences: BTreeMap<Handle<LocalVariable>, Vec<(BlockId, usize, bool)>>,
    /// The conditional of a candidate's expressions.
    guarded: HashMap<Handle<LocalVariable>, Vec<Handle<Expression>>>,
    pub(super) out: Analysis,
}

/// Analyses `function`, whose values have the types that `inner` says.
pub(super) fn analyse<'a>(
    module: &'a Module,
    function: &'a Function,
    pure_functions: &HashSet<Handle<Function>>,
    inner: &dyn Fn(Handle<Expression>) -> &'a TypeInner,
) -> Analysis {
    let mut dropped = HashSet::new();
    loop {
        let mut walk = Walk {
            module,
            function,
            pure_functions,
            epoch: 0,
            emitted: HashMap::new(),
            printed: Vec::new(),
            parents: HashMap::new(),
            occurrences: BTreeMap::new(),
            guarded: HashMap::new(),
            out: Analysis::default(),
        };
        walk.block(&function.body, &dropped);
        walk.count_uses();
        walk.choose_kept(inner);
        // An expression of the right side with a variable of its own needs the statements after all.
        let broken = walk
            .guarded
            .iter()
            .filter(|(_, guarded)| guarded.iter().any(|handle| walk.out.kept.contains(handle)))
            .map(|(local, _)| *local)
            .collect::<Vec<_>>();
        let before = dropped.len();
        dropped.extend(broken);
        if dropped.len() == before {
            walk.place_declarations();
            return walk.out;
        }
    }
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, dropped: &HashSet<Handle<LocalVariable>>) {
        for (number, statement) in block.iter().enumerate() {
            let here = (id(block), number);
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        self.emitted.insert(handle, self.epoch);
                        operands(&self.function.expressions[handle], &mut |operand| {
                            self.occurs(operand, here, false);
                        });
                    }
                }
                Statement::Block(inner) => self.nested(inner, here, false, dropped),
                Statement::If { condition, accept, reject } => {
                    let logical = self.logical(*condition, accept, reject);
                    if let Some((local, logical)) = logical.filter(|(local, _)| !dropped.contains(local)) {
                        self.guard(local, accept, here, dropped);
                        self.out.logicals.insert(local, logical);
                        continue;
                    }
                    self.print(*condition, here);
                    for side in [accept, reject] {
                        self.epoch += 1;
                        self.nested(side, here, false, dropped);
                    }
                    self.epoch += 1;
                }
                Statement::Switch { selector, cases } => {
                    self.print(*selector, here);
                    for case in cases {
                        self.epoch += 1;
                        self.nested(&case.body, here, false, dropped);
                    }
                    self.epoch += 1;
                }
                Statement::Loop { body, continuing, break_if } => {
                    self.epoch += 1;
                    self.nested(body, here, true, dropped);
                    self.epoch += 1;
                    self.nested(continuing, here, true, dropped);
                    if let Some(condition) = break_if {
                        self.print(*condition, (id(continuing), continuing.len()));
                    }
                    self.epoch += 1;
                }
                Statement::Return { value } => {
                    value.iter().for_each(|value| self.print(*value, here));
                }
                Statement::Store { pointer, value } => {
                    self.print(*value, here);
                    self.printed.push((*pointer, self.epoch));
                    self.occurs(*pointer, here, true);
                    self.epoch += 1;
                }
                Statement::Call { function, arguments, result } => {
                    for argument in arguments {
                        self.occurs(*argument, here, false);
                    }
                    match result {
                        Some(result) if self.pure_functions.contains(function) => {
                            self.emitted.insert(*result, self.epoch);
                            self.out.pure_calls.insert(*result, (*function, arguments.clone()));
                        }
                        _ => {
                            arguments.iter().for_each(|argument| self.print(*argument, here));
                            self.epoch += 1;
                        }
                    }
                }
                Statement::Atomic { pointer, fun, value, .. } => {
                    self.print(*pointer, here);
                    self.print(*value, here);
                    if let naga::AtomicFunction::Exchange { compare: Some(compare) } = fun {
                        self.print(*compare, here);
                    }
                    self.epoch += 1;
                }
                Statement::WorkGroupUniformLoad { pointer, .. } => {
                    self.print(*pointer, here);
                    self.epoch += 1;
                }
                Statement::ImageStore { image, coordinate, value, .. } => {
                    for handle in [image, coordinate, value] {
                        self.print(*handle, here);
                    }
                    self.epoch += 1;
                }
                _ => self.epoch += 1,
            }
        }
    }

    fn nested(
        &mut self,
        block: &Block,
        (parent, number): (BlockId, usize),
        repeated: bool,
        dropped: &HashSet<Handle<LocalVariable>>,
    ) {
        self.parents.insert(id(block), (parent, number, repeated));
        self.block(block, dropped);
    }

    fn print(&mut self, handle: Handle<Expression>, here: (BlockId, usize)) {
        self.printed.push((handle, self.epoch));
        self.occurs(handle, here, false);
    }

    fn occurs(&mut self, handle: Handle<Expression>, (block, number): (BlockId, usize), stored: bool) {
        if let Expression::LocalVariable(local) = self.function.expressions[handle] {
            self.occurrences.entry(local).or_default().push((block, number, stored));
        }
    }

    /// The operator that naga took apart into a conditional, if this is one.
    fn logical(
        &self,
        condition: Handle<Expression>,
        accept: &Block,
        reject: &Block,
    ) -> Option<(Handle<LocalVariable>, Logical)> {
        let expressions = &self.function.expressions;
        let [Statement::Store { pointer, value: otherwise }] = &reject[..] else { return None };
        let Expression::LocalVariable(local) = expressions[*pointer] else { return None };
        let Expression::Literal(Literal::Bool(or)) = expressions[*otherwise] else { return None };
        let [before @ .., Statement::Store { pointer: last, value: right }] = &accept[..] else {
            return None;
        };
        let only_values = before.iter().all(|statement| match statement {
            Statement::Emit(_) => true,
            Statement::If { condition, accept, reject } => self.logical(*condition, accept, reject).is_some(),
            Statement::Call { function, .. } => self.pure_functions.contains(function),
            _ => false,
        });
        let same = matches!(expressions[*last], Expression::LocalVariable(other) if other == local);
        if self.function.local_variables[local].name.is_some() || !same || !only_values {
            return None;
        }
        let (op, left) = match (or, &expressions[condition]) {
            (false, _) => (BinaryOperator::LogicalAnd, condition),
            (true, Expression::Unary { op: UnaryOperator::LogicalNot, expr }) => {
                (BinaryOperator::LogicalOr, *expr)
            }
            (true, _) => return None,
        };
        Some((local, Logical { op, left, right: *right }))
    }

    /// Walks the right side of a logical operator, whose expressions may have no variable.
    fn guard(
        &mut self,
        local: Handle<LocalVariable>,
        accept: &Block,
        here: (BlockId, usize),
        dropped: &HashSet<Handle<LocalVariable>>,
    ) {
        let last = accept.len().saturating_sub(1);
        for statement in accept.iter().take(last) {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        self.emitted.insert(handle, self.epoch);
                        self.guarded.entry(local).or_default().push(handle);
                        operands(&self.function.expressions[handle], &mut |operand| {
                            self.occurs(operand, here, false);
                        });
                    }
                }
                Statement::Call { function, arguments, result: Some(result) } => {
                    self.emitted.insert(*result, self.epoch);
                    self.guarded.entry(local).or_default().push(*result);
                    self.out.pure_calls.insert(*result, (*function, arguments.clone()));
                }
                Statement::If { condition, accept, reject } => {
                    let Some((inner, logical)) = self.logical(*condition, accept, reject) else { continue };
                    if dropped.contains(&inner) {
                        // Then this one needs its statements as well.
                        self.guarded.entry(local).or_default().push(*condition);
                        self.out.kept.insert(*condition);
                    }
                    self.guard(inner, accept, here, dropped);
                    let guarded = self.guarded.get(&inner).cloned().unwrap_or_default();
                    self.guarded.entry(local).or_default().extend(guarded);
                    self.out.logicals.insert(inner, logical);
                }
                _ => {}
            }
        }
        self.guarded.entry(local).or_default();
    }

    fn count_uses(&mut self) {
        let mut uses: HashMap<Handle<Expression>, usize> = HashMap::new();
        let mut queue: Vec<Handle<Expression>> = self.printed.iter().map(|(handle, _)| *handle).collect();
        let mut seen = HashSet::new();
        while let Some(handle) = queue.pop() {
            *uses.entry(handle).or_default() += 1;
            if seen.insert(handle) {
                self.children(handle, &mut |child| queue.push(child));
            }
        }
        self.out.uses = uses;
    }

    /// What the printed text of `handle` is made of.
    pub(super) fn children(&self, handle: Handle<Expression>, visit: &mut dyn FnMut(Handle<Expression>)) {
        if let Some((_, arguments)) = self.out.pure_calls.get(&handle) {
            arguments.iter().for_each(|argument| visit(*argument));
        }
        if let Some(logical) = self.logical_of(handle) {
            visit(logical.left);
            visit(logical.right);
            return;
        }
        operands(&self.function.expressions[handle], visit);
    }

    pub(super) fn logical_of(&self, handle: Handle<Expression>) -> Option<Logical> {
        let Expression::Load { pointer } = self.function.expressions[handle] else { return None };
        let Expression::LocalVariable(local) = self.function.expressions[pointer] else { return None };
        self.out.logicals.get(&local).copied()
    }
}
