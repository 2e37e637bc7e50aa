//! Every op of the registry with operands that are no numbers or infinite: what they reach is right, and nothing else
//! changes.
//!
//! An op that chooses or moves gives the same NaN or infinity as its oracle. In a sum, whose terms a kernel orders as it
//! likes, an infinity may be a NaN; an element that no such operand reaches is as it would be without them. A kernel
//! that sums other terms (Winograd's) may spread them over a tile.

use crate::cases::{Breadth, Case};
use crate::cpu;
use crate::gpu;
use crate::problem::{Problem, compare_ends, expected, operands};
use diptych::Precision;
use diptych_device::device::Device;
use diptych_emit::emit::Operand;
use diptych_kernels::ops;
use diptych_kernels::ops::{Op, Operands, Purpose, Reference, Role};
use std::sync::Arc;

/// The most elements of an example's operand.
const MOST: usize = 40_000;

/// Examples of an op that are tried.
const EXAMPLES: usize = 4;

/// What is planted: in each operand one after the other.
const PLANTED: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// Whether a value of `operand` may be anything.
fn is_free(op: &dyn Op, operand: Operand) -> bool {
    match (op.name(), operand) {
        // Numbers of places, and corners of boxes.
        ("gather" | "suppress", Operand::Arg(0)) | ("one_hot", Operand::Src) => false,
        // Places and truths; and what is no number among values may reach rows that do not attend it.
        ("attention", Operand::Begins | Operand::Ends | Operand::Mask | Operand::Value) => false,
        // Bytes are any, but what a NaN becomes is not said.
        ("quantize" | "dequantize", _) => false,
        (name, _) if name.starts_with("dynamic") => false,
        (name, _) if name.starts_with("quantized") && name != "quantized_gemm" => false,
        // A tap outside of the map is left out or 0 times its weight, kernel by kernel.
        ("conv2d" | "depthwise", operand) => operand != Operand::Weights,
        _ => true,
    }
}

/// The operands of `op` with `value` at two places of each operand that may have any value.
fn planted(op: &dyn Op, value: f32) -> Operands<'static> {
    let mut all = operands(op);
    for info in op.operands() {
        let Some(values) = all.get_mut(&info.operand).filter(|_| is_free(op, info.operand)) else { continue };
        let places = [info.shape.elements() / 3, info.shape.elements() * 6 / 7];
        for place in places {
            if let Some(slot) = values.to_mut().get_mut(info.place(place)) {
                *slot = value;
            }
        }
    }
    all
}

/// Compares a sum: what is reached is not finite, and what is not is right.
fn compare_reached(
    spreads: bool,
    precision: Precision,
    expected: &Reference,
    result: &[f32],
) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (index, (&found, &wanted)) in result.iter().zip(expected.value()).enumerate() {
        let tolerance = expected.tolerance(index, precision);
        let right = if !wanted.is_finite() {
            !found.is_finite()
        } else if !tolerance.is_finite() || (spreads && !found.is_finite()) {
            true
        } else {
            (f64::from(found) - wanted).abs() <= tolerance
        };
        if !right {
            wrong.push(format!("element {index} is {found:e}, wanted {wanted:e} +- {tolerance:.3e}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{} elements, first {}", wrong.len(), wrong[0])) }
}

/// Some examples of each op, on every backend.
pub(crate) async fn every_op(devices: &[Arc<dyn Device>]) -> Vec<String> {
    let mut failures = Vec::new();
    for entry in ops::all() {
        let examples = (entry.examples)(Precision::F32).expect("examples");
        let small = |op: &Problem| op.operands().iter().all(|info| info.elements() <= MOST);
        let mut problems: Vec<Problem> = examples.into_iter().map(Problem::from).filter(small).collect();
        let step = problems.len().div_ceil(EXAMPLES).max(1);
        problems = problems.into_iter().step_by(step).collect();
        assert!(!problems.is_empty(), "no small example of {}", entry.name);
        for problem in problems {
            for value in PLANTED {
                let operands = planted(&*problem, value);
                let expected = expected(&*problem, &operands);
                let sums = matches!(expected, Reference::Sum(_));
                let name = format!("{} {} with {value}", entry.name, problem.problem_key());
                let case = Case {
                    number: 0,
                    name: name.clone(),
                    problem: Arc::clone(&problem),
                    breadth: Breadth::Variants,
                };
                for device in devices {
                    let limits = &device.info().limits;
                    for choice in case.choices(limits) {
                        if problem.fits(&choice, limits).is_err() {
                            continue;
                        }
                        let spreads =
                            problem.kernel(choice.variant).is_ok_and(|kernel| kernel.entry().sums_otherwise);
                        let by: gpu::Comparison<'_> = if sums {
                            &|op, expected, result| compare_reached(spreads, op.precision(), expected, result)
                        } else {
                            &compare_ends
                        };
                        let device = &**device;
                        let outcome =
                            gpu::check_by(by, device, &*problem, &operands, &expected, &choice, &|_| {})
                                .await;
                        let name = format!("{name} [{choice}] on {}", device.info());
                        failures.extend(outcome.err().map(|failure| format!("{name}: {failure}")));
                    }
                }
                if problem.obstacle(Purpose::Cpu).is_some() {
                    continue;
                }
                let result = cpu::run(&*problem, &operands).expect("a run");
                let outcome = if sums {
                    compare_reached(false, problem.precision(), &expected, &result)
                } else {
                    compare_ends(&*problem, &expected, &result)
                };
                failures.extend(outcome.err().map(|failure| format!("{name} on the CPU: {failure}")));
            }
        }
    }
    failures
}

/// The inputs of an op, which may be anything but indices.
#[test]
fn no_op_is_left_out() {
    for entry in ops::all() {
        let examples = (entry.examples)(Precision::F32).expect("examples");
        let free = |op: &dyn Op| {
            op.operands().iter().any(|info| info.role != Role::Output && is_free(op, info.operand))
        };
        let of_bytes = ["quantize", "dequantize"].contains(&entry.name)
            || entry.name.starts_with("dynamic")
            || entry.name.starts_with("quantized") && entry.name != "quantized_gemm";
        let is_tried = examples.iter().any(|op| free(&**op));
        assert!(entry.name == "one_hot" || of_bytes || is_tried, "{}", entry.name);
    }
}
