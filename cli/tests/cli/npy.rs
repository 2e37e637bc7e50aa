//! `.npy` files of the tests, written apart from the command line's own code.

use std::path::Path;

/// Writes f32 values of `shape`.
pub fn write(path: &Path, shape: &[usize], values: &[f32]) {
    assert_eq!(values.len(), shape.iter().product::<usize>());
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({extents})}}\n");
    let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(path, [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &data].concat())
        .expect("written");
}
