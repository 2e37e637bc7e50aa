//! Constants of several products as the constants of one.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Derived;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::lower::mistakes::planted;
use crate::word;

/// The type of floats in which all of `parts` are stored, in rows.
fn stored_alike(parts: &[&HostTensor]) -> Option<DType> {
    let dtype = parts.first()?.dtype();
    let alike = |part: &&HostTensor| part.dtype() == dtype && part.layout() == Layout::Nhwc;
    (dtype.is_float() && parts.iter().all(alike)).then_some(dtype)
}

/// Matrices of equally many rows side by side, `[A B ..]`: row `i` is row `i` of each in turn. Of one type, if all are.
pub(super) fn side_by_side(derived: &Derived, parts: &[&HostTensor]) -> Result<HostTensor> {
    let rows = |part: &HostTensor| match *part.dims().extents() {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(Error::Internal(format!("{} is no matrix of columns", part.dims()))),
    };
    let extents = parts.iter().map(|part| rows(part)).collect::<Result<Vec<_>>>()?;
    let rows = extents.first().map_or(0, |extents| extents[0]);
    if extents.iter().any(|extents| extents[0] != rows) {
        return Err(Error::Internal(format!("columns of {extents:?} side by side")));
    }
    let dims = Dims::new(&[rows, extents.iter().map(|extents| extents[1]).sum()])?;
    if let (Some(dtype), false) = (stored_alike(parts), planted("joined_flat")) {
        return derived.made("side by side", parts, || {
            let mut bytes = alloc::reserved(dims.elements() * dtype.bytes(), "joined constants")?;
            for row in 0..rows {
                for (part, [_, columns]) in parts.iter().zip(&extents) {
                    let columns = columns * dtype.bytes();
                    let own = part.bytes().get(row * columns..(row + 1) * columns);
                    bytes.extend_from_slice(own.unwrap_or_default());
                }
            }
            HostTensor::from_bytes(dims, dtype, &bytes)
        });
    }
    derived.joined("side by side", parts, |dtype, parts| {
        let each = dtype.word().words();
        if planted("joined_flat") {
            return word::to_tensor(dims, dtype, dtype.word(), &parts.concat());
        }
        let mut words = Vec::with_capacity(dims.elements() * each);
        for row in 0..rows {
            for (part, [_, columns]) in parts.iter().zip(&extents) {
                let columns = columns * each;
                words.extend_from_slice(part.get(row * columns..(row + 1) * columns).unwrap_or_default());
            }
        }
        word::to_tensor(dims, dtype, dtype.word(), &words)
    })
}

/// Tensors one behind the other along their first axis. Of one type, if all are.
pub(super) fn end_to_end(derived: &Derived, parts: &[&HostTensor]) -> Result<HostTensor> {
    let mut extents = parts.first().map_or(Vec::new(), |part| part.dims().extents().to_vec());
    if let Some(first) = extents.first_mut() {
        *first = parts.iter().filter_map(|part| part.dims().extents().first().copied()).sum();
    }
    let dims = Dims::new(&extents)?;
    if let Some(dtype) = stored_alike(parts) {
        return derived.made("behind", parts, || {
            let mut bytes = alloc::reserved(dims.elements() * dtype.bytes(), "joined constants")?;
            parts.iter().for_each(|part| bytes.extend_from_slice(part.bytes()));
            HostTensor::from_bytes(dims, dtype, &bytes)
        });
    }
    derived
        .joined("behind", parts, |dtype, parts| word::to_tensor(dims, dtype, dtype.word(), &parts.concat()))
}

/// Vectors one behind the other, each of as many elements as its place in `parts` says; zeros where there is none. None, if
/// all have none.
pub(super) fn vectors(
    derived: &Derived,
    parts: &[(Option<&HostTensor>, usize)],
) -> Result<Option<HostTensor>> {
    let all: usize = parts.iter().map(|(_, count)| count).sum();
    let given: Vec<&HostTensor> = parts.iter().filter_map(|(vector, _)| *vector).collect();
    if given.is_empty() {
        return Ok(None);
    }
    let places: Vec<String> = parts
        .iter()
        .map(|(vector, count)| format!("{count}{}", if vector.is_some() { "" } else { " zeros" }))
        .collect();
    let whole = derived.joined(&places.join(", "), &given, |_, given| {
        let (mut given, mut joined) = (given.iter(), Vec::with_capacity(all));
        for (vector, count) in parts {
            let end = joined.len() + count;
            if vector.is_some() && !planted("joined_bias") {
                joined.extend_from_slice(given.next().copied().unwrap_or_default());
            }
            joined.resize(end, 0.0);
        }
        HostTensor::new(Dims::new(&[all])?, joined)
    })?;
    Ok(Some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    fn tensor(extents: &[usize], first: f32) -> HostTensor {
        let dims = Dims::new(extents).expect("small");
        HostTensor::new(dims, (0..dims.elements()).map(|at| first + at as f32).collect::<Vec<_>>())
            .expect("as many")
    }

    fn halves(of: &HostTensor) -> HostTensor {
        let values: Vec<f16> = of.to_f32().iter().map(|&value| f16::from_f32(value)).collect();
        HostTensor::of(of.dims(), values).expect("as many")
    }

    #[test]
    fn columns_of_every_type_lie_row_by_row() {
        let (one, other) = (tensor(&[2, 2], 0.0), tensor(&[2, 3], 10.0));
        let wanted = [0.0, 1.0, 10.0, 11.0, 12.0, 2.0, 3.0, 13.0, 14.0, 15.0];
        for [a, b] in
            [[one.clone(), other.clone()], [halves(&one), halves(&other)], [one.clone(), halves(&other)]]
        {
            let derived = Derived::default();
            let whole = side_by_side(&derived, &[&a, &b]).expect("a matrix");
            assert_eq!((whole.dims().extents(), &*whole.to_f32()), (&[2, 5][..], &wanted[..]));
            let same = a.dtype() == b.dtype();
            assert_eq!(whole.dtype(), if same { a.dtype() } else { DType::F32 });
        }
        let words = [3u32, 4, 5, 6].map(|bits| bits << 29);
        let packed = HostTensor::of(Dims::new(&[2, 2]).expect("small"), words.to_vec()).expect("four");
        let whole = end_to_end(&Derived::default(), &[&packed, &packed]).expect("words");
        assert_eq!(
            (whole.dims().extents(), whole.elements::<u32>()),
            (&[4, 2][..], Some(&[words, words].concat()[..]))
        );
    }

    #[test]
    fn one_pair_of_constants_is_joined_in_each_way() {
        let derived = Derived::default();
        let (one, other) = (tensor(&[2, 2], 0.0), tensor(&[2, 2], 10.0));
        let rows = side_by_side(&derived, &[&one, &other]).expect("a matrix");
        let flat = end_to_end(&derived, &[&one, &other]).expect("a matrix");
        assert_eq!((rows.dims().extents(), flat.dims().extents()), (&[2, 4][..], &[4, 2][..]));
        let bias = tensor(&[2], 1.0);
        let first = vectors(&derived, &[(Some(&bias), 2), (None, 1)]).expect("vectors").expect("one");
        let last = vectors(&derived, &[(None, 1), (Some(&bias), 2)]).expect("vectors").expect("one");
        assert_eq!((&*first.to_f32(), &*last.to_f32()), (&[1.0, 2.0, 0.0][..], &[0.0, 1.0, 2.0][..]));
    }
}
