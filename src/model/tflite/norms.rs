//! Operators that are written as several nodes: norms over channels, sums along an axis, one-hot vectors.

use super::constant::Constant;
use super::convolution::missing;
use super::import::{Import, Input, Op};
use super::shapes::{axis, extents};
use super::tensors::Reason;
use crate::dims::Dim;
use crate::error::Error;
use crate::graph::{Extras, Right};
use crate::host::HostTensor;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
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
    let explain = |error: crate::Error| error.to_string();
    let squares = graph.elementwise(&parts[0], Function::Square, &[x.into()]).map_err(explain)?;
    let sum = graph.reduce(&parts[1], squares, Reduction::Sum, &[-1], true).map_err(explain)?;
    let bounded =
        graph.elementwise(&parts[2], Function::Maximum, &[sum.into(), 1e-12.into()]).map_err(explain)?;
    let factor = graph.elementwise(&parts[3], Function::Rsqrt, &[bounded.into()]).map_err(explain)?;
    let value = graph.elementwise(&name, Function::Mul, &[x.into(), factor.into()]).map_err(explain)?;
    import.write(op, 0, value)
}

/// `LOCAL_RESPONSE_NORMALIZATION`: `x / (bias + alpha sum x_j^2)^beta`, over the channels `j` that are at most
/// `radius` away. The sum is a product with a matrix of `alpha` along its diagonal.
pub(super) fn local_response<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let table = op.table.local_response().ok_or_else(|| missing(op, "LocalResponseNormalizationOptions"))?;
    let (bias, alpha, beta) = (table.bias(), table.alpha(), table.beta());
    let Ok(radius) = usize::try_from(table.radius()) else {
        return Err(format!("found radius {}, wanted at least 0", table.radius()));
    };
    if ![bias, alpha, beta].into_iter().all(f32::is_finite) {
        return Err(format!("found bias {bias}, alpha {alpha}, beta {beta}, wanted finite numbers"));
    }
    let x = import.value(op, 0)?;
    let channels = import.dims(x)?.shape().c;
    import.budget.spend(channels.saturating_mul(channels).saturating_mul(4))?;
    let near = |row: usize, column: usize| if row.abs_diff(column) <= radius { alpha } else { 0.0 };
    let matrix: Vec<f32> =
        (0..channels).flat_map(|row| (0..channels).map(move |column| near(row, column))).collect();
    let weights = HostTensor::new(crate::shape::Shape::nhwc(channels, 1, 1, channels), matrix);
    let weights = weights.map_err(|error| error.to_string())?;
    let bias = HostTensor::vector(vec![bias; channels]).map_err(|error| error.to_string())?;
    let name = import.name(op, 0)?;
    let parts =
        [import.part_name(&name, "squares")?, import.part_name(&name, "sum")?, import.part_name(&name, "factor")?];
    let graph = &mut import.graph;
    let explain = |error: Error| error.to_string();
    let squares = graph.elementwise(&parts[0], Function::Square, &[x.into()]).map_err(explain)?;
    let sum = graph
        .pointwise(&parts[1], squares, weights, Extras::bias(bias), Pointwise::default())
        .map_err(explain)?;
    let factor =
        graph.elementwise(&parts[2], Function::Pow, &[sum.into(), (-beta).into()]).map_err(explain)?;
    let value = graph.elementwise(&name, Function::Mul, &[x.into(), factor.into()]).map_err(explain)?;
    import.write(op, 0, value)
}

/// `CUMSUM` along a constant axis: a product with a triangle of ones.
pub(super) fn cumsum<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (exclusive, reverse) =
        op.table.cumsum().map_or((false, false), |table| (table.exclusive(), table.reverse()));
    let extents = extents(import, op)?;
    let listed = import.integers(op, 1)?.values;
    let [place] = listed[..] else { return Err(format!("found axes {listed:?}, wanted one")) };
    let axis = axis(place, extents.len())?;
    let count = extents[axis];
    import.budget.spend(count.saturating_mul(count).saturating_mul(4))?;
    let taken = |term: usize, sum: usize| {
        let (term, sum) = if reverse { (sum, term) } else { (term, sum) };
        if term < sum || (term == sum && !exclusive) { 1.0 } else { 0.0 }
    };
    let triangle: Vec<f32> =
        (0..count).flat_map(|term| (0..count).map(move |sum| taken(term, sum))).collect();
    let triangle = HostTensor::matrix(1, count, count, triangle).map_err(|error| error.to_string())?;
    let x = import.value(op, 0)?;
    let name = import.name(op, 0)?;
    let parts = ["last", "rows", "sums", "whole"].map(|part| import.part_name(&name, part));
    let [last, rows, sums, whole] = parts;
    let (last, rows, sums, whole) = (last?, rows?, sums?, whole?);
    // The axis and the last one change places, and back.
    let mut swap: Vec<usize> = (0..extents.len()).collect();
    swap.swap(axis, extents.len() - 1);
    let graph = &mut import.graph;
    let explain = |error: Error| error.to_string();
    let moved = graph.transpose(&last, x, &swap).map_err(explain)?;
    let target: Vec<Dim> = graph.dims(moved).map_err(explain)?.extents().iter().map(|&e| e.into()).collect();
    let flat = graph.reshape(&rows, moved, &[Dim::Rest, count.into()]).map_err(explain)?;
    let product = graph.gemm(&sums, flat, Right::Constant(triangle), Extras::default(), Gemm::default());
    let unflat = graph.reshape(&whole, product.map_err(explain)?, &target).map_err(explain)?;
    let value = graph.transpose(&name, unflat, &swap).map_err(explain)?;
    import.write(op, 0, value)
}

/// `ONE_HOT`: along a new axis, one value where the index is, another elsewhere.
pub(super) fn one_hot<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[4], 1)?;
    let place = op.table.one_hot().map_or(-1, |table| table.axis());
    let mut extents = extents(import, op)?;
    let axis = axis(i64::from(place), extents.len() + 1)?;
    let depth = import.integers(op, 1)?.values;
    let (&[depth], on, off) = (&depth[..], import.constant(op, 2)?, import.constant(op, 3)?) else {
        return Err(format!("found depths {depth:?}, wanted one"));
    };
    let (Ok(depth @ 1..), Some(on), Some(off)) = (usize::try_from(depth), on.number(), off.number()) else {
        return Err(format!("found depth {depth}, wanted at least 1, and numbers on and off"));
    };
    import.budget.spend(depth.saturating_mul(4))?;
    extents.insert(axis, 1);
    let indices = match import.input(op, 0)? {
        Input::Constant(constant) => {
            let tensor = constant.reshaped(&extents)?.floats(&mut import.budget)?;
            let name = import.name(op, 0)?;
            let part = import.part_name(&name, "indices")?;
            (import.graph.constant(&part, tensor), name)
        }
        Input::Value(value) => {
            let name = import.name(op, 0)?;
            let part = import.part_name(&name, "indices")?;
            let target: Vec<Dim> = extents.iter().map(|&extent| extent.into()).collect();
            (import.graph.reshape(&part, value, &target).map_err(|error| error.to_string())?, name)
        }
    };
    let (indices, name) = indices;
    let mut along = vec![1; extents.len()];
    along[axis] = depth;
    let counted: Vec<f32> = (0..depth).map(|index| index as f32).collect();
    let counted = HostTensor::new(super::constant::dims_of(&along)?, counted);
    let counted = Constant::Floats(counted.map_err(|error| error.to_string())?);
    let part = import.part_name(&name, "range")?;
    let tensor = counted.floats(&mut import.budget)?;
    let range = import.graph.constant(&part, tensor);
    let plain = on == 1.0 && off == 0.0;
    let equal = if plain { name.clone() } else { import.part_name(&name, "equal")? };
    let explain = |error: Error| error.to_string();
    let mut value = import
        .graph
        .elementwise(&equal, Function::Equal, &[indices.into(), range.into()])
        .map_err(explain)?;
    if !plain {
        let terms = [value.into(), on.into(), off.into()];
        value = import.graph.elementwise(&name, Function::Select, &terms).map_err(explain)?;
    }
    import.write(op, 0, value)
}
