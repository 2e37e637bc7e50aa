//! One network on several devices.

use crate::machine::{everywhere, noise};
use diptych::{
    Backend, BatchOptions, Context, Conv2d, Custom, DevicePool, Error, Extras, Graph, HostTensor, PoolDevice,
    Session, SessionOptions, Shape,
};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const IMAGE: Shape = Shape::nhwc(1, 6, 5, 3);

fn options(max_batch: usize) -> BatchOptions {
    BatchOptions { max_batch, max_delay: Duration::ZERO, sizes: vec![1], ..BatchOptions::default() }
}

fn convolution() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).unwrap();
    let filters = noise(Shape::nhwc(8, 3, 3, 3), 1);
    let y = graph.conv2d("only", x, filters, Extras::default(), Conv2d::default()).unwrap();
    graph.output(y).unwrap();
    graph
}

/// Does `more` until the devices are so.
fn until(pool: &DevicePool, are: impl Fn(&[PoolDevice]) -> bool, mut more: impl FnMut()) {
    let start = Instant::now();
    while !are(&pool.devices()) {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", pool.devices());
        more();
    }
}

#[test]
fn results_are_in_order_whichever_device_ran() {
    let (graph, contexts) = (convolution(), everywhere());
    let mut alone =
        Session::new(&Context::new(Backend::Cpu).unwrap(), &graph, SessionOptions::default()).unwrap();
    let pool = DevicePool::new(&contexts, &graph, options(4)).unwrap();
    let images: Vec<HostTensor> = (0..200).map(|seed| noise(IMAGE, seed)).collect();
    let mut outputs = pool.map(images.iter().map(|image| [("x", image.clone())]));
    assert_eq!(outputs.size_hint(), (200, Some(200)));
    for image in &images {
        let (found, wanted) = (outputs.next().unwrap().unwrap(), alone.run(&[("x", image)]).unwrap());
        for (found, wanted) in found[0].to_f32().iter().zip(&*wanted[0].to_f32()) {
            assert!((found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()), "{found}, wanted {wanted}");
        }
    }
    assert!(outputs.next().is_none());
    let frames = || images.iter().map(|image| [("x", image.clone())]);
    // A thread may come late, when others have done everything.
    let mut rounds = 1;
    until(
        &pool,
        |devices| devices.iter().all(|device| device.requests > 0),
        || {
            rounds += 1;
            assert!(pool.map(frames()).all(|outputs| outputs.is_ok()));
        },
    );
    let devices = pool.devices();
    assert_eq!(devices.len(), contexts.len());
    for (device, context) in devices.iter().zip(&contexts) {
        assert_eq!(&device.context, context.info());
        assert!(device.time.is_some() && device.error.is_none(), "{device:?}");
    }
    assert_eq!(devices.iter().map(|device| device.requests).sum::<u64>(), 200 * rounds);
    assert_eq!(pool.batch().counts().requests, 200 * rounds);
    // The last of a stream may be left alone.
    drop(pool.map(frames()).take(3).collect::<Vec<_>>());
    assert!(pool.batch().run([("x", images[0].clone())]).is_ok());
}

/// Doubles; an infinity is an error on every device.
fn doubling() -> Graph {
    let double = Custom::host(
        "double",
        |inputs| Ok(inputs.to_vec()),
        |inputs, outputs| {
            for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
                if from.is_infinite() {
                    return Err(Error::input("double", "an infinity", "a number"));
                }
                *to = 2.0 * from;
            }
            Ok(())
        },
    );
    let mut graph = Graph::new();
    let x = graph.input("x", Shape::nhwc(1, 1, 1, 2)).unwrap();
    let y = graph.custom("double", &double, &[x]).unwrap();
    graph.output(y[0]).unwrap();
    graph
}

fn pair(value: f32) -> [(&'static str, HostTensor); 1] {
    [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 2), vec![value, 1.0]).unwrap())]
}

#[test]
fn a_request_that_fails_everywhere_takes_no_device_out() {
    let pool = DevicePool::new(&everywhere(), &doubling(), options(1)).unwrap();
    for round in 0..20u8 {
        let values = [1.0, f32::INFINITY, f32::from(round), f32::INFINITY];
        let results: Vec<_> = pool.map(values.map(pair)).collect();
        for (result, value) in results.into_iter().zip(values) {
            match result {
                Ok(outputs) => assert_eq!(outputs[0].to_f32()[0], 2.0 * value),
                Err(error) => {
                    assert!(
                        value.is_infinite() && error.to_string().contains("an infinity"),
                        "{value}: {error}"
                    );
                }
            }
        }
    }
    assert!(pool.devices().iter().all(|device| device.error.is_none()));
    assert_eq!(pool.batch().counts().requests, 80);
    // What is refused has its error in its place.
    let wrong = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![0.0; 3]).unwrap();
    let frames = vec![pair(1.0), [("x", wrong)], pair(2.0)];
    let results: Vec<_> = pool.map(frames).map(|result| result.is_ok()).collect();
    assert_eq!(results, [true, false, true]);
    let error = DevicePool::new(&[], &doubling(), options(1)).unwrap_err().to_string();
    assert!(error.contains("devices: found none"), "{error}");
}

#[cfg(feature = "wgpu")]
#[test]
fn a_lost_device_is_taken_out() {
    let gpus: Vec<Context> =
        everywhere().into_iter().filter(|context| context.info().backend == Backend::Wgpu).collect();
    let [gpu] = &gpus[..] else { return };
    let (graph, cpu) = (convolution(), Context::new(Backend::Cpu).unwrap());
    let pool = DevicePool::new(&[gpu.clone(), cpu], &graph, options(2)).unwrap();
    let frames = |count: u32| (0..count).map(|seed| [("x", noise(IMAGE, seed))]);
    let before: Vec<HostTensor> = pool.map(frames(40)).map(|outputs| outputs.unwrap().remove(0)).collect();
    let (device, _) = gpu.wgpu().unwrap();
    let lost = device.clone();
    let after: Vec<HostTensor> = pool
        .map(frames(400).inspect(move |frame| {
            if frame[0].1 == noise(IMAGE, 100) {
                lost.destroy();
            }
        }))
        .map(|outputs| outputs.unwrap().remove(0))
        .collect();
    assert_eq!(after.len(), 400);
    for (before, after) in before.iter().zip(&after) {
        for (before, after) in before.to_f32().iter().zip(&*after.to_f32()) {
            assert!((before - after).abs() <= 1e-5 * (1.0 + after.abs()), "{before}, then {after}");
        }
    }
    // A slow one may not have been given anything since.
    until(
        &pool,
        |devices| devices[0].error.is_some(),
        || {
            assert!(pool.map(frames(400)).all(|outputs| outputs.is_ok()));
        },
    );
    let [lost, cpu] = &pool.devices()[..] else { panic!("two devices") };
    assert!(lost.error.as_ref().unwrap().is_device_lost() && cpu.error.is_none());
}

#[test]
fn a_function_that_panics_takes_no_device_out() {
    let contexts = everywhere();
    for panics in 0..10 {
        let runs = AtomicUsize::new(0);
        let once = Custom::host(
            "once",
            |inputs| Ok(inputs.to_vec()),
            move |inputs, outputs| {
                assert_ne!(runs.fetch_add(1, SeqCst), panics, "planted");
                outputs[0].copy_from_slice(inputs[0]);
                Ok(())
            },
        );
        let mut graph = Graph::new();
        let x = graph.input("x", Shape::nhwc(1, 1, 1, 4)).unwrap();
        let y = graph.custom("once", &once, &[x]).unwrap();
        graph.output(y[0]).unwrap();
        let pool = DevicePool::new(&contexts, &graph, options(1)).unwrap();
        let frames = (0..20).map(|value| {
            let values = vec![value as f32; 4];
            [("x", HostTensor::new(Shape::nhwc(1, 1, 1, 4), values).unwrap())]
        });
        let mut failed = 0;
        for (value, outputs) in pool.map(frames).enumerate() {
            match outputs {
                Ok(outputs) => assert_eq!(outputs[0].to_f32()[0], value as f32),
                Err(error) => {
                    assert!(error.is_panic() && error.to_string().contains("planted"), "{error}");
                    failed += 1;
                }
            }
        }
        assert_eq!(failed, 1);
        assert!(pool.devices().iter().all(|device| device.error.is_none()), "{:?}", pool.devices());
    }
}
