//! Weights out of a safetensors file, for a graph built by hand.
//!
//! A file is the length of a header, the header (JSON: type, shape and place of each tensor) and the tensors, one
//! behind the other. It may be hostile: every place is checked before anything is read of it.
//!
//! Source: the format's description, <https://huggingface.co/docs/safetensors>.

use crate::dims::Dims;
use crate::error::{Error, Result};
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sorted;
use half::{bf16, f16};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The largest file that is read, and the longest header.
const MAX_FILE_BYTES: u64 = 1 << 36;
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The bytes in front of the header: its length.
const PREFIX: usize = 8;

/// The key that stands for no tensor.
const METADATA: &str = "__metadata__";

/// A tensor as the header has it.
#[derive(Debug, Clone, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl Entry {
    /// The bytes of an element, if the type is one that f32 holds or rounds.
    fn width(&self) -> Option<usize> {
        Some(match self.dtype.as_str() {
            "BOOL" | "U8" | "I8" => 1,
            "F16" | "BF16" | "I16" | "U16" => 2,
            "F32" | "I32" | "U32" => 4,
            "F64" | "I64" | "U64" => 8,
            _ => return None,
        })
    }
}

/// The tensors of a safetensors file, by name.
///
/// ```
/// use diptych::{Backend, Context, Conv2d, Extras, Graph, Session, SessionOptions, Shape, Weights};
///
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("model.safetensors");
/// # let header = r#"{"stem.weight":{"dtype":"F32","shape":[2,3,1,1],"data_offsets":[0,24]},"stem.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}}"#;
/// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// # file.extend(header.as_bytes());
/// # file.extend([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 0.5, -0.5].iter().flat_map(|value| value.to_le_bytes()));
/// # std::fs::write(&path, file).expect("written");
/// let weights = Weights::open(&path)?;
/// let mut graph = Graph::new();
/// let x = graph.input("image", Shape::nhwc(1, 8, 8, 3))?;
/// let filter = weights.filter("stem.weight")?;
/// let bias = Extras::bias(weights.get("stem.bias")?);
/// let y = graph.conv2d("stem", x, filter, bias, Conv2d::default())?;
/// graph.output(y)?;
/// let session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
/// # assert_eq!(session.outputs().len(), 1);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Weights {
    file: String,
    bytes: Arc<[u8]>,
    /// Where the tensors begin.
    begin: usize,
    tensors: BTreeMap<String, Entry>,
    metadata: BTreeMap<String, String>,
}

impl Weights {
    /// Reads a file.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// match Weights::open("model.safetensors") {
    ///     Ok(weights) => println!("{} tensors", weights.names().count()),
    ///     Err(error) => println!("{error}"), // names the file
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read or is no regular file, and those of [`Weights::from_bytes`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = crate::file::read(path, MAX_FILE_BYTES)
            .map_err(|source| Error::Io { path: name.clone(), source })?;
        Weights::parse(name, bytes.into())
    }

    /// Reads a file that is in memory already.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// // `file` holds a safetensors file.
    /// let weights = Weights::from_bytes(file)?;
    /// assert!(Weights::from_bytes([0u8; 3].to_vec()).is_err());
    /// # assert_eq!(weights.names().count(), 1);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`] if the file has no valid header, or the tensors that it names do not lie one behind the other in the
    /// rest of the file.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self> {
        Weights::parse("weights".to_owned(), bytes.into())
    }

    fn parse(file: String, bytes: Arc<[u8]>) -> Result<Self> {
        let fail = |message: String| Error::Model { file: file.clone(), op: None, message };
        let length = bytes.first_chunk::<PREFIX>().map(|length| u64::from_le_bytes(*length));
        let length = length.ok_or_else(|| fail(format!("found {} bytes, wanted a header", bytes.len())))?;
        let rest = (bytes.len() - PREFIX) as u64;
        if length > MAX_HEADER_BYTES.min(rest) {
            return Err(fail(format!("found a header of {length} bytes in {rest}, wanted a shorter one")));
        }
        let begin = PREFIX + length as usize;
        let header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&bytes[PREFIX..begin])
            .map_err(|error| fail(format!("found an invalid header: {error}")))?;
        let (mut tensors, mut metadata) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in header {
            let told = |error: serde_json::Error| fail(format!("tensor {name:?}: {error}"));
            if name == METADATA {
                metadata = serde_json::from_value(value).map_err(told)?;
                continue;
            }
            let entry: Entry = serde_json::from_value(value).map_err(told)?;
            tensors.insert(name, entry);
        }
        let weights = Weights { file: file.clone(), bytes: Arc::clone(&bytes), begin, tensors, metadata };
        weights.check().map_err(fail)?;
        Ok(weights)
    }

    /// Whether the tensors lie one behind the other, with nothing between or behind them.
    fn check(&self) -> std::result::Result<(), String> {
        let mut places: Vec<(&String, &Entry)> = self.tensors.iter().collect();
        sorted::sort_by_key(&mut places, |(_, entry)| entry.data_offsets);
        let mut end = 0;
        for (name, entry) in places {
            let [from, to] = entry.data_offsets;
            if from != end || to < from {
                return Err(format!("tensor {name:?}: found it at {from} to {to}, wanted it from {end} on"));
            }
            end = to;
            let elements =
                entry.shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
            let wanted = entry.width().and_then(|width| elements.and_then(|count| count.checked_mul(width)));
            if (entry.width().is_some() || elements.is_none()) && wanted != Some(to - from) {
                return Err(format!(
                    "tensor {name:?}: found {} bytes for shape {:?} of {}",
                    to - from,
                    entry.shape,
                    entry.dtype
                ));
            }
        }
        let found = self.bytes.len() - self.begin;
        match end == found {
            true => Ok(()),
            false => Err(format!("found {found} bytes of tensors, wanted {end}")),
        }
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        self.tensors.get(name).ok_or_else(|| self.fail(name, format!("wanted one of {:?}", self.near(name))))
    }

    /// Names that begin or end as `name` does, or else the first ones.
    fn near(&self, name: &str) -> Vec<&str> {
        let head = name.split('.').next().unwrap_or(name);
        let mut near: Vec<&str> = self.names().filter(|other| other.starts_with(head)).take(8).collect();
        if near.is_empty() {
            near = self.names().take(8).collect();
        }
        near
    }

    fn fail(&self, name: &str, message: String) -> Error {
        Error::Model {
            file: self.file.clone(),
            op: None,
            message: format!("found tensor {name:?}, {message}"),
        }
    }

    /// The names of the tensors, sorted.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.names().collect::<Vec<_>>(), ["w"]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The file's own metadata, by key.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.metadata()["format"], "pt");
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The extents of a tensor.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.extents("w")?, [2, 1, 1, 1]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`] if there is no such tensor.
    pub fn extents(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.entry(name)?.shape)
    }

    /// Reads a tensor: f16 as it is, everything else as f32. Integers that f32 cannot hold are an error.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(*weights.get("w")?.to_f32(), [1.5, 2.5]);
    /// // An error lists names that are alike.
    /// assert!(weights.get("W").unwrap_err().to_string().contains("\"w\""));
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`] if there is no such tensor, it has no elements or too many axes, or its type is another.
    pub fn get(&self, name: &str) -> Result<HostTensor> {
        let entry = self.entry(name)?;
        let dims = Dims::new(&entry.shape).map_err(|error| self.fail(name, error.to_string()))?;
        let bytes = self.bytes(name)?;
        if entry.dtype == "F16" {
            let values: Vec<f16> =
                bytes.as_chunks().0.iter().map(|&chunk| f16::from_le_bytes(chunk)).collect();
            return HostTensor::from_f16(dims, Layout::Nhwc, values);
        }
        let values = values(&entry.dtype, bytes).map_err(|message| self.fail(name, message))?;
        HostTensor::new(dims, values)
    }

    /// The bytes of a tensor, as the file has them.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.bytes("w")?.len(), 8);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Model`] if there is no such tensor.
    pub fn bytes(&self, name: &str) -> Result<&[u8]> {
        let [from, to] = self.entry(name)?.data_offsets;
        Ok(self.bytes.get(self.begin + from..self.begin + to).unwrap_or_default())
    }

    /// Reads a tensor and checks its dimensions.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// use diptych::Dims;
    ///
    /// let weights = Weights::from_bytes(file)?;
    /// assert!(weights.get_of("w", Dims::new(&[2, 1, 1, 1])?).is_ok());
    /// assert!(weights.get_of("w", Dims::new(&[2])?).is_err());
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Weights::get`], and if the tensor has other dimensions.
    pub fn get_of(&self, name: &str, dims: impl Into<Dims>) -> Result<HostTensor> {
        let (wanted, tensor) = (dims.into(), self.get(name)?);
        match tensor.dims() == wanted {
            true => Ok(tensor),
            false => Err(self.fail(name, format!("which is {}, wanted {wanted}", tensor.dims()))),
        }
    }

    /// The weights of a convolution: what PyTorch has as `oc ic kh kw`, in the order of [`Graph::conv2d`](crate::graph::Graph::conv2d) and
    /// [`Graph::pointwise`](crate::graph::Graph::pointwise), `oc kh kw ic`.
    ///
    /// ```
    /// use diptych::Weights;
    ///
    /// # let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1,1,1],"data_offsets":[0,8]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header.as_bytes());
    /// # file.extend([1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()));
    /// use diptych::Shape;
    ///
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.filter("w")?.shape(), Shape::nhwc(2, 1, 1, 1)); // two filters of one tap and one channel
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Weights::get`], and if the tensor is not of rank 4.
    pub fn filter(&self, name: &str) -> Result<HostTensor> {
        let tensor = self.get(name)?;
        let &[oc, ic, kh, kw] = tensor.dims().extents() else {
            return Err(self.fail(name, format!("which is {}, wanted rank 4", tensor.dims())));
        };
        HostTensor::with_layout(Shape::nhwc(oc, kh, kw, ic), Layout::Nchw, tensor.to_f32().into_owned())
    }
}

/// The elements of a type other than f16.
fn values(dtype: &str, bytes: &[u8]) -> std::result::Result<Vec<f32>, String> {
    fn all<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
    }
    fn whole<const N: usize>(
        bytes: &[u8],
        read: impl Fn([u8; N]) -> i128,
    ) -> std::result::Result<Vec<f32>, String> {
        let exact = |chunk: &[u8; N]| match read(*chunk) {
            value if (value as f32) as i128 == value => Ok(value as f32),
            value => Err(format!("which holds {value}, wanted integers that f32 holds")),
        };
        bytes.as_chunks::<N>().0.iter().map(exact).collect()
    }
    Ok(match dtype {
        "F32" => all(bytes, f32::from_le_bytes),
        "BF16" => all(bytes, |chunk| bf16::from_le_bytes(chunk).to_f32()),
        "F64" => all(bytes, |chunk| f64::from_le_bytes(chunk) as f32),
        "BOOL" => all(bytes, |[byte]| f32::from(u8::from(byte != 0))),
        "U8" => all(bytes, |[byte]| f32::from(byte)),
        "I8" => all(bytes, |chunk| f32::from(i8::from_le_bytes(chunk))),
        "I16" => all(bytes, |chunk| f32::from(i16::from_le_bytes(chunk))),
        "U16" => all(bytes, |chunk| f32::from(u16::from_le_bytes(chunk))),
        "I32" => whole(bytes, |chunk| i32::from_le_bytes(chunk).into())?,
        "U32" => whole(bytes, |chunk| u32::from_le_bytes(chunk).into())?,
        "I64" => whole(bytes, |chunk| i64::from_le_bytes(chunk).into())?,
        "U64" => whole(bytes, |chunk| u64::from_le_bytes(chunk).into())?,
        other => return Err(format!("which is of {other}, wanted floats, integers or booleans")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn refused(header: &str, data: &[u8]) -> String {
        Weights::from_bytes(file(header, data)).expect_err("refused").to_string()
    }

    #[test]
    fn every_type_becomes_floats() {
        let header = r#"{"__metadata__":{"format":"pt"},
            "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "b":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]},
            "c":{"dtype":"BF16","shape":[],"data_offsets":[12,14]},
            "d":{"dtype":"I64","shape":[1],"data_offsets":[14,22]},
            "e":{"dtype":"I64","shape":[1],"data_offsets":[22,30]},
            "f":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[30,32]},
            "g":{"dtype":"U8","shape":[0],"data_offsets":[32,32]}}"#;
        let mut data = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
        data.extend([f16::from_f32(0.25), f16::from_f32(3.0)].map(f16::to_le_bytes).concat());
        data.extend(bf16::from_f32(-1.0).to_le_bytes());
        data.extend((-7i64).to_le_bytes());
        data.extend(((1i64 << 24) + 1).to_le_bytes());
        data.extend([0, 0]);
        let weights = Weights::from_bytes(file(header, &data)).expect("a file");
        assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(weights.metadata().get("format").map(String::as_str), Some("pt"));
        let get = |name: &str| weights.get(name).map(|tensor| tensor.to_f32().into_owned());
        assert_eq!(get("a").expect("a"), [1.5, -2.0]);
        assert_eq!(weights.get("b").expect("b").dtype(), crate::dtype::DType::F16);
        assert_eq!(get("b").expect("b"), [0.25, 3.0]);
        assert_eq!(get("c").expect("c"), [-1.0]);
        assert_eq!(get("d").expect("d"), [-7.0]);
        assert!(get("e").expect_err("inexact").to_string().contains("16777217"));
        assert!(get("f").expect_err("a type").to_string().contains("F8_E4M3"));
        assert_eq!(get("g").expect("no elements"), [0.0; 0]);
        assert!(get("aa").expect_err("no such name").to_string().contains("[\"a\""));
        let wanted = Dims::new(&[2, 1]).expect("small");
        assert!(weights.get_of("a", wanted).expect_err("a shape").to_string().contains("wanted 2x1"));
    }

    #[test]
    fn filters_have_their_channels_last() {
        let header = r#"{"w":{"dtype":"U8","shape":[1,2,1,3],"data_offsets":[0,6]}}"#;
        let weights = Weights::from_bytes(file(header, &[1, 2, 3, 4, 5, 6])).expect("a file");
        let filter = weights.filter("w").expect("a filter");
        assert_eq!(filter.dims().extents(), [1, 1, 3, 2]);
        assert_eq!(*filter.to_nhwc(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn hostile_headers_are_refused() {
        let one = |shape: &str, from: u64, to: u64| {
            format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}}}"#)
        };
        assert!(refused(&one("[2]", 0, 4), &[0; 4]).contains("found 4 bytes for shape [2]"));
        assert!(refused(&one("[1]", 4, 8), &[0; 8]).contains("wanted it from 0 on"));
        assert!(refused(&one("[1]", 0, 4), &[0; 8]).contains("found 8 bytes of tensors"));
        assert!(refused(&one("[1]", 0, 4), &[0; 2]).contains("found 2 bytes of tensors"));
        assert!(refused(&one("[4]", 8, 0), &[0; 8]).contains("found it at 8 to 0"));
        assert!(refused(&one("[9223372036854775807,4]", 0, 4), &[0; 4]).contains("found 4 bytes"));
        assert!(refused(&one("[-1]", 0, 4), &[0; 4]).contains("tensor \"a\""));
        assert!(refused("[1, 2]", &[]).contains("an invalid header"));
        assert!(refused(&"[".repeat(100_000), &[]).contains("an invalid header"));
        for bytes in [&[][..], &[1; 7], &[255; 8], &[9, 0, 0, 0, 0, 0, 0, 0, b'{']] {
            assert!(Weights::from_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
