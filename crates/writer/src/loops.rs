//! Loops: `for (init; condition; update)` where the parts are there, else `for (;;)`.

use super::Outcome;
use super::analysis::Declared;
use super::expressions::Body;
use super::kept::operands;
use super::statements::Init;
use naga::{Block, Expression, Handle, LocalVariable, Statement};

impl Body<'_, '_> {
    /// Prints a loop; `init` declares the variable that only it uses.
    pub(super) fn print_loop(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Handle<Expression>>,
        init: Option<Init>,
    ) -> Outcome<()> {
        self.tail = false;
        let leading = self.leading_condition(body);
        let init = match (init, leading) {
            (Some(init), Some((condition, _))) if self.mentions(condition, init.local) => init.text,
            (Some(init), _) => {
                self.line(&format!("{};", init.text));
                String::new()
            }
            (None, _) => String::new(),
        };
        let (condition, rest) = match leading {
            Some((condition, rest)) => (self.expression(condition)?.text, rest),
            None => (String::new(), 0),
        };
        let update = match break_if {
            None => self.update(continuing)?,
            Some(_) => None,
        };
        let after = update.is_none();
        // A `continue` of C would leave out what comes after the body.
        let label = (after && has_continue(body)).then(|| self.names.claim("continuing"));
        let clause = |text: String| if text.is_empty() { text } else { format!(" {text}") };
        let header =
            format!("for ({};{};{}) {{", init, clause(condition), clause(update.unwrap_or_default()));
        self.line(&header);
        self.depth += 1;
        self.continues.push(label.clone());
        self.statements(body, rest)?;
        self.continues.pop();
        if after {
            if let Some(label) = label {
                self.line(&format!("{label}:;"));
            }
            self.statements(continuing, 0)?;
            if let Some(condition) = break_if {
                let condition = self.expression(condition)?;
                self.line(&format!("if ({}) {{", condition.text));
                self.depth += 1;
                self.line("break;");
                self.depth -= 1;
                self.line("}");
            }
        }
        self.depth -= 1;
        self.line("}");
        Ok(())
    }

    /// Whether the text of an expression reads a variable.
    fn mentions(&self, handle: Handle<Expression>, local: Handle<LocalVariable>) -> bool {
        if self.values.contains_key(&handle) {
            return false;
        }
        if let Expression::LocalVariable(own) = self.function.expressions[handle] {
            let logical = self.analysis.logicals.get(&own);
            return own == local
                || logical.is_some_and(|l| self.mentions(l.left, local) || self.mentions(l.right, local));
        }
        let mut found = false;
        operands(&self.function.expressions[handle], &mut |operand| found |= self.mentions(operand, local));
        found
    }

    /// The condition that a loop begins with, and the number of the statement after it.
    fn leading_condition(&self, body: &Block) -> Option<(Handle<Expression>, usize)> {
        for (number, statement) in body.iter().enumerate() {
            match statement {
                _ if self.is_silent(statement) => {}
                Statement::If { condition, accept, reject }
                    if accept.is_empty() && matches!(&reject[..], [Statement::Break]) =>
                {
                    return Some((*condition, number + 1));
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether nothing is printed for a statement: its values are printed where they are used.
    pub(super) fn is_silent(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Emit(range) => range.clone().all(|handle| !self.analysis.kept.contains(&handle)),
            Statement::If { .. } => self.is_logical(statement),
            Statement::Call { result: Some(result), .. } => {
                self.analysis.pure_calls.contains_key(result) && !self.analysis.kept.contains(result)
            }
            _ => false,
        }
    }

    /// Whether a conditional is one side of a logical operator.
    pub(super) fn is_logical(&self, statement: &Statement) -> bool {
        let Statement::If { reject, .. } = statement else { return false };
        matches!(&reject[..], [Statement::Store { pointer, .. }]
            if matches!(self.function.expressions[*pointer], Expression::LocalVariable(local)
                if self.analysis.logicals.contains_key(&local)))
    }

    /// The statements after a loop's body as the last clause of `for`, if they are assignments alone.
    fn update(&mut self, continuing: &Block) -> Outcome<Option<String>> {
        let mut parts = Vec::new();
        for statement in continuing.iter() {
            match statement {
                _ if self.is_silent(statement) => {}
                Statement::Store { pointer, value } if self.is_assignment(*pointer) => {
                    let text = self.store(*pointer, *value)?;
                    parts.push(text.trim_end_matches(';').to_owned());
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(parts.join(", ")))
    }

    fn is_assignment(&self, pointer: Handle<Expression>) -> bool {
        match self.function.expressions[pointer] {
            Expression::LocalVariable(local) => {
                !matches!(self.analysis.declared.get(&local), Some(Declared::ByStore { .. }))
                    || self.locals.contains_key(&local)
            }
            _ => false,
        }
    }
}

/// Whether a loop's body continues that loop.
fn has_continue(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Continue => true,
        Statement::Block(inner) => has_continue(inner),
        Statement::If { accept, reject, .. } => has_continue(accept) || has_continue(reject),
        Statement::Switch { cases, .. } => cases.iter().any(|case| has_continue(&case.body)),
        _ => false,
    })
}
