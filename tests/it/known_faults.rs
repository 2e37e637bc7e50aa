//! Each row of the table of known faults, with a device that has it: what it keeps from that device, and from no other.

use diptych::internals::tune::work_group::{WorkGroup, untuned_in};
use diptych::{Family, Layout, Limits, MaliArchitecture, Precision};
use diptych_emit::limits::faults::{Avoided, FAULTS, Fault, Faults, Identified, Quirk};
use diptych_kernels::ops::{self, Op};

/// Family, name, API and driver.
type Device = (Family, &'static str, &'static str, &'static str);

/// Of each row a device that has the fault, and one that comes near it and has it not.
const DEVICES: &[(&str, [Device; 2])] = &[
    (
        "Adreno 840's products by work-group",
        [
            (Family::Adreno(840), "Adreno (TM) 840", "Vulkan", QUALCOMM),
            (Family::Adreno(840), "Turnip Adreno (TM) 840", "Vulkan", "turnip Mesa driver Mesa 26.2.0"),
        ],
    ),
    (
        "Adreno's convolutions to 168 to 192 channels",
        [
            (Family::Adreno(840), "Adreno (TM) 840", "Vulkan", QUALCOMM),
            (Family::Adreno(740), "Adreno (TM) 740", "Vulkan", QUALCOMM),
        ],
    ),
    (
        "Adreno's power states",
        [
            (Family::Adreno(840), "Adreno (TM) 840", "Vulkan", QUALCOMM),
            (
                Family::Adreno(840),
                "QUALCOMM Adreno(TM) OpenCL C 3.0 Adreno(TM) 840",
                "OpenCL",
                "QUALCOMM Snapdragon(TM)",
            ),
        ],
    ),
    (
        "Adreno 830's convolutions with strides",
        [
            (Family::Adreno(830), "Adreno (TM) 830", "Vulkan", QUALCOMM),
            (Family::Adreno(730), "Adreno (TM) 730", "Vulkan", QUALCOMM),
        ],
    ),
    (
        "Adreno 702's products of few rows",
        [
            (
                Family::Adreno(702),
                "Turnip Adreno (TM) 702",
                "Vulkan",
                "turnip Mesa driver Mesa 26.2.99-devel",
            ),
            (Family::Adreno(702), "Adreno (TM) 702", "Vulkan", QUALCOMM),
        ],
    ),
    (
        "Adreno 7xx's sums of products of bytes",
        [
            (Family::Adreno(750), "Turnip Adreno (TM) 750", "Vulkan", "turnip Mesa driver Mesa 25.0.7"),
            (Family::Adreno(750), "Adreno (TM) 750", "Vulkan", QUALCOMM),
        ],
    ),
    (
        "Mali-G720",
        [
            (Family::Mali(MaliArchitecture::Unknown), "Mali-G720 MC8", "Vulkan", "Mali-G720 v1.r49p1"),
            (Family::Mali(MaliArchitecture::Bifrost), "Mali-G72", "Vulkan", "Mali-G72 v1.r26p0"),
        ],
    ),
    (
        "Intel Arc 140V on Windows",
        [
            (Family::Intel, "Intel(R) Arc(TM) 140V GPU (16GB)", "Vulkan", "Intel Corporation 32.0.101.8991"),
            (Family::Intel, "Intel(R) Arc(TM) A770 Graphics", "Vulkan", "Intel Corporation 32.0.101.8991"),
        ],
    ),
    (
        "Radeon RX 6900 XT through MoltenVK",
        [
            (Family::Amd, "AMD Radeon RX 6900 XT", "Vulkan", "MoltenVK 1.2.12"),
            (Family::Amd, "AMD Radeon RX 6900 XT (RADV NAVI21)", "Vulkan", "radv Mesa 25.0.7"),
        ],
    ),
    (
        "Metal",
        [
            (Family::Apple, "Apple M2", "Metal", ""),
            (Family::Apple, "Apple M2", "Vulkan", "Honeykrisp Mesa 25.0.7"),
        ],
    ),
    (
        "llvmpipe's turns of loops",
        [
            (
                Family::CpuDriver,
                "llvmpipe (LLVM 15.0.6, 256 bits)",
                "Vulkan",
                "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)",
            ),
            (Family::CpuDriver, "SwiftShader Device (LLVM 10.0.0)", "Vulkan", "SwiftShader driver 5.0.0"),
        ],
    ),
    ("NVIDIA's parts of buffers", NVIDIA),
    ("NVIDIA's compiler of OpenCL", NVIDIA),
    (
        "Adreno 3xx's events",
        [
            (Family::Adreno(330), "QUALCOMM Adreno(TM) 330", "OpenCL", "QUALCOMM"),
            (Family::Adreno(430), "QUALCOMM Adreno(TM) 430", "OpenCL", "QUALCOMM"),
        ],
    ),
    ("Mali's events", MALI),
    ("Mali's trial launches", MALI),
    ("Mali's queues", MALI),
];

const QUALCOMM: &str = "Qualcomm Technologies Inc. Adreno Vulkan Driver Driver Build: 512.842.19";
const NVIDIA: [Device; 2] = [
    (Family::Nvidia, "NVIDIA H200", "OpenCL", "NVIDIA CUDA 580.159"),
    (Family::Nvidia, "NVIDIA H200", "Vulkan", "NVIDIA 580.159"),
];
const MALI: [Device; 2] = [
    (Family::Mali(MaliArchitecture::Valhall), "Mali-G78", "OpenCL", "ARM Platform 3.0"),
    (Family::PowerVr, "PowerVR B-Series BXM-8-256", "OpenCL", "PowerVR"),
];

fn faults((family, name, api, driver): Device) -> Faults {
    Faults::of(&Identified { family, name, api, driver })
}

fn devices_of(fault: &Fault) -> [Device; 2] {
    let found = DEVICES.iter().find(|(name, _)| *name == fault.name);
    found.unwrap_or_else(|| panic!("no device for {:?}", fault.name)).1
}

fn limits(device: Device) -> Limits {
    let base = if device.2 == "OpenCL" { Limits::opencl() } else { Limits::webgpu() };
    let faults = faults(device);
    Limits { family: device.0, max_turns: faults.turns(), faults, ..base }
}

fn examples(precision: Precision) -> Vec<Box<dyn Op>> {
    let each = ops::all().iter().map(|entry| (entry.examples)(precision).expect("valid examples"));
    each.flatten().collect()
}

/// The op with such extents: rows, columns or channels, and terms of a sum.
fn product(op: &str, extents: &[usize]) -> std::sync::Arc<dyn Op> {
    let entry = ops::all().iter().find(|entry| entry.name == op).expect("an op");
    (entry.numbers.op)(extents, None, Precision::F32).expect("valid extents")
}

/// What an untuned session would run, and every kernel and tile with many work-groups that fit.
fn usable(op: &dyn Op, limits: &Limits) -> (diptych::Choice, Vec<diptych::Choice>) {
    let layouts = [Layout::C4, Layout::Nhwc];
    let mut untuned =
        layouts.into_iter().filter_map(|layout| untuned_in(op, WorkGroup::Table, layout, limits).ok());
    let mut fitting = Vec::new();
    for (kernel, tile) in op.kernels().space(limits) {
        for work_group in [[8, 8, 1], [4, 16, 1], [16, 4, 1], [64, 1, 1], [32, 2, 1], [8, 4, 1], [16, 16, 1]]
        {
            fitting.push(kernel.choice(tile, work_group));
        }
        fitting
            .extend(kernel.work_groups(tile).into_iter().map(|work_group| kernel.choice(tile, work_group)));
    }
    fitting.retain(|choice| op.fits(choice, limits).is_ok());
    (untuned.next().expect("an untuned choice"), fitting)
}

#[test]
fn each_row_is_about_its_device_and_not_about_one_like_it() {
    for fault in FAULTS {
        let [there, elsewhere] = devices_of(fault);
        let has = |device| faults(device).iter().any(|found| found.name == fault.name);
        assert!(has(there), "{} on {there:?}", fault.name);
        assert!(!has(elsewhere), "{} on {elsewhere:?}", fault.name);
        match fault.avoided {
            Avoided::Quirk(quirk) => {
                assert!(faults(there).has(quirk) && !faults(elsewhere).has(quirk), "{}", fault.name);
            }
            Avoided::Turns(turns) => {
                assert_eq!((faults(there).turns(), faults(elsewhere).turns()), (Some(turns), None));
            }
            _ => {}
        }
        let text = fault.to_string();
        assert!(text.contains(fault.source) && text.contains(fault.remedy), "{text}");
    }
    assert_eq!(DEVICES.len(), FAULTS.len());
    assert!(faults((Family::Nvidia, "NVIDIA H200", "Vulkan", "NVIDIA 580.159")).is_empty());
}

#[test]
fn every_op_still_has_a_kernel_on_devices_with_faults() {
    for fault in FAULTS {
        let limits = limits(devices_of(fault)[0]);
        let plain = Limits { faults: Faults::NONE, ..limits.clone() };
        // Networks have a nest before an op only where the kernel that they choose for the op takes it.
        for op in examples(Precision::F32).into_iter().filter(|op| !op.problem_key().contains(" from ")) {
            for layout in [Layout::C4, Layout::Nhwc] {
                let on = |limits| untuned_in(&*op, WorkGroup::Table, layout, limits);
                let Ok(before) = on(&plain) else { continue };
                let now = on(&limits)
                    .unwrap_or_else(|error| panic!("{} {}: {error}", fault.name, op.problem_key()));
                op.plan(&now, &limits).unwrap_or_else(|error| panic!("{}: {before}: {error}", fault.name));
            }
        }
    }
}

#[test]
fn an_adreno_840_takes_no_product_with_the_work_groups_that_were_wrong() {
    let bad = [[8, 8, 1], [4, 16, 1]];
    let [there, elsewhere] = DEVICES[0].1.map(limits);
    let ops = [
        product("gemm", &[1500, 384, 384]),
        product("pointwise", &[1, 40, 40, 96, 64]),
        product("conv2d", &[1, 20, 20, 32, 64, 3, 3, 1]),
    ];
    let mut avoided = 0;
    for op in &ops {
        let (untuned, fitting) = usable(&**op, &there);
        assert!(!bad.contains(&untuned.work_group), "{} {untuned}", op.name());
        assert!(fitting.iter().all(|choice| !bad.contains(&choice.work_group)), "{}", op.name());
        let (_, everywhere) = usable(&**op, &elsewhere);
        for choice in everywhere.iter().filter(|choice| bad.contains(&choice.work_group)) {
            avoided += 1;
            let reason = op.fits(choice, &there).expect_err("known to be wrong").to_string();
            for words in ["Adreno 840", "pytorch/executorch #22327", "7 and 10 of 60 runs"] {
                assert!(reason.contains(words), "no {words:?} in {reason}");
            }
        }
    }
    assert!(avoided > 10, "{avoided}");
}

#[test]
fn an_adreno_convolves_to_168_to_192_channels_by_the_direct_kernel() {
    let [there, elsewhere] = DEVICES[1].1.map(limits);
    for (channels, direct) in [(160, false), (168, true), (184, true), (192, true), (200, false)] {
        let op = product("conv2d", &[1, 64, 64, 48, channels, 3, 3, 1]);
        let (untuned, fitting) = usable(&*op, &there);
        let all_direct = fitting.iter().all(|choice| choice.variant == "direct");
        assert_eq!(all_direct, direct, "{channels}: {untuned}");
        assert!(!direct || untuned.variant == "direct", "{channels}: {untuned}");
        let (_, everywhere) = usable(&*op, &elsewhere);
        assert!(everywhere.iter().any(|choice| choice.variant != "direct"), "{channels}");
    }
}

#[test]
fn an_adreno_702_shares_no_sum_of_a_product_of_few_rows() {
    let [there, elsewhere] = DEVICES[4].1.map(limits);
    let shared = |choices: &[diptych::Choice]| {
        choices.iter().filter(|choice| ["thin", "split", "subgroup", "row"].contains(&choice.variant)).count()
    };
    for rows in [1, 8] {
        let op = product("gemm", &[rows, 512, 512]);
        let (untuned, fitting) = usable(&*op, &there);
        assert_eq!(shared(&fitting) + shared(&[untuned]), 0, "{rows}: {untuned}");
        assert!(shared(&usable(&*op, &elsewhere).1) > 0, "{rows}");
    }
    let op = product("gemm", &[9, 512, 512]);
    assert_eq!(shared(&usable(&*op, &there).1), shared(&usable(&*op, &elsewhere).1), "nine rows were right");
}

#[test]
fn quirks_that_drivers_have_are_those_of_the_table() {
    let quirks = |device| {
        [
            Quirk::UnreliableEvents,
            Quirk::WaitEveryEighthEvent,
            Quirk::RecreateKernelAfterTuning,
            Quirk::FlushPeriodically,
            Quirk::CompilesOneAtATime,
            Quirk::PartsInOrder,
            Quirk::WrongDotsOfBytes,
        ]
        .map(|quirk| faults(device).has(quirk))
    };
    assert_eq!(quirks(MALI[0]), [false, true, true, true, false, false, false]);
    assert_eq!(quirks(NVIDIA[0]), [false, false, false, false, true, true, false]);
    assert_eq!(quirks(NVIDIA[1]), [false; 7]);
}
