//! Weights of convolutions, and what follows a convolution and only changes its channels.

use super::import::{Import, Op};
use super::schema::Node;
use crate::model::build::{Groups, Operand, Weights};
use crate::model::reason::Reason;

pub(super) fn groups(op: &Op<'_>) -> Result<usize, Reason> {
    usize::try_from(op.int("group", 1))
        .ok()
        .filter(|groups| *groups > 0)
        .ok_or_else(|| format!("found {} groups, wanted at least 1", op.int("group", 1)).into())
}

/// The weights of a convolution, or of a transposed one, and its bias.
pub(super) fn weights<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    order: &[usize],
    transposed: bool,
) -> Result<Weights, Reason> {
    let weights = i.slot(op, 1)?;
    let bias = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
    let groups = Groups { count: groups(op)?, transposed };
    Weights::new(i, weights, bias, order, groups)
}

/// The order in which weights are stored: output channels of all groups, input channels of one, taps.
pub(super) fn outputs_first(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

/// The order in which those of transposed convolutions are: input channels of all groups, output channels of one, taps.
pub(super) fn inputs_first(rank: usize) -> Vec<usize> {
    let mut order = outputs_first(rank);
    order.get_mut(..2).unwrap_or(&mut []).reverse();
    order
}

/// Takes what alone reads the result and only changes its channels into the weights: a normalisation by constants,
/// factors and summands. Returns the name of what is computed then.
pub(super) fn follow<'a>(i: &mut Import<'a>, op: &Op<'a>, weights: &mut Weights) -> Result<&'a str, Reason> {
    let mut target = *op.node.outputs.first().ok_or("found no output")?;
    let Weights::Known { filter, summand: None } = weights else { return Ok(target) };
    loop {
        let scope = i.scopes.last().ok_or("found no scope")?;
        let Some(readers) = scope.readers.get(target).filter(|readers| readers.count == 1) else { break };
        let Some(node) = op.nodes.get(readers.last) else { break };
        let (index, channels, rank) = (readers.last, filter.channels(), filter.extents().len());
        let next = i.op(op.nodes, node)?;
        let Some((factor, summand)) = affine(i, &next, node, target, channels, rank)? else { break };
        filter.scale(&factor, &summand);
        target = *node.outputs.first().ok_or("found no output")?;
        if let Some(scope) = i.scopes.last_mut() {
            scope.absorbed.insert(index);
        }
        i.current = i.output_name(&next)?;
    }
    Ok(target)
}

/// A factor and a summand for each channel, or one for all.
type Affine = (Vec<f32>, Vec<f32>);

/// The factor and the summand of each channel, if a node applies such constants alone.
fn affine<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    node: &Node<'a>,
    source: &str,
    channels: usize,
    rank: usize,
) -> Result<Option<Affine>, Reason> {
    if !node.domain.is_empty() {
        return Ok(None);
    }
    let known = |i: &Import<'a>, index: usize| matches!(i.slot(op, index), Ok(Operand::Constant(..)));
    if node.op == "BatchNormalization" && node.inputs.first() == Some(&source) {
        if !(1..5).all(|index| known(i, index)) || op.flag("training_mode", false) {
            return Ok(None);
        }
        let (factor, summand) = super::norms::batch_constants(i, op)?;
        return Ok((factor.len() == channels).then_some((factor, summand)));
    }
    let other = match (node.op, &node.inputs[..]) {
        ("Add" | "Mul", [first, second]) if *first == source && *second != source => 1,
        ("Add" | "Mul", [first, second]) if *second == source && *first != source => 0,
        ("Sub" | "Div", [first, second]) if *first == source && *second != source => 1,
        _ => return Ok(None),
    };
    if !known(i, other) {
        return Ok(None);
    }
    let constant = i.constant(op, other)?;
    let extents = constant.extents();
    let place = (extents.len() + 1).checked_sub(rank);
    let per_channel = extents.len() <= rank
        && extents
            .iter()
            .enumerate()
            .all(|(axis, &extent)| extent == 1 || (Some(axis) == place && extent == channels));
    if !per_channel || constant.elements() == 0 {
        return Ok(None);
    }
    let values = constant.floats(&mut i.budget)?.to_nhwc().into_owned();
    Ok(Some(match node.op {
        "Add" => (vec![1.0], values),
        "Sub" => (vec![1.0], values.iter().map(|value| -value).collect()),
        "Mul" => (values, vec![0.0]),
        _ if values.contains(&0.0) => return Ok(None),
        _ => (values.iter().map(|value| 1.0 / value).collect(), vec![0.0]),
    }))
}
