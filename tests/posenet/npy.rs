//! `.npy` files of the tests, read apart from the command line's own code.

use std::path::Path;

/// The shape and values of a file of version 1 with floats, signed integers or bytes in C order.
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
    let (_, kind) = header.split_once("'descr': '").expect("a type");
    let (kind, _) = kind.split_once('\'').expect("the type's end");
    let data = &bytes[data..];
    let values: Vec<f64> = match kind {
        "<f4" => numbers(data, |bytes| f64::from(f32::from_le_bytes(bytes))),
        "<f8" => numbers(data, f64::from_le_bytes),
        "<i4" => numbers(data, |bytes| f64::from(i32::from_le_bytes(bytes))),
        "<u4" => numbers(data, |bytes| f64::from(u32::from_le_bytes(bytes))),
        "<i8" => numbers(data, |bytes| i64::from_le_bytes(bytes) as f64),
        "|i1" => numbers(data, |bytes| f64::from(i8::from_le_bytes(bytes))),
        "|u1" | "|b1" => numbers(data, |[byte]| f64::from(byte)),
        other => panic!("{}: elements of {other}", path.display()),
    };
    assert_eq!(values.len(), shape.iter().product::<usize>(), "{}", path.display());
    (shape, values)
}

fn numbers<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let (chunks, rest) = data.as_chunks();
    assert!(rest.is_empty(), "{} bytes left", rest.len());
    chunks.iter().map(|&chunk| number(chunk)).collect()
}
