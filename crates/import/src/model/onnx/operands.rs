//! What handlers ask of an operator: its inputs, its options, and where its results go.

use super::import::{Import, Op};
use super::schema::{Graph as Network, Tensor};
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::build::{Kind, MOST_LISTED, Mapped, Operand, Wanted, channels_last};
use crate::model::constant::{Constant, Integers};
use crate::model::input_dependence::help;
use crate::model::reason::Reason;

impl<'a> Op<'a> {
    /// Whether there is an input at `index`.
    pub(super) fn has(&self, index: usize) -> bool {
        self.node.inputs.get(index).is_some_and(|name| !name.is_empty())
    }

    /// Whether something may read the output at `index`.
    pub(super) fn writes(&self, index: usize) -> bool {
        self.node.outputs.get(index).is_some_and(|name| !name.is_empty())
    }

    pub(super) fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    pub(super) fn input_name(&self, index: usize) -> Result<&'a str, Reason> {
        let found = self.node.inputs.get(index).copied().filter(|name| !name.is_empty());
        found.ok_or_else(|| format!("found no input {index}, wanted one").into())
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.attributes.get(name).map_or(default, |attribute| attribute.int)
    }

    pub(super) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.contains_key(name)
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name, i64::from(default)) != 0
    }

    pub(super) fn float(&self, name: &str, default: f32) -> f32 {
        self.attributes.get(name).map_or(default, |attribute| attribute.float)
    }

    /// A number that operators of one name have in several domains: the operator's own default, or else this one.
    pub(super) fn number(&self, name: &str, default: f32) -> f32 {
        let own = super::operators::default(self.node.domain, self.node.op, name);
        self.float(name, own.unwrap_or(default))
    }

    /// A number that the operator has a default for.
    pub(super) fn preset(&self, name: &str) -> Result<f32, Reason> {
        let own = super::operators::default(self.node.domain, self.node.op, name);
        match (self.attributes.get(name), own) {
            (Some(attribute), _) => Ok(attribute.float),
            (None, Some(default)) => Ok(default),
            (None, None) => refused!("found no {name}, wanted a number"),
        }
    }

    /// What normalisations add to a variance.
    pub(super) fn epsilon(&self) -> Result<f32, Reason> {
        self.preset("epsilon")
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attributes.get(name).map(|attribute| &attribute.ints[..])
    }

    pub(super) fn floats(&self, name: &str) -> Option<&'a [f32]> {
        self.attributes.get(name).map(|attribute| &attribute.floats[..])
    }

    /// A text; `default` where there is none.
    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'a str, Reason> {
        match self.attributes.get(name) {
            None => Ok(default),
            Some(attribute) => std::str::from_utf8(attribute.string)
                .map_err(|_| format!("found {name} that is no UTF-8").into()),
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&'a Tensor<'a>> {
        self.attributes.get(name).and_then(|attribute| attribute.tensor.as_deref())
    }

    pub(super) fn network(&self, name: &str) -> Result<&'a Network<'a>, Reason> {
        let network = self.attributes.get(name).and_then(|attribute| attribute.graph.as_deref());
        network.ok_or_else(|| format!("found no graph {name:?}").into())
    }
}

impl<'a> Import<'a> {
    /// A tensor that an operator reads.
    pub(super) fn slot(&self, op: &Op<'a>, index: usize) -> Result<Operand, Reason> {
        match self.any(op, index)? {
            Operand::Constant(_, kind) if kind.is_handle() => refused!(
                "input {index} ({:?}): found a sequence or nothing, wanted a tensor",
                op.input_name(index)?
            ),
            slot => Ok(slot),
        }
    }

    /// What an operator reads, be it a tensor or not.
    pub(super) fn any(&self, op: &Op<'a>, index: usize) -> Result<Operand, Reason> {
        self.find(op.input_name(index)?)
    }

    /// An input as a value, in the order in which it is stored.
    pub(super) fn mapped(&mut self, op: &Op<'a>, index: usize) -> Result<Mapped, Reason> {
        let name = op.input_name(index)?;
        let slot = self.slot(op, index)?;
        self.mapped_slot(slot, Some(name))
            .map_err(|reason| reason.behind(format_args!("input {index} ({name:?}): ")))
    }

    /// An input as a value, in the order of the file.
    pub(super) fn value(&mut self, op: &Op<'a>, index: usize) -> Result<(Value, Kind), Reason> {
        let mapped = self.mapped(op, index)?;
        Ok((self.logical(&mapped)?, mapped.kind))
    }

    /// The extents of an input.
    pub(super) fn extents_of(&self, op: &Op<'a>, index: usize) -> Result<Vec<usize>, Reason> {
        match self.slot(op, index)? {
            Operand::Value(mapped) => self.extents(&mapped),
            Operand::Constant(constant, _) => Ok(constant.extents()),
        }
    }

    pub(super) fn kind_of(&self, op: &Op<'a>, index: usize) -> Result<Kind, Reason> {
        Ok(match self.slot(op, index)? {
            Operand::Value(mapped) => mapped.kind,
            Operand::Constant(_, kind) => kind,
        })
    }

    /// An input that is known while the file is read.
    pub(super) fn constant(&self, op: &Op<'a>, index: usize) -> Result<Constant, Reason> {
        match self.slot(op, index)? {
            Operand::Constant(constant, _) => Ok(constant),
            Operand::Value(mapped) => {
                self.wanted.set(Wanted::Value(mapped.value));
                let name = op.input_name(index)?;
                let reason = format!(
                    "input {index} ({name:?}): found a value computed at each run, wanted a constant"
                );
                Err(Reason::from(reason).hinted(help(&self.graph, &[mapped.value])))
            }
        }
    }

    /// Input `index` as a value with channels last, and its kind.
    pub(super) fn map_input(&mut self, op: &Op<'a>, index: usize) -> Result<(Value, Kind), Reason> {
        let mapped = self.mapped(op, index)?;
        let order = channels_last(mapped.rank());
        Ok((self.in_order(&mapped, &order)?, mapped.kind))
    }

    /// What an operand is as a value: constants become values of the graph, once where they have a name.
    pub(super) fn mapped_slot(&mut self, operand: Operand, name: Option<&'a str>) -> Result<Mapped, Reason> {
        let (constant, kind) = match operand {
            Operand::Value(mapped) => return Ok(mapped),
            Operand::Constant(constant, kind) => (constant, kind),
        };
        let known = name.and_then(|name| self.scopes.last().and_then(|scope| scope.uploaded.get(name)));
        if let Some(&known) = known {
            return Ok(Mapped::plain(known, constant.extents().len(), kind));
        }
        let mapped = self.build.uploaded(name.unwrap_or("constant"), constant, kind)?;
        if let (Some(name), Some(scope)) = (name, self.scopes.last_mut()) {
            scope.uploaded.insert(name, mapped.value);
        }
        Ok(mapped)
    }

    /// A constant of floats.
    pub(super) fn tensor(&mut self, op: &Op<'a>, index: usize) -> Result<HostTensor, Reason> {
        self.constant(op, index)?.floats(&mut self.budget)
    }

    /// A constant of floats as a list.
    pub(super) fn list(&mut self, op: &Op<'a>, index: usize) -> Result<Vec<f32>, Reason> {
        match self.constant(op, index)? {
            constant if constant.elements() == 0 => Ok(Vec::new()),
            constant => Ok(constant.floats(&mut self.budget)?.to_nhwc().into_owned()),
        }
    }

    /// A constant of integers as a list.
    pub(super) fn integers(&self, op: &Op<'a>, index: usize) -> Result<Vec<i64>, Reason> {
        match self.constant(op, index)? {
            Constant::Integers(Integers { values, .. }) => Ok(values.to_vec()),
            Constant::Floats(tensor) => {
                let name = op.input_name(index)?;
                refused!("input {index} ({name:?}): found floats of {}, wanted integers", tensor.dims())
            }
        }
    }

    /// A list that is an input from some version on, and an attribute before; `None` where there is none.
    pub(super) fn listed(
        &self,
        op: &Op<'a>,
        index: usize,
        attribute: &str,
    ) -> Result<Option<Vec<i64>>, Reason> {
        if !op.has(index) {
            return Ok(op.ints(attribute).map(<[i64]>::to_vec));
        }
        // Checked before the list is copied, or printed in an error.
        let found = self.constant(op, index)?.elements();
        if found > MOST_LISTED {
            let name = op.input_name(index)?;
            return refused!("input {index} ({name:?}): found {found} numbers, wanted at most {MOST_LISTED}");
        }
        self.integers(op, index).map(Some)
    }

    /// The name of the node that writes output 0, unique in the graph.
    pub(super) fn output_name(&mut self, op: &Op<'a>) -> Result<String, Reason> {
        let name = op.node.outputs.iter().copied().find(|name| !name.is_empty()).unwrap_or("");
        let prefix = self.scopes.last().map_or(String::new(), |scope| scope.prefix.clone());
        Ok(format!("{prefix}{}", if name.is_empty() { op.node.op } else { name }))
    }

    /// Makes a slot what output `index` stands for.
    pub(super) fn set(&mut self, op: &Op<'a>, index: usize, slot: Operand) -> Result<(), Reason> {
        let Some(&name) = op.node.outputs.get(index) else { return Ok(()) };
        self.set_name(name, slot)
    }

    pub(super) fn set_name(&mut self, name: &'a str, slot: Operand) -> Result<(), Reason> {
        if name.is_empty() {
            return Ok(());
        }
        // What has no elements is known.
        let slot = match slot {
            Operand::Value(mapped) if self.dims(mapped.value)?.elements() == 0 => {
                Operand::nothing(self.extents(&mapped)?, mapped.kind)
            }
            slot => slot,
        };
        self.written.push(name);
        let scope = self.scopes.last_mut().ok_or("found no scope")?;
        match scope.slots.insert(name, slot) {
            None => Ok(()),
            Some(_) => refused!("found {name:?} written twice, wanted a tensor that is written once"),
        }
    }

    pub(super) fn write(&mut self, op: &Op<'a>, index: usize, mapped: Mapped) -> Result<(), Reason> {
        self.set(op, index, Operand::Value(mapped))
    }

    /// Writes a value whose axes are in the order of the file.
    pub(super) fn write_plain(
        &mut self,
        op: &Op<'a>,
        index: usize,
        value: Value,
        kind: Kind,
    ) -> Result<(), Reason> {
        let rank = self.dims(value)?.rank();
        self.write(op, index, Mapped::plain(value, rank, kind))
    }

    pub(super) fn write_constant(
        &mut self,
        op: &Op<'a>,
        index: usize,
        constant: Constant,
        kind: Kind,
    ) -> Result<(), Reason> {
        self.set(op, index, Operand::Constant(constant, kind))
    }
}
