//! Tensors from and to `.npy` files.
//!
//! Source: the description of the format in NumPy's documentation (`numpy.lib.format`).

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use diptych::{DType, HostTensor, Layout, TensorType};
use diptych_base::file;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read; real ones have some 100 bytes.
const LONGEST_HEADER: usize = 1 << 14;

/// Bytes before the header: magic, version, and its length in at most four bytes.
const PREFIX: usize = 12;

/// Bytes that a file's data begin at a multiple of.
const ALIGNMENT: usize = 64;

/// Reads the tensor for an input of these dimensions in a file of floats, integers or booleans in C order, as it is.
/// Leading extents of 1 may be missing in the file, or be there in vain. Types that tensors do not have become one that
/// they have: uint64 becomes int64, and float64 becomes float32, or int64 for an input of integers.
pub(crate) fn read(path: &Path, wanted: TensorType) -> Result<HostTensor> {
    let longest = PREFIX + LONGEST_HEADER + size_of::<f64>() * wanted.dims.elements();
    let read = || parse(&file::read(path, longest as u64)?, wanted);
    read().with_context(|| format!("{}", path.display()))
}

/// The extents of the tensor in a file.
pub(crate) fn shape(path: &Path) -> Result<Vec<usize>> {
    let read = || -> Result<Vec<usize>> {
        let mut begin = Vec::new();
        File::open(path)?.take((PREFIX + LONGEST_HEADER) as u64).read_to_end(&mut begin)?;
        let extents = Header::parse(split(&begin)?.0)?.shape;
        extents.into_iter().map(|extent| Ok(usize::try_from(extent)?)).collect()
    };
    read().with_context(|| format!("{}", path.display()))
}

/// Writes a tensor in its type and dimensions.
pub(crate) fn write(path: &Path, tensor: &HostTensor) -> Result<()> {
    let create = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        print(&mut file, tensor)?;
        file.flush()?;
        Ok(())
    };
    create().with_context(|| format!("{}", path.display()))
}

fn print(mut writer: impl Write, tensor: &HostTensor) -> Result<()> {
    let extents: Vec<String> = tensor.dims().extents().iter().map(|extent| extent.to_string()).collect();
    // A tuple of one element has a comma behind it.
    let comma = if extents.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", extents.join(", "));
    let descr = descr(tensor.dtype())?;
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version, a length of two bytes, and the line's end.
    let total = (10 + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.extend(std::iter::repeat_n(' ', total - 10 - header.len() - 1));
    header.push('\n');
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&u16::try_from(header.len())?.to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    ensure!(tensor.layout() == Layout::Nhwc, "found a tensor in {}, wanted one in nhwc", tensor.layout());
    writer.write_all(&ordered(tensor.bytes(), tensor.dtype().bytes(), cfg!(target_endian = "big")))?;
    Ok(())
}

/// What NumPy calls a type, its lowest byte first.
fn descr(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I64 => "<i8",
        DType::I32 => "<i4",
        DType::I16 => "<i2",
        DType::I8 => "|i1",
        DType::U32 => "<u4",
        DType::U16 => "<u2",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
        other => bail!("found elements of {other}, for which this program knows no name of NumPy's"),
    })
}

/// Elements of so many bytes each, with their bytes turned around if asked.
fn ordered(data: &[u8], size: usize, turned: bool) -> Cow<'_, [u8]> {
    if !turned || size == 1 {
        return Cow::Borrowed(data);
    }
    Cow::Owned(data.chunks_exact(size).flat_map(|bytes| bytes.iter().rev().copied()).collect())
}

/// Reads the tensor for an input of this type in the contents of a file.
pub(crate) fn parse(bytes: &[u8], input: TensorType) -> Result<HostTensor> {
    let TensorType { dtype: input, dims } = input;
    let (text, data) = split(bytes)?;
    let header = Header::parse(text)?;
    let wanted: Vec<u64> = dims.extents().iter().map(|&extent| extent as u64).collect();
    ensure!(
        same_shape(&header.shape, &wanted),
        "found shape {:?}, wanted {wanted:?} (leading extents of 1 may be left out)",
        header.shape
    );
    ensure!(!header.fortran_order, "found Fortran order, wanted C order (numpy.ascontiguousarray converts)");
    let (order, name) = header.descr.split_at_checked(1).unwrap_or_default();
    let big = match order {
        "=" => cfg!(target_endian = "big"),
        order => order == ">",
    };
    let dtype = match (order, name) {
        ("|", "b1") => Some(DType::Bool),
        ("|", "i1") => Some(DType::I8),
        ("|", "u1") => Some(DType::U8),
        ("<" | ">" | "=", "f2") => Some(DType::F16),
        ("<" | ">" | "=", "f4") => Some(DType::F32),
        ("<" | ">" | "=", "i2") => Some(DType::I16),
        ("<" | ">" | "=", "i4") => Some(DType::I32),
        ("<" | ">" | "=", "i8") => Some(DType::I64),
        ("<" | ">" | "=", "u2") => Some(DType::U16),
        ("<" | ">" | "=", "u4") => Some(DType::U32),
        ("<" | ">" | "=", "f8" | "u8") => None,
        _ => bail!(
            "found elements of type '{}', wanted floats of 16 to 64 bits, integers or booleans",
            header.descr
        ),
    };
    let size = dtype.map_or(8, DType::bytes);
    let length = dims.elements() * size;
    ensure!(
        data.len() == length,
        "found {} bytes of data, wanted {length} for shape {wanted:?} of {size} bytes each",
        data.len()
    );
    let data = ordered(data, size, big != cfg!(target_endian = "big"));
    let words = data.as_chunks().0.iter().copied();
    Ok(match (dtype, name) {
        (Some(dtype), _) => HostTensor::from_bytes(dims, dtype, &data)?,
        (None, "u8") => {
            HostTensor::of(dims, words.map(u64::from_ne_bytes).map(signed).collect::<Result<Vec<i64>>>()?)?
        }
        (None, _) if input.is_float() => {
            HostTensor::new(dims, words.map(|word| f64::from_ne_bytes(word) as f32).collect::<Vec<f32>>())?
        }
        (None, _) => {
            HostTensor::of(dims, words.map(f64::from_ne_bytes).map(whole).collect::<Result<Vec<i64>>>()?)?
        }
    })
}

/// A number of 64 bits without a sign as one with a sign.
fn signed(number: u64) -> Result<i64> {
    i64::try_from(number)
        .map_err(|_| anyhow!("found {number} in a file of uint64, wanted one that int64 holds"))
}

/// The integer that a number is.
fn whole(number: f64) -> Result<i64> {
    // 2^63 is the first that is too large.
    let fits = number.trunc() == number
        && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    ensure!(fits, "found {number} for an input of integers, wanted a whole number of int64");
    Ok(number as i64)
}

/// The header's text and the data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8])> {
    let Some((_, rest)) = bytes.split_at_checked(MAGIC.len()).filter(|(magic, _)| magic == MAGIC) else {
        bail!("found no NumPy header, wanted an .npy file");
    };
    let (length, rest) = match *rest {
        [1, _, a, b, ref rest @ ..] => (usize::from(u16::from_le_bytes([a, b])), rest),
        [2 | 3, _, a, b, c, d, ref rest @ ..] => (u32::from_le_bytes([a, b, c, d]) as usize, rest),
        [major, minor, ..] if !(1..=3).contains(&major) => {
            bail!("found version {major}.{minor} of the .npy format, wanted 1.0, 2.0 or 3.0")
        }
        _ => bail!("the file ends in its header"),
    };
    ensure!(length <= LONGEST_HEADER, "found a header of {length} bytes, wanted at most {LONGEST_HEADER}");
    let (text, data) = rest.split_at_checked(length).ok_or_else(|| anyhow!("the file ends in its header"))?;
    let text = std::str::from_utf8(text).context("found a header that is not text")?;
    Ok((text, data))
}

/// What a header says, which is a Python dictionary of these three keys.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &str) -> Result<Self> {
        let mut rest = Literal(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        rest.expect('{')?;
        while !rest.take('}') {
            let key = rest.string()?;
            rest.expect(':')?;
            match key {
                "descr" => descr = Some(rest.string()?.to_owned()),
                "fortran_order" => fortran_order = Some(rest.boolean()?),
                "shape" => shape = Some(rest.extents()?),
                _ => bail!("found {key:?} in the header, wanted \"descr\", \"fortran_order\" and \"shape\""),
            }
            if !rest.take(',') {
                rest.expect('}')?;
                break;
            }
        }
        ensure!(rest.0.trim().is_empty(), "found {:?} after the header's end", rest.start());
        let missing = |key| move || anyhow!("found no {key:?} in the header");
        Ok(Header {
            descr: descr.ok_or_else(missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(missing("fortran_order"))?,
            shape: shape.ok_or_else(missing("shape"))?,
        })
    }
}

/// The rest of a Python literal. What is read of it does not nest, so neither does the reading.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    /// Its first characters, for errors.
    fn start(&self) -> String {
        self.0.trim_start().chars().take(20).collect()
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.0.trim_start().strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        ensure!(self.take(wanted), "found {:?} in the header, wanted {wanted:?}", self.start());
        Ok(())
    }

    /// A string in either kind of quotes, without escapes.
    fn string(&mut self) -> Result<&'a str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let inner = quote.and_then(|quote| text.get(1..)?.split_once(quote));
        let (inner, rest) =
            inner.ok_or_else(|| anyhow!("found {:?} in the header, wanted a string", self.start()))?;
        self.0 = rest;
        Ok(inner)
    }

    fn boolean(&mut self) -> Result<bool> {
        let text = self.0.trim_start();
        for (word, value) in [("False", false), ("True", true)] {
            if let Some(rest) = text.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        bail!("found {:?} in the header, wanted True or False", self.start())
    }

    /// A tuple of whole numbers.
    fn extents(&mut self) -> Result<Vec<u64>> {
        let mut extents = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            let text = self.0.trim_start();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (number, rest) = text.split_at(digits);
            extents.push(number.parse().map_err(|_| {
                anyhow!("found {:?} in the shape, wanted a whole number of 64 bits", self.start())
            })?);
            self.0 = rest;
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }
}

/// Whether the extents are the same but for leading ones.
fn same_shape(found: &[u64], wanted: &[u64]) -> bool {
    let from = |extents: &[u64]| extents.iter().position(|&extent| extent != 1).unwrap_or(extents.len());
    found[from(found)..] == wanted[from(wanted)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Dims, Shape, TensorElement};
    use half::f16;

    const SHAPE: Shape = Shape::nhwc(1, 2, 3, 2);

    /// A file of version 1.0 with this header, and data.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
    }

    fn header(descr: &str, order: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}   \n")
    }

    fn counting() -> Vec<f32> {
        (0..12).map(|i| i as f32 * 0.5).collect()
    }

    fn floats() -> Vec<u8> {
        counting().iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn good() -> Vec<u8> {
        file(&header("<f4", "False", "(2, 3, 2)"), &floats())
    }

    /// An input of floats.
    fn floats_of(dims: impl Into<Dims>) -> TensorType {
        TensorType { dtype: DType::F32, dims: dims.into() }
    }

    fn refused(bytes: &[u8]) -> String {
        format!("{:#}", parse(bytes, floats_of(SHAPE)).expect_err("an invalid file"))
    }

    #[test]
    fn what_is_written_is_read_and_is_what_numpy_writes() {
        let tensor = HostTensor::new(SHAPE, counting()).expect("a tensor");
        let mut bytes = Vec::new();
        print(&mut bytes, &tensor).expect("written");
        assert_eq!(parse(&bytes, floats_of(SHAPE)).expect("read"), tensor);
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 2), }";
        let wanted = [&b"\x93NUMPY\x01\x00v\x00"[..], format!("{text:<117}\n").as_bytes()].concat();
        assert_eq!(bytes[..128].escape_ascii().to_string(), wanted.escape_ascii().to_string());
        assert_eq!(bytes[128..], floats());
        for (dims, told) in [(&[12][..], "(12,)"), (&[3, 4], "(3, 4)"), (&[1, 2, 1, 3, 2], "(1, 2, 1, 3, 2)")]
        {
            let tensor = tensor.clone().reshaped(Dims::new(dims).expect("small")).expect("as many");
            let mut bytes = Vec::new();
            print(&mut bytes, &tensor).expect("written");
            assert!(
                String::from_utf8_lossy(&bytes[..128]).contains(&format!("'shape': {told}, }}")),
                "{told}"
            );
            assert_eq!(parse(&bytes, floats_of(tensor.dims())).expect("read"), tensor);
        }
    }

    #[test]
    fn a_file_of_numpy_is_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/posenet_figures.npy");
        let values = read(path.as_ref(), floats_of(Shape::nhwc(1, 1, 1, 4140))).expect("read");
        assert_eq!(values.to_f32()[0].to_bits(), 0xc124_5b08);
    }

    #[test]
    fn every_type_is_written_and_read_as_it_is() {
        let dims = Dims::new(&[3]).expect("small");
        fn of<T: TensorElement>(values: [T; 3]) -> HostTensor {
            HostTensor::of(Dims::new(&[3]).expect("small"), values.to_vec()).expect("three")
        }
        for (tensor, descr) in [
            (of([1.5f32, f32::INFINITY, -0.0]), "<f4"),
            (of([1.5f32, 2.0, -0.0].map(f16::from_f32)), "<f2"),
            (of([i64::MIN, (1 << 53) + 1, -1]), "<i8"),
            (of([i32::MIN, i32::MAX, -1]), "<i4"),
            (of([i16::MIN, i16::MAX, -1]), "<i2"),
            (of([i8::MIN, i8::MAX, -1]), "|i1"),
            (of([0, u32::MAX, 1]), "<u4"),
            (of([0, u16::MAX, 1]), "<u2"),
            (of([0, u8::MAX, 1]), "|u1"),
            (of([true, false, true]), "|b1"),
        ] {
            let mut bytes = Vec::new();
            print(&mut bytes, &tensor).expect("written");
            assert!(String::from_utf8_lossy(&bytes).contains(&format!("'descr': '{descr}'")), "{descr}");
            let back = parse(&bytes, TensorType { dtype: tensor.dtype(), dims }).expect(descr);
            assert_eq!(back, tensor, "{descr}");
        }
    }

    #[test]
    fn types_that_tensors_lack_become_one_that_they_have_or_are_refused() {
        let dims = Dims::new(&[3]).expect("small");
        let of = |descr: &str, data: &[u8], dtype| {
            parse(&file(&header(descr, "False", "(3,)"), data), TensorType { dtype, dims })
        };
        let big = [1i32, -2, 3].map(i32::to_be_bytes).concat();
        let read = of(">i4", &big, DType::I32).expect("whole");
        assert_eq!(read.elements::<i32>(), Some(&[1, -2, 3][..]));
        let large = [0u64, (1 << 63) - 1, 5].map(u64::to_le_bytes).concat();
        let read = of("<u8", &large, DType::I64).expect("they fit");
        assert_eq!(read.elements::<i64>(), Some(&[0, i64::MAX, 5][..]));
        let larger = [0u64, 1 << 63, 5].map(u64::to_le_bytes).concat();
        let error = of("<u8", &larger, DType::I64).expect_err("too large").to_string();
        assert!(error.contains("found 9223372036854775808") && error.contains("int64"), "{error}");
        let doubles = [16_777_217.0f64, -2.0, 3.0].map(f64::to_le_bytes).concat();
        let read = of("<f8", &doubles, DType::I64).expect("whole");
        assert_eq!(read.elements::<i64>(), Some(&[16_777_217, -2, 3][..]));
        let read = of("<f8", &doubles, DType::F32).expect("rounded");
        assert_eq!(read.elements::<f32>(), Some(&[16_777_216.0, -2.0, 3.0][..]));
        for odd in [0.5, f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0] {
            let error = of("<f8", &[0.0, odd, 1.0].map(f64::to_le_bytes).concat(), DType::I64)
                .expect_err("not whole");
            assert!(error.to_string().contains(&format!("found {odd} for an input of integers")), "{error}");
        }
    }

    #[test]
    fn leading_ones_may_be_missing() {
        for shape in ["(1, 2, 3, 2)", "(2, 3, 2)", "(2,3,2,)", "(1, 1, 2, 3, 2)"] {
            let bytes = file(&header("<f4", "False", shape), &floats());
            assert!(parse(&bytes, floats_of(SHAPE)).is_ok(), "{shape}");
        }
        for (shape, listed) in [
            ("(3, 2, 2)", "[3, 2, 2]"),
            ("(12,)", "[12]"),
            ("()", "[]"),
            ("(2, 3, 2, 1)", "[2, 3, 2, 1]"),
            ("(9999999999, 9999999999)", "[9999999999, 9999999999]"),
        ] {
            let text = refused(&file(&header("<f4", "False", shape), &floats()));
            assert!(text.contains(&format!("found shape {listed}, wanted [1, 2, 3, 2]")), "{text}");
        }
    }

    #[test]
    fn floats_of_other_sizes_and_byte_orders_are_converted() {
        let values = counting();
        let doubles = |value: &f32| f64::from(*value).to_le_bytes();
        for (descr, data) in [
            ("<f8", values.iter().flat_map(doubles).collect::<Vec<u8>>()),
            ("<f2", values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect()),
            (">f2", values.iter().flat_map(|value| f16::from_f32(*value).to_be_bytes()).collect()),
            (">f4", values.iter().flat_map(|value| value.to_be_bytes()).collect()),
            ("=f4", values.iter().flat_map(|value| value.to_ne_bytes()).collect()),
        ] {
            let bytes = file(&header(descr, "False", "(2, 3, 2)"), &data);
            assert_eq!(&*parse(&bytes, floats_of(SHAPE)).expect(descr).to_f32(), &values[..], "{descr}");
        }
        // Keys in another order and other quotes, and a length of four bytes.
        let text = "{\"shape\":(2,3,2),\"fortran_order\":False,\"descr\":\"<f4\"}";
        let length = (text.len() as u32).to_le_bytes();
        let bytes = [b"\x93NUMPY\x02\x00", &length[..], text.as_bytes(), &floats()].concat();
        assert_eq!(&*parse(&bytes, floats_of(SHAPE)).expect("version 2").to_f32(), &values[..]);
    }

    #[test]
    fn each_refusal_says_what_was_found() {
        let good = good();
        let mut version = good.clone();
        version[6] = 9;
        let mut long = good.clone();
        long.extend([0; 4]);
        let with = |descr: &str, order: &str, shape: &str| file(&header(descr, order, shape), &floats());
        for (bytes, words) in [
            (with("<f4", "True", "(2, 3, 2)"), "Fortran order"),
            (with("<c8", "False", "(2, 3, 2)"), "type '<c8', wanted floats"),
            (with("<i8", "False", "(2, 3, 2)"), "found 48 bytes of data, wanted 96"),
            (with("f4", "False", "(2, 3, 2)"), "type 'f4', wanted floats"),
            (with("<f4", "0", "(2, 3, 2)"), "wanted True or False"),
            (with("<f4", "False", "(2, -3, 2)"), "found \"-3, 2), }"),
            (with("<f4", "False", "(99999999999999999999,)"), "64 bits"),
            (with("<f4", "False", "[2, 3, 2]"), "wanted '('"),
            (with("<f4", "False", "((2, 3), 2)"), "in the shape, wanted a whole number"),
            (good[..good.len() - 3].to_vec(), "found 45 bytes of data, wanted 48"),
            (long, "found 52 bytes of data, wanted 48"),
            (good[..40].to_vec(), "ends in its header"),
            (good[..7].to_vec(), "ends in its header"),
            (b"PK\x03\x04 not numpy".to_vec(), "no NumPy header"),
            (Vec::new(), "no NumPy header"),
            (version, "version 9.0"),
            (file("{'descr': [('x', '<f4')], ", &[]), "wanted a string"),
            (file("{'descr': '<f4'}", &[]), "found no \"fortran_order\""),
            (file("{'colour': '<f4'}", &[]), "found \"colour\" in the header"),
            (file(&format!("{}x", header("<f4", "False", "()")), &[]), "found \"x\" after"),
            (file(&"(".repeat(1 << 15), &[]), "header of 32768 bytes"),
            (file("\u{e9}", &[])[..11].to_vec(), "ends in its header"),
            ([b"\x93NUMPY\x01\x00\x01\x00", &b"\xff"[..]].concat(), "a header that is not text"),
        ] {
            let text = refused(&bytes);
            assert!(text.contains(words), "no {words:?} in: {text}");
        }
    }

    #[test]
    fn a_nested_header_is_refused_at_once() {
        let start = std::time::Instant::now();
        assert!(refused(&file(&"{".repeat(16), &[])).contains("wanted a string"));
        for nested in ["(", "[", "{", "{1:", "-", "'", "{'shape':("] {
            let text = nested.repeat(LONGEST_HEADER / nested.len());
            assert!(parse(&file(&text, &[]), floats_of(SHAPE)).is_err(), "{nested:?}");
        }
        // Some thousand times what it takes.
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    #[test]
    fn damaged_headers_never_panic() {
        let good = good();
        for position in 0..good.len() {
            for value in [0, b'9', b'(', b',', 0x7f, 0xff] {
                let mut damaged = good.clone();
                damaged[position] = value;
                let _ = parse(&damaged, floats_of(SHAPE));
            }
        }
    }

    #[test]
    fn what_is_no_file_is_named() {
        for (path, words) in [
            ("no/such/x.npy", "no/such/x.npy: No such file"),
            (env!("CARGO_MANIFEST_DIR"), ": found a directory, wanted a regular file"),
            #[cfg(unix)]
            ("/dev/zero", "/dev/zero: found a character device, wanted a regular file"),
        ] {
            let error = format!("{:#}", read(path.as_ref(), floats_of(SHAPE)).expect_err(path));
            assert!(error.contains(words), "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large.npy");
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
        let error = format!("{:#}", read(&path, floats_of(SHAPE)).expect_err("too long"));
        assert!(error.contains("large.npy: found 1073741824 bytes, wanted at most 16492"), "{error}");
    }
}
