//! Sorting by one sorter for all types: each type that is given to std's own adds four kilobytes to what a page downloads.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorts `items`; equal ones stay in their order.
pub fn sort<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    let view = &*items;
    sort_indices(&mut order, &|one, other| compare(&view[one], &view[other]));
    for place in 0..items.len() {
        let mut from = order[place];
        // What was at a place before this one is where that place's element came from.
        while from < place {
            from = order[from];
        }
        items.swap(place, from);
    }
}

/// [`sort`] by a key.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort(items, |one, other| key(one).cmp(&key(other)));
}

/// A set, made without sorting first as `collect` does.
pub fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// A map, made without sorting first as `collect` does.
pub fn map<K: Ord, V>(items: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(items);
    map
}

#[expect(clippy::disallowed_methods, reason = "the sorter of all types")]
fn sort_indices(order: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    order.sort_by(|&one, &other| compare(one, other));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_as_std_does() {
        let mut random = 1u32;
        for length in [0, 1, 2, 3, 5, 20, 21, 100, 1000] {
            let items: Vec<(u32, String)> = (0..length)
                .map(|index| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (random >> 28, index.to_string())
                })
                .collect();
            let (mut found, mut wanted) = (items.clone(), items);
            sort_by_key(&mut found, |(key, _)| *key);
            wanted.sort_by_key(|(key, _)| *key);
            assert_eq!(found, wanted, "{length}");
        }
    }
}
