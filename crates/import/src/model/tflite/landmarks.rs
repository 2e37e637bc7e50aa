//! MediaPipe's operators: crops around landmarks, and the places of maxima.

use super::flexbuffer::Map;
use super::import::{Import, Op};
use super::windows::{padding, positive, windows};
use crate::emit::Bits;
use crate::graph::{Term, Value};
use crate::model::build::Builder;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use crate::ops::reduce::Reduction;
use crate::ops::remap::{AxisRange, PadMode};
use Function::{Add, Div, Mul, Sub};

fn options(op: &Op<'_>) -> Result<Map, Reason> {
    Map::read(op.table.custom_options().map_or(&[][..], |options| options.bytes()))
}

fn count(map: &Map, key: &str) -> Result<usize, Reason> {
    let found = map.integer(key);
    let wanted = || format!("found options with {key} {found:?}, wanted a number of at least 0");
    found.and_then(|value| usize::try_from(value).ok()).ok_or_else(|| wanted().into())
}

/// `Landmarks2TransformMatrix`: the matrix from a crop to the picture. The crop's sides are parallel to the line
/// from one landmark to another, turned by an angle, and it is as large as some landmarks' extent, scaled.
pub(super) fn matrix<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 1)?;
    let map = options(op)?;
    let x = import.value(op, 0)?;
    let dims = import.dims(x)?;
    let &[1, n, 3] = dims.extents() else { return refused!("found landmarks {dims}, wanted 1 n 3") };
    let ends = [count(&map, "left_rotation_idx")?, count(&map, "right_rotation_idx")?];
    let size = [count(&map, "output_width")?, count(&map, "output_height")?];
    let number = |key: &str| {
        map.number(key)
            .filter(|value| value.is_finite())
            .ok_or_else(|| format!("found options without {key}"))
    };
    let (scales, angle) = ([number("scale_x")?, number("scale_y")?], number("target_rotation_radians")?);
    let listed = map.integers("subset_idxs").unwrap_or_default();
    let subset: Option<Vec<usize>> =
        listed.iter().map(|&index| usize::try_from(index).ok().filter(|&index| index < n)).collect();
    let subset = subset.filter(|subset| !subset.is_empty() && ends.iter().all(|&end| end < n));
    let Some(subset) = subset.filter(|_| !size.contains(&0)) else {
        return refused!("found landmarks {ends:?} and {listed:?} of {n}, and a crop of {size:?}");
    };
    let p = import.begin(op, 0)?;
    let flat = p.reshape("landmarks", x, &[n, 3])?;
    let (cosine, sine) = rotation(p, flat, ends, angle)?;
    let indices = p.constant("subset", &[subset.len()], subset.iter().map(|&index| index as f32))?;
    let used = p.gather("used", flat, indices, 0)?;
    let (x, y) = (p.slice("x", used, 1, [0, 1])?, p.slice("y", used, 1, [1, 2])?);
    // Turned so that the crop is upright.
    let (across, down) = (turned(p, [cosine, sine], x, y, false)?, turned(p, [sine, cosine], x, y, true)?);
    let mut side = |axis: Value| -> Result<[Value; 2], Reason> {
        let most = p.reduce("most", axis, Reduction::Max, 0, true)?;
        let least = p.reduce("least", axis, Reduction::Min, 0, true)?;
        let sum = p.each("sum", Add, &[most.into(), least.into()])?;
        let middle = p.each("middle", Mul, &[sum.into(), 0.5.into()])?;
        Ok([p.each("extent", Sub, &[most.into(), least.into()])?, middle])
    };
    let ([width, across], [height, down]) = (side(across)?, side(down)?);
    let minus = p.each("minus_sine", Function::Neg, &[sine.into()])?;
    let centre_x = turned(p, [cosine, minus], across, down, false)?;
    let centre_y = turned(p, [minus, cosine], across, down, true)?;
    let per_pixel = |axis: usize| scales[axis] / size[axis] as f32;
    let scale_x = p.each("scale_x", Mul, &[width.into(), per_pixel(0).into()])?;
    let scale_y = p.each("scale_y", Mul, &[height.into(), per_pixel(1).into()])?;
    let mut entry = |a: Value, b: Value| p.each("entry", Mul, &[a.into(), b.into()]);
    let (xx, xy) = (entry(cosine, scale_x)?, entry(sine, scale_y)?);
    let (yx, yy) = (entry(minus, scale_x)?, entry(cosine, scale_y)?);
    let half = size.map(|extent| extent as f32 / 2.0);
    let mut shift = |centre: Value, a: Value, b: Value| {
        let a = p.each("left", Mul, &[a.into(), half[0].into()])?;
        let b = p.each("up", Mul, &[b.into(), half[1].into()])?;
        let moved = p.each("moved", Sub, &[centre.into(), a.into()])?;
        p.each("shift", Sub, &[moved.into(), b.into()])
    };
    let (x, y) = (shift(centre_x, xx, xy)?, shift(centre_y, yx, yy)?);
    let (zero, one) = (p.constant("zero", &[1, 1], vec![0.0])?, p.constant("one", &[1, 1], vec![1.0])?);
    let entries = [xx, xy, zero, x, yx, yy, zero, y, zero, zero, one, zero, zero, zero, zero, one];
    let flat = p.concat("entries", &entries, 1)?;
    let value = p.reshape("", flat, &[1, 4, 4])?;
    import.write(op, 0, value)
}

/// The cosine and sine of `angle` less that of the line between two landmarks.
fn rotation(
    p: &mut Builder,
    landmarks: Value,
    [left, right]: [usize; 2],
    angle: f32,
) -> Result<(Value, Value), Reason> {
    let (from, to) =
        (p.slice("from", landmarks, 0, [left, left + 1])?, p.slice("to", landmarks, 0, [right, right + 1])?);
    let line = p.each("line", Sub, &[to.into(), from.into()])?;
    let (x, y) = (p.slice("dx", line, 1, [0, 1])?, p.slice("dy", line, 1, [1, 2])?);
    let (xx, yy) =
        (p.each("dx2", Function::Square, &[x.into()])?, p.each("dy2", Function::Square, &[y.into()])?);
    let sum = p.each("length2", Add, &[xx.into(), yy.into()])?;
    let length = p.each("length", Function::Sqrt, &[sum.into()])?;
    // A line of no length has the angle 0.
    let none = p.each("none", Function::Equal, &[length.into(), 0.0.into()])?;
    let divisor = p.each("divisor", Function::Select, &[none.into(), 1.0.into(), length.into()])?;
    let cosine = p.each("dx/length", Div, &[x.into(), divisor.into()])?;
    let cosine = p.each("cosine", Function::Select, &[none.into(), 1.0.into(), cosine.into()])?;
    let sine = p.each("sine", Div, &[y.into(), divisor.into()])?;
    let mut sum = |a: f32, function: Function, b: f32| {
        let a = p.each("of_cosine", Mul, &[cosine.into(), a.into()])?;
        let b = p.each("of_sine", Mul, &[sine.into(), b.into()])?;
        p.each("turned", function, &[a.into(), b.into()])
    };
    Ok((sum(angle.cos(), Add, angle.sin())?, sum(angle.sin(), Sub, angle.cos())?))
}

/// `a x - b y`, or `a x + b y`.
fn turned(p: &mut Builder, [a, b]: [Value; 2], x: Value, y: Value, plus: bool) -> Result<Value, Reason> {
    let a = p.each("ax", Mul, &[a.into(), x.into()])?;
    let b = p.each("by", Mul, &[b.into(), y.into()])?;
    p.each("rotated", if plus { Add } else { Sub }, &[a.into(), b.into()])
}

/// The entries of a row of a matrix, each of shape `1 1`.
fn row(p: &mut Builder, matrix: Value, row: usize) -> Result<[Value; 4], Reason> {
    let flat = p.reshape("matrix", matrix, &[1, 16])?;
    let mut entry = |column: usize| p.slice("entry", flat, 1, [4 * row + column, 4 * row + column + 1]);
    Ok([entry(0)?, entry(1)?, entry(2)?, entry(3)?])
}

/// `a x + b y + c`.
fn plane(p: &mut Builder, [a, b, _, c]: [Value; 4], x: Term, y: Term) -> Result<Value, Reason> {
    let a = p.each("ax", Mul, &[a.into(), x])?;
    let b = p.each("by", Mul, &[b.into(), y])?;
    let sum = p.each("ax+by", Add, &[a.into(), b.into()])?;
    p.each("plane", Add, &[sum.into(), c.into()])
}

/// `TransformLandmarks`: each landmark's place through a matrix; a third coordinate stays.
pub(super) fn landmarks<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (x, matrix) = (import.value(op, 0)?, import.value(op, 1)?);
    let (dims, of) = (import.dims(x)?, import.dims(matrix)?);
    let (&[1, n, depth @ (2 | 3)], 16) = (dims.extents(), of.elements()) else {
        return refused!("found landmarks {dims} and a matrix {of}, wanted 1 n 2 or 1 n 3, and 4 4");
    };
    let p = import.begin(op, 0)?;
    let flat = p.reshape("landmarks", x, &[n, depth])?;
    let (x, y) = (p.slice("x", flat, 1, [0, 1])?, p.slice("y", flat, 1, [1, 2])?);
    let (first, second) = (row(p, matrix, 0)?, row(p, matrix, 1)?);
    let mut columns = vec![plane(p, first, x.into(), y.into())?, plane(p, second, x.into(), y.into())?];
    if depth == 3 {
        columns.push(p.slice("z", flat, 1, [2, 3])?);
    }
    let whole = p.concat("columns", &columns, 1)?;
    let value = p.reshape("", whole, &[1, n, depth])?;
    import.write(op, 0, value)
}

/// `TransformTensorBilinear`: pixels of a crop through a matrix, between four pixels of the map each; 0 where they
/// are outside it.
pub(super) fn bilinear<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let map = options(op)?;
    let (x, matrix) = (import.value(op, 0)?, import.value(op, 1)?);
    let (dims, of) = (import.dims(x)?, import.dims(matrix)?);
    let (&[1, h, w, c], 16) = (dims.extents(), of.elements()) else {
        return refused!("found a map {dims} and a matrix {of}, wanted 1 h w c and 4 4");
    };
    let [out_h, out_w] = [count(&map, "output_height")?, count(&map, "output_width")?];
    let pixels = out_h.checked_mul(out_w).filter(|pixels| (1..=1 << 24).contains(pixels));
    let pixels = pixels.ok_or_else(|| format!("found a crop of {out_h} by {out_w}"))?;
    let p = import.begin(op, 0)?;
    // Pixels are at their middles: half a pixel is added, and taken off again.
    let columns = (0..pixels).map(|pixel| (pixel % out_w) as f32 + 0.5);
    let rows = (0..pixels).map(|pixel| (pixel / out_w) as f32 + 0.5);
    let columns = p.constant("columns", &[pixels, 1], columns)?;
    let rows = p.constant("rows", &[pixels, 1], rows)?;
    let (first, second) = (row(p, matrix, 0)?, row(p, matrix, 1)?);
    let mut place = |entries: [Value; 4], extent: usize| -> Result<[Value; 3], Reason> {
        let at = plane(p, entries, columns.into(), rows.into())?;
        let at = p.each("at", Sub, &[at.into(), 0.5.into()])?;
        let low = p.each("low", Function::Floor, &[at.into()])?;
        let part = p.each("part", Sub, &[at.into(), low.into()])?;
        let over = p.each("over", Function::GreaterEqual, &[at.into(), 0.0.into()])?;
        let under = p.each("under", Function::LessEqual, &[at.into(), ((extent - 1) as f32).into()])?;
        Ok([low, part, p.each("inside", Mul, &[over.into(), under.into()])?])
    };
    let ([x_low, x_part, x_inside], [y_low, y_part, y_inside]) = (place(first, w)?, place(second, h)?);
    let line = p.each("line", Mul, &[y_low.into(), (w as f32).into()])?;
    let pixel = p.each("pixel", Add, &[line.into(), x_low.into()])?;
    let flat = p.reshape("pixels", x, &[h * w, c])?;
    let mut corner = |step: usize| {
        let index = p.each("corner", Add, &[pixel.into(), (step as f32).into()])?;
        let index = p.reshape("index", index, &[pixels])?;
        p.gather("value", flat, index, 0)
    };
    let [a, b, c0, d] = [corner(0)?, corner(1)?, corner(w)?, corner(w + 1)?];
    let mut between = |a: Value, b: Value, part: Value| {
        let step = p.each("step", Sub, &[b.into(), a.into()])?;
        let moved = p.each("moved", Mul, &[step.into(), part.into()])?;
        p.each("between", Add, &[a.into(), moved.into()])
    };
    let (upper, lower) = (between(a, b, x_part)?, between(c0, d, x_part)?);
    let sum = between(upper, lower, y_part)?;
    let inside = p.each("within", Mul, &[x_inside.into(), y_inside.into()])?;
    let value = p.each("bounded", Function::Select, &[inside.into(), sum.into(), 0.0.into()])?;
    let value = p.reshape("", value, &[1, out_h, out_w, c])?;
    import.write(op, 0, value)
}

/// The code of the padding, the strides and the window of a pooling's options, height before width.
fn window(op: &Op<'_>) -> Result<(i8, [usize; 2], [usize; 2]), Reason> {
    let bytes = op.table.custom_options().map_or(&[][..], |options| options.bytes());
    let numbers: Vec<i32> = bytes.as_chunks::<4>().0.iter().take(6).map(|&n| i32::from_le_bytes(n)).collect();
    let [code, stride_w, stride_h, window_w, window_h, activation] = numbers[..] else {
        return refused!("found options of {} bytes, wanted those of a pooling", bytes.len());
    };
    if activation != 0 {
        return refused!("found activation {activation}, wanted none");
    }
    let code = i8::try_from(code.saturating_sub(1)).unwrap_or(-1);
    padding(code)?;
    Ok((code, positive("stride", [stride_h, stride_w])?, positive("window", [window_h, window_w])?))
}

/// `MaxPoolingWithArgmax2D`: the largest of each window, and its place in it, with 0.1 added.
pub(super) fn pool_with_places<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[1], 2)?;
    let (code, stride, window) = window(op)?;
    let x = import.value(op, 0)?;
    let dims = import.dims(x)?;
    let &[n, h, w, c] = dims.extents() else { return refused!("found {dims}, wanted a map") };
    let windows = windows(code, &window, &stride, &[1, 1], &[h, w])?;
    let (Some(out_h), Some(out_w), ..=64) =
        (windows.count(0, h), windows.count(1, w), window.iter().product::<usize>())
    else {
        return refused!("found windows of {window:?} over {dims}, wanted rank 4 and steps of a window");
    };
    let [[top, below], [left, right]] =
        [0, 1].map(|axis| [windows.pads[axis].0 as usize, windows.pads[axis].1 as usize]);
    let (values, places) = (import.name(op, 0)?, import.name(op, 1)?);
    let p = import.named(&values);
    let name = p.part("border")?;
    let mode = PadMode::Constant(Bits(f32::NEG_INFINITY));
    let padded = p.graph.pad(&name, x, &[0, top, left, 0], &[0, below, right, 0], mode);
    let padded = padded?;
    let mut best: Option<[Value; 2]> = None;
    for place in 0..window[0] * window[1] {
        let (y, x) = (place / window[1], place % window[1]);
        let range = |first: usize, count: usize, step: usize| AxisRange {
            begin: Some(first as isize),
            end: Some((first + (count - 1) * step + 1) as isize),
            step: step as isize,
        };
        let ranges = [AxisRange::ALL, range(y, out_h, stride[0]), range(x, out_w, stride[1]), AxisRange::ALL];
        let name = p.part("shifted")?;
        let own = p.graph.strided_slice(&name, padded, &ranges)?;
        best = Some(match best {
            None => [own, p.constant("first", &[1, 1, 1, 1], vec![0.0])?],
            Some([largest, at]) => {
                let better = p.each("better", Function::Greater, &[own.into(), largest.into()])?;
                let at =
                    p.each("place", Function::Select, &[better.into(), (place as f32).into(), at.into()])?;
                [p.each("largest", Function::Maximum, &[own.into(), largest.into()])?, at]
            }
        });
    }
    let Some([largest, at]) = best else {
        return refused!("found an empty window, wanted at least one element");
    };
    let largest = p.reshape("", largest, &[n, out_h, out_w, c])?;
    let parts = import.named(&places);
    let at = parts.each("shown", Add, &[at.into(), 0.1.into()])?;
    let name = parts.part("")?;
    let target = [n, out_h, out_w, c].map(crate::dims::Dim::Fixed);
    let at = parts.graph.broadcast_to(&name, at, &target)?;
    import.write(op, 0, largest)?;
    import.write(op, 1, at)
}

/// `MaxUnpooling2D`: each element at its place in its window, zeros elsewhere.
pub(super) fn unpool<'a>(import: &mut Import<'a>, op: &Op<'a>) -> Result<(), Reason> {
    op.check(&[2], 1)?;
    let (_, stride, window) = window(op)?;
    if stride != window || window[0] != window[1] || window[0] > 8 {
        return refused!(
            "found windows of {window:?} that are {stride:?} apart, wanted squares side by side"
        );
    }
    let (x, places) = (import.value(op, 0)?, import.value(op, 1)?);
    let p = import.begin(op, 0)?;
    let whole = p.each("whole", Function::Truncate, &[places.into()])?;
    let mut blocks = Vec::new();
    for place in 0..window[0] * window[1] {
        let here = p.each("here", Function::Equal, &[whole.into(), (place as f32).into()])?;
        blocks.push(p.each("block", Function::Select, &[here.into(), x.into(), 0.0.into()])?);
    }
    let joined = p.concat("blocks", &blocks, 3)?;
    let name = p.part("")?;
    let value = p.graph.depth_to_space(&name, joined, window[0])?;
    import.write(op, 0, value)
}
