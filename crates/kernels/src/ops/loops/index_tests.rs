//! Indices beside the arithmetic that they stand for.

use super::index::{Index, Mirror};
use proptest::prelude::*;

const EXTENTS: [usize; 4] = [3, 8, 6, 5];

fn axis(axis: usize) -> Index {
    Index::axis(axis)
}

/// `a * x + b * y`.
fn sum(a: i64, x: &Index, b: i64, y: &Index) -> Index {
    x.times(a).plus(y, b)
}

#[test]
fn what_a_reshape_takes_apart_its_inverse_puts_together() {
    let flat = sum(8, &axis(0), 1, &axis(1));
    assert_eq!(flat.quotient(8, &EXTENTS), axis(0));
    assert_eq!(flat.remainder(8, &EXTENTS), axis(1));
    // 24 elements as 4 by 6, and as 3 by 8 again.
    let (row, column) = (flat.quotient(6, &EXTENTS), flat.remainder(6, &EXTENTS));
    assert_ne!(row.as_term(), None);
    let again = sum(6, &row, 1, &column);
    assert_eq!(again, flat);
    assert_eq!(again.quotient(8, &EXTENTS), axis(0));
    // Digits of one number, of which two are put together.
    let x = flat.plus(&axis(2), 24);
    let digits =
        [x.quotient(12, &EXTENTS), x.quotient(3, &EXTENTS).remainder(4, &EXTENTS), x.remainder(3, &EXTENTS)];
    assert_eq!(sum(3, &digits[1], 1, &digits[2]), x.remainder(12, &EXTENTS));
    assert_eq!(sum(12, &digits[0], 3, &digits[1]).plus(&digits[2], 1), x);
}

#[test]
fn a_place_that_a_guard_keeps_inside_counts_as_such() {
    let shifted = axis(1).plus(&Index::number(2), -1);
    let inside = shifted.clone().inside(6, &EXTENTS);
    assert_eq!(inside.range(&EXTENTS), [0, 5]);
    let flat = sum(6, &axis(0), 1, &inside);
    assert_eq!(flat.quotient(6, &EXTENTS), axis(0));
    assert_eq!(flat.remainder(6, &EXTENTS), inside);
    assert_eq!(axis(1).inside(8, &EXTENTS), axis(1));
    let mirrored = shifted.ruled(Mirror::Reflect, 6, &EXTENTS);
    let found: Vec<i64> = (0..8).map(|place| mirrored.value(&[0, place])).collect();
    assert_eq!(found, [2, 1, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_is_below_a_common_divisor_is_not_divided() {
    // Element `y` of a row of 6 numbers, cut at multiples of 12 and 24.
    let y = axis(1).plus(&Index::number(-2), 1).inside(5, &EXTENTS);
    let flat = sum(6, &y, 1, &axis(2));
    assert_eq!(flat.quotient(12, &EXTENTS), y.quotient(2, &EXTENTS));
    assert_eq!(flat.remainder(24, &EXTENTS), sum(6, &y.remainder(4, &EXTENTS), 1, &axis(2)));
    assert_eq!(flat.plus(&Index::number(1), 1).quotient(12, &EXTENTS).to_string(), "(i2+6(i1-2)in5+1)/12");
}

#[test]
fn strides_are_those_of_axes_that_nothing_divides() {
    let index = sum(5, &axis(0), 2, &axis(1).quotient(4, &EXTENTS));
    assert_eq!([0, 1, 2].map(|axis| index.stride(axis)), [Some(5), None, Some(0)]);
    assert_eq!(index.axes(), 0b11);
    assert_eq!(index.shifted(1, 4).value(&[1, 3]), index.value(&[1, 7]));
}

/// An index of the axes, and what makes it by the arithmetic of whole numbers alone.
#[derive(Debug, Clone)]
enum Tree {
    Axis(usize),
    Sum(Box<Tree>, i64, Box<Tree>, i64),
    Quotient(Box<Tree>, i64),
    Remainder(Box<Tree>, i64),
    Ruled(Box<Tree>, Mirror, i64),
}

impl Tree {
    fn index(&self) -> Index {
        match self {
            Tree::Axis(axis) => Index::axis(*axis),
            Tree::Sum(of, factor, other, number) => {
                of.index().times(*factor).plus(&other.index(), 1).plus(&Index::number(*number), 1)
            }
            Tree::Quotient(of, by) => of.index().quotient(*by, &EXTENTS),
            Tree::Remainder(of, by) => of.index().remainder(*by, &EXTENTS),
            Tree::Ruled(of, rule, extent) => of.index().ruled(*rule, *extent, &EXTENTS),
        }
    }

    fn value(&self, at: &[usize]) -> i64 {
        match self {
            Tree::Axis(axis) => at[*axis] as i64,
            Tree::Sum(of, factor, other, number) => of.value(at) * factor + other.value(at) + number,
            Tree::Quotient(of, by) => of.value(at).div_euclid(*by),
            Tree::Remainder(of, by) => of.value(at).rem_euclid(*by),
            Tree::Ruled(of, rule, extent) => rule.coordinate(of.value(at), *extent),
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let rules = [Mirror::Reflect, Mirror::Symmetric, Mirror::Edge];
    let leaf = (0usize..4).prop_map(Tree::Axis);
    leaf.prop_recursive(5, 24, 2, move |inner| {
        let boxed = inner.prop_map(Box::new);
        prop_oneof![
            3 => (boxed.clone(), -4i64..13, boxed.clone(), -3i64..4)
                .prop_map(|(of, factor, other, number)| Tree::Sum(of, factor, other, number)),
            2 => (boxed.clone(), 1i64..13).prop_map(|(of, by)| Tree::Quotient(of, by)),
            2 => (boxed.clone(), 1i64..13).prop_map(|(of, by)| Tree::Remainder(of, by)),
            1 => (boxed, 0usize..3, 1i64..9)
                .prop_map(move |(of, rule, extent)| Tree::Ruled(of, rules[rule], extent)),
        ]
    })
}

proptest! {
    /// Whatever is simplified has the value of the arithmetic that it stands for, within its range.
    #[test]
    fn simplified_indices_have_the_values_of_what_they_stand_for(tree in tree()) {
        let index = tree.index();
        let [least, most] = index.range(&EXTENTS);
        let places: Vec<Index> = (0..4).map(Index::axis).collect();
        let again = index.with(&places, &EXTENTS);
        for flat in 0..EXTENTS.iter().product::<usize>() {
            let at = [flat % 3, flat / 3 % 8, flat / 24 % 6, flat / 144];
            let wanted = tree.value(&at);
            prop_assert_eq!(index.value(&at), wanted, "{:?} at {:?}", index, at);
            prop_assert_eq!(again.value(&at), wanted, "{:?} at {:?}", again, at);
            prop_assert!(least <= wanted && wanted <= most, "{wanted} beyond {least} to {most}");
        }
    }

    /// A guard without what is below a common divisor holds where the guard does, and what it keeps inside has its value there
    /// and is below its bound elsewhere.
    #[test]
    fn what_a_guard_keeps_inside_is_divided_as_the_guard_is(tree in tree(), below in 1i64..25, shift in -30i64..9) {
        let index = tree.index().plus(&Index::number(shift), 1);
        let (coarser, fewer) = index.coarser(below, &EXTENTS);
        let inside = index.clone().inside(below, &EXTENTS);
        for flat in 0..EXTENTS.iter().product::<usize>() {
            let at = [flat % 3, flat / 3 % 8, flat / 24 % 6, flat / 144];
            let (wanted, found) = (index.value(&at), inside.value(&at));
            let holds = (0..below).contains(&wanted);
            prop_assert_eq!((0..fewer).contains(&coarser.value(&at)), holds, "{:?} at {:?}", coarser, at);
            prop_assert!(!holds || found == wanted, "{inside:?} at {at:?}: {found}, wanted {wanted}");
        }
    }
}

#[test]
fn a_guard_of_whole_slices_is_one_of_slices() {
    // Four channels of a slice, from channel 8 on.
    let channel = sum(4, &axis(1), 1, &Index::axis(0)).plus(&Index::number(-8), 1);
    let extents = [4, 8, 6, 5];
    assert_eq!(channel.coarser(16, &extents), (axis(1).plus(&Index::number(-2), 1), 4));
    assert_eq!(channel.coarser(18, &extents).1, 18);
    let inside = channel.inside(16, &extents);
    assert_eq!(inside.remainder(4, &extents), axis(0));
    assert!(inside.quotient(4, &extents).axes() & 1 == 0);
}
