//! What naga's writers make of every text: MSL, HLSL and SPIR-V, as wgpu has them written for Metal, DX12 and Vulkan; and
//! whether the texts keep the limits of these.

use super::{plan, walk_within};
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::emit::check::parse;
use crate::limits::{Limits, MatrixUnit};
use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy, Layouter};
use naga::valid::ModuleInfo;
use naga::{AddressSpace, Module, ShaderStage};
use std::collections::BTreeSet;

/// What every device has that wgpu opens through Metal or DX12, as far as kernels ask: 1024 invocations and 32 KiB.
fn limits() -> Limits {
    Limits {
        max_invocations: 1024,
        max_work_group: [1024, 1024, 64],
        local_memory: 32 << 10,
        native_half: true,
        subgroup: Some([4, 128]),
        ..Limits::webgpu()
    }
}

/// Buffers that a kernel may be given beside its uniform: the least that WebGPU promises, and all that DX12 has for
/// what is written on its first tier of hardware.
const BUFFERS: usize = 8;

/// The ops' kernels are compiled without checks.
const UNCHECKED: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Unchecked,
    buffer: BoundsCheckPolicy::Unchecked,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

fn to_msl(module: &Module, info: &ModuleInfo, entry: &str) -> Result<usize, String> {
    let options = msl::Options {
        lang_version: (3, 0),
        bounds_check_policies: UNCHECKED,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Default::default()
    };
    let entry_point = Some((ShaderStage::Compute, entry.to_owned()));
    let pipeline = msl::PipelineOptions { entry_point, ..Default::default() };
    let written = msl::write_string(module, info, &options, &pipeline);
    let (text, info) = written.map_err(|error| error.to_string())?;
    for name in info.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text.len())
}

fn to_hlsl(module: &Module, info: &ModuleInfo, entry: &str) -> Result<usize, String> {
    let options = hlsl::Options {
        // The first with halves of 16 bits.
        shader_model: hlsl::ShaderModel::V6_2,
        fake_missing_bindings: true,
        restrict_indexing: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        ..Default::default()
    };
    let pipeline = hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, entry.to_owned())) };
    let mut text = String::new();
    let written = hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None);
    for name in written.map_err(|error| error.to_string())?.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text.len())
}

fn to_spirv(module: &Module, info: &ModuleInfo, entry: &str) -> Result<usize, String> {
    let options =
        spv::Options { lang_version: (1, 3), bounds_check_policies: UNCHECKED, ..Default::default() };
    let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: entry.to_owned() };
    let words = spv::write_vec(module, info, &options, Some(&pipeline));
    words.map(|words| words.len()).map_err(|error| error.to_string())
}

/// The first thing in which a text is beyond the limits; `None` if it is within them.
fn excess(module: &Module, work_group: [u32; 3], limits: &Limits) -> Option<String> {
    let invocations: u32 = work_group.iter().product();
    if invocations > limits.max_invocations {
        return Some(format!("{invocations} invocations"));
    }
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx()).expect("its types have layouts");
    let (mut bytes, mut buffers) = (0, 0);
    for (_, global) in module.global_variables.iter() {
        match global.space {
            AddressSpace::WorkGroup => bytes += layouter[global.ty].to_stride(),
            AddressSpace::Storage { .. } => buffers += 1,
            _ => {}
        }
    }
    if bytes > limits.local_memory {
        return Some(format!("{bytes} bytes of local memory"));
    }
    (buffers > BUFFERS).then(|| format!("{buffers} buffers"))
}

/// With `DIPTYCH_CONFORMANCE=full` in every work-group, and every tile in every precision.
#[test]
fn every_text_is_written_for_metal_dx12_and_vulkan_within_their_limits() {
    type Write = fn(&Module, &ModuleInfo, &str) -> Result<usize, String>;
    const WRITERS: [(&str, Write); 3] = [("MSL", to_msl), ("HLSL", to_hlsl), ("SPIR-V", to_spirv)];
    let full = std::env::var("DIPTYCH_CONFORMANCE").is_ok_and(|value| value == "full");
    let limits = limits();
    let mut failures = Vec::new();
    for precision in [Precision::F32, Precision::F16Storage, Precision::F16] {
        let (mut texts, mut seen) = (0, BTreeSet::new());
        walk_within(&limits, precision, |entry, op, choice| {
            let spec = plan(op, &choice, &limits).expect("a plan").spec;
            let tile = if precision == Precision::F32 { choice.tile } else { [0; 3] };
            if !seen.insert((entry.name, choice.variant, tile, spec.epilogue.label())) && !full {
                return;
            }
            texts += 1;
            let source = spec.render(Dialect::Wgsl).expect("a text");
            let (module, info) = parse(&source.label, &source.text).expect("naga accepts it");
            let mut fail =
                |what: &str, why: String| failures.push(format!("{}: {what}: {why}", source.label));
            if let Some(excess) = excess(&module, source.work_group, &limits) {
                fail("limits", excess);
            }
            for (language, write) in WRITERS {
                match write(&module, &info, &source.entry) {
                    Ok(0) => fail(language, "nothing was written".to_owned()),
                    Ok(_) => {}
                    Err(error) => fail(language, error),
                }
            }
        });
        assert!(texts > 100, "{precision}: only {texts} texts");
    }
    assert!(failures.is_empty(), "{} failures, the first:\n{}", failures.len(), failures[0]);
}

/// Each text with matrices that a wave shares is written as SPIR-V, in every tile: naga's writer panics at an expression that it has not
/// written before such a matrix is loaded or stored.
#[test]
fn every_text_with_cooperative_matrices_is_written_for_vulkan() {
    let unit = Some(MatrixUnit::Cooperative { subgroup: 32 });
    let limits = Limits { native_half: true, matrix_unit: unit, local_memory: 49152, ..limits() };
    for precision in [Precision::F16Storage, Precision::SplitF16] {
        let (mut texts, mut seen) = (0, BTreeSet::new());
        walk_within(&limits, precision, |_, op, choice| {
            let spec = plan(op, &choice, &limits).expect("a plan").spec;
            if !spec.template.is_some_and(|own| own.text.contains("enable wgpu_cooperative_matrix")) {
                return;
            }
            if seen.insert((spec.op, choice.variant, choice.tile, spec.epilogue.label())) {
                texts += 1;
                let source = spec.render(Dialect::Wgsl).expect("a text");
                let (module, info) = parse(&source.label, &source.text).expect("naga accepts it");
                let written = to_spirv(&module, &info, &source.entry);
                assert!(written.as_ref().is_ok_and(|&words| words > 0), "{}: {written:?}", source.label);
            }
        });
        assert!(texts > 4, "{precision}: only {texts} texts");
    }
}

/// A text beyond each of the limits is found, and one that a writer cannot write.
#[test]
fn what_is_beyond_the_limits_is_found() {
    let found = |declared: &str, size: &str| {
        let text = format!("{declared} @compute @workgroup_size({size}) fn main() {{ _ = &x; }}");
        let (module, _) = parse("text", &text).expect("naga accepts it");
        excess(&module, module.entry_points[0].workgroup_size, &limits())
    };
    let local = |count: u32| format!("var<workgroup> x: array<f32, {count}>;");
    assert_eq!(found(&local(8192), "64"), None);
    assert_eq!(found(&local(8193), "64").as_deref(), Some("32772 bytes of local memory"));
    assert_eq!(found(&local(1), "64, 17").as_deref(), Some("1088 invocations"));
    let buffers: String = (1..9)
        .map(|index| format!("@group(0) @binding({index}) var<storage> b{index}: array<f32>;"))
        .collect();
    let buffers = format!("@group(0) @binding(0) var<storage> x: array<f32>; {buffers}");
    assert_eq!(found(&buffers, "1").as_deref(), Some("9 buffers"));
    let (module, info) = parse("text", "@compute @workgroup_size(1) fn main() {}").expect("naga accepts it");
    assert!(to_spirv(&module, &info, "other").is_err(), "there is no such entry point");
}
