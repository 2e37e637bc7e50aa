use super::*;
use crate::dtype::Precision;
use crate::emit::Dialect;
use crate::ops::conv2d::{Conv2d, Conv2dOp};
use crate::shape::{Padding, Shape};

fn device(gpu: &str, family: &str, api: &str) -> DeviceKey {
    DeviceKey { gpu: gpu.into(), family: family.into(), driver: "1.2".into(), api: api.into() }
}

fn problem(text: &str) -> ProblemKey {
    let (op, shape) = text.split_once(' ').expect("an op and its extents");
    ProblemKey { op: op.into(), shape: shape.into(), precision: "f32".into(), layout: "c4".into() }
}

#[test]
fn a_gpu_is_the_same_under_both_apis_names() {
    for (vulkan, opencl, family, same) in [
        ("NVIDIA H200", "NVIDIA H200", "NVIDIA", true),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "NVIDIA", true),
        ("Adreno (TM) 630", "QUALCOMM Adreno(TM) 630", "Adreno 630", true),
        ("Mali-G76", "Mali-G76 r0p0", "Mali Bifrost", true),
        ("Intel(R) UHD Graphics 620 (KBL GT2)", "Intel(R) UHD Graphics 620 [0x5917]", "Intel", true),
        ("NVIDIA H200", "NVIDIA H200 MIG 1g.18gb", "NVIDIA", false),
        ("NVIDIA H200", "NVIDIA H100", "NVIDIA", false),
        ("llvmpipe (LLVM 15.0.7, 256 bits)", "pthread-haswell-x", "CPU driver", false),
        ("llvmpipe (LLVM 15.0.7, 256 bits)", "llvmpipe", "CPU driver", false),
        ("NVIDIA", "(x)", "NVIDIA", false),
    ] {
        let pair = (device(vulkan, family, "Vulkan"), device(opencl, family, "OpenCL"));
        assert_eq!(pair.0.same_gpu(&pair.1), same, "{vulkan} / {opencl}");
        assert_eq!(pair.1.same_gpu(&pair.0), same, "{opencl} / {vulkan}");
    }
}

#[test]
fn a_family_table_serves_its_family_and_a_vendor_table_all_models() {
    let phone = device("Adreno (TM) 630", "Adreno 630", "Vulkan");
    let rank = |family: &str| phone.family_rank(&DeviceKey::of_family(family, "Vulkan"));
    assert_eq!(rank("Adreno 630"), Some(0));
    assert_eq!(rank("Adreno"), Some(1));
    assert_eq!(rank("Adreno 6"), None);
    assert_eq!(rank("NVIDIA"), None);
    assert_eq!(phone.family_rank(&phone), None);
    let unknown = device("x", "unknown", "Vulkan");
    assert_eq!(unknown.family_rank(&DeviceKey::of_family("unknown", "Vulkan")), None);
}

#[test]
fn the_distance_is_in_doublings_and_only_between_equal_kernels() {
    let base = problem("conv2d n1 h8 w8 c32 o64 kernel3x3 stride2x2 pad1,1,1,1 bias relu6");
    for (text, wanted) in [
        ("conv2d n1 h8 w8 c32 o64 kernel3x3 stride2x2 pad1,1,1,1 bias relu6", Some(0.0)),
        ("conv2d n1 h16 w4 c32 o64 kernel3x3 stride2x2 pad0,1,0,1 bias relu6", Some(2.0)),
        ("conv2d n1 h8 w8 c32 o16 kernel3x3 stride2x2 bias relu6", Some(2.0)),
        ("conv2d n1 h8 w8 c32 o64 kernel3x3 bias relu6", None),
        ("conv2d n1 h8 w8 c32 o64 kernel5x5 stride2x2 bias relu6", None),
        ("conv2d n1 h8 w8 c32 o64 kernel3x3 stride2x2 bias relu", None),
        ("conv2d n1 h8 w8 c32 o64 groups2 kernel3x3 stride2x2 bias relu6", None),
        ("conv2d n1 h8 w8 c32 o0 kernel3x3 stride2x2 bias relu6", None),
        ("depthwise n1 h8 w8 c32 o64 kernel3x3 stride2x2 bias relu6", None),
    ] {
        assert_eq!(base.distance(&problem(text)), wanted, "{text}");
        assert_eq!(problem(text).distance(&base), wanted, "{text}");
    }
}

#[test]
fn a_variant_is_known_by_its_op() {
    let key =
        ChoiceKey { variant: "micro".into(), tile: [4, 2, 1], work_group: [8, 8, 1], layout: "c4".into() };
    let choice = key.resolve("pointwise").expect("pointwise has micro");
    assert_eq!(ChoiceKey::from(choice), key);
    assert_eq!(key.to_string(), choice.to_string());
    assert_eq!(key.resolve("convert"), None);
    assert_eq!(key.resolve("no such op"), None);
}

#[test]
fn rows_of_before_layouts_are_of_buffers() {
    let old = r#"{"variant":"direct","tile":[1,1,1],"work_group":[8,4,8]}"#;
    let key: ChoiceKey = serde_json::from_str(old).expect("an old row's choice");
    let choice = key.resolve("pointwise").expect("pointwise has direct");
    assert_eq!(choice.layout, Layout::C4);
    assert_eq!(serde_json::to_string(&key).expect("text"), old, "and are written as they were");
    let images = ChoiceKey::from(choice.with_layout(Layout::Image2d));
    assert_eq!(images.to_string(), "direct image2d tile 1x1x1 work-group (8,4,8)");
    let text = serde_json::to_string(&images).expect("text");
    assert_eq!(serde_json::from_str::<ChoiceKey>(&text).expect("a choice"), images, "{text}");
    assert_eq!(images.resolve("pointwise"), Some(choice.with_layout(Layout::Image2d)));
    let tomorrow = ChoiceKey { layout: "image3d".into(), ..images };
    assert_eq!(tomorrow.resolve("pointwise"), None);
}

#[test]
fn a_kernels_hash_tells_all_but_extents() {
    let gemm = |m, n, k| -> Box<dyn Op> { Box::new(ops::gemm::GemmOp::packed(m, n, k)) };
    let conv = |input: [usize; 4], outputs, down: usize| -> Box<dyn Op> {
        let [n, h, w, c] = input;
        let options = Conv2d { stride: [down, 1], padding: Padding::Same, ..Default::default() };
        let (input, weights) = (Shape::nhwc(n, h, w, c), Shape::nhwc(outputs, 3, 3, c));
        let op = Conv2dOp::new(input, weights, &options, true, false, Precision::F32);
        Box::new(op.expect("a valid convolution"))
    };
    let hash = |op: &dyn Op, x: u32, limits: &Limits| {
        let kernels = op.kernels();
        let (kernel, tile) = kernels.space(limits)[0];
        let choice = Choice::new(kernel.name(), tile, [x, 1, 1]);
        SourceHash::of_kernel(op, &choice, limits).expect("the kernel's text")
    };
    for limits in [Limits::webgpu(), Limits::opencl()] {
        for (one, near) in
            [(gemm(96, 64, 128), gemm(72, 4, 16)), (conv([1, 9, 9, 8], 16, 2), conv([2, 14, 5, 30], 12, 2))]
        {
            let keys = (ProblemKey::of(&*one, Layout::C4), ProblemKey::of(&*near, Layout::C4));
            assert!(keys.0.distance(&keys.1).is_some_and(|distance| distance > 0.0));
            assert_eq!(hash(&*one, 8, &limits), hash(&*near, 8, &limits), "{} and {}", keys.0, keys.1);
            // The text of an OpenCL kernel names its work-group only where it needs it.
            if limits.dialect == Dialect::Wgsl {
                assert_ne!(hash(&*one, 8, &limits), hash(&*one, 4, &limits), "{}", keys.0);
            }
            let key = |x| {
                let kernels = one.kernels();
                let (kernel, tile) = kernels.space(&limits)[0];
                let choice = Choice::new(kernel.name(), tile, [x, 1, 1]);
                Key::new(&device("GPU", "unknown", "API"), &keys.0, choice, Some(hash(&*one, x, &limits)))
            };
            assert_ne!(key(8), key(4), "{}", keys.0);
        }
        let (one, other) = (conv([1, 9, 9, 8], 16, 2), conv([1, 9, 9, 8], 16, 1));
        assert_ne!(hash(&*one, 8, &limits), hash(&*other, 8, &limits));
    }
}

#[test]
fn a_source_hash_is_half_of_blake3_in_hexadecimal() {
    // The test vector of the empty input, from BLAKE3's specification.
    let hash = SourceHash::of("");
    assert_eq!(hash.to_string(), "af1349b9f5f9a1a6a0404dea36dcc949");
    assert_eq!(hash.to_string().parse::<SourceHash>().expect("its own text"), hash);
    for text in ["", "af", "+f1349b9f5f9a1a6a0404dea36dcc949", "zf1349b9f5f9a1a6a0404dea36dcc949"] {
        assert!(text.parse::<SourceHash>().is_err(), "{text:?}");
    }
}
