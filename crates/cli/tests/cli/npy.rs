//! `.npy` files of the tests, written apart from the command line's own code.

use std::path::Path;

/// Writes f32 values of `shape`.
pub fn write(path: &Path, shape: &[usize], values: &[f32]) {
    assert_eq!(values.len(), shape.iter().product::<usize>());
    write_bytes(
        path,
        "<f4",
        shape,
        &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
    );
}

/// Writes elements of the type that NumPy calls `descr`.
pub fn write_bytes(path: &Path, descr: &str, shape: &[usize], data: &[u8]) {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents})}}\n");
    let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    std::fs::write(path, [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat())
        .expect("written");
}
