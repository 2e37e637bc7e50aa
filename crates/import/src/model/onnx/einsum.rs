//! `Einsum`: sums of products by the letters of the axes, two factors at a time.

use super::import::{Import, Op};
use crate::model::build::{Operand, product, reduced};
use crate::model::reason::Reason;
use crate::ops::reduce::Reduction;
use crate::sorted;
use std::collections::HashMap;

type Done = Result<(), Reason>;

/// A tensor with a letter for each axis. Axes of an ellipsis have upper case letters from `A` in a range of their own.
struct Factor {
    slot: Operand,
    letters: Vec<u32>,
}

/// The letters of a term; the axes of an ellipsis are numbered from its last.
fn letters(term: &str, rank: usize) -> Result<Vec<u32>, Reason> {
    let own = term.replace(' ', "");
    let (before, after) = match own.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (&own[..], None),
    };
    let mut list: Vec<u32> = before.chars().map(u32::from).collect();
    if let Some(after) = after {
        let count = rank.checked_sub(before.len() + after.len());
        let count = count.ok_or_else(|| {
            format!("found the term {term:?} for rank {rank}, wanted a letter for each axis")
        })?;
        // Beyond every letter.
        list.extend((0..count as u32).rev().map(|place| 0x0011_0000 + place));
        list.extend(after.chars().map(u32::from));
    }
    match list.len() == rank {
        true => Ok(list),
        false => refused!("found the term {term:?} for rank {rank}, wanted a letter for each axis"),
    }
}

pub(super) fn einsum<'a>(i: &mut Import<'a>, op: &Op<'a>) -> Done {
    let equation = op.text("equation", "")?;
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != op.inputs() {
        return refused!(
            "found the equation {equation:?} for {} inputs, wanted a term for each",
            op.inputs()
        );
    }
    let mut factors = Vec::with_capacity(terms.len());
    // Each time that a letter is written, also twice in one term.
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for (index, term) in terms.iter().enumerate() {
        let slot = i.slot(op, index)?;
        let rank = i.shape(&slot)?.len();
        let letters = letters(term.trim(), rank)?;
        letters.iter().for_each(|letter| *counts.entry(*letter).or_default() += 1);
        factors.push(without_diagonal(i, Factor { slot, letters })?);
    }
    let mut open: Vec<u32> = counts.keys().copied().filter(|letter| *letter >= 0x0011_0000).collect();
    sorted::sort(&mut open, |a, b| b.cmp(a));
    let wanted: Vec<u32> = match output {
        Some(output) => {
            let own = output.replace(' ', "");
            let rank =
                own.replace("...", "").chars().count() + if own.contains("...") { open.len() } else { 0 };
            letters(&own, rank)?
        }
        None => {
            let mut once: Vec<u32> = counts
                .iter()
                .filter(|(letter, count)| **count == 1 && **letter < 0x0011_0000)
                .map(|(letter, _)| *letter)
                .collect();
            sorted::sort(&mut once, Ord::cmp);
            open.into_iter().chain(once).collect()
        }
    };
    let mut rest = factors.into_iter();
    let mut result = rest.next().ok_or("found no inputs")?;
    let mut rest: Vec<Factor> = rest.collect();
    while !rest.is_empty() {
        let next = rest.remove(0);
        let keep = |letter: &u32| {
            wanted.contains(letter) || rest.iter().any(|factor| factor.letters.contains(letter))
        };
        result = multiplied(i, result, next, &keep)?;
    }
    result = summed(i, result, &|letter| wanted.contains(letter))?;
    let permutation: Option<Vec<usize>> =
        wanted.iter().map(|letter| result.letters.iter().position(|own| own == letter)).collect();
    let permutation = permutation.filter(|list| list.len() == result.letters.len());
    let permutation = permutation.ok_or_else(|| {
        format!("found the equation {equation:?}, wanted each letter of the output once, and in a term")
    })?;
    let slot = i.transposed(result.slot, &permutation)?;
    i.set(op, 0, slot)
}

/// Leaves one axis of two with one letter: the elements whose indices along both are equal.
fn without_diagonal(i: &mut Import<'_>, factor: Factor) -> Result<Factor, Reason> {
    let Factor { mut slot, mut letters } = factor;
    while let Some((first, second)) = twice(&letters) {
        let own = i.shape(&slot)?;
        if own[first] != own[second] {
            return refused!(
                "found axes of {} and {} elements under one letter, wanted as many",
                own[first],
                own[second]
            );
        }
        let mut order: Vec<usize> = (0..own.len()).filter(|&axis| axis != first && axis != second).collect();
        let outer: Vec<usize> = order.iter().map(|&axis| own[axis]).collect();
        let kept: Vec<u32> = order.iter().map(|&axis| letters[axis]).collect();
        order.extend([first, second]);
        slot = i.transposed(slot, &order)?;
        let count: usize = outer.iter().product();
        let (extent, step) = (own[first], own[first] + 1);
        slot = i.with_extents("square", slot, &[count, extent * extent])?;
        slot = crate::model::build::cut(i, "diagonal", slot, &[(0, count, 1), (0, extent, step as i64)])?;
        slot = i.with_extents("diagonal", slot, &[&outer[..], &[extent]].concat())?;
        letters = [&kept[..], &[letters[first]]].concat();
    }
    Ok(Factor { slot, letters })
}

fn twice(letters: &[u32]) -> Option<(usize, usize)> {
    let second = (0..letters.len()).find(|&at| letters[..at].contains(&letters[at]))?;
    Some((letters.iter().position(|letter| *letter == letters[second])?, second))
}

/// The factor summed over the axes that are not kept.
fn summed(i: &mut Import<'_>, factor: Factor, keep: &dyn Fn(&u32) -> bool) -> Result<Factor, Reason> {
    let gone: Vec<usize> = (0..factor.letters.len()).filter(|&axis| !keep(&factor.letters[axis])).collect();
    if gone.is_empty() {
        return Ok(factor);
    }
    let slot = reduced(i, "sum", factor.slot, Reduction::Sum, &gone, false)?;
    let letters = factor.letters.into_iter().filter(|letter| keep(letter)).collect();
    Ok(Factor { slot, letters })
}

/// The product of two factors, summed over what is in both and not kept.
fn multiplied(
    i: &mut Import<'_>,
    a: Factor,
    b: Factor,
    keep: &dyn Fn(&u32) -> bool,
) -> Result<Factor, Reason> {
    let (of_a, of_b) = (a.letters.clone(), b.letters.clone());
    let a = summed(i, a, &|letter| keep(letter) || of_b.contains(letter))?;
    let b = summed(i, b, &|letter| keep(letter) || of_a.contains(letter))?;
    let (own_a, own_b) = (i.shape(&a.slot)?, i.shape(&b.slot)?);
    let extent = |letters: &[u32], own: &[usize], letter: u32| {
        letters.iter().position(|other| *other == letter).map(|axis| own[axis])
    };
    // An axis of one element beside one of several is as good as none.
    let real = |letter: &u32| match (extent(&a.letters, &own_a, *letter), extent(&b.letters, &own_b, *letter))
    {
        (Some(x), Some(y)) => x == y,
        _ => false,
    };
    let both: Vec<u32> = a.letters.iter().copied().filter(real).collect();
    let batch: Vec<u32> = both.iter().copied().filter(|letter| keep(letter)).collect();
    let inner: Vec<u32> = both.iter().copied().filter(|letter| !keep(letter)).collect();
    let alone = |letters: &[u32], own: &[usize], other: &[u32]| -> Vec<u32> {
        let single = |letter: &u32| extent(letters, own, *letter) == Some(1) && other.contains(letter);
        letters.iter().copied().filter(|letter| !both.contains(letter) && !single(letter)).collect()
    };
    let rows = alone(&a.letters, &own_a, &b.letters);
    let columns = alone(&b.letters, &own_b, &a.letters);
    let size = |letters: &[u32], of: &[u32], own: &[usize]| -> usize {
        letters.iter().filter_map(|letter| extent(of, own, *letter)).product()
    };
    let (count, depth) = (size(&batch, &a.letters, &own_a), size(&inner, &a.letters, &own_a));
    let (m, n) = (size(&rows, &a.letters, &own_a), size(&columns, &b.letters, &own_b));
    let mut ordered = |factor: &Factor, wanted: [&[u32]; 3], shape: [usize; 3]| -> Result<Operand, Reason> {
        let wanted = wanted.concat();
        let mut order: Vec<usize> =
            wanted.iter().filter_map(|letter| factor.letters.iter().position(|own| own == letter)).collect();
        // Those of one element that were left out.
        order.extend((0..factor.letters.len()).filter(|axis| !wanted.contains(&factor.letters[*axis])));
        let slot = i.transposed(factor.slot.clone(), &order)?;
        i.with_extents("matrices", slot, &shape)
    };
    let left = ordered(&a, [&batch, &rows, &inner], [count, m, depth])?;
    let right = ordered(&b, [&batch, &inner, &columns], [count, depth, n])?;
    let sums = product(i, "product", left, right)?;
    let letters = [&batch[..], &rows, &columns].concat();
    let extents: Vec<usize> = letters
        .iter()
        .filter_map(|letter| {
            let (x, y) = (extent(&a.letters, &own_a, *letter), extent(&b.letters, &own_b, *letter));
            // One element goes with any number of them, with none too.
            x.filter(|&extent| extent != 1).or(y).or(x)
        })
        .collect();
    let slot = i.with_extents("result", sums, &extents)?;
    Ok(Factor { slot, letters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipsis_stands_for_what_is_left() {
        assert_eq!(letters("ij", 2), Ok(vec!['i' as u32, 'j' as u32]));
        assert_eq!(letters("...i", 3), Ok(vec![0x0011_0001, 0x0011_0000, 'i' as u32]));
        assert!(letters("ijk", 2).is_err());
        assert_eq!(twice(&[1, 2, 1]), Some((0, 2)));
        assert_eq!(twice(&[1, 2]), None);
    }
}
