//! Inputs and outputs bound to a session: `ort`'s own tests of these, on a smaller network.

use crate::onnx::{Extent::Open, F32, File};
use crate::session;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;
use ort::value::{Tensor, TensorRef};

fn doubling() -> Session {
    let x = [Open("batch")];
    session(
        File::new()
            .input("x", F32, &x)
            .node("Add", &["x", "x"], &["twice"])
            .node("Neg", &["x"], &["minus"])
            .output("twice", F32, &x)
            .output("minus", F32, &x),
    )
}

fn host() -> ort::Result<MemoryInfo<'static>> {
    MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)
}

#[test]
fn an_output_is_new_in_each_run() -> ort::Result<()> {
    let mut session = doubling();
    let mut binding = session.create_binding()?;
    binding.bind_input("x", &Tensor::from_array(([2], vec![1.0f32, -3.0]))?)?;
    binding.bind_output_to_device("minus", &host()?)?;
    binding.bind_output_to_device("twice", &host()?)?;
    let outputs = session.run_binding(&binding)?;
    let names: Vec<&str> = outputs.keys().collect();
    assert_eq!(names, ["minus", "twice"]);
    assert_eq!(outputs["twice"].try_extract_tensor::<f32>()?.1, [2.0, -6.0]);
    assert_eq!(outputs["minus"].try_extract_tensor::<f32>()?.1, [-1.0, 3.0]);
    binding.synchronize()?;
    Ok(())
}

#[test]
fn an_output_is_written_where_it_is_bound() -> ort::Result<()> {
    let mut session = doubling();
    let mut binding = session.create_binding()?;
    // A view, of which `ort` makes a copy.
    let values = [1.0f32, 2.0, 3.0];
    binding.bind_input("x", &*TensorRef::from_array_view(([3usize], &values[..]))?)?;
    binding.bind_output("twice", Tensor::<f32>::new(&Allocator::default(), [3usize])?)?;
    for _ in 0..2 {
        let outputs = session.run_binding(&binding)?;
        assert_eq!(outputs[0].try_extract_tensor::<f32>()?.1, [2.0, 4.0, 6.0]);
    }
    binding.clear_outputs();
    binding.bind_output("twice", Tensor::<f32>::new(&Allocator::default(), [4usize])?)?;
    let error = session.run_binding(&binding).map(drop).expect_err("another shape");
    assert_eq!(
        error.message(),
        "output \"twice\": found a tensor of float and shape [4], wanted float and [3]"
    );
    Ok(())
}

#[test]
fn a_binding_goes_to_another_thread() -> ort::Result<()> {
    let mut session = doubling();
    let mut binding = session.create_binding()?;
    binding.bind_output("twice", Tensor::<f32>::new(&Allocator::default(), [1usize])?)?;
    let found = std::thread::spawn(move || {
        binding.bind_input("x", &Tensor::from_array(([1], vec![4.0f32]))?)?;
        let outputs = session.run_binding(&binding)?;
        Ok::<f32, ort::Error>(outputs[0].try_extract_tensor::<f32>()?.1[0])
    });
    assert_eq!(found.join().expect("no panic")?, 8.0);
    Ok(())
}

#[test]
fn a_cleared_binding_has_no_inputs() -> ort::Result<()> {
    let mut session = doubling();
    let mut binding = session.create_binding()?;
    binding.bind_input("x", &Tensor::from_array(([1], vec![4.0f32]))?)?;
    binding.bind_output_to_device("twice", &host()?)?;
    session.run_binding(&binding)?;
    binding.clear_inputs();
    let error = session.run_binding(&binding).map(drop).expect_err("no input");
    assert_eq!(error.message(), "input \"x\": found nothing, wanted a tensor");
    let error =
        binding.bind_input("y", &Tensor::from_array(([1], vec![4.0f32]))?).expect_err("no such input");
    assert_eq!(error.message(), "input: found \"y\", wanted one of x");
    let cuda = MemoryInfo::new(AllocationDevice::CUDA, 0, AllocatorType::Device, MemoryType::Default)?;
    let error = binding.bind_output_to_device("twice", &cuda).expect_err("no such memory");
    assert!(error.message().starts_with("memory \"Cuda\" is not supported"), "{error}");
    Ok(())
}
