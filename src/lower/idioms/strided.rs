//! Where the elements of an operand lie in the value that they come from, moves in between undone.

/// An axis of an operand: so many elements, each so far from the one before.
pub(super) type Axis = (usize, usize);

/// The places of an operand's elements in a value: of each of `N` axes, outermost first, perhaps in several parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places<const N: usize> {
    pub(super) first: usize,
    pub(super) axes: [Vec<Axis>; N],
}

/// `axes` without those of one element, and those that lie behind each other as one.
fn merged(axes: Vec<Axis>) -> Vec<Axis> {
    let mut all: Vec<Axis> = Vec::new();
    for (extent, step) in axes.into_iter().filter(|(extent, _)| *extent > 1) {
        match all.last_mut() {
            Some(outer) if outer.1 == step * extent => *outer = (outer.0 * extent, step),
            _ => all.push((extent, step)),
        }
    }
    all
}

impl<const N: usize> Places<N> {
    /// Elements whose axes have these extents and steps.
    pub(super) fn of(axes: [Axis; N]) -> Self {
        Places { first: 0, axes: axes.map(|axis| merged(vec![axis])) }
    }

    /// Elements from `first` on whose axes are in parts of these extents and steps.
    pub(super) fn of_parts(first: usize, axes: [Vec<Axis>; N]) -> Self {
        Places { first, axes: axes.map(merged) }
    }

    /// The places in the value that a move reads, of places in the value that it writes. Element `i` of what it writes is the
    /// element of what it reads that `parts` have for `i`: extents with their strides, outermost first, from `first` on. `None`
    /// where the places along an axis are not sums of multiples of its indices.
    pub(super) fn moved(&self, first: usize, parts: &[Axis]) -> Option<Self> {
        // From one element of a part to the next, and the farthest place along it that is asked for.
        let mut inner = 1;
        let mut digits: Vec<(usize, usize, usize, usize)> = Vec::with_capacity(parts.len());
        for &(extent, stride) in parts.iter().rev() {
            digits.push((inner, extent, stride, self.first / inner % extent));
            inner *= extent;
        }
        let whole = inner;
        let begin = first + digits.iter().map(|(_, _, stride, place)| stride * place).sum::<usize>();
        let mut places = Places { first: begin, axes: std::array::from_fn(|_| Vec::new()) };
        for (to, axes) in places.axes.iter_mut().zip(&self.axes) {
            // Outermost last while they are taken apart.
            let mut taken = Vec::new();
            for &(extent, step) in axes.iter().rev() {
                let (mut left, mut step) = (extent, step);
                if step == 0 {
                    taken.push((left, 0));
                    continue;
                }
                while left > 1 {
                    let digit = digits.iter_mut().rev().find(|digit| digit.0 <= step)?;
                    let (inner, extent, stride, farthest) = digit;
                    if !step.is_multiple_of(*inner) {
                        return None;
                    }
                    let each = step / *inner;
                    let room = *extent / each;
                    let count = if left <= room { left } else { room };
                    if count < 2 || left % count != 0 || (left > count && each * count != *extent) {
                        return None;
                    }
                    *farthest += each * (count - 1);
                    taken.push((count, each * *stride));
                    left /= count;
                    step *= count;
                }
            }
            taken.reverse();
            *to = merged(taken);
        }
        let within = digits.iter().all(|(_, extent, _, farthest)| farthest < extent);
        (within && self.first < whole).then_some(places)
    }

    /// The steps of axis `axis` as parts of these extents, outermost first.
    pub(super) fn split(&self, axis: usize, extents: &[usize]) -> Option<Vec<usize>> {
        let mut left = self.axes.get(axis)?.clone();
        let mut steps = Vec::with_capacity(extents.len());
        for &extent in extents.iter().rev() {
            if extent == 1 {
                steps.push(0);
                continue;
            }
            let (count, step) = left.pop()?;
            if count % extent != 0 {
                return None;
            }
            steps.push(step);
            if count > extent {
                left.push((count / extent, step * extent));
            }
        }
        steps.reverse();
        left.is_empty().then_some(steps)
    }

    /// The extents that axis `axis` is in parts of.
    pub(super) fn extents(&self, axis: usize) -> Vec<usize> {
        self.axes.get(axis).map(|axes| axes.iter().map(|axis| axis.0).collect()).unwrap_or_default()
    }
}

/// The move back, of a move that gives every element of its source one place: extents with their strides in the result,
/// as they follow each other in the source.
pub(super) fn inverse(first: usize, parts: &[Axis]) -> Option<Vec<Axis>> {
    let mut inner = 1;
    let mut all: Vec<(usize, usize, usize)> = Vec::with_capacity(parts.len());
    for &(extent, stride) in parts.iter().rev() {
        all.push((stride, extent, inner));
        inner *= extent;
    }
    crate::sorted::sort_by_key(&mut all, |part| part.0);
    let mut filled = 1;
    for &(stride, extent, _) in &all {
        if stride != filled {
            return None;
        }
        filled *= extent;
    }
    (first == 0).then(|| all.into_iter().rev().map(|(_, extent, inner)| (extent, inner)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places one by one.
    fn all<const N: usize>(places: &Places<N>) -> Vec<usize> {
        let mut found = vec![places.first];
        for &(extent, step) in places.axes.iter().flatten() {
            found = found.iter().flat_map(|place| (0..extent).map(move |i| place + i * step)).collect();
        }
        found
    }

    fn of_part(first: usize, parts: &[Axis], mut index: usize) -> usize {
        let mut place = first;
        for &(extent, stride) in parts.iter().rev() {
            place += index % extent * stride;
            index /= extent;
        }
        place
    }

    #[test]
    fn moves_are_undone_element_by_element() {
        // Batch, heads, places, features of `batch places heads features`, and of three such side by side.
        for (first, parts) in [
            (0, vec![(2, 105), (3, 5), (7, 15), (5, 1)]),
            (15, vec![(2, 315), (3, 5), (7, 45), (5, 1)]),
            (0, vec![(6, 35), (35, 1)]),
        ] {
            for axes in [[(6, 35), (7, 5), (5, 1)], [(6, 35), (5, 1), (7, 5)], [(3, 35), (7, 5), (5, 1)]] {
                let own = Places::of(axes);
                let moved = own.moved(first, &parts).expect("steps");
                let wanted: Vec<usize> = all(&own).into_iter().map(|at| of_part(first, &parts, at)).collect();
                assert_eq!(all(&moved), wanted, "{parts:?} {axes:?}");
            }
        }
        let heads = Places::of([(6, 35), (7, 5), (5, 1)]).moved(0, &[(2, 105), (3, 5), (7, 15), (5, 1)]);
        let heads = heads.expect("steps");
        assert_eq!(heads.extents(0), [2, 3]);
        assert_eq!(heads.split(0, &[2, 3]), Some(vec![105, 5]));
        assert_eq!(heads.split(0, &[3, 2]), None);
        assert_eq!(heads.split(1, &[7]), Some(vec![15]));
        // One number for all of an axis.
        let spread = Places::of([(4, 9), (3, 3), (3, 1)]).moved(0, &[(4, 0), (9, 1)]).expect("steps");
        assert_eq!(spread.split(0, &[2, 2]), Some(vec![0, 0]));
        // Elements that begin in the middle of a part go on in the next one.
        let mut late = Places::of([(1, 0), (2, 3), (3, 1)]);
        late.first = 2;
        assert_eq!(late.moved(0, &[(3, 1), (3, 3)]), None);
    }

    #[test]
    fn moves_that_keep_every_element_have_a_way_back() {
        let parts = [(2, 105), (3, 5), (7, 15), (5, 1)];
        let back = inverse(0, &parts).expect("all elements");
        for index in 0..210 {
            assert_eq!(of_part(0, &back, of_part(0, &parts, index)), index);
        }
        assert_eq!(inverse(0, &[(2, 3), (3, 0)]), None);
        assert_eq!(inverse(1, &parts), None);
    }
}
