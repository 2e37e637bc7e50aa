//! Small ONNX files, each of one operator, against what ONNX Runtime computes of them, on every backend.

use crate::golden::context;
use crate::operators_expected::{CASES, Case};
use diptych::{Backend, Context, Dims, HostTensor, LoadOptions, Model, Session, SessionOptions};

/// The largest error, relative to an output's largest finite magnitude.
const TOLERANCE: f32 = 1e-5;

/// How far the outputs are from what is right, in words; nothing if they are near enough.
fn wrong(context: &Context, &(name, file, inputs, outputs): &Case) -> Option<String> {
    let model = match Model::from_bytes(file, &LoadOptions::default()) {
        Ok(model) => model,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let mut session =
        Session::new(context, &model.graph, SessionOptions::default()).expect("a session of a small graph");
    let tensors: Vec<(&str, HostTensor)> = inputs
        .iter()
        .map(|&(name, extents, values)| {
            let dims = Dims::new(extents).expect("few extents");
            (name, HostTensor::new(dims, values.to_vec()).expect("as many values"))
        })
        .collect();
    let feeds: Vec<(&str, &HostTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let found = session.run(&feeds).expect("a run");
    for (port, found) in model.outputs.iter().zip(found) {
        let &(_, extents, wanted) = outputs.iter().find(|output| output.0 == port.name).expect("an output");
        if found.dims().extents() != extents {
            return Some(format!("{name}.{}: found {}, wanted {extents:?}", port.name, found.dims()));
        }
        let found = found.to_nhwc();
        let finite = wanted.iter().filter(|value| value.is_finite());
        let most = finite.fold(0.0f32, |most, value| most.max(value.abs()));
        let near = |(&a, &b): (&f32, &f32)| a == b || (a - b).abs() <= TOLERANCE * most;
        if !found.iter().zip(wanted).all(near) {
            return Some(format!("{name}.{}: found {found:?}, wanted {wanted:?}", port.name));
        }
    }
    None
}

fn every_case(backend: Backend) {
    let Some(context) = context(backend) else { return };
    let wrong: Vec<String> = CASES.iter().filter_map(|case| wrong(&context, case)).collect();
    assert!(wrong.is_empty(), "{backend}:\n{}", wrong.join("\n"));
}

#[test]
fn operators_on_the_cpu() {
    every_case(Backend::Cpu);
}

#[cfg(feature = "wgpu")]
#[test]
fn operators_on_wgpu() {
    every_case(Backend::Wgpu);
}

#[cfg(feature = "opencl")]
#[test]
fn operators_on_opencl() {
    every_case(Backend::OpenCl);
}
