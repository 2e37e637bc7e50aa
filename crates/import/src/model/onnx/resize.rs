//! `Resize` and `Upsample`: each axis by itself.
//!
//! An axis is resized by a matrix of weights. Where height and width alone change, and a kernel of ours has the same
//! places, it is that kernel; it is a selection of elements where each is one of the input's; and else a product.

use super::import::{Import, Op};
use crate::graph::{Extras, Right};
use crate::host::HostTensor;
use crate::model::build::{Kind, Mapped, Operand, Wanted, axis, channels_last, sizes};
use crate::model::constant::{Constant, Integers, dims_of};
use crate::model::input_dependence::help;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::gemm::Gemm;
use crate::ops::resize::{Resize, ResizeMode};

type Done = Result<(), Reason>;

/// How an axis is resized.
#[derive(Debug, Clone)]
struct Along {
    input: usize,
    output: usize,
    scale: f64,
    region: [f64; 2],
}

/// The options that hold for all axes.
struct Options<'a> {
    mode: &'a str,
    coordinates: &'a str,
    nearest: &'a str,
    cubic: f64,
    excludes_outside: bool,
    antialias: bool,
    outside: f32,
}

pub(super) fn resize<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let old = op.version < 11;
    let options = Options {
        mode: op.text("mode", "nearest")?,
        coordinates: op
            .text("coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" })?,
        nearest: op.text("nearest_mode", if old { "floor" } else { "round_prefer_floor" })?,
        cubic: f64::from(op.preset("cubic_coeff_a")?),
        excludes_outside: op.flag("exclude_outside", false),
        antialias: op.flag("antialias", false),
        outside: op.preset("extrapolation_value")?,
    };
    let own = i.extents_of(op, 0)?;
    let axes = match op.ints("axes").filter(|list| !list.is_empty()) {
        Some(list) => list.iter().map(|&one| axis(one, own.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..own.len()).collect(),
    };
    let along = axes_of(i, op, &own, &axes, old)?;
    let changed: Vec<usize> = (0..own.len())
        .filter(|&axis| {
            along[axis].output != own[axis] || along[axis].scale != 1.0 || along[axis].region != [0.0, 1.0]
        })
        .collect();
    if changed.is_empty() {
        return super::shapes::identity(i, op);
    }
    if own.len() == 4
        && changed.iter().all(|&axis| axis >= 2)
        && let Some(known) = known(&along[2], &along[3], &options)
    {
        let (x, kind) = i.map_input(op, 0)?;
        let value = i.add("", |graph, name| graph.resize(name, x, known))?;
        return i.write(op, 0, Mapped { value, order: channels_last(4), kind });
    }
    let mut mapped = i.mapped(op, 0)?;
    for (index, &axis) in changed.iter().enumerate() {
        let part = if index + 1 == changed.len() { "" } else { "axis" };
        mapped = one_axis(i, part, mapped, axis, &along[axis], &options)?;
    }
    // The nearest element of a place outside is the last one, the sum of none is 0.
    let filled = options.mode == "nearest" || options.outside != 0.0;
    if options.coordinates != "tf_crop_and_resize" || !filled {
        return i.write(op, 0, mapped);
    }
    let mut slot = Operand::Value(mapped);
    for (axis, along) in along.iter().enumerate() {
        let outside = along.outside(options.coordinates)?;
        if outside.contains(&true) {
            let mut extents = vec![1; own.len()];
            extents[axis] = outside.len();
            let inside = outside.iter().map(|&outside| i64::from(!outside)).collect();
            let inside = Operand::integers(extents, inside).of_kind(Kind::Bool);
            slot =
                i.apply("inside", Function::Select, &[inside.into(), slot.into(), options.outside.into()])?;
        }
    }
    i.set(op, 0, slot)
}

/// What becomes of each axis, from scales or sizes.
fn axes_of(
    i: &mut Import<'_>,
    op: &Op<'_>,
    own: &[usize],
    axes: &[usize],
    old: bool,
) -> Result<Vec<Along>, Reason> {
    let same = |&input: &usize| Along { input, output: input, scale: 1.0, region: [0.0, 1.0] };
    let mut along: Vec<Along> = own.iter().map(same).collect();
    let (scales_at, sizes_at) = if old { (1, usize::MAX) } else { (2, 3) };
    let constant = |i: &mut Import<'_>, index: usize| -> Result<Vec<f32>, Reason> {
        match op.node.inputs.get(index).filter(|name| !name.is_empty()) {
            None => Ok(Vec::new()),
            Some(name) => match i.find(name)? {
                Operand::Constant(constant, _) if constant.elements() == 0 => Ok(Vec::new()),
                Operand::Constant(constant, _) => super::convolution::floats_of(i, &constant),
                Operand::Value(mapped) => {
                    i.wanted.set(Wanted::Value(mapped.value));
                    let reason = format!(
                        "input {index} ({name:?}): found a value computed at each run, wanted a constant"
                    );
                    Err(Reason::from(reason).hinted(help(&i.graph, &[mapped.value])))
                }
            },
        }
    };
    let mut scales = constant(i, scales_at)?;
    if let Some(list) = op.floats("scales").filter(|list| !list.is_empty()) {
        scales = list.to_vec();
    }
    let wanted: Vec<i64> = constant(i, sizes_at)?.iter().map(|&size| size as i64).collect();
    let wanted = sizes(&wanted)?;
    if !scales.is_empty() && scales.len() != axes.len() || !wanted.is_empty() && wanted.len() != axes.len() {
        return refused!("found scales {scales:?} and sizes {wanted:?} for axes {axes:?}");
    }
    if scales.is_empty() && wanted.is_empty() {
        return refused!("found neither scales nor sizes, wanted one of them");
    }
    let ratio = |place: usize| wanted.get(place).map_or(1.0, |&size| size as f64 / own[axes[place]] as f64);
    let common = match op.text("keep_aspect_ratio_policy", "stretch")? {
        "not_larger" => (0..axes.len()).map(ratio).reduce(f64::min),
        "not_smaller" => (0..axes.len()).map(ratio).reduce(f64::max),
        _ => None,
    };
    for (place, &axis) in axes.iter().enumerate() {
        let input = own[axis];
        let (scale, output) = match (scales.get(place), wanted.get(place)) {
            (Some(&scale), _) if wanted.is_empty() => {
                // In f32, as the file has the scale: 5 times 1.4 are 7.
                (f64::from(scale), f64::from((input as f32 * scale).floor()))
            }
            (_, Some(_)) => match common {
                Some(scale) => (scale, (scale * input as f64 + 0.5).floor()),
                None => (ratio(place), wanted[place] as f64),
            },
            _ => return refused!("found no size"),
        };
        // Along an axis of no elements, of pictures or of channels, there are none to take and none to make.
        if input == 0 && output == 0.0 {
            continue;
        }
        if !(input > 0 && scale > 0.0 && (1.0..=1_048_576.0).contains(&output)) {
            return refused!(
                "found a scale of {scale} for {input} elements along axis {axis}, wanted 1 to 1048576 elements"
            );
        }
        along[axis] = Along { input, output: output as usize, scale, region: [0.0, 1.0] };
    }
    if op.text("coordinate_transformation_mode", "")? == "tf_crop_and_resize" {
        let region = constant(i, 1)?;
        if region.len() != 2 * axes.len() {
            return refused!(
                "found a region {region:?} for axes {axes:?}, wanted a beginning and an end for each"
            );
        }
        for (place, &axis) in axes.iter().enumerate() {
            along[axis].region = [f64::from(region[place]), f64::from(region[axes.len() + place])];
        }
    }
    Ok(along)
}

impl Along {
    /// Where element `at` of the output lies in the input, each operation rounded by `rounded`.
    fn coordinate(&self, at: usize, mode: &str, rounded: fn(f64) -> f64) -> Result<f64, Reason> {
        let r = rounded;
        let (at, input, output, scale) = (at as f64, self.input as f64, self.output as f64, r(self.scale));
        let half = r(r(r(at + 0.5) / scale) - 0.5);
        Ok(match mode {
            "half_pixel" => half,
            "pytorch_half_pixel" => {
                if self.output > 1 {
                    half
                } else {
                    0.0
                }
            }
            "half_pixel_symmetric" => {
                let adjustment = r(output / r(scale * input));
                r(r(input / 2.0 * r(1.0 - adjustment)) + half)
            }
            "tf_half_pixel_for_nn" => r(r(at + 0.5) / scale),
            "asymmetric" => r(at / scale),
            "align_corners" => {
                // Of the extent, not of the scale, which may leave a part of an element.
                if self.output > 1 { r(r(at * (input - 1.0)) / (output - 1.0)) } else { 0.0 }
            }
            "tf_crop_and_resize" => {
                let [start, end] = self.region;
                match self.output > 1 {
                    true => {
                        let along = r(r(r(at * r(end - start)) * (input - 1.0)) / (output - 1.0));
                        r(r(start * (input - 1.0)) + along)
                    }
                    false => r(r(0.5 * r(start + end)) * (input - 1.0)),
                }
            }
            other => {
                return refused!(
                    "found coordinate_transformation_mode {other:?}, wanted half_pixel, \
                     half_pixel_symmetric, pytorch_half_pixel, tf_half_pixel_for_nn, align_corners, asymmetric or \
                     tf_crop_and_resize"
                );
            }
        })
    }

    fn coordinates(&self, mode: &str) -> Result<Vec<f64>, Reason> {
        (0..self.output).map(|at| self.coordinate(at, mode, |exact| exact)).collect()
    }

    /// Whether each element of the output is of a region's part beyond the input. Computed in f32, as ONNX Runtime does: the
    /// ends of a region may be those of the input.
    fn outside(&self, mode: &str) -> Result<Vec<bool>, Reason> {
        let is_outside = |place: f64| place < 0.0 || place > self.input as f64 - 1.0;
        let place = |at| self.coordinate(at, mode, |exact| f64::from(exact as f32));
        (0..self.output).map(|at| Ok(mode == "tf_crop_and_resize" && is_outside(place(at)?))).collect()
    }

    /// The element nearest to each coordinate.
    fn nearest(&self, options: &Options<'_>) -> Result<Vec<usize>, Reason> {
        let round: fn(f64) -> f64 = match options.nearest {
            "round_prefer_floor" => |place| (place - 0.5).ceil(),
            "round_prefer_ceil" => |place| (place + 0.5).floor(),
            "floor" => f64::floor,
            "ceil" => f64::ceil,
            other => {
                return refused!(
                    "found nearest_mode {other:?}, wanted round_prefer_floor, round_prefer_ceil, floor or ceil"
                );
            }
        };
        let last = self.input as f64 - 1.0;
        // Computed in f32, as ONNX Runtime does: at an edge between two elements its rounding decides.
        let place = |at| self.coordinate(at, options.coordinates, |exact| f64::from(exact as f32));
        (0..self.output).map(|at| Ok(round(place(at)?).clamp(0.0, last) as usize)).collect()
    }

    /// The weight of each element of the input for each of the output: a row each.
    fn weights(&self, options: &Options<'_>) -> Result<Vec<Vec<(usize, f64)>>, Reason> {
        let a = options.cubic;
        let linear = |distance: f64| (1.0 - distance.abs()).max(0.0);
        let cubic = move |distance: f64| match distance.abs() {
            d if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
            d if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
            _ => 0.0,
        };
        let (reach, is_cubic) = match options.mode {
            "linear" | "bilinear" => (1.0, false),
            "cubic" => (2.0, true),
            other => return refused!("found mode {other:?}, wanted nearest, linear or cubic"),
        };
        let shrink = if options.antialias { self.scale.min(1.0) } else { 1.0 };
        let last = self.input as i64 - 1;
        let mut rows = Vec::with_capacity(self.output);
        let outside = self.outside(options.coordinates)?;
        for (place, is_outside) in self.coordinates(options.coordinates)?.into_iter().zip(outside) {
            if is_outside {
                rows.push(Vec::new());
                continue;
            }
            let first = (place - reach / shrink).floor() as i64;
            let end = (place + reach / shrink).ceil() as i64;
            let mut row: Vec<(usize, f64)> = Vec::new();
            for at in first..=end {
                let distance = (at as f64 - place) * shrink;
                let weight = if is_cubic { cubic(distance) } else { linear(distance) };
                if weight == 0.0 || options.excludes_outside && !(0..=last).contains(&at) {
                    continue;
                }
                row.push((at.clamp(0, last) as usize, weight));
            }
            let whole: f64 = row.iter().map(|(_, weight)| weight).sum();
            if whole != 0.0 {
                row.iter_mut().for_each(|(_, weight)| *weight /= whole);
            }
            rows.push(row);
        }
        Ok(rows)
    }
}

/// The options of our kernel, if it has the same places.
fn known(rows: &Along, columns: &Along, options: &Options<'_>) -> Option<Resize> {
    let mode = match options.mode {
        "nearest" => ResizeMode::Nearest,
        "linear" | "bilinear" if !options.antialias => ResizeMode::Bilinear,
        _ => return None,
    };
    let candidates = [(false, false), (false, true), (true, false)].into_iter();
    candidates
        .map(|(align_corners, half_pixel_centers)| Resize {
            size: [rows.output, columns.output],
            mode,
            align_corners,
            half_pixel_centers,
        })
        .find(|candidate| [rows, columns].into_iter().all(|along| is_same(along, options, candidate)))
}

/// Whether our kernel has the places of an axis.
fn is_same(along: &Along, options: &Options<'_>, candidate: &Resize) -> bool {
    let (input, output) = (along.input as f64, along.output as f64);
    let last = input - 1.0;
    if options.coordinates == "tf_crop_and_resize" {
        return false;
    }
    let scale = if candidate.align_corners && output > 1.0 { last / (output - 1.0) } else { input / output };
    let half = if candidate.half_pixel_centers { 0.5 } else { 0.0 };
    let ours = |at: usize| (at as f64 + half) * scale;
    if candidate.mode == ResizeMode::Nearest {
        let Ok(wanted) = along.nearest(options) else { return false };
        return wanted.iter().enumerate().all(|(at, &wanted)| {
            let (scaled, floor) = (ours(at), ours(at).floor());
            let up = candidate.align_corners && scaled >= floor + 0.5;
            // What f32 might round over an edge is left to the general way.
            let safe =
                (scaled - scaled.round()).abs() > 1e-4 || candidate.align_corners || scaled.fract() == 0.0;
            safe && (floor + f64::from(u8::from(up))).min(last) as usize == wanted
        });
    }
    let Ok(wanted) = along.coordinates(options.coordinates) else { return false };
    wanted
        .iter()
        .enumerate()
        .all(|(at, wanted)| ((ours(at) - half).clamp(0.0, last) - wanted.clamp(0.0, last)).abs() < 1e-5)
}

/// One axis resized in general.
fn one_axis(
    i: &mut Import<'_>,
    part: &str,
    mapped: Mapped,
    axis: usize,
    along: &Along,
    options: &Options<'_>,
) -> Result<Mapped, Reason> {
    i.budget.spend(along.output.saturating_mul(64))?;
    let rank = mapped.rank();
    if options.mode == "nearest" {
        let list: Vec<i64> = along.nearest(options)?.into_iter().map(|at| at as i64).collect();
        let indices = Constant::Integers(Integers::vector(list));
        let indices = i.mapped_slot(Operand::Constant(indices, Kind::I64), None)?.value;
        let place = mapped.place(axis) as isize;
        let value = i.add(part, |graph, name| graph.gather(name, mapped.value, indices, place, 0))?;
        return Ok(Mapped { value, ..mapped });
    }
    let rows = along.weights(options)?;
    i.budget.spend(along.output.saturating_mul(along.input).saturating_mul(8))?;
    let mut matrix = vec![0.0f32; along.input * along.output];
    for (at, row) in rows.iter().enumerate() {
        for &(from, weight) in row {
            matrix[from * along.output + at] += weight as f32;
        }
    }
    let matrix = HostTensor::new(dims_of(&[along.input, along.output])?, matrix)?;
    let mut order: Vec<usize> = mapped.order.iter().copied().filter(|&own| own != axis).collect();
    order.push(axis);
    let x = i.in_order(&mapped, &order)?;
    let mut stored = i.dims(x)?.extents().to_vec();
    let outer: usize = stored.iter().take(rank - 1).product();
    let lines = i.reshaped("lines", x, &[outer, along.input])?;
    let product = Right::Constant(matrix);
    let value =
        i.add("product", |graph, name| graph.gemm(name, lines, product, Extras::default(), Gemm::default()))?;
    if let Some(last) = stored.last_mut() {
        *last = along.output;
    }
    let value = i.reshaped(part, value, &stored)?;
    Ok(Mapped { value, order, kind: mapped.kind })
}
