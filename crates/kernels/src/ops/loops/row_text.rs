//! The statements of rows: loops that reduce, what invocations of a row tell each other, and what is written.

use super::flat::store;
use super::index::AxisSet;
use super::joins::{Reduced, join_lanes, join_places};
use super::kept::Kept;
use super::rows::{Shape, loops, width_along};
use super::text::{Stored, Text, ordered};
use crate::emit::Bits;
use crate::ops::reduce::Reduction;

/// Writes `inner` once for each place of `axes` that an invocation has: in a loop, or one behind the other for as many places
/// as `kept` says each of so many invocations has, where what later loops read again stays in registers. Only the last of
/// these may be beyond the axes: loads of the others wait for no condition.
fn for_places(
    text: &mut Text<'_>,
    axes: AxisSet,
    also: Option<&str>,
    (invocations, kept): (u32, Option<usize>),
    inner: &mut dyn FnMut(&mut Text<'_>, usize),
) {
    let (nest, number) = (text.nest, text.nest.count(axes) / width_along(text.lanes, axes));
    let count = text.whole(number as i64);
    let Some(places) = kept else {
        let also = also.map(|also| format!(" && {also}")).unwrap_or_default();
        let line = format!("for (var j: u32 = lane; j < {count}{also}; j += LANES)");
        return text.block(&line, &mut |text| {
            text.places(&ordered(nest, axes), "j");
            inner(text, 0);
        });
    };
    for place in 0..places {
        let j = if place == 0 { "lane".to_owned() } else { format!("lane + {place}u * LANES") };
        let within = (place + 1) * invocations as usize <= number;
        let conditions = [(!within).then(|| format!("{j} < {count}")), also.map(str::to_owned)];
        let conditions: Vec<String> = conditions.into_iter().flatten().collect();
        let line =
            if conditions.is_empty() { String::new() } else { format!("if ({})", conditions.join(" && ")) };
        text.block(&line, &mut |text| {
            text.line(&format!("let j: u32 = {j};"));
            text.places(&ordered(nest, axes), "j");
            inner(text, place);
        });
    }
}

/// Writes the statements of rows: each has so many invocations, and counts places along the axes of `order`, the last one fastest.
pub(super) fn write(
    text: &mut Text<'_>,
    shape: &Shape,
    order: &[usize],
    results: &[Stored],
    invocations: u32,
) {
    let (nest, lanes) = (text.nest, text.lanes);
    let depends = nest.dependences();
    let types = nest.node_types();
    let rows = text.whole((shape.rows / width_along(lanes, shape.row)) as i64);
    text.line(&format!("let row: u32 = min(first, {rows} - 1u);"));
    text.line(&format!("let stored: bool = first < {rows};"));
    text.places(order, "row");
    let kept = Kept::of(nest, invocations as usize, lanes);
    for (id, _) in &kept.nodes {
        for place in 0..kept.places {
            let (ty, zero) = (text.type_of(*id), text.zero_of(*id));
            text.line(&format!("var k{id}_{place}: {ty} = {zero};"));
        }
    }
    let mut joins = 0;
    for (order, ((_, over), reductions)) in loops(nest).into_iter().enumerate() {
        for id in reductions.iter().flat_map(|own| [own.of].into_iter().chain(own.place)) {
            text.known_of_row(id, shape.row, &depends, &mut vec![false; depends.len()]);
        }
        for &Reduced { id, reduction, of, place } in &reductions {
            let (first, ty) = (text.first_of(reduction, types[of]), text.type_of(of));
            text.line(&format!("var r{id}: {ty} = {ty}({first});"));
            if place.is_some() {
                let (beyond, ty) = (text.float(Bits(f32::INFINITY)), text.ty());
                text.line(&format!("var p{id}: {ty} = {ty}({beyond});"));
            }
        }
        for_places(text, over, None, (invocations, kept.places_of(over)), &mut |text, place| {
            kept.name(text, over, order, place);
            for &Reduced { id, reduction, of, place } in &reductions {
                let value = text.value(of);
                if let Some(place) = place {
                    let at = text.value(place);
                    text.take(id, reduction, of, [&value, &at]);
                    continue;
                }
                let term = text.term_of(reduction, &value);
                let both = text.joined(reduction, types[id], &format!("r{id}"), &term);
                text.line(&format!("r{id} = {both};"));
            }
            kept.keep(text, over, order, place);
        });
        for &reduced in &reductions {
            let Reduced { id, reduction, of, place } = reduced;
            let own = format!("r{id}");
            if invocations > 1 {
                let half = (invocations, joins % 2 == 1);
                match place {
                    Some(_) => join_places(text, reduced, half),
                    None => join_lanes(text, (reduction, types[id]), &own, half),
                }
                joins += 1;
            }
            if width_along(lanes, over) == 4 {
                for others in ["yxwz", "zwxy"] {
                    if place.is_some() {
                        let other = [format!("{own}.{others}"), format!("p{id}.{others}")];
                        text.take(id, reduction, of, [&other[0], &other[1]]);
                        continue;
                    }
                    let both = text.joined(reduction, types[id], &own, &format!("{own}.{others}"));
                    text.line(&format!("{own} = {both};"));
                }
            }
            let whole = match reduction {
                Reduction::Mean => {
                    let count = text.whole(nest.count(over) as i64);
                    format!("{own} / f32({count})")
                }
                _ if place.is_some() => format!("p{id}"),
                _ => own,
            };
            let ty = text.type_of(id);
            text.line(&format!("let v{id}: {ty} = {whole};"));
            text.known(id, &format!("v{id}"));
        }
    }
    for value in nest.values() {
        text.known_of_row(value, shape.row, &depends, &mut vec![false; depends.len()]);
    }
    if shape.along == 0 {
        text.block("if (stored && lane == 0u)", &mut |text| store(text, results, lanes, None));
    } else {
        let places = (invocations, kept.places_of(shape.along));
        for_places(text, shape.along, Some("stored"), places, &mut |text, place| {
            kept.name(text, shape.along, usize::MAX, place);
            store(text, results, lanes, None);
        });
    }
}
