//! Rows in halves: for which units of a network that stores halves they are, where devices and kernels have them.
//!
//! Some functions of each element, sums and integers have rows of f32 in every precision, or read or write such. A unit
//! between them that saves less by halves than the conversions of what it reads and writes cost has them too (`cut`):
//! the mean of squares, or the angles of which sines are taken.

use super::choosing::Choosing;
use super::cut::Cut;
use super::network::Network;
use super::savings::{CONVERSION, saves};
use super::unit::Unit;
use crate::dtype::{DType, Precision};
use crate::emit::Operand;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::layout::{Form, Layout};
use crate::limits::Limits;
use crate::ops::{Choice, Op, OperandInfo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a unit that stays in halves saves by them: more than all conversions cost.
const ALL: u64 = 1 << 56;

/// The forms of what `op` reads and writes in `layout`, if it can run there.
pub(super) fn forms(op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Vec<(Operand, Form)>> {
    let kernels = op.kernels();
    let space = kernels.space(limits);
    let (kernel, tile) = space.iter().find(|(kernel, _)| kernel.serves(layout))?;
    let choice = Choice::new(kernel.name(), *tile, [1; 3]).with_layout(layout);
    let of = |info: OperandInfo| Some((info.operand, kernel.form(info.operand, &choice)?));
    Some(op.operands().into_iter().filter_map(of).collect())
}

/// The form that says most of them: rows of halves if some are, else maps.
fn form(op: &dyn Op, layout: Layout, limits: &Limits) -> Option<Form> {
    let forms = forms(op, layout, limits)?;
    let has = |wanted: &Form| forms.iter().any(|(_, form)| form == wanted);
    Some([Form::HalfRows, Form::C4, Form::Image].into_iter().find(has).unwrap_or(Form::Rows))
}

/// Whether `op` reads and writes rows in any layout, those of halves where it stores them.
pub(super) fn has_rows_alone(op: &dyn Op, limits: &Limits) -> bool {
    matches!(form(op, Layout::C4, limits), None | Some(Form::Rows | Form::HalfRows))
}

/// Whether `op` has no kernel of rows.
pub(super) fn has_maps_alone(op: &dyn Op, limits: &Limits) -> bool {
    !has_rows_alone(op, limits) && !op.kernels().serve(Layout::Nhwc, limits)
}

impl Network<'_> {
    /// The units that write or read each value, or elements of it.
    pub(super) fn users(&self) -> BTreeMap<Value, Vec<usize>> {
        let mut users: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (index, unit) in self.units().iter().enumerate() {
            let read = unit.reads().map(|value| self.resolve(value).of);
            for value in read.chain(unit.outputs.iter().copied()) {
                let users = users.entry(value).or_default();
                if users.last() != Some(&index) {
                    users.push(index);
                }
            }
        }
        users
    }
}

/// The op of `unit` with values in `layout`: in `precision` or its own, or in f32 where no kernel of that runs on the
/// device.
pub(crate) fn op_on(
    graph: &Graph,
    unit: &Unit,
    precision: Precision,
    layout: Layout,
    limits: &Limits,
) -> Result<Arc<dyn Op>> {
    let op = unit.op(graph, precision)?;
    if op.precision().storage() != DType::F16 || !unit.parts().is_empty() {
        return Ok(op);
    }
    // Whole numbers of 16 bits are kept in f32, which holds all of them.
    let whole = |value: Value| matches!(graph.dtype(value), Some(DType::I16 | DType::U16));
    if unit.reads().chain(unit.outputs.iter().copied()).any(whole) {
        return unit.op_of(graph, Precision::F32);
    }
    let serves = match form(&*op, layout, limits) {
        Some(Form::HalfRows) => limits.has_half_rows(),
        Some(_) => true,
        None => false,
    };
    if serves {
        return Ok(op);
    }
    let wide = unit.op_of(graph, Precision::F32)?;
    // What has no kernel in `layout` in either has rows.
    let rows = |op: &dyn Op| op.kernels().serve(Layout::Nhwc, limits);
    let in_rows = !op.kernels().serve(layout, limits) && !rows(&*op) && rows(&*wide);
    Ok(if in_rows || wide.kernels().serve(layout, limits) { wide } else { op })
}

impl Choosing<'_> {
    /// The op of `unit` in the session's precision, as [`op_on`] gives it.
    pub(super) fn op_in(&self, graph: &Graph, unit: &Unit, layout: Layout) -> Result<Arc<dyn Op>> {
        op_on(graph, unit, self.options.precision, layout, self.limits)
    }

    /// Which units of a network that stores halves have rows of f32 because that costs less, each in its layout.
    pub(super) fn wide(&self, network: &Network<'_>, layouts: &[Layout]) -> Result<Vec<bool>> {
        let units = network.units();
        if self.options.precision.storage() != DType::F16 {
            return Ok(vec![false; units.len()]);
        }
        let mut free = vec![false; units.len()];
        let mut own = Vec::with_capacity(units.len() + 1);
        let mut users: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (index, (unit, &layout)) in units.iter().zip(layouts).enumerate() {
            let op = self.op_in(network.graph, unit, layout)?;
            let halves = op.precision().storage() == DType::F16 && unit.host.is_none();
            let forms = forms(&*op, layout, self.limits).unwrap_or_default();
            let has = |form: Form| halves && forms.iter().any(|(_, own)| *own == form);
            let by_hand = unit.precision.is_some()
                || self.options.choices.contains_key(&unit.name)
                || network.changes_half_state(unit)?;
            free[index] = has(Form::HalfRows) && !by_hand && unit.parts().is_empty();
            own.push(match free[index] {
                true => Some(saves(&*op) as u64),
                false => has(Form::HalfRows).then_some(ALL),
            });
            // What a kernel has in rows of f32 whatever else it has in halves is for the last node, which stays in f32,
            // and so is what the CPU has, and what is taken from a stack. Maps are converted to rows of either.
            let node = |operand: Operand| {
                let form = forms.iter().find(|(own, _)| *own == operand).map(|(_, form)| *form);
                match form {
                    Some(Form::HalfRows) if halves => Some(index),
                    Some(Form::C4 | Form::Image) if unit.host.is_none() => None,
                    _ => Some(units.len()),
                }
            };
            let apart = !unit.parts().is_empty() && unit.multiple() == 1;
            let infos: Vec<OperandInfo> = crate::ops::outputs(&*op).collect();
            let written = unit.outputs.iter().enumerate().filter_map(|(place, &value)| {
                let info = infos.get(place).or(infos.last())?;
                Some((value, if apart { Some(units.len()) } else { node(info.operand) }))
            });
            let read =
                unit.inputs.iter().filter_map(|(operand, input)| Some((input.value()?, node(*operand))));
            for (value, user) in read.chain(written) {
                users.entry(network.resolve(value).of).or_default().extend(user);
            }
        }
        own.push(None);
        let mut cut = Cut::new(&own);
        // Constants are converted once.
        users.retain(|&value, _| network.constant(value).is_none());
        for (value, users) in users {
            let bytes = 6 * network.dims(value)?.elements();
            cut.value(&users, CONVERSION as u64 + bytes as u64);
        }
        Ok(free.into_iter().zip(cut.narrow()).map(|(free, narrow)| free && !narrow).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dims;
    use crate::graph::{Extras, Right};
    use crate::host::HostTensor;
    use crate::lower::rewrites::Rewrites;
    use crate::lower::simplify::simplified;
    use crate::ops::elementwise::Function;
    use crate::ops::gemm::Gemm;
    use crate::ops::softmax::Softmax;

    /// A product, a softmax of its rows, their sines, and powers of the product, of four columns or of five.
    fn graph(columns: usize) -> Graph {
        let mut graph = Graph::new();
        let x = graph.input("x", Dims::new(&[3, 4]).expect("small")).expect("an input");
        let right = HostTensor::matrix(1, 4, columns, vec![0.5; 4 * columns]).expect("as many");
        let y = graph.gemm("product", x, Right::Constant(right), Extras::default(), Gemm::default());
        let product = y.expect("a product");
        let y = graph.softmax("shares", product, Softmax::default()).expect("a softmax");
        let y = graph.elementwise("sines", Function::Sin, &[y.into()]).expect("sines");
        graph.output(y).expect("an output");
        let y = graph.elementwise("powers", Function::Exp, &[product.into()]).expect("powers");
        graph.output(y).expect("an output");
        graph
    }

    #[test]
    fn rows_are_of_halves_where_a_device_reads_and_writes_them_one_by_one() {
        let halves = Limits { native_half: true, ..Limits::webgpu() };
        for (limits, layout, wanted) in [
            (Limits::webgpu(), Layout::C4, [false, true]),
            (Limits::webgpu(), Layout::Nhwc, [false, false]),
            (halves.clone(), Layout::C4, [true, true]),
            (halves, Layout::Nhwc, [true, true]),
            (Limits::opencl(), Layout::Nhwc, [true, true]),
        ] {
            for columns in [4, 5] {
                let graph = graph(columns);
                let network = simplified(&graph, &Rewrites::ALL).expect("a network");
                for (index, (unit, wanted)) in
                    network.units().iter().zip([wanted[0], wanted[1], wanted[1]]).enumerate()
                {
                    // A product's operands have one form each.
                    let layout = if index == 0 { Layout::C4 } else { layout };
                    let op = op_on(&graph, unit, Precision::F16Storage, layout, &limits).expect("an op");
                    let found = op.precision().storage() == DType::F16;
                    assert_eq!(found, wanted, "{} {columns} {layout} {limits:?}", unit.name);
                    assert!(op.kernels().serve(layout, &limits), "{}", unit.name);
                }
            }
        }
    }

    #[test]
    fn functions_that_halves_do_not_hold_have_rows_of_f32() {
        let graph = graph(5);
        let network = simplified(&graph, &Rewrites::ALL).expect("a network");
        let of = |name: &str, layout| {
            let unit = network.units().iter().find(|unit| unit.name == name).expect("a unit");
            let op = unit.op(&graph, Precision::F16Storage).expect("an op");
            let forms = forms(&*op, layout, &Limits::opencl())?;
            Some(forms.into_iter().map(|(_, form)| form).collect::<Vec<_>>())
        };
        assert_eq!(of("product", Layout::C4), Some(vec![Form::HalfRows; 3]));
        assert_eq!(of("product", Layout::Nhwc), None);
        assert_eq!(of("shares", Layout::Nhwc), Some(vec![Form::HalfRows; 2]));
        // Rounded angles would be others.
        assert_eq!(of("sines", Layout::Nhwc), Some(vec![Form::Rows, Form::HalfRows]));
        assert_eq!(of("powers", Layout::Nhwc), Some(vec![Form::Rows; 2]));
        assert_eq!(of("powers", Layout::C4), Some(vec![Form::C4; 2]));
    }
}
