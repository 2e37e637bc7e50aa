//! `diptych devices`: the devices of both APIs, and the CPU.

use crate::flags::Gpus;
use crate::output::print;
use crate::table::Rows;
use anyhow::{Context as _, Result};
use diptych::internals::tune::db::MachineRow;
use diptych::internals::tune::facts::{self, Measured};
use diptych::internals::tune::key::DeviceKey;
use diptych::{Backend, DeviceInfo, DeviceListing};
use diptych_emit::limits::faults::Fault;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON: a list of objects, each with `device` or `error`.
    #[arg(long)]
    json: bool,

    /// Measure each device for about two seconds, what a launch takes and what it computes, copies and reads of local memory
    /// in a second, and keep the figures in the record: sessions that read it choose untuned kernels by them.
    #[arg(long)]
    measure: bool,

    /// The record: a directory or a file; the platform's cache directory if it is left out.
    #[arg(long, value_name = "DIR|FILE", requires = "measure")]
    db: Option<PathBuf>,

    #[command(flatten)]
    on: Gpus,
}

pub(crate) fn main(arguments: &Arguments) -> Result<()> {
    if arguments.measure {
        return measure(arguments);
    }
    let listings = diptych::devices();
    let text = if arguments.json {
        serde_json::to_string_pretty(&as_json(&listings, threads()))?
    } else {
        as_text(&listings, threads())
    };
    print(text)
}

/// Measures the devices, and adds the figures to the record.
fn measure(arguments: &Arguments) -> Result<()> {
    let (mut database, _) = crate::tune::record(arguments.db.as_deref())?;
    let mut all = Vec::new();
    for context in arguments.on.contexts()? {
        let device = context.device().context("no GPU")?;
        let measured = facts::measure(device)?;
        let key = DeviceKey::of(device.info());
        database.append_machine(MachineRow::measured(key.clone(), measured))?;
        all.push((key, measured));
    }
    print(if arguments.json {
        let rows = all.iter().map(|(key, measured)| json!({ "device": key, "measured": measured }));
        serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?
    } else {
        figures(&all)
    })
}

/// A table of what was measured.
fn figures(all: &[(DeviceKey, Measured)]) -> String {
    let mut table = Rows::new([
        "device",
        "API",
        "launch us",
        "copy GB/s",
        "cached GB/s",
        "local GB/s",
        "f32 GFLOP/s",
        "f16 GFLOP/s",
        "bytes GOP/s",
        "least work-group",
    ])
    .numbers(&[2, 3, 4, 5, 6, 7, 8, 9]);
    let thousands = |millions: u64| format!("{:.1}", millions as f64 / 1e3);
    // A multiply-add is two operations.
    let operations =
        |millions: Option<u64>| millions.map_or_else(|| "-".to_owned(), |count| thousands(2 * count));
    for (key, measured) in all {
        table.add([
            key.gpu.clone(),
            key.api.clone(),
            thousands(measured.launch_ns),
            thousands(measured.copy_mb),
            thousands(measured.cached_mb),
            thousands(measured.local_mb),
            operations(Some(measured.f32_millions)),
            operations(measured.f16_millions),
            operations(measured.i8_millions),
            measured.least_work_group.to_string(),
        ]);
    }
    table.text()
}

fn threads() -> Option<usize> {
    std::thread::available_parallelism().ok().map(Into::into)
}

/// A table of the devices; below it a line for each API that has none, with the reason.
fn as_text(listings: &[DeviceListing], threads: Option<usize>) -> String {
    let mut table = Rows::new([
        "backend",
        "device",
        "API and driver",
        "PCI address",
        "work-group",
        "local KiB",
        "units",
        "family and features",
    ]);
    table = table.numbers(&[4, 5]);
    let mut missing = Vec::new();
    for (backend, found) in by_backend(listings) {
        match found {
            Ok(devices) => {
                devices.iter().for_each(|info| table.add(row(backend, info)));
            }
            Err(reason) => missing.push(format!("{backend}: {reason}")),
        }
    }
    let units = threads.map_or_else(|| "?".to_owned(), |threads| format!("{threads} threads"));
    let cpu = Backend::Cpu.to_string();
    table.add([&cpu, "CPU", "-", "-", "-", "-", &units, "-"].map(str::to_owned));
    let mut text = table.text();
    for line in missing.into_iter().chain(faults(listings)) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// A line for each fault that people reported of a device, once for all APIs that have it.
fn faults(listings: &[DeviceListing]) -> Vec<String> {
    let mut lines = Vec::new();
    for info in by_backend(listings).into_iter().filter_map(|(_, found)| found.ok()).flatten() {
        for fault in info.limits.faults.iter() {
            let line = format!("known fault of {} ({}): {fault}", info.name, info.api);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// The devices of each GPU backend, or why it has none.
fn by_backend(listings: &[DeviceListing]) -> Vec<(Backend, Result<&[DeviceInfo], String>)> {
    let find = |backend| {
        let listing = listings.iter().find(|listing| listing.backend == backend);
        let found = match listing.map(|listing| &listing.devices) {
            Some(Ok(devices)) if devices.is_empty() => Err("no device".to_owned()),
            Some(Ok(devices)) => Ok(&devices[..]),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(format!("the program was built without feature `{backend}`")),
        };
        (backend, found)
    };
    vec![find(Backend::Wgpu), find(Backend::OpenCl)]
}

fn row(backend: Backend, info: &DeviceInfo) -> [String; 8] {
    let limits = &info.limits;
    let mut features = vec![limits.family.to_string()];
    features.extend(limits.native_half.then(|| "f16".to_owned()));
    features.extend(info.timestamps.then(|| "timestamps".to_owned()));
    [
        backend.to_string(),
        info.name.clone(),
        format!("{}, {}", info.api, info.driver),
        info.pci.map_or_else(|| "-".to_owned(), |address| address.to_string()),
        limits.max_invocations.to_string(),
        (limits.local_memory / 1024).to_string(),
        limits.compute_units.map_or_else(|| "?".to_owned(), |units| units.to_string()),
        features.join(", "),
    ]
}

/// Each device with its backend, then the CPU; a backend without devices has an `error` instead.
fn as_json(listings: &[DeviceListing], threads: Option<usize>) -> Value {
    let mut entries = Vec::new();
    for (backend, found) in by_backend(listings) {
        let backend = backend.to_string();
        match found {
            Ok(devices) => {
                let devices = devices.iter();
                entries.extend(devices.map(|info| json!({ "backend": backend, "device": device(info) })));
            }
            Err(reason) => entries.push(json!({ "backend": backend, "error": reason })),
        }
    }
    let cpu = json!({ "name": "CPU", "threads": threads });
    entries.push(json!({ "backend": Backend::Cpu.to_string(), "device": cpu }));
    Value::Array(entries)
}

pub(crate) fn device(info: &DeviceInfo) -> Value {
    let limits = &info.limits;
    json!({
        "api": info.api,
        "name": info.name,
        "driver": info.driver,
        "pci": info.pci.map(|address| address.to_string()),
        "uuid": info.uuid.map(|uuid| uuid.to_string()),
        "family": limits.family.to_string(),
        "is_cpu": info.is_cpu,
        "max_work_group_invocations": limits.max_invocations,
        "max_work_group": limits.max_work_group,
        "local_memory_bytes": limits.local_memory,
        "max_buffer_binding_bytes": limits.max_binding,
        "max_image": limits.max_image,
        "compute_units": limits.compute_units,
        "native_f16": limits.native_half,
        "timestamps": info.timestamps,
        "known_faults": limits.faults.iter().map(fault).collect::<Vec<_>>(),
    })
}

fn fault(fault: &Fault) -> Value {
    json!({ "name": fault.name, "seen": fault.seen, "remedy": fault.remedy, "source": fault.source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Error, Limits};
    use diptych_emit::limits::faults::{Faults, Identified};

    fn listings() -> Vec<DeviceListing> {
        let mut limits = Limits::webgpu();
        limits.compute_units = Some(12);
        limits.native_half = true;
        let info = DeviceInfo {
            api: "Vulkan",
            name: "Some GPU".to_owned(),
            driver: "driver 1.2".to_owned(),
            pci: "41:00.0".parse().ok(),
            uuid: None,
            limits,
            is_cpu: false,
            timestamps: true,
        };
        vec![
            DeviceListing { backend: Backend::Wgpu, devices: Ok(vec![info]) },
            DeviceListing { backend: Backend::OpenCl, devices: Err(no_library()) },
        ]
    }

    fn no_library() -> Error {
        Error::OpenClLibrary { tried: vec!["libOpenCL.so.1: not found".to_owned()] }
    }

    fn missing() -> String {
        no_library().to_string()
    }

    #[test]
    fn the_table_has_every_device_the_cpu_and_each_missing_api() {
        let text = as_text(&listings(), Some(8));
        for words in [
            "Vulkan",
            "Some GPU",
            "driver 1.2",
            "0000:41:00.0",
            "256",
            "16",
            "12",
            ", f16, timestamps",
            "8 threads",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        let last = text.lines().last().expect("a line");
        assert_eq!(last, format!("opencl: {}", missing()));
    }

    #[test]
    fn no_device_and_no_feature_are_reported() {
        let text = as_text(&[DeviceListing { backend: Backend::Wgpu, devices: Ok(Vec::new()) }], None);
        assert!(
            text.ends_with("wgpu: no device\nopencl: the program was built without feature `opencl`"),
            "{text}"
        );
    }

    #[test]
    fn known_faults_are_listed_with_their_source() {
        let mut listings = listings();
        let Ok(devices) = &mut listings[0].devices else { panic!("no devices") };
        let (name, driver) = ("Adreno (TM) 840", "Qualcomm Technologies Inc. Adreno Vulkan Driver 512.842");
        let family = diptych::Family::Adreno(840);
        devices[0].limits.faults = Faults::of(&Identified { family, name, api: "Vulkan", driver });
        let text = as_text(&listings, None);
        for words in ["known fault of Some GPU (Vulkan): Adreno 840's products", "#22327", "8 x 8"] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        let value = as_json(&listings, None);
        let faults = value[0]["device"]["known_faults"].as_array().expect("a list");
        assert!(faults.iter().any(|fault| fault["source"] == "pytorch/executorch #21938"), "{faults:?}");
        assert_eq!(as_json(&self::listings(), None)[0]["device"]["known_faults"], json!([]));
    }

    #[test]
    fn json_has_the_same_facts() {
        let value = as_json(&listings(), Some(8));
        assert_eq!(value[0]["device"]["name"], "Some GPU");
        assert_eq!(value[0]["device"]["compute_units"], 12);
        assert_eq!(value[0]["device"]["pci"], "0000:41:00.0");
        assert_eq!(value[0]["device"]["uuid"], Value::Null);
        assert_eq!(value[0]["device"]["native_f16"], true);
        assert_eq!(value[1]["error"], missing());
        assert_eq!((&value[2]["backend"], &value[2]["device"]["threads"]), (&json!("cpu"), &json!(8)));
    }
}
