//! Boxes from anchors, and those of the largest scores that do not overlap.

use super::flexbuffer::Map;
use super::import::{Import, Op};
use crate::emit::Bits;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::build::{Boxes, Builder, Kind, Mapped, Operand, kept_boxes, suppressed};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::suppress::Suppress;

/// The options of `TFLite_Detection_PostProcess`.
struct Detection {
    most: usize,
    /// Classes of a detection, and whether each class is suppressed by itself, with so many boxes.
    classes_of_each: usize,
    regular: Option<usize>,
    classes: usize,
    score: f32,
    overlap: f32,
    /// `y x h w`.
    scales: [f32; 4],
}

impl Detection {
    fn read(op: &Op<'_>) -> Result<Self, Reason> {
        let bytes = op.table.custom_options().map_or(&[][..], |options| options.bytes());
        let map = Map::read(bytes)?;
        let count = |key: &str| {
            let found = map.integer(key);
            found
                .and_then(|value| usize::try_from(value).ok())
                .filter(|&value| value > 0)
                .ok_or_else(|| format!("found options with {key} {found:?}, wanted at least 1"))
        };
        let number = |key: &str| {
            let found = map.number(key);
            found
                .filter(|value| value.is_finite())
                .ok_or_else(|| format!("found options with {key} {found:?}, wanted a number"))
        };
        let per_class = match map.integer("detections_per_class") {
            Some(_) => count("detections_per_class")?,
            None => 100,
        };
        let scales = [number("y_scale")?, number("x_scale")?, number("h_scale")?, number("w_scale")?];
        if scales.contains(&0.0) {
            return refused!("found scales {scales:?}, wanted others than 0");
        }
        Ok(Detection {
            most: count("max_detections")?,
            classes_of_each: count("max_classes_per_detection")?,
            regular: map.truth("use_regular_nms").unwrap_or(false).then_some(per_class),
            classes: count("num_classes")?,
            score: number("nms_score_threshold")?,
            overlap: number("nms_iou_threshold")?,
            scales,
        })
    }

    fn options(&self, count: usize) -> Suppress {
        Suppress {
            count,
            overlap: Bits(self.overlap),
            score: Bits(self.score),
            sigma: Bits(0.0),
            strict: false,
        }
    }
}

/// What was found: `n 4`, `n`, `n`, and a number.
struct Detections {
    boxes: Value,
    classes: Value,
    scores: Value,
    count: Value,
}

/// `TFLite_Detection_PostProcess`: boxes, classes, scores and their number. What is beyond the number is 0.
pub(super) fn post_process<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[3], 4)?;
    let options = Detection::read(op)?;
    let (encoded, scores, anchors) = (import.value(op, 0)?, import.value(op, 1)?, import.floats(op, 2)?);
    let (encoded_dims, score_dims) = (import.dims(encoded)?, import.dims(scores)?);
    let (&[1, n, width], &[1, same, classes]) = (encoded_dims.extents(), score_dims.extents()) else {
        return refused!("found boxes {encoded_dims} and scores {score_dims}, wanted 1 n 4 and 1 n c");
    };
    if width < 4 || n != same || anchors.dims().extents() != [n, 4] || classes < options.classes {
        return refused!(
            "found boxes {encoded_dims}, scores {score_dims} and anchors {} for {} classes",
            anchors.dims(),
            options.classes
        );
    }
    let names = (0..4).map(|index| import.name(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let parts = import.named(&names[0]);
    let rows = parts.reshape("encoded", encoded, &[n, width])?;
    let boxes = decoded(parts, rows, &anchors, n, options.scales)?;
    // A class for what is in the background comes first, if there is one.
    let scores = parts.reshape("scores", scores, &[n, classes])?;
    let scores = parts.slice("classes", scores, 1, [classes - options.classes, classes])?;
    let found = match options.regular {
        Some(per_class) => of_each_class(parts, boxes, scores, n, &options, per_class)?,
        None => of_the_best_class(parts, boxes, scores, n, &options)?,
    };
    let outputs = [found.boxes, found.classes, found.scores, found.count];
    for (index, (value, name)) in outputs.into_iter().zip(&names).enumerate() {
        let mut extents = import.dims(value)?.extents().to_vec();
        if index < 3 {
            extents.insert(0, 1);
        }
        let value = import.named(name).reshape("", value, &extents)?;
        import.write(op, index, value)?;
    }
    Ok(())
}

/// The corners of boxes: the centre moves by a part of the anchor's size, and the size is a power of it.
fn decoded(
    parts: &mut Builder,
    encoded: Value,
    anchors: &HostTensor,
    n: usize,
    scales: [f32; 4],
) -> Result<Value, Reason> {
    let anchors = anchors.to_nhwc();
    let column = |at: usize, factor: [f64; 2]| -> Vec<f32> {
        let row = |row: &[f32]| [0, 1].map(|axis| (f64::from(row[at + axis]) * factor[axis]) as f32);
        anchors.chunks_exact(4).flat_map(row).collect()
    };
    let of_scale = |axis: usize| 1.0 / f64::from(scales[axis]);
    let steps = parts.constant("steps", &[n, 2], column(2, [of_scale(0), of_scale(1)]))?;
    let centres = parts.constant("anchors", &[n, 2], column(0, [1.0; 2]))?;
    let halves = parts.constant("halves", &[n, 2], column(2, [0.5; 2]))?;
    let powers = parts.constant("powers", &[1, 2], vec![of_scale(2) as f32, of_scale(3) as f32])?;
    let moves = parts.slice("moves", encoded, 1, [0, 2])?;
    let sizes = parts.slice("sizes", encoded, 1, [2, 4])?;
    let moved = parts.each("moved", Function::Mul, &[moves.into(), steps.into()])?;
    let centre = parts.each("centre", Function::Add, &[moved.into(), centres.into()])?;
    let power = parts.each("power", Function::Mul, &[sizes.into(), powers.into()])?;
    let factor = parts.each("factor", Function::Exp, &[power.into()])?;
    let half = parts.each("half", Function::Mul, &[factor.into(), halves.into()])?;
    let low = parts.each("low", Function::Sub, &[centre.into(), half.into()])?;
    let high = parts.each("high", Function::Add, &[centre.into(), half.into()])?;
    parts.concat("boxes", &[low, high], 1)
}

fn plain(parts: &Builder, value: Value) -> Result<Operand, Reason> {
    Ok(Operand::Value(Mapped::plain(value, parts.dims(value)?.rank(), Kind::F32)))
}

fn value(parts: &mut Builder, operand: Operand) -> Result<Value, Reason> {
    let mapped = parts.mapped(operand)?;
    parts.logical(&mapped)
}

/// The boxes that are kept for each of some rows of scores.
fn kept(
    parts: &mut Builder,
    boxes: Value,
    scores: Value,
    [rows, n]: [usize; 2],
    options: Suppress,
) -> Result<Boxes, Reason> {
    let scores = parts.reshape("candidate_scores", scores, &[rows, n])?;
    let (boxes, scores) = (plain(parts, boxes)?, plain(parts, scores)?);
    suppressed(parts, boxes, scores, options)
}

/// How many places are those of boxes.
fn counted(parts: &mut Builder, places: Value, count: usize) -> Result<Value, Reason> {
    let places = plain(parts, places)?;
    let count = kept_boxes(parts, places, count)?;
    value(parts, count)
}

/// Boxes are compared by their best class, and each has its best classes.
fn of_the_best_class(
    parts: &mut Builder,
    boxes: Value,
    scores: Value,
    n: usize,
    options: &Detection,
) -> Result<Detections, Reason> {
    let (most, each) = (options.most, options.classes_of_each);
    let classes = each.min(options.classes);
    let name = parts.part("best")?;
    let best = parts.graph.top_k(&name, scores, classes)?;
    let [best, indices] = best;
    let first = parts.slice("first", best, 1, [0, 1])?;
    let places = kept(parts, boxes, first, [1, n], options.options(most))?.places(parts)?;
    let places = value(parts, places)?;
    let places = parts.reshape("order", places, &[most])?;
    // What has no place has the index -1, which gives zeros.
    let mut pick = |part: &str, from: Value| {
        let picked = parts.gather(part, from, places, 0)?;
        let picked =
            if each > classes { parts.extended(part, picked, 1, each - classes, 0.0)? } else { picked };
        parts.reshape(part, picked, &[most * each])
    };
    let (classes, scores) = (pick("labels", indices)?, pick("best_scores", best)?);
    let mut boxes = parts.gather("corners", boxes, places, 0)?;
    if each > 1 {
        let name = parts.part("copies")?;
        let one = parts.reshape("box", boxes, &[most, 1, 4])?;
        let tiled = parts.graph.tile(&name, one, &[1, each, 1])?;
        boxes = parts.reshape("corners", tiled, &[most * each, 4])?;
    }
    Ok(Detections { boxes, classes, scores, count: counted(parts, places, most)? })
}

/// Boxes are compared class by class, and the best of all classes are taken.
fn of_each_class(
    parts: &mut Builder,
    boxes: Value,
    scores: Value,
    n: usize,
    options: &Detection,
    per_class: usize,
) -> Result<Detections, Reason> {
    let (rows, most) = (options.classes, options.most);
    let all = rows
        .checked_mul(per_class)
        .ok_or_else(|| format!("found {rows} classes of {per_class}, wanted fewer"))?;
    let scores = parts.transpose("by_class", scores, &[1, 0])?;
    let kept = kept(parts, boxes, scores, [rows, n], options.options(per_class))?;
    let (places, found) = (kept.places(parts)?, kept.scores(parts)?);
    let (places, found) = (value(parts, places)?, value(parts, found)?);
    let places = parts.reshape("boxes_of_all", places, &[all])?;
    let found = parts.reshape("scores_of_all", found, &[all])?;
    let there = parts.each("is_there", Function::GreaterEqual, &[places.into(), 0.0.into()])?;
    let scores = parts.each("ranked", Function::Select, &[there.into(), found.into(), f32::MIN.into()])?;
    let name = parts.part("best")?;
    let best = parts.graph.top_k(&name, scores, most.min(all))?;
    let [scores, order] = best;
    let own = parts.gather("own", places, order, 0)?;
    let is_there = parts.each("of_these", Function::GreaterEqual, &[own.into(), 0.0.into()])?;
    let zeros = |parts: &mut Builder, part: &str, value: Value| {
        parts.each(part, Function::Select, &[is_there.into(), value.into(), 0.0.into()])
    };
    let scores = zeros(parts, "best_scores", scores)?;
    let class = parts.each("class", Function::FloorDiv, &[order.into(), (per_class as f32).into()])?;
    let classes = zeros(parts, "labels", class)?;
    let boxes = parts.gather("corners", boxes, own, 0)?;
    let count = counted(parts, own, most.min(all))?;
    let more = most.saturating_sub(all);
    let mut filled = |part: &str, value: Value| {
        if more == 0 { Ok(value) } else { parts.extended(part, value, 0, more, 0.0) }
    };
    Ok(Detections {
        boxes: filled("more_boxes", boxes)?,
        classes: filled("more_labels", classes)?,
        scores: filled("more_scores", scores)?,
        count,
    })
}

/// `NON_MAX_SUPPRESSION_V4`, and `V5` with scores that fall with the overlap.
pub(super) fn suppress<'a>(import: &mut Import<'a>, op: &Op<'a>, soft: bool) -> Result<(), Reason> {
    if soft {
        op.check(&[6], 3)?;
    } else {
        op.check(&[5], 2)?;
    }
    let (boxes, scores) = (import.value(op, 0)?, import.value(op, 1)?);
    let count = import.integers(op, 2)?.values;
    let &[count] = &count[..] else { return refused!("found {count:?} boxes, wanted a number") };
    let count = usize::try_from(count).ok().filter(|&count| count > 0);
    let count = count.ok_or("found no boxes wanted, wanted at least 1")?;
    let mut number = |index: usize| {
        let constant = import.constant(op, index)?;
        constant.number().ok_or_else(|| format!("found thresholds {:?}, wanted one", constant.extents()))
    };
    let (overlap, score) = (number(3)?, number(4)?);
    let sigma = if soft { number(5)? } else { 0.0 };
    let dims = import.dims(scores)?;
    let &[n] = dims.extents() else { return refused!("found scores {dims}, wanted a vector") };
    let options =
        Suppress { count, overlap: Bits(overlap), score: Bits(score), sigma: Bits(sigma), strict: true };
    let names =
        (0..op.outputs.len()).map(|index| import.name(op, index)).collect::<Result<Vec<_>, Reason>>()?;
    let parts = import.named(&names[0]);
    let kept = kept(parts, boxes, scores, [1, n], options)?;
    let places = kept.places(parts)?;
    let places = value(parts, places)?;
    let flat = parts.reshape("flat", places, &[count])?;
    let indices = parts.each("", Function::Maximum, &[flat.into(), 0.0.into()])?;
    let number = counted(parts, places, count)?;
    let last = op.outputs.len() - 1;
    let number = import.named(&names[last]).reshape("", number, &[])?;
    import.write(op, 0, indices)?;
    if soft {
        let parts = import.named(&names[1]);
        let found = kept.scores(parts)?;
        let scores = parts.with_extents("", found, &[count])?;
        import.put(op, 1, scores)?;
    }
    import.write(op, last, number)
}
