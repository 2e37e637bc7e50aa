//! `.npy` files of the tests, read apart from the command line's own code.

use std::path::Path;

/// The shape and values of a file of version 1 with `<f4`, `<f8` or `<i8` in C order.
pub fn read(path: &Path) -> (Vec<usize>, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "{}", path.display());
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..data]).expect("text");
    assert!(header.contains("'fortran_order': False"), "{header}");
    let (_, shape) = header.split_once("'shape': (").expect("a shape");
    let (shape, _) = shape.split_once(')').expect("the shape's end");
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|extent| !extent.is_empty())
        .map(|extent| extent.parse().expect("an extent"))
        .collect();
    let values: Vec<f64> = if header.contains("'descr': '<f4'") {
        let (values, rest) = bytes[data..].as_chunks();
        assert!(rest.is_empty());
        values.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect()
    } else if header.contains("'descr': '<i8'") {
        let (values, rest) = bytes[data..].as_chunks();
        assert!(rest.is_empty());
        values.iter().map(|&bytes| i64::from_le_bytes(bytes) as f64).collect()
    } else {
        assert!(header.contains("'descr': '<f8'"), "{header}");
        let (values, rest) = bytes[data..].as_chunks();
        assert!(rest.is_empty());
        values.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()
    };
    assert_eq!(values.len(), shape.iter().product::<usize>(), "{}", path.display());
    (shape, values)
}
