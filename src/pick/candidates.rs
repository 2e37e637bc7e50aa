//! The kernels that may run an op, each with the reason if it cannot.

use super::{Candidate, KernelPlace, Target};
use crate::dtype::{DType, Precision};
use crate::emit::{Access, Dialect, Operand};
use crate::error::Error;
use crate::layout::Layout;
use crate::limits::Limits;
use crate::ops::{BoundKernel, Launch, Offer, Op, Purpose};
use crate::sorted;
use crate::tune::work_group;

/// Every kernel of `op` on the API of `limits`, in the op's order, one with feature maps in
/// several layouts once for each. `precision` is the one
/// that `op` was made with.
///
/// A kernel that cannot run, with any tile that it offers, says why. Precisions and targets are
/// compared by putting several such lists together.
pub(crate) fn on_device(op: &dyn Op, precision: Precision, limits: &Limits) -> Vec<Candidate> {
    let kernels = op.kernels();
    let each = kernels.iter().flat_map(|kernel| {
        let layouts = kernel.entry().layouts.iter();
        layouts.map(move |&layout| candidate(op, kernel, layout, precision, limits))
    });
    each.collect()
}

/// The CPU's kernel of `op`: f32 on host layouts, whatever the op's precision.
pub(crate) fn on_cpu(op: &dyn Op) -> Candidate {
    Candidate {
        kernel: KernelPlace {
            op: op.name(),
            variant: "cpu",
            target: Target::Cpu,
            precision: Precision::F32,
            layout: Layout::Nhwc,
        },
        tensors: [DType::F32; 2],
        obstacle: op.obstacle(Purpose::Cpu).map(str::to_owned),
    }
}

fn candidate(
    op: &dyn Op,
    own: &dyn BoundKernel,
    maps: Layout,
    precision: Precision,
    limits: &Limits,
) -> Candidate {
    let kernel = KernelPlace {
        op: op.name(),
        variant: own.name(),
        target: match limits.dialect {
            Dialect::Wgsl => Target::Wgpu,
            Dialect::OpenClC => Target::OpenCl,
        },
        precision,
        layout: if maps == Layout::C4 { own.entry().place } else { maps },
    };
    match first_launch(own, maps, limits) {
        Ok(launch) => {
            let kernel = KernelPlace { precision: launch.spec.precision, ..kernel };
            Candidate { kernel, tensors: ends(&launch, precision), obstacle: None }
        }
        Err(reason) => Candidate { kernel, tensors: [precision.storage(); 2], obstacle: Some(reason) },
    }
}

/// The launch of the first tile that fits, or why none does.
fn first_launch(kernel: &dyn BoundKernel, maps: Layout, limits: &Limits) -> Result<Launch, String> {
    if let Some((only, why)) = kernel.entry().solo.filter(|(only, _)| *only != limits.dialect) {
        return Err(format!("only in {only}: {why}"));
    }
    let reason = |error: Error| match error {
        Error::Reject { reason, .. } => reason,
        other => other.to_string(),
    };
    let mut reasons = Vec::new();
    let mut offers = kernel.offers(limits);
    sorted::sort_by_key(&mut offers, |offer| offer.preference);
    for Offer { tile, .. } in offers {
        let work_group = work_group::table(kernel, tile, limits);
        match kernel.plan(&kernel.choice(tile, work_group).with_layout(maps), limits) {
            Ok(launch) => return Ok(launch),
            Err(error) => reasons.push(reason(error)),
        }
    }
    if reasons.is_empty() {
        // Not in the space: the kernel says what is missing.
        let choice = kernel.choice([1; 3], [1; 3]).with_layout(maps);
        reasons.extend(kernel.fits(&choice, limits).err().map(reason));
    }
    reasons.dedup();
    Err(if reasons.is_empty() { "not offered for these shapes".to_owned() } else { reasons.join("; ") })
}

/// The element types of a kernel's input and output.
fn ends(launch: &Launch, precision: Precision) -> [DType; 2] {
    let bindings = &launch.spec.interface.bindings;
    let input = bindings.iter().find(|binding| matches!(binding.operand, Operand::Src | Operand::A));
    let output = bindings.iter().find(|binding| binding.access != Access::Read);
    [input, output].map(|end| end.map_or(precision.storage(), |end| end.element.dtype()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::Element;

    /// A session takes a candidate in the layout that it names, where that is of feature maps.
    #[test]
    fn kernels_serve_the_layouts_of_their_candidates() {
        let limits = Limits::opencl();
        for entry in crate::ops::all() {
            for op in (entry.examples)(Precision::F32).expect("valid examples") {
                // A change of layout is nobody's choice: the lowering puts it between two.
                let maps = op.record_layout() == Layout::C4 && op.name() != "convert";
                for Candidate { kernel, obstacle, .. } in on_device(&*op, Precision::F32, &limits) {
                    let own = op.kernel(kernel.variant).expect("a kernel of its own");
                    let served = own.serves(kernel.layout);
                    assert!(!maps || served || obstacle.is_some(), "{kernel:?}: {:?}", own.entry().layouts);
                }
            }
        }
    }

    #[test]
    fn layouts_agree_with_what_the_kernels_bind() {
        let limits = Limits::opencl();
        for entry in crate::ops::all() {
            for op in (entry.examples)(Precision::F32).expect("valid examples") {
                let kernels = op.kernels();
                let each = kernels
                    .iter()
                    .flat_map(|kernel| kernel.entry().layouts.iter().map(move |maps| (kernel, *maps)));
                for (kernel, maps) in each {
                    let Ok(launch) = first_launch(kernel, maps, &limits) else { continue };
                    let bindings = &launch.spec.interface.bindings;
                    let wanted = if op.name() == "gemm" { Operand::B } else { Operand::Dst };
                    let found = bindings.iter().find(|binding| binding.operand == wanted).expect("bound");
                    let layout = match (op.name(), found.element) {
                        (_, Element::Image2d(_)) => Layout::Image2d,
                        // A map is read, whatever is written; a nest may read one element by element.
                        ("squeeze", _) => Layout::C4,
                        _ if kernel.name().starts_with("maps") => Layout::C4,
                        // Rows may be read by fours.
                        _ if maps == Layout::Nhwc || kernel.name() == "cast" => Layout::Nhwc,
                        ("gemm" | "quantized_gemm" | "attention", _) | (_, Element::Scalar(_)) => {
                            Layout::Nhwc
                        }
                        (_, Element::Vec4(_) | Element::Atomic) => Layout::C4,
                    };
                    let found = candidate(&*op, kernel, maps, Precision::F32, &limits).kernel.layout;
                    assert_eq!(found, layout, "{}", launch.spec.label());
                }
            }
        }
    }

    #[test]
    fn conversions_have_the_hosts_type_at_one_end() {
        let op = crate::ops::convert::ConvertOp::new(
            crate::Shape::nhwc(1, 2, 3, 4),
            Layout::Nhwc,
            Layout::C4,
            Precision::F16Storage,
        )
        .expect("a valid conversion");
        let candidates = on_device(&op, Precision::F16Storage, &Limits::webgpu());
        let pack = candidates.first().expect("pack");
        assert_eq!((pack.kernel.variant, pack.tensors), ("pack", [DType::F32, DType::F16]));
        assert_eq!(candidates.iter().filter(|candidate| candidate.obstacle.is_none()).count(), 1);
        assert!(on_cpu(&op).obstacle.is_some());
    }
}
