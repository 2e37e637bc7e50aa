//! Tensors and memory without a model: `ort`'s own tests of these.

use crate::onnx::{self, Extent::Fixed, File};
use crate::{environment, on, session};
use half::f16;
use ort::logging::LogLevel;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, DeviceType, MemoryInfo, MemoryType};
use ort::value::{
    DynTensorValueType, PrimitiveTensorElementType, Shape, Tensor, TensorRef, TensorRefMut, TensorValueType,
};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

#[test]
fn memory_is_the_hosts() -> ort::Result<()> {
    environment();
    let allocator = Allocator::default();
    let info = allocator.memory_info();
    assert_eq!(info.allocation_device(), AllocationDevice::CPU);
    assert_eq!((info.device_type(), info.device_id()), (DeviceType::CPU, 0));
    assert_eq!((info.memory_type(), info.allocator_type()), (MemoryType::Default, AllocatorType::Device));
    assert!(info.is_cpu_accessible());
    assert_eq!(info, &info.clone());

    let mut block = allocator.alloc::<u64>(100)?;
    let numbers = block.as_mut_ptr().cast::<u64>();
    assert!(numbers.is_aligned());
    // SAFETY: there are a hundred numbers, of this test alone.
    let numbers = unsafe { std::slice::from_raw_parts_mut(numbers, 100) };
    numbers.fill(7);
    assert_eq!(numbers.iter().sum::<u64>(), 700);
    assert!(allocator.alloc::<u8>(isize::MAX as usize).is_err());
    Ok(())
}

#[test]
fn memory_of_devices_is_compared_and_not_allocated() -> ort::Result<()> {
    environment();
    let cuda = |id| MemoryInfo::new(AllocationDevice::CUDA, id, AllocatorType::Device, MemoryType::Default);
    assert_eq!(cuda(1)?, cuda(1)?);
    assert_ne!(cuda(1)?, cuda(0)?);
    assert_ne!(cuda(0)?, MemoryInfo::default());
    assert_eq!(cuda(1)?.to_owned(), cuda(1)?);
    assert!(!cuda(0)?.is_cpu_accessible());

    let x = [onnx::Extent::Fixed(2)];
    let file = File::new().input("x", onnx::F32, &x).node("Relu", &["x"], &["y"]).output("y", onnx::F32, &x);
    let refused = Allocator::new(&session(file), cuda(0)?).map(drop).expect_err("no such memory");
    assert_eq!(
        refused.message(),
        "memory \"Cuda\" is not supported: values lie in the host's memory, \"Cpu\"; a run copies them to the device \
         and back"
    );
    Ok(())
}

#[test]
fn elements_are_written_in_place() -> ort::Result<()> {
    environment();
    let mut tensor = Tensor::<i64>::from_array((vec![5], vec![0, 1, 2, 3, 4]))?;
    let elements = tensor.data_ptr_mut().cast::<i64>();
    // SAFETY: there are five elements.
    unsafe { *elements.add(3) = 42 };
    assert_eq!(tensor.extract_tensor().1, [0, 1, 2, 42, 4]);
    tensor[[4]] = 9;
    assert_eq!(tensor[[4]], 9);

    let empty = Tensor::<f32>::new(&Allocator::default(), [2usize, 3])?;
    assert_eq!(empty.extract_tensor().1, [0.0; 6]);
    let scalar = Tensor::<f32>::new(&Allocator::default(), Shape::default())?;
    assert_eq!(scalar.try_extract_scalar::<f32>()?, 0.0);
    assert!(scalar.try_extract_scalar::<f64>().is_err());
    let nothing = Tensor::<f32>::from_array(([0usize, 4], Vec::new()))?;
    assert!(nothing.extract_tensor().1.is_empty());
    Ok(())
}

#[test]
fn views_share_the_elements() -> ort::Result<()> {
    environment();
    let tensor: Tensor<i32> = Tensor::from_array((vec![5], vec![1, 2, 3, 4, 5]))?;
    let mut tensor: Tensor<i32> = tensor.into_dyn().downcast()?;
    {
        let view: TensorRef<i32> = tensor.view().into_dyn().downcast()?;
        assert_eq!(view.extract_tensor(), tensor.extract_tensor());
    }
    {
        let mut view: TensorRefMut<i32> = tensor.view_mut().into_dyn().downcast()?;
        view.extract_tensor_mut().1[2] = 42;
    }
    let tensor = tensor.into_dyn().downcast::<DynTensorValueType>()?.into_dyn();
    let tensor = tensor.downcast::<TensorValueType<i32>>()?;
    assert_eq!(tensor.extract_tensor().1, [1, 2, 42, 4, 5]);
    Ok(())
}

fn copies<T: PrimitiveTensorElementType + Debug + Clone + PartialEq + 'static>(values: Vec<T>) {
    let tensor = Tensor::from_array(([1, values.len()], values.clone())).expect("a tensor");
    assert_eq!(tensor.clone().extract_tensor().1, values);
    let other = tensor.to(AllocationDevice::CPU, 0).expect("a copy");
    assert_eq!(
        other.to_async(AllocationDevice::CPU, 0).expect("a copy").extract_tensor(),
        tensor.extract_tensor()
    );
    let mut target = Tensor::<T>::new(&Allocator::default(), [1, values.len()]).expect("a tensor");
    tensor.copy_into(&mut target).expect("a copy");
    assert_eq!(target.extract_tensor().1, values);
}

#[test]
fn tensors_of_all_types_are_copied() -> ort::Result<()> {
    environment();
    copies(vec![2.167_892f32, 333., 1.0, -0.0, f32::EPSILON]);
    copies(vec![2.167_892f64, f64::MIN_POSITIVE]);
    copies([1.5, -2.0].map(f16::from_f32).to_vec());
    copies(vec![i64::MIN, i64::MAX]);
    copies(vec![u64::MAX]);
    copies(vec![i32::MIN, 5]);
    copies(vec![u32::MAX]);
    copies(vec![i16::MIN]);
    copies(vec![u16::MAX]);
    copies(vec![i8::MIN]);
    copies(vec![u8::MAX]);
    copies(vec![true, false]);

    let tensor = Tensor::<f32>::from_array(([1, 2], vec![1.0, 2.0]))?;
    let mut other = Tensor::<f32>::new(&Allocator::default(), [3usize])?;
    assert!(tensor.copy_into(&mut other).is_err());
    let error = tensor.to(AllocationDevice::CUDA, 0).map(drop).expect_err("no such device");
    assert!(error.message().contains("Cuda"), "{error}");
    Ok(())
}

/// The elements of a type go through a network as they are.
fn goes_through<T>(element: u64, values: Vec<T>)
where
    T: PrimitiveTensorElementType + Debug + Clone + PartialEq + 'static,
{
    let extents = [Fixed(1), Fixed(values.len() as u64)];
    let file = File::new()
        .input("x", element, &extents)
        .integers("shape", &[1], &[values.len() as i64])
        .node("Reshape", &["x", "shape"], &["y"])
        .output("y", element, &extents[1..]);
    let mut session = session(file);
    assert_eq!(session.outputs()[0].dtype().tensor_type(), Some(T::into_tensor_element_type()));
    let x = Tensor::from_array(([1, values.len()], values.clone())).expect("a tensor");
    let outputs = session.run(ort::inputs![x]).expect("a run");
    let (shape, found) = outputs["y"].try_extract_tensor::<T>().expect("the same type");
    assert_eq!((&**shape, found), (&[values.len() as i64][..], &*values));
}

#[test]
fn elements_of_each_type_go_in_and_come_out() {
    goes_through(onnx::F32, vec![1.5f32, -0.0, f32::INFINITY]);
    goes_through(onnx::F16, [1.5, -2.25, 65504.0].map(f16::from_f32).to_vec());
    goes_through(onnx::I64, vec![1i64 << 40, -3, i64::MAX]);
    goes_through(onnx::I32, vec![i32::MIN, 0, i32::MAX]);
    goes_through(onnx::U32, vec![0, u32::MAX]);
    goes_through(onnx::I16, vec![i16::MIN, i16::MAX]);
    goes_through(onnx::U16, vec![0, u16::MAX]);
    goes_through(onnx::I8, vec![i8::MIN, 0, i8::MAX]);
    goes_through(onnx::U8, vec![0, 200, u8::MAX]);
    goes_through(onnx::BOOL, vec![true, false, true]);
}

#[test]
fn doubles_are_rounded_to_floats() -> ort::Result<()> {
    let x = [Fixed(2)];
    let file = File::new().input("x", onnx::F64, &x).node("Neg", &["x"], &["y"]).output("y", onnx::F64, &x);
    let mut session = session(file);
    let outputs = session.run(ort::inputs![Tensor::from_array(([2], vec![0.1f64, 4.0]))?])?;
    assert_eq!(outputs["y"].try_extract_tensor::<f32>()?.1, [-0.1, -4.0]);
    Ok(())
}

#[test]
fn a_logger_is_told_that_doubles_are_rounded() -> ort::Result<()> {
    let x = [Fixed(2)];
    let file = || {
        let file = File::new().input("x", onnx::F32, &x).input("b\u{1b}[2J", onnx::F32, &x);
        file.node("Add", &["x", "b\u{1b}[2J"], &["y"]).output("y", onnx::F32, &x).build()
    };
    let lines = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&lines);
    let log = move |level: LogLevel, _: &str, _: &str, _: &str, message: &str| {
        said.lock().unwrap().push(format!("{level:?} {message}"));
    };
    let builder = on("cpu").with_logger(Arc::new(log))?.with_log_level(LogLevel::Warning)?;
    let mut session = builder.clone().commit_from_memory(&file())?;
    let floats = || Tensor::from_array(([2], vec![1.0f32, 2.0]));
    let doubles = || Tensor::from_array(([2], vec![0.1f64, 4.0]));
    session.run(ort::inputs![floats()?, floats()?])?;
    assert!(lines.lock().unwrap().is_empty(), "{lines:?}");
    for _ in 0..2 {
        session.run(ort::inputs![floats()?, doubles()?])?;
    }
    let wanted = r#"Warning input "b\u{1b}[2J": found elements of double, which are rounded to float"#;
    assert_eq!(std::mem::take(&mut *lines.lock().unwrap()), [wanted]);
    // A value that is known beforehand is rounded when the session is made.
    let value = Arc::new(doubles()?.into_dyn());
    let mut builder = builder.with_initializer("x", value)?;
    builder.commit_from_memory(&file())?;
    let wanted = r#"Warning input "x": found elements of double, which are rounded to float"#;
    assert_eq!(std::mem::take(&mut *lines.lock().unwrap()), [wanted]);
    Ok(())
}

#[test]
fn names_in_messages_command_no_terminal() {
    let x = [Fixed(2)];
    let name = "b\u{1b}[2J";
    let file = File::new().input(name, onnx::F32, &x).node("Neg", &[name], &["y"]).output("y", onnx::F32, &x);
    let mut session = session(file);
    let tensor = Tensor::from_array(([2], vec![1.0f32, 2.0])).expect("a tensor");
    let error = session.run(ort::inputs!["x\u{7}" => tensor]).map(drop).expect_err("no such input");
    let wanted = r#"found "x\u{7}", wanted one of b\u{1b}[2J"#;
    assert!(error.message().contains(wanted) && !error.message().contains('\u{1b}'), "{error}");
}
