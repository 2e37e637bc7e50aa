//! Reads NumPy's files.

use std::path::Path;

/// An array's type, as in `<f4`, its extents and its bytes.
pub struct Array {
    pub dtype: String,
    pub extents: Vec<i64>,
    pub bytes: Vec<u8>,
}

impl Array {
    pub fn read(path: &Path) -> Self {
        let file = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        let header = std::str::from_utf8(&file[10..10 + length]).expect("a header");
        assert!(header.contains("'fortran_order': False"), "{header}");
        let dtype =
            header.split("'descr': '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a type");
        let shape =
            header.split("'shape': (").nth(1).and_then(|rest| rest.split(')').next()).expect("a shape");
        let extents = shape.split(',').filter_map(|extent| extent.trim().parse().ok()).collect();
        Array { dtype: dtype.to_owned(), extents, bytes: file[10 + length..].to_vec() }
    }

    pub fn floats(&self) -> Vec<f32> {
        assert_eq!(self.dtype, "<f4");
        self.bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
    }
}
