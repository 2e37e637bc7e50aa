//! Renders a template.

use super::expression::Expression;
use super::nodes::{self, Macro, Node};
use super::{Functions, Value};
use std::fmt::Write as _;

/// How deep macros and pieces are within each other at most.
const DEPTH: u32 = 30;

/// The text that `text` gives. `names` are known in it, `functions` called by it, and `piece` is asked for what it
/// includes.
///
/// # Errors
/// What was found in it and what was wanted.
pub(in crate::emit) fn render<'a>(
    text: &'static str,
    names: Vec<(&'a str, Value)>,
    functions: &'a dyn Functions,
    piece: fn(&str) -> Option<&'static str>,
) -> Result<String, String> {
    let mut state = State { seen: 0, own: 0, names, functions, piece, depth: 0, out: String::new() };
    state.nodes(&nodes::read(text)?)?;
    Ok(state.out)
}

struct State<'a> {
    /// What names mean: the last one of a name counts, of those from `own` on, then of the first `seen`. In a macro
    /// the names of where it is called lie between them.
    names: Vec<(&'a str, Value)>,
    seen: usize,
    own: usize,
    functions: &'a dyn Functions,
    piece: fn(&str) -> Option<&'static str>,
    depth: u32,
    out: String,
}

impl State<'_> {
    fn find(&self, name: &str) -> Option<&Value> {
        let own = self.names.get(self.own..).unwrap_or_default().iter().rev();
        let seen = self.names.get(..self.seen).unwrap_or_default().iter().rev();
        own.chain(seen).find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<(), String> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push_str(text),
                Node::Value(expression) => {
                    let value = self.value(expression)?;
                    // A String takes every text.
                    let _ = write!(self.out, "{value}");
                }
                Node::Set(name, expression) => {
                    let value = self.value(expression)?;
                    self.names.push((*name, value));
                }
                Node::If(arms) => {
                    for (test, body) in arms {
                        if self.value(test)?.is_true() {
                            self.nodes(body)?;
                            break;
                        }
                    }
                }
                Node::For { names, values, only, body } => self.each(names, values, only.as_ref(), body)?,
                Node::Macro(name, body) => {
                    let seen = self.names.len();
                    self.names.push((*name, Value::Macro(body.clone(), seen)));
                }
                Node::Include(name) => {
                    let text = (self.piece)(name).ok_or_else(|| format!("found no piece {name:?}"))?;
                    self.deeper()?;
                    self.nodes(&nodes::read(text)?).map_err(|message| format!("{name}: {message}"))?;
                    self.depth -= 1;
                }
            }
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("found more than {DEPTH} macros and pieces within each other"));
        }
        Ok(())
    }

    /// Gives the names of a loop the parts of its value.
    fn name_each(&mut self, names: &[&'static str], value: &Value) -> Result<(), String> {
        match names {
            &[name] => self.names.push((name, value.clone())),
            _ => {
                let parts = value.list()?;
                if parts.len() != names.len() {
                    return Err(format!("found {value}, wanted {} values", names.len()));
                }
                self.names.extend(names.iter().copied().zip(parts.iter().cloned()));
            }
        }
        Ok(())
    }

    fn each(
        &mut self,
        names: &[&'static str],
        values: &Expression<'static>,
        only: Option<&Expression<'static>>,
        body: &[Node],
    ) -> Result<(), String> {
        let values = self.value(values)?;
        let known = self.names.len();
        let mut chosen = Vec::with_capacity(values.list()?.len());
        for value in values.list()? {
            if let Some(only) = only {
                self.name_each(names, value)?;
                let wanted = self.value(only)?.is_true();
                self.names.truncate(known);
                if !wanted {
                    continue;
                }
            }
            chosen.push(value);
        }
        for (place, &value) in chosen.iter().enumerate() {
            self.names.push(("loop.index0", Value::Int(i64::try_from(place).unwrap_or(i64::MAX))));
            self.names.push(("loop.last", (place + 1 == chosen.len()).into()));
            self.name_each(names, value)?;
            self.nodes(body)?;
            self.names.truncate(known);
        }
        Ok(())
    }

    fn values(&mut self, expressions: &[Expression<'static>]) -> Result<Vec<Value>, String> {
        expressions.iter().map(|expression| self.value(expression)).collect()
    }

    fn value(&mut self, expression: &Expression<'static>) -> Result<Value, String> {
        Ok(match expression {
            Expression::Int(value) => Value::Int(*value),
            Expression::Text(text) => (*text).into(),
            Expression::Name(name) => {
                self.find(name).cloned().ok_or_else(|| format!("the name {name} is unknown"))?
            }
            Expression::List(values) => self.values(values)?.into_iter().collect(),
            Expression::Not(value) => (!self.value(value)?.is_true()).into(),
            Expression::Defined(name) => self.find(name).is_some().into(),
            Expression::Select(parts) => {
                let [test, then, otherwise] = &**parts;
                let chosen = if self.value(test)?.is_true() { then } else { otherwise };
                self.value(chosen)?
            }
            Expression::Index(parts) => {
                let [values, index] = &**parts;
                let values = self.value(values)?;
                values.at(&self.value(index)?)?
            }
            Expression::Binary(operator, operands) => {
                let [a, b] = &**operands;
                let a = self.value(a)?;
                match *operator {
                    "and" if !a.is_true() => a,
                    "or" if a.is_true() => a,
                    "and" | "or" => self.value(b)?,
                    _ => Value::combine(operator, &a, &self.value(b)?)?,
                }
            }
            Expression::Filter(value, filter, arguments) => {
                let value = self.value(value)?;
                value.filtered(filter, &self.values(arguments)?)?
            }
            Expression::Call(name, arguments, named) => {
                let arguments = self.values(arguments)?;
                match self.find(name) {
                    Some(Value::Macro(body, seen)) => {
                        let (body, seen) = (body.clone(), *seen);
                        self.called(&body, seen, arguments).map_err(|message| format!("{name}: {message}"))?
                    }
                    _ if *name == "range" => Value::range(&arguments)?,
                    _ => {
                        let mut given = Vec::with_capacity(named.len());
                        for (name, value) in named {
                            given.push((*name, self.value(value)?));
                        }
                        self.functions.call(name, &arguments, &given)?
                    }
                }
            }
        })
    }

    /// What a macro gives that sees the first `seen` names.
    fn called(&mut self, body: &Macro, seen: usize, arguments: Vec<Value>) -> Result<Value, String> {
        let (names, body) = &**body;
        if names.len() != arguments.len() {
            return Err(format!("found {} arguments, wanted {}", arguments.len(), names.len()));
        }
        self.deeper()?;
        let known = self.names.len();
        let before = (self.seen, self.own, std::mem::take(&mut self.out));
        (self.seen, self.own) = (seen, known);
        self.names.extend(names.iter().copied().zip(arguments));
        self.nodes(body)?;
        self.names.truncate(known);
        self.depth -= 1;
        let given;
        (self.seen, self.own, given) = (before.0, before.1, std::mem::replace(&mut self.out, before.2));
        Ok(given.into())
    }
}
