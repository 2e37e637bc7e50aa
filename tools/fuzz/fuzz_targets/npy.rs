#![no_main]
#![expect(dead_code, reason = "the command line's modules, of which only the reader is called")]

#[path = "../../../crates/cli/src/npy.rs"]
mod npy;

use diptych_fuzz::heap;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for extents in [&[1, 2, 3, 2][..], &[12], &[]] {
        let dims = diptych::Dims::new(extents).expect("small");
        let wanted = diptych::TensorType { dtype: diptych::DType::F32, dims };
        // Its data are wanted of the dimensions' length, and values of eight bytes become ones of four.
        let (read, _) = heap::bounded(4 * bytes.len() as u64 + (1 << 16), || npy::parse(bytes, wanted));
        if let Ok(tensor) = read {
            assert_eq!(tensor.dims(), dims);
        }
    }
});
