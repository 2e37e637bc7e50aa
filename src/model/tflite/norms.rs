//! Norms over channels, sums along an axis, encodings of indices and choices of the largest.

use super::convolution::missing;
use super::import::{Import, Op};
use super::moves::node;
use super::shapes::axis;
use crate::emit::Bits;
use crate::graph::Extras;
use crate::host::HostTensor;
use crate::model::reason::Reason;
use crate::ops::cumsum::CumSum;
use crate::ops::elementwise::Function;
use crate::ops::one_hot::OneHot;
use crate::ops::pointwise::Pointwise;
use crate::ops::reduce::Reduction;

/// `L2_NORMALIZATION`: divided by the root of the sum of the channels' squares, which is at least `1e-6`.
pub(super) fn l2_normalization<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let x = import.value(op, 0)?;
    let name = import.name(op, 0)?;
    let parts = [
        import.part_name(&name, "squares")?,
        import.part_name(&name, "sum")?,
        import.part_name(&name, "bounded")?,
        import.part_name(&name, "factor")?,
    ];
    let graph = &mut import.graph;
    let squares = graph.elementwise(&parts[0], Function::Square, &[x.into()])?;
    let sum = graph.reduce(&parts[1], squares, Reduction::Sum, &[-1], true)?;
    let bounded = graph.elementwise(&parts[2], Function::Maximum, &[sum.into(), 1e-12.into()])?;
    let factor = graph.elementwise(&parts[3], Function::Rsqrt, &[bounded.into()])?;
    let value = graph.elementwise(&name, Function::Mul, &[x.into(), factor.into()])?;
    import.write(op, 0, value)
}

/// `LOCAL_RESPONSE_NORMALIZATION`: `x / (bias + alpha sum x_j^2)^beta`, over the channels `j` that are at most
/// `radius` away. The sum is a product with a matrix of `alpha` along its diagonal.
pub(super) fn local_response<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.local_response().ok_or_else(|| missing(op, "LocalResponseNormalizationOptions"))?;
    let (bias, alpha, beta) = (table.bias(), table.alpha(), table.beta());
    let Ok(radius) = usize::try_from(table.radius()) else {
        return refused!("found radius {}, wanted at least 0", table.radius());
    };
    if ![bias, alpha, beta].into_iter().all(f32::is_finite) {
        return refused!("found bias {bias}, alpha {alpha}, beta {beta}, wanted finite numbers");
    }
    let x = import.value(op, 0)?;
    let channels = import.dims(x)?.shape().c;
    import.budget.spend(channels.saturating_mul(channels).saturating_mul(4))?;
    let near = |row: usize, column: usize| if row.abs_diff(column) <= radius { alpha } else { 0.0 };
    let matrix: Vec<f32> =
        (0..channels).flat_map(|row| (0..channels).map(move |column| near(row, column))).collect();
    let weights = HostTensor::new(crate::shape::Shape::nhwc(channels, 1, 1, channels), matrix);
    let weights = weights?;
    let bias = HostTensor::vector(vec![bias; channels])?;
    let name = import.name(op, 0)?;
    let parts = [
        import.part_name(&name, "squares")?,
        import.part_name(&name, "sum")?,
        import.part_name(&name, "factor")?,
    ];
    let graph = &mut import.graph;
    let squares = graph.elementwise(&parts[0], Function::Square, &[x.into()])?;
    let sum = graph.pointwise(&parts[1], squares, weights, Extras::bias(bias), Pointwise::default())?;
    let factor = graph.elementwise(&parts[2], Function::Pow, &[sum.into(), (-beta).into()])?;
    let value = graph.elementwise(&name, Function::Mul, &[x.into(), factor.into()])?;
    import.write(op, 0, value)
}

/// `CUMSUM` along a constant axis.
pub(super) fn cumsum<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (exclusive, reverse) =
        op.table.cumsum().map_or((false, false), |table| (table.exclusive(), table.reverse()));
    let x = import.value(op, 0)?;
    let listed = import.integers(op, 1)?.values;
    let [place] = listed[..] else { return refused!("found axes {listed:?}, wanted one") };
    let axis = axis(place, import.dims(x)?.rank())? as isize;
    node(import, op, |import, name| import.graph.cumsum(name, x, CumSum { axis, exclusive, reverse }))
}

/// `ONE_HOT`: along a new axis, one value where the index is, another elsewhere.
pub(super) fn one_hot<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let place = op.table.one_hot().map_or(-1, |table| table.axis());
    let x = import.value(op, 0)?;
    let axis = axis(i64::from(place), import.dims(x)?.rank() + 1)? as isize;
    let depth = import.integers(op, 1)?.values;
    let (&[depth], on, off) = (&depth[..], import.constant(op, 2)?, import.constant(op, 3)?) else {
        return refused!("found depths {depth:?}, wanted one");
    };
    let (Ok(depth @ 1..), Some(on), Some(off)) = (usize::try_from(depth), on.number(), off.number()) else {
        return refused!("found depth {depth}, wanted at least 1, and numbers on and off");
    };
    let options = OneHot { depth, on: Bits(on), off: Bits(off), axis };
    node(import, op, |import, name| import.graph.one_hot(name, x, options))
}

/// `TOPK_V2`: the largest elements of each row, and their indices.
pub(super) fn top_k<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 2)?;
    let x = import.value(op, 0)?;
    let count = import.integers(op, 1)?.values;
    let (&[count], name) = (&count[..], import.name(op, 0)?) else {
        return refused!("found numbers {count:?}, wanted one");
    };
    let count = usize::try_from(count).map_err(|_| format!("found {count}, wanted at least 0"))?;
    let [values, indices] = import.graph.top_k(&name, x, count)?;
    import.write(op, 0, values)?;
    import.write(op, 1, indices)
}
