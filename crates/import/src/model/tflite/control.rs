//! Loops, branches, decompositions, and variables that outlive a run.

use super::constant::dims_of;
use super::import::{Import, Op};
use super::operands::missing;
use super::slots::{Input, Slot, Variable};
use super::tables::at;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::build::{Condition, Kind, Mapped, Operand};
use crate::model::input_dependence::help;
use crate::model::reason::Reason;
use std::collections::HashSet;

/// `WHILE`: as many passes as the condition says, which must be known while the file is read.
pub(super) fn repeat<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.while_loop().ok_or_else(|| missing(op, "WhileOptions"))?;
    let mut slots = import.input_slots(op)?;
    let name = import.scope_name(op)?;
    for pass in 0usize.. {
        let scope = format!("{name}/{pass}/");
        let going = import.call(table.condition(), slots.clone(), scope.clone())?;
        let going = match &going[..] {
            [Slot::Constant(going)] => going,
            other => {
                let values = other.iter().filter_map(|slot| match slot {
                    Slot::Value(value) => Some(*value),
                    _ => None,
                });
                let help = help(&import.build.graph, &values.collect::<Vec<_>>());
                let reason = "found a loop whose end depends on values of a run, wanted one of a known number of passes";
                return Err(Reason::from(reason).hinted(help));
            }
        };
        if going.truth() != Some(true) {
            break;
        }
        slots = import.call(table.body(), slots, scope)?;
    }
    import.write_slots(op, slots)
}

/// `IF`: the branch that is known while the file is read, or both, and each output as the condition says.
pub(super) fn branch<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.branch().ok_or_else(|| missing(op, "IfOptions"))?;
    let mut slots = import.input_slots(op)?;
    if slots.is_empty() {
        return refused!("found no condition, wanted one");
    }
    let name = import.scope_name(op)?;
    let condition = match slots.remove(0) {
        Slot::Constant(condition) => {
            let network = if condition.truth() == Some(true) { table.then() } else { table.otherwise() };
            let slots = import.call(network, slots, format!("{name}/"))?;
            return import.write_slots(op, slots);
        }
        Slot::Value(condition) => {
            Condition::new(Mapped::plain(condition, import.dims(condition)?.rank(), Kind::Bool))
        }
        _ => return refused!("found a variable as a condition, wanted a value"),
    };
    let before = import.variables.len();
    let kept = import.variables.clone();
    let mut both = Vec::with_capacity(2);
    for (network, slots, scope) in [(table.then(), slots.clone(), "then"), (table.otherwise(), slots, "else")]
    {
        let called = import.call(network, slots, format!("{name}/{scope}/"));
        both.push(called.map_err(|reason| condition.refused(&import.build, scope, &reason))?);
    }
    let (then, otherwise) = (both.remove(0), both.remove(0));
    let same = |(a, b): (&Variable, &Variable)| match (&a.current, &b.current) {
        (Some(Input::Value(a)), Some(Input::Value(b))) => a == b,
        (a, b) => a.is_none() && b.is_none(),
    };
    if import.variables.len() != before || !kept.iter().zip(&import.variables).all(same) {
        return refused!(
            "found a branch that uses variables, and a condition that is not known before a run, \
                    wanted one of both"
        );
    }
    if then.len() != op.outputs.len() || otherwise.len() != op.outputs.len() {
        return refused!(
            "found branches of {} and {} outputs, wanted as many as the operator has",
            then.len(),
            otherwise.len()
        );
    }
    for (index, (then, otherwise)) in then.into_iter().zip(otherwise).enumerate() {
        let kind = import.kind(op.output(index)?)?;
        let mut operand = |slot: Slot| -> Result<Operand, Reason> {
            let value = import.slot_value(slot, &name)?;
            Ok(Operand::Value(Mapped::plain(value, import.dims(value)?.rank(), kind)))
        };
        let branches = [operand(then)?, operand(otherwise)?];
        let value = condition.select(import.begin(op, index)?, "", branches)?;
        import.put(op, index, value)?;
    }
    Ok(())
}

/// `STABLEHLO_COMPOSITE`: its decomposition.
pub(super) fn composite<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.composite().ok_or("found no StableHLOCompositeOptions, wanted them")?;
    let name = import.scope_name(op)?;
    let slots = import.input_slots(op)?;
    let slots = import.call(table.decomposition(), slots, format!("{name}/"))?;
    import.write_slots(op, slots)
}

/// `CALL_ONCE`: what variables are in the first run.
pub(super) fn call_once<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    let table = op.table.call_once().ok_or_else(|| missing(op, "CallOnceOptions"))?;
    import.starting = true;
    let called = import.call(table.network(), Vec::new(), "start/".to_owned());
    import.starting = false;
    called.map(|_| ())
}

/// `VAR_HANDLE`: the variable of a name.
pub(super) fn var_handle<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[0], 1)?;
    let name = op.table.var_handle().map_or_else(String::new, |table| table.key());
    import.build.budget.spend(name.len())?;
    let found = import.variables.iter().position(|variable| variable.name == name);
    let index = found.unwrap_or_else(|| {
        import.variables.push(Variable { name, initial: None, current: None, state: None });
        import.variables.len() - 1
    });
    let position = import.tensors.position(op.output(0)?)?;
    import.check_unwritten(position)?;
    import.set(position, Slot::Variable(index));
    Ok(())
}

/// The index of the variable at input 0.
fn variable<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<usize, Reason> {
    match import.slot_of(op.input(0)?)? {
        Slot::Variable(index) if index < import.variables.len() => Ok(index),
        _ => refused!("{}: found no variable, wanted one of VAR_HANDLE", import.describe(op, 0)),
    }
}

/// `READ_VARIABLE`: what the run has assigned, or what the run before left.
pub(super) fn read_variable<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let index = variable(import, op)?;
    let Variable { name, initial, current, .. } = import.variables[index].clone();
    match (current, initial) {
        (Some(Input::Value(value)), _) => return import.write(op, 0, value),
        (Some(Input::Constant(constant)), _) => return import.write_constant(op, 0, constant),
        (None, Some(initial)) if !import.is_assigned(&name) => {
            return import.write_constant(op, 0, initial);
        }
        _ => (),
    }
    let initial = match import.variables[index].initial.clone() {
        Some(constant) => constant.floats(&mut import.build.budget)?,
        None => {
            let position = import.tensors.position(op.output(0)?)?;
            zeros(import, &import.tensors.extents(position)?)?
        }
    };
    let name = import.name(op, 0)?;
    let state = import.build.graph.state(&name, initial);
    let variable = &mut import.variables[index];
    variable.state = Some(state);
    variable.current = Some(Input::Value(state));
    import.write(op, 0, state)
}

/// `ASSIGN_VARIABLE`: what later operators and the next run read.
pub(super) fn assign_variable<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 0)?;
    let index = variable(import, op)?;
    let input = import.input(op, 1)?;
    match (import.starting, input) {
        (true, Input::Constant(constant)) => import.variables[index].initial = Some(constant),
        (true, Input::Value(_)) => {
            return refused!("found a variable that begins with a value of a run, wanted a constant");
        }
        (false, input) => import.variables[index].current = Some(input),
    }
    Ok(())
}

/// Zeros of these extents.
pub(super) fn zeros(import: &Import<'_>, extents: &[usize]) -> Result<HostTensor, Reason> {
    let dims = dims_of(extents)?;
    if dims.elements() as u64 > import.build.budget.whole() {
        return refused!("found a variable of {dims}, wanted one that the file's length accounts for");
    }
    HostTensor::new(dims, vec![0.0; dims.elements()]).map_err(Reason::from)
}

impl<'a> Import<'a> {
    /// What names of an operator's call begin with.
    fn scope_name(&mut self, op: &Op<'a>) -> Result<String, Reason> {
        let position = self.tensors.position(op.output(0)?)?;
        let base = self.tensors.name(position);
        let base = if base.is_empty() { op.name.to_lowercase() } else { base.to_owned() };
        let name = format!("{}{base}", self.frame.scope);
        self.build.budget.spend(name.len())?;
        Ok(name)
    }

    /// A slot as a value of the graph.
    fn slot_value(&mut self, slot: Slot, name: &str) -> Result<Value, Reason> {
        match slot {
            Slot::Value(value) => Ok(value),
            Slot::Constant(constant) => {
                let tensor = constant.floats(&mut self.build.budget)?;
                let name = self.part_name(name, "constant")?;
                Ok(self.build.graph.constant(&name, tensor))
            }
            Slot::Joined(joined) => {
                let name = self.part_name(name, "joined")?;
                self.join(&name, &joined)
            }
            _ => refused!("found a variable, wanted a value"),
        }
    }

    /// Whether a run assigns the variable of a name: an operator outside what `CALL_ONCE` calls does.
    fn is_assigned(&mut self, name: &str) -> bool {
        let assigned = match self.assigned.take() {
            Some(assigned) => assigned,
            None => self.find_assigned(),
        };
        let found = assigned.as_ref().is_none_or(|names| names.contains(name));
        self.assigned = Some(assigned);
        found
    }

    /// The names of the variables that runs assign; `None` if they are not known.
    fn find_assigned(&self) -> Option<HashSet<String>> {
        let mut names = HashSet::new();
        let networks = self.model.subgraphs()?;
        let operators = || {
            networks.iter().enumerate().flat_map(|(index, network)| {
                network
                    .operators()
                    .into_iter()
                    .flat_map(|list| list.iter())
                    .map(move |operator| (index, operator))
            })
        };
        let starts: HashSet<usize> = operators()
            .filter_map(|(_, operator)| usize::try_from(operator.call_once()?.network()).ok())
            .collect();
        for (network, operator) in operators().filter(|(network, _)| !starts.contains(network)) {
            if self.operator_name(&operator).ok().as_deref() != Some("ASSIGN_VARIABLE") {
                continue;
            }
            let handle = operator.inputs().and_then(|inputs| at(inputs, 0))?;
            let made = operators().filter(|(other, _)| *other == network).find(|(_, other)| {
                other.var_handle().is_some() && other.outputs().and_then(|out| at(out, 0)) == Some(handle)
            });
            names.insert(made?.1.var_handle()?.key());
        }
        Some(names)
    }

    /// Says what the variables are in the next run.
    pub(super) fn update_variables(&mut self) -> Result<(), Reason> {
        for variable in self.variables.clone() {
            let (Some(state), Some(current)) = (variable.state, variable.current) else { continue };
            let next = match current {
                Input::Value(value) if value == state => continue,
                Input::Value(value) => value,
                Input::Constant(constant) => {
                    let tensor = constant.floats(&mut self.build.budget)?;
                    let name = self.part_name(&variable.name, "next")?;
                    self.build.graph.constant(&name, tensor)
                }
            };
            self.build.graph.update(state, next)?;
        }
        Ok(())
    }
}
