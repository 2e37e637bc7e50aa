//! Whether a device computes at all: drivers that compile and run nothing, as Mesa's over `drm-shim` do, are not tuned on.
//!
//! A product of two matrices of small whole numbers is exact on every device. A device whose product is wrong three times
//! is no device to work with; one that was wrong once may be flaky, which the tuner finds out kernel by kernel.

use crate::device::{Device, Dispatch, Memory, Wait, compile_planned_async};
use crate::dtype::DType;
use crate::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use crate::error::{Error, Result};

/// Rows and columns of both matrices.
const SIDE: usize = 16;
/// How often the product is computed at most.
const ATTEMPTS: usize = 3;

const PRODUCT: &str = "
struct Params { side: u32 }
@group(0) @binding(0) var<storage, read> mat_a: array<f32>;
@group(0) @binding(1) var<storage, read> mat_b: array<f32>;
@group(0) @binding(2) var<storage, read_write> mat_c: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(16)
fn product(@builtin(global_invocation_id) id: vec3<u32>) {
    let row: u32 = id.y;
    let column: u32 = id.x;
    if (row >= params.side || column >= params.side) { return; }
    var sum: f32 = 0.0;
    for (var k: u32 = 0u; k < params.side; k += 1u) {
        sum += mat_a[row * params.side + k] * mat_b[k * params.side + column];
    }
    mat_c[row * params.side + column] = sum;
}
";

fn source() -> KernelSource {
    let binding = |operand, access| Binding::new(operand, Element::Scalar(DType::F32), access);
    KernelSource {
        label: "known_product".to_owned(),
        entry: "product".to_owned(),
        dialect: Dialect::Wgsl,
        text: PRODUCT.to_owned(),
        interface: Interface {
            bindings: vec![
                binding(Operand::A, Access::Read),
                binding(Operand::B, Access::Read),
                binding(Operand::C, Access::ReadWrite),
            ],
            params: vec![Param { name: "side", ty: ParamType::U32 }],
        },
        work_group: [16, 1, 1],
    }
}

/// Both factors and their product.
fn known() -> [Vec<f32>; 3] {
    let factor = |scale: usize, modulus: usize| -> Vec<f32> {
        (0..SIDE * SIDE).map(|index| (index * scale % modulus) as f32 - (modulus / 2) as f32).collect()
    };
    let (a, b) = (factor(7, 13), factor(5, 11));
    let element = |index: usize| {
        let (row, column) = (index / SIDE, index % SIDE);
        let terms = (0..SIDE).map(|k| {
            let of = |matrix: &[f32], place: usize| matrix.get(place).copied().unwrap_or_default();
            of(&a, row * SIDE + k) * of(&b, k * SIDE + column)
        });
        terms.sum()
    };
    let c = (0..SIDE * SIDE).map(element).collect();
    [a, b, c]
}

/// Refuses a device that does not compute a known product.
///
/// # Errors
/// If the product is wrong, with what came back, or if the device fails.
pub(crate) async fn computes(wait: Wait, device: &dyn Device) -> Result<()> {
    let [a, b, wanted] = known();
    // Without `shaders`, as in browsers, nothing reads a text; this one is the crate's own.
    let pipeline = if cfg!(feature = "shaders") {
        device.compile_async(&source()).await?
    } else {
        compile_planned_async(device, &source()).await?
    };
    let bytes = (4 * SIDE * SIDE) as u64;
    let mut slices = Vec::new();
    for _ in 0..3 {
        slices.push(device.alloc(bytes, Memory::Device)?.slice(0, bytes)?);
    }
    let dispatch = Dispatch {
        pipeline,
        resources: slices.iter().map(|slice| slice.clone().into()).collect(),
        params: vec![Scalar::U32(SIDE as u32)],
        groups: [1, SIDE as u32, 1],
    };
    let recording = device.record(&[dispatch])?;
    let [left, right, product] = &slices[..] else {
        return Err(Error::Internal("three buffers that are not three".to_owned()));
    };
    let before = vec![f32::NAN; SIDE * SIDE];
    let mut found: Vec<f32> = Vec::new();
    for _ in 0..ATTEMPTS {
        let writes = [(left, &a), (right, &b), (product, &before)]
            .map(|(slice, values)| (slice, bytemuck::cast_slice::<f32, u8>(values)));
        let read = wait.run(device, &writes, &recording, &[product]).await?;
        found = read.first().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).unwrap_or_default();
        if found == wanted {
            return Ok(());
        }
    }
    Err(Error::unsupported(
        format!("{} as a device that computes", device.info()),
        format!(
            "a product of two matrices of {SIDE} x {SIDE} whole numbers came back {}; is this a driver without its \
             hardware, such as Mesa's over drm-shim?",
            told(&found, &wanted)
        ),
    ))
}

/// What is wrong with a product.
fn told(found: &[f32], wanted: &[f32]) -> String {
    if found.iter().all(|value| *value == 0.0) {
        return "as zeros".to_owned();
    }
    if found.iter().all(|value| value.is_nan()) {
        return "as it was before: nothing ran".to_owned();
    }
    let pairs = || found.iter().zip(wanted).enumerate().filter(|(_, (found, wanted))| found != wanted);
    let first =
        pairs().next().map(|(index, (found, wanted))| format!("element {index} is {found}, wanted {wanted}"));
    format!("wrong in {} of {} elements: {}", pairs().count(), wanted.len(), first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_is_told() {
        let [.., wanted] = known();
        assert!(wanted.iter().any(|value| *value != 0.0) && wanted.iter().all(|value| value.fract() == 0.0));
        assert_eq!(told(&vec![0.0; 256], &wanted), "as zeros");
        assert_eq!(told(&vec![f32::NAN; 256], &wanted), "as it was before: nothing ran");
        let mut found = wanted.clone();
        found[17] += 1.0;
        let text = told(&found, &wanted);
        assert!(text.starts_with("wrong in 1 of 256 elements: element 17 is "), "{text}");
    }
}
