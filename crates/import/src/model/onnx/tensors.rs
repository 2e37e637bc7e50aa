//! Constants of a file, and of the files beside it.

use super::schema::Tensor;
use super::small_elements::Small;
use crate::alloc;
use crate::error::{Hint, Setting};
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::model::budget::Budget;
use crate::model::build::{Kind, floats, integers};
use crate::model::constant::{Constant, Integers, dims_of, elements_of};
use crate::model::constant_cache::{self, ConstantCache};
use crate::model::numbers::{copied, each};
use crate::model::reason::Reason;
use bytemuck::Pod;
use half::{bf16, f16};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The largest rank of a constant.
const MAX_RANK: usize = 16;

/// The files beside the model, which may hold its weights.
#[derive(Default)]
pub(super) struct Files {
    kept: Option<Arc<ConstantCache>>,
    /// The model's own path, if it is read from one.
    model: Option<PathBuf>,
    /// The files that came with the model, by the names that the model has for them.
    given: BTreeMap<String, Arc<[u8]>>,
    /// The names of the files in `given` for which the budget was already extended.
    counted: BTreeSet<String>,
    /// The file beside the model that was read last. Others are opened again: a model may have one for each weight.
    opened: Option<(PathBuf, Arc<Opened>)>,
    /// The paths of files for which the budget was already extended.
    extended: BTreeSet<PathBuf>,
}

/// A file beside the model, of which parts are read.
#[derive(Debug)]
struct Opened {
    file: File,
    bytes: usize,
}

/// The data of a file that came with the model, or that lies beside it.
#[derive(Clone)]
enum Data {
    Given(Arc<[u8]>),
    Opened(Arc<Opened>),
}

/// Some of the data of a file.
struct Extract {
    location: String,
    data: Data,
    range: Range<usize>,
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Data::Given(bytes) => bytes.len(),
            Data::Opened(opened) => opened.bytes,
        }
    }
}

impl Extract {
    /// The bytes.
    fn bytes(&self) -> Result<Cow<'_, [u8]>, Reason> {
        match &self.data {
            Data::Given(bytes) => Ok(Cow::Borrowed(bytes.get(self.range.clone()).unwrap_or_default())),
            Data::Opened(_) => {
                let mut bytes = alloc::zeros(self.range.len(), "data of a file")?;
                self.read_to(&mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Copies them to where they stay.
    fn read_to(&self, to: &mut [u8]) -> Result<(), Reason> {
        match &self.data {
            Data::Given(bytes) => {
                let own = bytes.get(self.range.clone()).unwrap_or_default();
                to.iter_mut().zip(own).for_each(|(to, from)| *to = *from);
                Ok(())
            }
            Data::Opened(opened) => {
                let mut file = &opened.file;
                let read =
                    file.seek(SeekFrom::Start(self.range.start as u64)).and_then(|_| file.read_exact(to));
                read.map_err(|error| Reason::from(format!("data in {:?}: {error}", self.location)))
            }
        }
    }

    /// The elements of a constant.
    fn constant(&self, kind: Kind, extents: &[usize], budget: &mut Budget) -> Result<Constant, Reason> {
        // What lies as it is kept is read to where it stays.
        let as_is = cfg!(target_endian = "little") && matches!(self.data, Data::Opened(_));
        let elements = elements_of(extents)?;
        check_bytes(kind, extents, self.range.len())?;
        if !as_is || elements == 0 {
            return of_bytes(kind, extents, &self.bytes()?, budget);
        }
        let tensor = match kind {
            Kind::F32 => HostTensor::new(dims_of(extents)?, self.elements::<f32>(elements, budget)?)?,
            Kind::F16 => HostTensor::from_f16(
                dims_of(extents)?,
                Layout::Nhwc,
                self.elements::<f16>(elements, budget)?,
            )?,
            _ => return of_bytes(kind, extents, &self.bytes()?, budget),
        };
        Ok(Constant::Floats(tensor))
    }

    fn elements<T: Pod>(&self, elements: usize, budget: &mut Budget) -> Result<Arc<[T]>, Reason> {
        budget.spend(elements.saturating_mul(8))?;
        let mut all: Arc<[T]> = alloc::shared(std::iter::repeat_n(T::zeroed(), elements), "data of a file")?;
        if let Some(all) = Arc::get_mut(&mut all) {
            self.read_to(bytemuck::cast_slice_mut(all))?;
        }
        Ok(all)
    }
}

impl Files {
    pub(super) fn new(model: Option<&Path>, given: &BTreeMap<String, Arc<[u8]>>) -> Self {
        Files { model: model.map(Path::to_owned), given: given.clone(), ..Files::default() }
    }

    /// Files that look constants up in `kept` before they read them: each constant is read once, as long as the bytes of the
    /// model's file stay where they are.
    pub(super) fn keeping(
        model: Option<&Path>,
        given: &BTreeMap<String, Arc<[u8]>>,
        kept: Arc<ConstantCache>,
    ) -> Self {
        Files { kept: Some(kept), ..Files::new(model, given) }
    }

    /// What was made of these constants under a name, in an earlier reading of the file.
    pub(super) fn made(&self, name: &str, sources: &[Constant]) -> Option<Vec<Constant>> {
        let kept = self.kept.as_ref()?;
        let known = kept.known(&name_of(kept, name, sources)?)?;
        Some(known.into_iter().map(|(made, _)| made).collect())
    }

    /// Keeps what was made of constants for the next reading of the file.
    pub(super) fn keep(&self, name: &str, sources: &[Constant], made: &[Constant]) {
        let named = self.kept.as_ref().and_then(|kept| Some((kept, name_of(kept, name, sources)?)));
        if let Some((kept, name)) = named {
            let made: Vec<_> = made.iter().map(|made| (made.clone(), Kind::F32)).collect();
            kept.keep_made(name, &made);
        }
    }

    /// The name of a constant that is worth keeping: where it lies.
    fn name(tensor: &Tensor<'_>) -> Option<String> {
        let (kind, dims) = (tensor.kind, &tensor.dims);
        if tensor.is_external {
            return Some(format!("file {:?} {kind} {dims:?}", tensor.external));
        }
        let raw = tensor.raw.filter(|raw| raw.len() > constant_cache::FEW)?;
        Some(format!("bytes {:?} {} {kind} {dims:?}", raw.as_ptr(), raw.len()))
    }

    /// The bytes of a file that came with the model, or that is in its folder. No path leads out of it, and no link but those
    /// of the hub's cache.
    fn file(&mut self, location: &str, budget: &mut Budget) -> Result<Data, Reason> {
        if let Some(given) = self.given.get(location) {
            if self.counted.insert(location.to_owned()) {
                budget.extend(32 * given.len() as u64);
            }
            return Ok(Data::Given(Arc::clone(given)));
        }
        let model = self.model.as_ref().ok_or_else(|| {
            let reason = format!(
                "found data in the file {location:?} of a model in memory, wanted a model that is loaded by its path"
            );
            Reason::from(reason).hinted(Some(Hint::new(", or the file by ", Setting::Files, "")))
        })?;
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let relative = Path::new(location);
        let within = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || !relative.components().all(within) {
            return refused!("found data in {location:?}, wanted a path within the model's folder");
        }
        let explain = |error: std::io::Error| format!("data in {location:?}: {error}");
        let root = folder.canonicalize().map_err(explain)?;
        let path = root.join(relative).canonicalize().map_err(explain)?;
        let in_cache = || blobs(model, &root).is_some_and(|blobs| path.parent() == Some(&blobs));
        if !path.starts_with(&root) && !in_cache() {
            return refused!(
                "found data in {location:?}, a link out of the model's folder to {}, wanted a file in that folder",
                path.display()
            );
        }
        if let Some((_, known)) = self.opened.as_ref().filter(|(known, _)| *known == path) {
            return Ok(Data::Opened(Arc::clone(known)));
        }
        let file = crate::file::open(&path).map_err(explain)?;
        let bytes = file.metadata().map_err(explain)?.len();
        if bytes > crate::model::MAX_FILE_BYTES {
            return refused!(
                "data in {location:?}: found {bytes} bytes, wanted at most {}",
                crate::model::MAX_FILE_BYTES
            );
        }
        if self.extended.insert(path.clone()) {
            budget.extend(32 * bytes);
        }
        let bytes =
            usize::try_from(bytes).map_err(|_| format!("data in {location:?}: found {bytes} bytes"))?;
        let opened = Arc::new(Opened { file, bytes });
        self.opened = Some((path, Arc::clone(&opened)));
        Ok(Data::Opened(opened))
    }

    /// The file that has a constant of `wanted` bytes, and where they are in it.
    fn external(
        &mut self,
        tensor: &Tensor<'_>,
        wanted: usize,
        budget: &mut Budget,
    ) -> Result<Extract, Reason> {
        let key = |name: &str| tensor.external.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let number = |name: &str| match key(name).map(str::parse::<usize>) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => refused!("found {name} {:?} of data in a file, wanted a number", key(name)),
        };
        let location = key("location").ok_or("found data in a file without its location")?;
        let offset = number("offset")?.unwrap_or(0);
        let data = self.file(location, budget)?;
        let length = number("length")?.unwrap_or(wanted);
        match offset.checked_add(length).filter(|end| *end <= data.len()) {
            Some(end) => Ok(Extract { location: location.to_owned(), data, range: offset..end }),
            None => {
                refused!("found {} bytes in {location:?}, wanted {length} from {offset} on", data.len())
            }
        }
    }

    /// The elements of a constant, and their type.
    pub(super) fn constant(
        &mut self,
        tensor: &Tensor<'_>,
        budget: &mut Budget,
    ) -> Result<(Constant, Kind), Reason> {
        let kept = self.kept.clone();
        let Some((kept, name)) = kept.zip(Files::name(tensor)) else { return self.decoded(tensor, budget) };
        if let Some(known) = kept.known(&name).and_then(|known| known.into_iter().next()) {
            return Ok(known);
        }
        let decoded = self.decoded(tensor, budget)?;
        kept.keep_read(name, &decoded);
        Ok(decoded)
    }

    fn decoded(&mut self, tensor: &Tensor<'_>, budget: &mut Budget) -> Result<(Constant, Kind), Reason> {
        if tensor.is_segment {
            return refused!("found a segment of a tensor, wanted a whole one");
        }
        let extents = extents(&tensor.dims)?;
        let elements = elements_of(&extents)?;
        if let Some(small) = Small::of(tensor.kind) {
            budget.spend(elements.saturating_mul(8))?;
            let file: Extract;
            let bytes = match tensor.raw {
                _ if tensor.is_external => {
                    let wanted = small.bytes(elements);
                    file = self.external(tensor, wanted, budget)?;
                    if file.range.len() != wanted {
                        return refused!(
                            "found {} bytes in {:?}, wanted {wanted}",
                            file.range.len(),
                            file.location
                        );
                    }
                    file.bytes()?
                }
                Some(raw) => Cow::Borrowed(raw),
                None => tensor.ints.iter().map(|&byte| byte as u8).collect(),
            };
            return small.constant(&extents, &bytes);
        }
        let kind = Kind::of(tensor.kind)?;
        if tensor.is_external {
            let data = self.external(tensor, width(kind).saturating_mul(elements), budget)?;
            return Ok((data.constant(kind, &extents, budget)?, kind));
        }
        let constant = match tensor.raw {
            Some(raw) => of_bytes(kind, &extents, raw, budget)?,
            None => of_fields(kind, &extents, tensor, budget)?,
        };
        Ok((constant, kind))
    }
}

/// The files that links in a folder of the Hugging Face hub's cache may lead to, if the model lies there: in
/// `REPOSITORY/snapshots/REVISION` files are links to `REPOSITORY/blobs`.
///
/// A file that names its data cannot make more readable than the hub has put into that folder: the model itself is a
/// link into it, and the data are directly in it.
fn blobs(model: &Path, folder: &Path) -> Option<PathBuf> {
    let target = model.canonicalize().ok()?;
    let blobs = target.parent().filter(|parent| parent.file_name().is_some_and(|name| name == "blobs"))?;
    let snapshots = blobs.parent()?.join("snapshots");
    (folder.starts_with(&snapshots) && folder != snapshots).then(|| blobs.to_owned())
}

/// What is kept under a name of what was made of these constants; none if one of them is not kept.
fn name_of(kept: &ConstantCache, name: &str, sources: &[Constant]) -> Option<String> {
    let sources = sources.iter().map(|own| kept.identity(own)).collect::<Option<Vec<String>>>()?;
    Some(format!("{name} of {}", sources.join(" | ")))
}

/// Extents that a file has as signed numbers.
fn extents(dims: &[i64]) -> Result<Vec<usize>, Reason> {
    if dims.len() > MAX_RANK {
        return refused!("found rank {}, wanted at most {MAX_RANK}", dims.len());
    }
    let extents: Option<Vec<usize>> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    extents.ok_or_else(|| format!("found extents {dims:?}, wanted none below 0").into())
}

/// The bytes of an element.
pub(super) fn width(kind: Kind) -> usize {
    match kind {
        Kind::Bool | Kind::I4 | Kind::U4 | Kind::I8 | Kind::U8 => 1,
        Kind::F16 | Kind::Bf16 | Kind::I16 | Kind::U16 => 2,
        Kind::F32 | Kind::I32 | Kind::U32 => 4,
        Kind::F64 | Kind::I64 | Kind::U64 | Kind::Sequence | Kind::Nothing => 8,
    }
}

/// Refuses another number of bytes than elements of these extents have.
fn check_bytes(kind: Kind, extents: &[usize], found: usize) -> Result<(), Reason> {
    let wanted = elements_of(extents)?.saturating_mul(width(kind));
    match found == wanted {
        true => Ok(()),
        false => refused!("found {found} bytes, wanted {wanted} for shape {extents:?} in {kind:?}"),
    }
}

fn of_bytes(kind: Kind, extents: &[usize], bytes: &[u8], budget: &mut Budget) -> Result<Constant, Reason> {
    let elements = elements_of(extents)?;
    check_bytes(kind, extents, bytes.len())?;
    budget.spend(bytes.len().saturating_mul(8 / width(kind).min(8)))?;
    match kind {
        Kind::F32 | Kind::F16 if elements == 0 => floats(extents, Vec::new()),
        Kind::F32 => {
            let tensor = HostTensor::new(dims_of(extents)?, copied(bytes, f32::from_le_bytes));
            tensor.map(Constant::Floats).map_err(Reason::from)
        }
        Kind::F16 => {
            let values: Arc<[f16]> = copied(bytes, f16::from_le_bytes);
            let tensor = HostTensor::from_f16(dims_of(extents)?, Layout::Nhwc, values);
            tensor.map(Constant::Floats).map_err(Reason::from)
        }
        Kind::Bf16 => floats(extents, each(bytes, |chunk| bf16::from_le_bytes(chunk).to_f32())),
        Kind::F64 => floats(extents, each(bytes, |chunk| f64::from_le_bytes(chunk) as f32)),
        Kind::Bool => integers_of(extents, bytes, |[byte]| i64::from(byte != 0)),
        Kind::U4 | Kind::U8 => integers_of(extents, bytes, |[byte]| i64::from(byte)),
        Kind::I4 | Kind::I8 => integers_of(extents, bytes, |chunk| i64::from(i8::from_le_bytes(chunk))),
        Kind::I16 => integers_of(extents, bytes, |chunk| i64::from(i16::from_le_bytes(chunk))),
        Kind::U16 => integers_of(extents, bytes, |chunk| i64::from(u16::from_le_bytes(chunk))),
        Kind::I32 => integers_of(extents, bytes, |chunk| i64::from(i32::from_le_bytes(chunk))),
        Kind::U32 => integers_of(extents, bytes, |chunk| i64::from(u32::from_le_bytes(chunk))),
        Kind::I64 | Kind::U64 | Kind::Sequence | Kind::Nothing => {
            integers_of(extents, bytes, i64::from_le_bytes)
        }
    }
}

/// Integers of `N` bytes each, as many as the extents have, copied once.
fn integers_of<const N: usize>(
    extents: &[usize],
    bytes: &[u8],
    read: impl Fn([u8; N]) -> i64,
) -> Result<Constant, Reason> {
    let values: Arc<[i64]> = bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect();
    Ok(Constant::Integers(Integers::new(extents.to_vec(), values)))
}

/// The elements of a tensor that has them as numbers of a field.
fn of_fields(
    kind: Kind,
    extents: &[usize],
    tensor: &Tensor<'_>,
    budget: &mut Budget,
) -> Result<Constant, Reason> {
    budget.spend(8 * (tensor.floats.len() + tensor.ints.len() + tensor.doubles.len()))?;
    match kind {
        Kind::F32 => floats(extents, tensor.floats.clone()),
        Kind::F64 => floats(extents, tensor.doubles.iter().map(|&value| value as f32).collect()),
        Kind::F16 => {
            floats(extents, tensor.ints.iter().map(|&bits| f16::from_bits(bits as u16).to_f32()).collect())
        }
        Kind::Bf16 => {
            floats(extents, tensor.ints.iter().map(|&bits| bf16::from_bits(bits as u16).to_f32()).collect())
        }
        _ => integers(extents, tensor.ints.iter().map(|&value| kind.wrapped(value)).collect()),
    }
}
