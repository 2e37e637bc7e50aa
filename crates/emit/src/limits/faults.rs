//! Faults that people reported on particular devices and drivers, as rows of one table ([`FAULTS`]), and what follows from them.
//!
//! A row says which devices have the fault, what is avoided there, until which version of the driver if that is known, and
//! where it was reported. What the report does not say the row does not guess: where the cause is not known nothing is
//! avoided, and the row tells people to look (`diptych check`). A device's rows are found when it is opened and are part of its
//! [`Limits`](super::Limits); a kernel that a row avoids does not fit on the device.

mod table;

use super::Family;
use crate::shape::Shape;
use std::fmt;

pub use table::FAULTS;

/// Who a device is.
#[derive(Debug, Clone, Copy)]
pub struct Identified<'a> {
    /// Vendor and architecture.
    pub family: Family,
    /// Its name, as the driver gives it.
    pub name: &'a str,
    /// `Vulkan`, `Metal`, `DX12` or `OpenCL`.
    pub api: &'a str,
    /// The driver's name and version.
    pub driver: &'a str,
}

/// Families of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// All of them.
    Any,
    /// One.
    One(Family),
    /// Adreno of these models.
    Adreno(&'static [u32]),
    /// Adreno of a series: 3 for 300 to 399.
    AdrenoSeries(u32),
    /// Every Mali.
    Mali,
}

/// Which devices a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Devices {
    /// The families of the devices.
    pub families: Families,
    /// A part of the device's name, in lower case; empty for any.
    pub name: &'static str,
    /// The API through which the device is used; empty for any.
    pub api: &'static str,
    /// A part of the driver's name, in lower case; empty for any.
    pub driver: &'static str,
    /// The first version of the driver without the fault; empty where none is known.
    pub until: &'static str,
}

impl Devices {
    /// Every device.
    pub const ANY: Devices = Devices { families: Families::Any, name: "", api: "", driver: "", until: "" };

    /// Whether `device` is one of them.
    pub fn has(&self, device: &Identified<'_>) -> bool {
        let family = match self.families {
            Families::Any => true,
            Families::One(family) => family == device.family,
            Families::Adreno(models) => {
                matches!(device.family, Family::Adreno(model) if models.contains(&model))
            }
            Families::AdrenoSeries(series) => {
                matches!(device.family, Family::Adreno(model) if model / 100 == series)
            }
            Families::Mali => matches!(device.family, Family::Mali(_)),
        };
        family
            && (self.api.is_empty() || self.api == device.api)
            && device.name.to_ascii_lowercase().contains(self.name)
            && device.driver.to_ascii_lowercase().contains(self.driver)
            && (self.until.is_empty() || version(device.driver) < version(self.until))
    }
}

/// The numbers of the first dotted version in a driver's words; none if there is none.
fn version(driver: &str) -> Vec<u32> {
    let words = driver.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let dotted = words.map(|word| word.trim_matches('.')).find(|word| word.contains('.'));
    dotted.into_iter().flat_map(|word| word.split('.')).filter_map(|number| number.parse().ok()).collect()
}

/// What a driver does differently from what its API promises, or what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quirk {
    /// Profiling events can be wrong: wait after each launch that is timed, and when picking drop times over 100 s and times
    /// under a tenth of the average.
    UnreliableEvents,
    /// Wait for every 8th event while many launches are timed: the driver's memory grows otherwise.
    WaitEveryEighthEvent,
    /// Make the kernel anew after tuning: that releases the pool of its trial launches.
    RecreateKernelAfterTuning,
    /// Flush long queues from time to time.
    FlushPeriodically,
    /// One program is compiled at a time, however many threads ask: nothing is compiled ahead.
    CompilesOneAtATime,
    /// Sums of products of four bytes (`dot4I8Packed`) crash the compiler: bytes are unpacked before.
    WrongDotsOfBytes,
    /// Parts of a buffer are released in the reverse order of their making.
    PartsInOrder,
}

/// Kernels that are avoided. An empty list is one of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernels {
    /// The ops whose kernels are avoided.
    pub ops: &'static [&'static str],
    /// The names of the kernels that are avoided.
    pub kernels: &'static [&'static str],
    /// The names of kernels that are not avoided.
    pub but: &'static [&'static str],
    /// The work-groups with which they are avoided.
    pub work_groups: &'static [[u32; 3]],
    /// The fewest and the most output channels, or columns of a product, with which they are avoided.
    pub channels: Option<[usize; 2]>,
    /// The fewest and the most rows of each product, or pixels of each image, with which they are avoided.
    pub rows: Option<[usize; 2]>,
}

impl Kernels {
    /// Every kernel.
    pub const ALL: Kernels =
        Kernels { ops: &[], kernels: &[], but: &[], work_groups: &[], channels: None, rows: None };

    fn has(&self, launch: &Launched<'_>) -> bool {
        let listed = |list: &[&str], name: &str| list.is_empty() || list.contains(&name);
        let within = |range: Option<[usize; 2]>, extent: usize| {
            range.is_none_or(|[from, to]| (from..=to).contains(&extent))
        };
        listed(self.ops, launch.op)
            && listed(self.kernels, launch.kernel)
            && !self.but.contains(&launch.kernel)
            && (self.work_groups.is_empty() || self.work_groups.contains(&launch.work_group))
            && within(self.channels, launch.output.c)
            && within(self.rows, launch.output.h.saturating_mul(launch.output.w))
    }
}

/// A kernel as it would be launched.
#[derive(Debug, Clone, Copy)]
pub struct Launched<'a> {
    /// The op.
    pub op: &'a str,
    /// The kernel.
    pub kernel: &'a str,
    /// Its work-group.
    pub work_group: [u32; 3],
    /// What it writes.
    pub output: Shape,
}

/// What is done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Avoided {
    /// These kernels do not fit.
    Kernels(Kernels),
    /// Loops make no more turns than so many in an invocation.
    Turns(u32),
    /// The code that speaks to the driver minds it.
    Quirk(Quirk),
    /// Nothing: the report does not say what causes it.
    Nothing,
}

/// A fault of some devices.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name.
    pub name: &'static str,
    /// Which devices have it.
    pub on: Devices,
    /// What was seen.
    pub seen: &'static str,
    /// What is done about it.
    pub avoided: Avoided,
    /// What that is, in words.
    pub remedy: &'static str,
    /// Where it was reported.
    pub source: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.name, self.seen, self.remedy)?;
        if !self.on.until.is_empty() {
            write!(f, " before driver {}", self.on.until)?;
        }
        write!(f, " ({})", self.source)
    }
}

/// The rows of the table that are about a device.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults(u64);

impl Faults {
    /// None.
    pub const NONE: Faults = Faults(0);

    /// The faults that are known of a device.
    pub fn of(device: &Identified<'_>) -> Self {
        let rows = FAULTS.iter().zip(0..u64::BITS).filter(|(fault, _)| fault.on.has(device));
        Faults(rows.fold(0, |bits, (_, place)| bits | 1 << place))
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = &'static Fault> {
        FAULTS
            .iter()
            .zip(0..u64::BITS)
            .filter(move |(_, place)| self.0 >> place & 1 == 1)
            .map(|(fault, _)| fault)
    }

    /// Whether the driver has `quirk`.
    pub fn has(self, quirk: Quirk) -> bool {
        self.iter().any(|fault| fault.avoided == Avoided::Quirk(quirk))
    }

    /// Turns of loops at most.
    pub fn turns(self) -> Option<u32> {
        let turns = self.iter().filter_map(|fault| match fault.avoided {
            Avoided::Turns(turns) => Some(turns),
            _ => None,
        });
        turns.min()
    }

    /// Why a kernel is not launched so, if it is not.
    pub fn obstacle(self, launch: &Launched<'_>) -> Option<String> {
        let found = self.iter().find(|fault| match fault.avoided {
            Avoided::Kernels(kernels) => kernels.has(launch),
            _ => false,
        })?;
        Some(format!("known fault of this device: {}: {} ({})", found.name, found.seen, found.source))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|fault| fault.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("Intel Corporation 32.0.101.8991 WHQL"), [32, 0, 101, 8991]);
        assert_eq!(version("Mesa"), [0u32; 0]);
        let on = Devices { until: "32.0.101.8247", driver: "intel", ..Devices::ANY };
        let has = |driver| on.has(&Identified { family: Family::Intel, name: "Arc", api: "Vulkan", driver });
        assert!(has("Intel 32.0.101.8132") && has("Intel 31.9") && has("Intel, of unknown version"));
        assert!(!has("Intel 32.0.101.8247") && !has("Intel 32.0.102.1") && !has("Mesa 22.3"));
    }

    #[test]
    fn a_row_has_a_name_and_a_source_and_all_fit_the_set() {
        assert!(FAULTS.len() <= u64::BITS as usize);
        for (place, fault) in FAULTS.iter().enumerate() {
            assert!(FAULTS.iter().skip(place + 1).all(|other| other.name != fault.name), "{}", fault.name);
            let texts = [fault.name, fault.seen, fault.remedy, fault.source];
            assert!(texts.iter().all(|text| !text.is_empty()), "{fault}");
            for part in [fault.on.name, fault.on.driver] {
                assert_eq!(part, part.to_ascii_lowercase(), "{}", fault.name);
            }
            assert_ne!(fault.on, Devices::ANY, "{}", fault.name);
        }
    }
}
