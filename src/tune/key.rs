//! What a measured choice depends on: change any part of its [`Key`] and it must be measured anew.

use crate::device::DeviceInfo;
use crate::emit::Dialect;
use crate::layout::Layout;
use crate::limits::{Family, Limits};
use crate::ops::{self, Choice, Op};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The version of the way candidates are checked and timed. Rows of another version are retired.
pub const TUNER_VERSION: u32 = 1;

/// Stands for every GPU, driver or API in the rows of a family table.
const ANY: &str = "*";

/// A device under one API and driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceKey {
    /// The GPU's name as the driver gives it; `*` in a family table.
    pub gpu: String,
    /// Its family, as [`Family`] prints: `NVIDIA`, `Adreno 630`, `Mali Bifrost`. Made from the
    /// vendor's id where the API reports it.
    pub family: String,
    /// The driver's name and version; `*` in a family table.
    pub driver: String,
    /// `Vulkan`, `Metal`, `DX12` or `OpenCL`.
    pub api: String,
}

impl DeviceKey {
    /// The key of an open device.
    pub fn of(info: &DeviceInfo) -> Self {
        DeviceKey {
            gpu: info.name.clone(),
            family: info.limits.family.to_string(),
            driver: info.driver.clone(),
            api: info.api.to_owned(),
        }
    }

    /// The key of a table for every device of `family` under `api`.
    pub fn of_family(family: impl Into<String>, api: impl Into<String>) -> Self {
        DeviceKey { gpu: ANY.to_owned(), family: family.into(), driver: ANY.to_owned(), api: api.into() }
    }

    /// Whether this is the key of a family table.
    pub fn is_family(&self) -> bool {
        self.gpu == ANY
    }

    /// How closely a family table fits this device: 0 for its very family, 1 for its vendor
    /// (`Adreno` for `Adreno 630`).
    pub(super) fn family_rank(&self, table: &DeviceKey) -> Option<u32> {
        if !table.is_family() || self.family == Family::Unknown.to_string() {
            return None;
        }
        if table.family == self.family {
            return Some(0);
        }
        let vendor = matches!(self.family.split_once(' '), Some((vendor, _)) if vendor == table.family);
        vendor.then_some(1)
    }

    /// Whether both keys name the same GPU, perhaps under different APIs and drivers.
    ///
    /// Names are compared without what drivers add to them: brackets, vendors, revisions. CPU
    /// drivers are never the same GPU as anything: each compiles kernels in its own way.
    pub fn same_gpu(&self, other: &DeviceKey) -> bool {
        let words = model(&self.gpu);
        self.family == other.family
            && self.family != Family::CpuDriver.to_string()
            && !self.is_family()
            && !other.is_family()
            && !words.is_empty()
            && words == model(&other.gpu)
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_family() {
            return write!(f, "any {} ({})", self.family, self.api);
        }
        write!(f, "{} ({}, {})", self.gpu, self.api, self.driver)
    }
}

/// Words that name a GPU's maker or a driver, not the GPU.
const NOT_A_MODEL: [&str; 9] =
    ["nvidia", "amd", "intel", "qualcomm", "arm", "corporation", "turnip", "tm", "r"];

/// The words of a GPU's name that identify the model: lower case, without brackets, vendors and
/// revisions such as `r0p0`. `QUALCOMM Adreno(TM) 630` and `Turnip Adreno (TM) 630` are both
/// `adreno 630`.
fn model(name: &str) -> Vec<String> {
    let mut depth = 0u32;
    let plain: String = name
        .chars()
        .map(|letter| {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ if depth == 0 => return letter.to_ascii_lowercase(),
                _ => {}
            }
            ' '
        })
        .collect();
    let revision = |word: &str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let parts = word.strip_prefix('r').and_then(|rest| rest.split_once('p'));
        parts.is_some_and(|(major, minor)| digits(major) && digits(minor))
    };
    plain
        .split(|letter: char| !letter.is_alphanumeric() && letter != '.')
        .filter(|word| !word.is_empty() && !NOT_A_MODEL.contains(word) && !revision(word))
        .map(str::to_owned)
        .collect()
}

/// A problem: an op with its extents.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProblemKey {
    /// The op's name.
    pub op: String,
    /// The rest, in the words of [`Op::problem_key`].
    pub shape: String,
    /// Storage and arithmetic, as [`crate::Precision`] prints.
    pub precision: String,
    /// The layout of the feature maps, as [`Layout`] prints.
    pub layout: String,
}

impl ProblemKey {
    /// The key of `op`, whose feature maps lie in `layout` (matrices: [`Layout::Nhwc`]).
    pub fn of(op: &dyn Op, layout: Layout) -> Self {
        ProblemKey {
            op: op.name().to_owned(),
            shape: op.problem_key(),
            precision: op.precision().to_string(),
            layout: layout.to_string(),
        }
    }

    /// The key of `op` with its feature maps in `layout`, as a [`crate::Choice`] names it: C4 for an op
    /// that has none.
    pub fn in_layout(op: &dyn Op, layout: Layout) -> Self {
        ProblemKey::of(op, if layout == Layout::C4 { op.record_layout() } else { layout })
    }

    /// How far two problems are apart that differ in nothing but extents and padding:
    /// `sum over extents e of |log2(e / e')|`.
    ///
    /// Twice the width is as far as half the width, and as far as twice the channels. `None` for
    /// another op, precision, layout, kernel, stride, dilation, grouping, transpose or epilogue:
    /// other kernels run those. Padding does not count, for it changes the borders only.
    pub fn distance(&self, other: &ProblemKey) -> Option<f64> {
        if (&self.op, &self.precision, &self.layout) != (&other.op, &other.precision, &other.layout) {
            return None;
        }
        let mut sum = 0.0;
        let (mut ours, mut theirs) = (words(&self.shape), words(&other.shape));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Some(sum),
                (Some(Word::Extent(name, ours)), Some(Word::Extent(other, theirs))) if name == other => {
                    sum += (f64::from(ours).log2() - f64::from(theirs).log2()).abs();
                }
                (Some(Word::Other(ours)), Some(Word::Other(theirs))) if ours == theirs => {}
                _ => return None,
            }
        }
    }
}

impl fmt::Display for ProblemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.op, self.shape, self.precision, self.layout)
    }
}

enum Word<'a> {
    Extent(&'a str, u32),
    Other(&'a str),
}

/// The words of a problem's text, padding left out.
fn words(shape: &str) -> impl Iterator<Item = Word<'_>> {
    shape.split_whitespace().filter(|word| !word.starts_with("pad")).map(|word| {
        let digits = word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len());
        let (name, number) = word.split_at(digits);
        match number.parse::<u32>() {
            Ok(extent) if extent > 0 && ops::EXTENTS.contains(&name) => Word::Extent(name, extent),
            _ => Word::Other(word),
        }
    })
}

/// A [`Choice`] as it is written down: its variant may be unknown to this version of the crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChoiceKey {
    /// The kernel variant.
    pub variant: String,
    /// Outputs per invocation.
    pub tile: [u32; 3],
    /// Invocations per work-group.
    pub work_group: [u32; 3],
    /// The layout of the feature maps, as [`Layout`] prints; rows without it are of buffers.
    #[serde(default = "buffers", skip_serializing_if = "are_buffers")]
    pub layout: String,
}

/// What [`ChoiceKey::layout`] is for feature maps in buffers.
fn buffers() -> String {
    Layout::C4.to_string()
}

fn are_buffers(layout: &str) -> bool {
    layout == buffers()
}

impl ChoiceKey {
    /// The choice, if `op` has such a variant and its feature maps may have the layout.
    pub fn resolve(&self, op: &str) -> Option<Choice> {
        let entry = ops::all().iter().find(|entry| entry.name == op)?;
        let variant = entry.variants().into_iter().find(|variant| variant.name == self.variant)?;
        let layout = [Layout::C4, Layout::Image2d, Layout::Nhwc]
            .into_iter()
            .find(|it| it.to_string() == self.layout)?;
        Some(Choice::new(variant.name, self.tile, self.work_group).with_layout(layout))
    }
}

impl From<Choice> for ChoiceKey {
    fn from(choice: Choice) -> Self {
        ChoiceKey {
            variant: choice.variant.to_owned(),
            tile: choice.tile,
            work_group: choice.work_group,
            layout: choice.layout.to_string(),
        }
    }
}

impl fmt::Display for ChoiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tx, ty, tz] = self.tile;
        let [x, y, z] = self.work_group;
        let images = if are_buffers(&self.layout) { String::new() } else { format!(" {}", self.layout) };
        write!(f, "{}{images} tile {tx}x{ty}x{tz} work-group ({x},{y},{z})", self.variant)
    }
}

/// The first 16 bytes of the BLAKE3 hash of a kernel's rendered text, written in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceHash([u8; 16]);

impl SourceHash {
    /// The hash of `text` ([`crate::emit::KernelSource::text`]).
    pub fn of(text: &str) -> Self {
        let mut first = [0; 16];
        blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut first);
        SourceHash(first)
    }

    /// The hash of the kernel that runs `choice` of `op` on a device with these limits. The texts
    /// hold no extents: problems that differ in nothing else ([`ProblemKey::distance`]) have the
    /// same hash.
    ///
    /// # Errors
    /// If the choice does not fit.
    pub fn of_kernel(op: &dyn Op, choice: &Choice, limits: &Limits) -> crate::Result<Self> {
        let written = op.plan(choice, limits)?.spec.render_written(limits.dialect)?;
        Ok(match limits.dialect {
            Dialect::Wgsl => Self::of(&written.text),
            Dialect::OpenClC => Self::of(&written.without_work_group()),
        })
    }
}

impl fmt::Display for SourceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for SourceHash {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(bits) if digits => Ok(SourceHash(bits.to_be_bytes())),
            _ => Err(crate::Error::input("source hash", format!("{text:?}"), "32 hexadecimal digits")),
        }
    }
}

impl Serialize for SourceHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SourceHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Everything that a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Where it was measured.
    pub device: DeviceKey,
    /// What was computed.
    pub problem: ProblemKey,
    /// How.
    pub choice: ChoiceKey,
    /// The hash of the kernel's text; none for a candidate that was refused before it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceHash>,
    /// [`TUNER_VERSION`] of the tuner.
    pub tuner: u32,
}

impl Key {
    /// A key of this version of the tuner.
    pub fn new(device: &DeviceKey, problem: &ProblemKey, choice: Choice, source: Option<SourceHash>) -> Self {
        Key {
            device: device.clone(),
            problem: problem.clone(),
            choice: choice.into(),
            source,
            tuner: TUNER_VERSION,
        }
    }
}

#[cfg(test)]
mod tests;
