//! Feature maps from and to `.npy` files.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use diptych::{HostTensor, Shape};
use npyz::{DType, NpyFile, Order, TypeChar, WriterBuilder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The longest header that is read; real ones have some 100 bytes.
const LONGEST: usize = 1 << 14;

/// Reads the tensor of `shape` (NHWC) in a file of float16, float32 or float64 in C order. Leading
/// extents of 1 may be missing in the file.
pub(crate) fn read(path: &Path, shape: Shape) -> Result<HostTensor> {
    let bytes = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
    parse(&bytes, shape).with_context(|| format!("{}", path.display()))
}

/// Writes a tensor as float32 of shape `[n, h, w, c]`.
pub(crate) fn write(path: &Path, tensor: &HostTensor) -> Result<()> {
    let create = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        print(&mut file, tensor)?;
        file.flush()?;
        Ok(())
    };
    create().with_context(|| format!("{}", path.display()))
}

fn print(writer: impl Write, tensor: &HostTensor) -> Result<()> {
    let extents = extents(tensor.shape());
    let mut npy =
        npyz::WriteOptions::<f32>::new().default_dtype().shape(&extents).writer(writer).begin_nd()?;
    npy.extend(tensor.to_nhwc().iter().copied())?;
    npy.finish()?;
    Ok(())
}

fn parse(bytes: &[u8], shape: Shape) -> Result<HostTensor> {
    check_header(bytes)?;
    let mut data = bytes;
    let header = npyz::NpyHeader::from_reader(&mut data)?;
    let wanted = extents(shape);
    ensure!(
        same_shape(header.shape(), &wanted),
        "found shape {:?}, wanted {wanted:?} (leading extents of 1 may be left out)",
        header.shape()
    );
    ensure!(
        header.order() == Order::C,
        "found Fortran order, wanted C order (numpy.ascontiguousarray converts)"
    );
    let dtype = header.dtype();
    let size = match &dtype {
        DType::Plain(plain) if plain.type_char() == TypeChar::Float => plain.size_field(),
        _ => 0,
    };
    ensure!(
        matches!(size, 2 | 4 | 8),
        "found elements of type {}, wanted float32, float64 or float16",
        dtype.descr()
    );
    let length = shape.elements() as u64 * size;
    ensure!(
        data.len() as u64 == length,
        "found {} bytes of data, wanted {length} for shape {wanted:?} of {size} bytes each",
        data.len()
    );
    let file = NpyFile::with_header(header, data);
    let values: Vec<f32> = match size {
        2 => file.into_vec::<half::f16>()?.into_iter().map(f32::from).collect(),
        4 => file.into_vec::<f32>()?,
        _ => file.into_vec::<f64>()?.into_iter().map(|value| value as f32).collect(),
    };
    Ok(HostTensor::new(shape, values)?)
}

/// Refuses what the header's parser would not survive: a header longer than any real one, and a
/// shape whose element count overflows.
fn check_header(bytes: &[u8]) -> Result<()> {
    let Some((b"\x93NUMPY", rest)) = bytes.split_at_checked(6) else {
        bail!("found no NumPy header, wanted an .npy file");
    };
    let (length, text) = match *rest {
        [1, _, a, b, ref text @ ..] => (usize::from(u16::from_le_bytes([a, b])), text),
        [2 | 3, _, a, b, c, d, ref text @ ..] => (u32::from_le_bytes([a, b, c, d]) as usize, text),
        [major, minor, ..] => {
            bail!("found version {major}.{minor} of the .npy format, wanted 1.0, 2.0 or 3.0")
        }
        _ => bail!("the file ends in its header"),
    };
    ensure!(length <= LONGEST, "found a header of {length} bytes, wanted at most {LONGEST}");
    let text = text.get(..length).ok_or_else(|| anyhow!("the file ends in its header"))?;
    let mut product = 1u64;
    for number in text.split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty()) {
        // Digits of the type count too, which does no harm: they are small.
        let number = std::str::from_utf8(number)?.parse::<u64>().ok();
        product = number
            .and_then(|number| product.checked_mul(number.max(1)))
            .ok_or_else(|| anyhow!("found a shape of more elements than 64 bits count"))?;
    }
    Ok(())
}

fn extents(shape: Shape) -> [u64; 4] {
    [shape.n, shape.h, shape.w, shape.c].map(|extent| extent as u64)
}

fn same_shape(found: &[u64], wanted: &[u64; 4]) -> bool {
    let Some(missing) = wanted.len().checked_sub(found.len()) else { return false };
    wanted.iter().take(missing).all(|&extent| extent == 1) && wanted.iter().skip(missing).eq(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::{AutoSerialize, WriteOptions};

    const SHAPE: Shape = Shape::nhwc(1, 2, 3, 2);

    fn file<T: AutoSerialize>(shape: &[u64], order: Order, values: Vec<T>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let options = WriteOptions::<T>::new().default_dtype().shape(shape).order(order);
        let mut writer = options.writer(&mut bytes).begin_nd().expect("a header");
        writer.extend(values).expect("values");
        writer.finish().expect("the end");
        bytes
    }

    /// A file of nothing but this header.
    fn header(text: &str) -> Vec<u8> {
        let length = u16::try_from(text.len()).expect("a short header").to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat()
    }

    fn counting() -> Vec<f32> {
        (0..12).map(|i| i as f32 * 0.5).collect()
    }

    fn refused(bytes: &[u8]) -> String {
        format!("{:#}", parse(bytes, SHAPE).expect_err("an invalid file"))
    }

    #[test]
    fn what_is_written_is_read() {
        let tensor = HostTensor::new(SHAPE, counting()).expect("a tensor");
        let mut bytes = Vec::new();
        print(&mut bytes, &tensor).expect("written");
        assert_eq!(parse(&bytes, SHAPE).expect("read"), tensor);
        let header = String::from_utf8_lossy(&bytes[..100]).into_owned();
        assert!(header.contains("'<f4'") && header.contains("(1, 2, 3, 2"), "{header}");
    }

    #[test]
    fn leading_ones_may_be_missing() {
        for shape in [&[1, 2, 3, 2][..], &[2, 3, 2]] {
            assert!(parse(&file(shape, Order::C, counting()), SHAPE).is_ok(), "{shape:?}");
        }
        for shape in [&[3, 2, 2][..], &[12], &[1, 1, 2, 3, 2], &[2, 3, 2, 1]] {
            let text = refused(&file(shape, Order::C, counting()));
            assert!(text.contains(&format!("found shape {shape:?}, wanted [1, 2, 3, 2]")), "{text}");
        }
    }

    #[test]
    fn other_floats_are_converted() {
        let doubles = counting().into_iter().map(f64::from).collect();
        let halves = counting().into_iter().map(half::f16::from_f32).collect();
        for bytes in
            [file::<f64>(&[2, 3, 2], Order::C, doubles), file::<half::f16>(&[2, 3, 2], Order::C, halves)]
        {
            assert_eq!(&*parse(&bytes, SHAPE).expect("read").to_f32(), &counting()[..]);
        }
    }

    #[test]
    fn each_refusal_says_what_was_found() {
        let good = file(&[2, 3, 2], Order::C, counting());
        let mut version = good.clone();
        version[6] = 9;
        let mut long = good.clone();
        long.extend([0; 4]);
        for (bytes, words) in [
            (file(&[2, 3, 2], Order::Fortran, counting()), "Fortran order"),
            (file(&[2, 3, 2], Order::C, vec![1i64; 12]), "type '<i8', wanted float32"),
            (good[..good.len() - 3].to_vec(), "found 45 bytes of data, wanted 48"),
            (long, "found 52 bytes of data, wanted 48"),
            (good[..40].to_vec(), "ends in its header"),
            (good[..7].to_vec(), "ends in its header"),
            (b"PK\x03\x04 not numpy".to_vec(), "no NumPy header"),
            (Vec::new(), "no NumPy header"),
            (version, "version 9.0"),
            (
                header("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}"),
                "64 bits",
            ),
            (header(&"(".repeat(1 << 15)), "header of 32768 bytes"),
        ] {
            let text = refused(&bytes);
            assert!(text.contains(words), "no {words:?} in: {text}");
        }
    }

    #[test]
    fn damaged_headers_never_panic() {
        let good = file(&[2, 3, 2], Order::C, counting());
        for position in 0..good.len() {
            for value in [0, b'9', b'(', b',', 0x7f, 0xff] {
                let mut damaged = good.clone();
                damaged[position] = value;
                let _ = parse(&damaged, SHAPE);
            }
        }
        for nested in ["(", "[", "{1:", "-", "'"] {
            let text = nested.repeat(LONGEST / nested.len());
            assert!(parse(&header(&text), SHAPE).is_err(), "{nested:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read("no/such/x.npy".as_ref(), SHAPE).expect_err("no file");
        assert!(format!("{error:#}").starts_with("no/such/x.npy: "), "{error:#}");
    }
}
