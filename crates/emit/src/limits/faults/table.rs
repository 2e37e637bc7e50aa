//! The table of known faults. A row is added with a report that says which device, and `tests/it/known_faults.rs` gets a device
//! that has it.

use super::{Avoided, Devices, Families, Fault, Kernels, Quirk};
use crate::limits::Family;

/// The ops whose kernels are products of matrices.
const PRODUCTS: &[&str] = &["gemm", "pointwise", "conv2d", "transposed_conv2d", "quantized_gemm"];

/// What is said where nothing is known to be avoided.
const LOOK: &str = "nothing is avoided, the cause is not known: run `diptych check`";

/// What people reported, and what this crate's own runs met with.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "Adreno 840's products by work-group",
        on: Devices { families: Families::Adreno(&[840]), api: "Vulkan", driver: "qualcomm", ..Devices::ANY },
        seen: "matrix products with work-groups of 8 x 8 and 4 x 16 were wrong in 7 and 10 of 60 runs, those of 16 x 4, 32 x 2, \
               64 x 1, 2 x 32 and 1 x 64 in none",
        avoided: Avoided::Kernels(Kernels {
            ops: PRODUCTS,
            work_groups: &[[8, 8, 1], [4, 16, 1]],
            ..Kernels::ALL
        }),
        remedy: "products take no work-group of 8 x 8 or 4 x 16",
        source: "pytorch/executorch #22327, #22328",
    },
    Fault {
        name: "Adreno's convolutions to 168 to 192 channels",
        on: Devices {
            families: Families::AdrenoSeries(8),
            api: "Vulkan",
            driver: "qualcomm",
            ..Devices::ANY
        },
        seen: "a convolution of 3 x 3 to 168, 176, 184 or 192 channels as a product of patches gave another result in most runs; \
               to 144, 160, 200 and 224 it did not, nor did the direct kernel. The report names no model, its author's others an \
               Adreno 840",
        avoided: Avoided::Kernels(Kernels {
            ops: &["conv2d"],
            but: &["direct"],
            channels: Some([168, 192]),
            ..Kernels::ALL
        }),
        remedy: "convolutions to 168 to 192 channels take the direct kernel",
        source: "pytorch/executorch #21938",
    },
    Fault {
        name: "Adreno's power states",
        on: Devices { families: Families::Adreno(&[840]), api: "Vulkan", driver: "qualcomm", ..Devices::ANY },
        seen: "networks gave other results in a few runs, at a rate that depends on the GPU's power state",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "pytorch/executorch #21939",
    },
    Fault {
        name: "Adreno 830's convolutions with strides",
        on: Devices { families: Families::Adreno(&[830]), api: "Vulkan", driver: "qualcomm", ..Devices::ANY },
        seen: "MNN's convolutions of stride 2 gave NaN and huge values at changing places",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "alibaba/MNN #4015",
    },
    Fault {
        name: "Adreno 702's products of few rows",
        on: Devices { families: Families::Adreno(&[702]), api: "Vulkan", driver: "turnip", ..Devices::ANY },
        seen: "products of one to eight rows were wrong in f32, f16 and bf16, with Mesa's main branch of July 2026 as well; those of \
               nine and more were right. The kernels for few rows share a sum among invocations",
        avoided: Avoided::Kernels(Kernels {
            ops: &["gemm", "pointwise", "conv2d", "quantized_gemm"],
            kernels: &["thin", "split", "subgroup", "row"],
            rows: Some([0, 8]),
            ..Kernels::ALL
        }),
        remedy: "products of up to eight rows take kernels that share no sum",
        source: "ggml-org/llama.cpp #25906",
    },
    Fault {
        name: "Adreno 7xx's sums of products of bytes",
        on: Devices { families: Families::AdrenoSeries(7), api: "Vulkan", driver: "turnip", ..Devices::ANY },
        seen: "Mesa's compiler crashes for an Adreno 750 at kernels whose four sums go on with the products of one word's bytes and four others' (25.0.7): \
               it makes one instruction of them that has one result, as ir3_supports_vectorized_nir_op does not exclude \
               sdot_4x8_iadd",
        avoided: Avoided::Quirk(Quirk::WrongDotsOfBytes),
        remedy: "bytes are unpacked before they are multiplied",
        source: "this crate's own runs",
    },
    Fault {
        name: "Mali-G720",
        on: Devices { families: Families::Mali, name: "g720", api: "Vulkan", ..Devices::ANY },
        seen: "a YOLOv8 with ncnn's defaults, halves among them, finds other boxes than the CPU; llama.cpp's products fail 167 of 860 \
               of its tests in all types",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "Tencent/ncnn #6818, ggml-org/llama.cpp #23241",
    },
    Fault {
        name: "Intel Arc 140V on Windows",
        on: Devices { families: Families::One(Family::Intel), name: "140v", api: "Vulkan", ..Devices::ANY },
        seen: "language models give NaN and nonsense with some batch sizes, with drivers 32.0.101.8132 and 32.0.101.8991",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "ggml-org/llama.cpp #28648",
    },
    Fault {
        name: "Radeon RX 6900 XT through MoltenVK",
        on: Devices {
            families: Families::One(Family::Amd),
            name: "6900 xt",
            api: "Vulkan",
            driver: "moltenvk",
            ..Devices::ANY
        },
        seen: "language models give nonsense",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "ggml-org/llama.cpp #23850, #20029",
    },
    Fault {
        name: "Metal",
        on: Devices { api: "Metal", ..Devices::ANY },
        seen: "many of burn-onnx's tests fail on its Metal backend and pass on others",
        avoided: Avoided::Nothing,
        remedy: LOOK,
        source: "tracel-ai/burn-onnx #50",
    },
    Fault {
        name: "llvmpipe's turns of loops",
        on: Devices {
            families: Families::One(Family::CpuDriver),
            name: "llvmpipe",
            api: "Vulkan",
            ..Devices::ANY
        },
        seen: "an invocation's loops end without an error after 65,535 turns in all (Mesa's LP_MAX_TGSI_LOOP_ITERATIONS)",
        avoided: Avoided::Turns(65_535),
        remedy: "longer loops are divided or refused",
        source: "this crate's own runs",
    },
    Fault {
        name: "NVIDIA's parts of buffers",
        on: Devices { families: Families::One(Family::Nvidia), api: "OpenCL", ..Devices::ANY },
        seen: "clReleaseMemObject crashes where parts of a buffer that overlap are released in another order than the reverse of \
               their making (580.159)",
        avoided: Avoided::Quirk(Quirk::PartsInOrder),
        remedy: "parts are released in that order",
        source: "this crate's own runs",
    },
    Fault {
        name: "NVIDIA's compiler of OpenCL",
        on: Devices { families: Families::One(Family::Nvidia), api: "OpenCL", ..Devices::ANY },
        seen: "one program is compiled at a time, however many threads ask (580.159: 8 threads build 16 programs in the time of 16)",
        avoided: Avoided::Quirk(Quirk::CompilesOneAtATime),
        remedy: "nothing is compiled ahead of need",
        source: "this crate's own runs",
    },
    Fault {
        name: "Adreno 3xx's events",
        on: Devices { families: Families::AdrenoSeries(3), ..Devices::ANY },
        seen: "profiling events can be wrong",
        avoided: Avoided::Quirk(Quirk::UnreliableEvents),
        remedy: "launches that are timed are waited for one by one, and absurd times are dropped",
        source: "TensorFlow Lite, cl_command_queue.cc",
    },
    Fault {
        name: "Mali's events",
        on: Devices { families: Families::Mali, ..Devices::ANY },
        seen: "the driver's memory grows with the events in flight",
        avoided: Avoided::Quirk(Quirk::WaitEveryEighthEvent),
        remedy: "every eighth is waited for",
        source: "TensorFlow Lite, cl_command_queue.cc",
    },
    Fault {
        name: "Mali's trial launches",
        on: Devices { families: Families::Mali, ..Devices::ANY },
        seen: "a kernel keeps a pool of its trial launches",
        avoided: Avoided::Quirk(Quirk::RecreateKernelAfterTuning),
        remedy: "kernels are made anew after tuning",
        source: "TensorFlow Lite, inference_context.cc",
    },
    Fault {
        name: "Mali's queues",
        on: Devices { families: Families::Mali, ..Devices::ANY },
        seen: "long queues must be flushed from time to time",
        avoided: Avoided::Quirk(Quirk::FlushPeriodically),
        remedy: "each submission is flushed",
        source: "TensorFlow Lite, inference_context.cc",
    },
];
