//! Weights of convolutions, and what follows a convolution and only changes its channels.

use super::import::{Import, Op};
use super::schema::Node;
use crate::model::build::{Filter, Operand};
use crate::model::reason::Reason;

pub(super) fn groups(op: &Op<'_>) -> Result<usize, Reason> {
    usize::try_from(op.int("group", 1))
        .ok()
        .filter(|groups| *groups > 0)
        .ok_or_else(|| format!("found {} groups, wanted at least 1", op.int("group", 1)).into())
}

/// The weights of a convolution and its bias, where one of them is computed at each run.
pub(super) fn computed_weights<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
) -> Result<Option<(Operand, Option<Operand>)>, Reason> {
    let weights = i.slot(op, 1)?;
    let bias = if op.has(2) { Some(i.slot(op, 2)?) } else { None };
    let computed = |operand: &Operand| matches!(operand, Operand::Value(_));
    let any = computed(&weights) || bias.as_ref().is_some_and(computed);
    Ok(any.then_some((weights, bias)))
}

pub(super) fn filter<'a>(i: &mut Import<'a>, op: &Op<'a>, outputs: usize) -> Result<Filter, Reason> {
    let tensor = i.tensor(op, 1)?;
    let extents = tensor.dims().extents().to_vec();
    if extents.len() < 3 {
        return refused!("found weights of {extents:?}, wanted rank 3 to 5");
    }
    i.budget.spend(8 * tensor.dims().elements())?;
    let bias = if op.has(2) { Some(i.list(op, 2)?) } else { None };
    let filter = Filter { outputs, ..Filter::new(tensor, extents, bias) };
    if let Some(bias) = &filter.bias
        && bias.len() != filter.channels(groups(op)?)
    {
        return refused!(
            "found a bias of {} for {} channels, wanted one for each",
            bias.len(),
            filter.channels(groups(op)?)
        );
    }
    Ok(filter)
}

/// Takes what alone reads the result and only changes its channels into the weights: a normalisation by constants,
/// factors and summands. Returns the name of what is computed then.
pub(super) fn follow<'a>(
    i: &mut Import<'a>,
    op: &Op<'a>,
    filter: &mut Filter,
    groups: usize,
) -> Result<&'a str, Reason> {
    let mut target = *op.node.outputs.first().ok_or("found no output")?;
    loop {
        let scope = i.scopes.last().ok_or("found no scope")?;
        let Some(readers) = scope.readers.get(target).filter(|readers| readers.count == 1) else { break };
        let Some(node) = op.nodes.get(readers.last) else { break };
        let (index, channels) = (readers.last, filter.channels(groups));
        let rank = filter.extents.len();
        let next = i.op(op.nodes, node)?;
        let Some((factor, summand)) = affine(i, &next, node, target, channels, rank)? else { break };
        filter.scale(groups, &factor, &summand);
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
