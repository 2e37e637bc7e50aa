//! Outputs by name, runs under way, batches, devices, and options that say what is computed of what.

use diptych_c::*;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

const MODEL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/posenet/data/posenet_figures.tflite");

fn last() -> String {
    // SAFETY: the message lives until the next failure of this thread.
    unsafe { CStr::from_ptr(diptych_last_error()) }.to_str().expect("UTF-8").to_owned()
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

/// A session of the CPU, with options.
struct Opened(*mut diptych_session);

// SAFETY: the header says that threads may share a session.
unsafe impl Sync for Opened {}

impl Opened {
    fn with(model: &str, set: impl FnOnce(*mut diptych_options)) -> Result<Self, (diptych_status, String)> {
        let (mut session, options) = (null_mut(), diptych_options_new());
        // SAFETY: all pointers are those of live values.
        unsafe {
            assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
            set(options);
            let status = diptych_open_file(text(model).as_ptr(), options, &raw mut session);
            diptych_options_free(options);
            match status {
                diptych_status::Ok => Ok(Opened(session)),
                status => Err((status, last())),
            }
        }
    }

    fn new() -> Self {
        Opened::with(MODEL, |_| {}).expect("the bundled network")
    }

    fn outputs(&self) -> Vec<(String, usize)> {
        // SAFETY: the session is open; a port's name lives as long.
        unsafe {
            let port = |index| {
                let mut port: diptych_port = std::mem::zeroed();
                assert_eq!(diptych_output(self.0, index, &raw mut port), diptych_status::Ok);
                (CStr::from_ptr(port.name).to_str().expect("UTF-8").to_owned(), port.bytes)
            };
            (0..diptych_output_count(self.0)).map(port).collect()
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { diptych_close(self.0) };
    }
}

fn tensor<T>(elements: &[T], dtype: diptych_dtype, own: &[usize]) -> diptych_tensor {
    let mut extents = [1; 6];
    extents.iter_mut().zip(own).for_each(|(extent, own)| *extent = *own);
    let (elements, bytes) = (elements.as_ptr().cast::<c_void>(), size_of_val(elements));
    diptych_tensor { elements, bytes, dtype: dtype as i32, rank: own.len(), extents }
}

const EXTENTS: [usize; 4] = [1, 257, 257, 3];

fn bytes() -> Vec<u8> {
    (0..EXTENTS.iter().product::<usize>()).map(|place| (place * 31 % 253) as u8).collect()
}

/// What numbers they are, from `low` to `high`.
fn floats(low: f64, high: f64) -> Vec<f32> {
    bytes().iter().map(|&byte| (low + f64::from(byte) * (high - low) / 255.0) as f32).collect()
}

fn result<T>(name: &CStr, room: &mut [T]) -> diptych_result {
    let capacity = size_of_val(room);
    diptych_result {
        name: name.as_ptr(),
        elements: room.as_mut_ptr().cast(),
        capacity,
        bytes: 0,
        dtype: -1,
        rank: 0,
        extents: [0; 6],
    }
}

fn run_into(opened: &Opened, input: &diptych_tensor, results: &mut [diptych_result]) -> diptych_status {
    // SAFETY: the tensor and the results are those of live slices, or are refused.
    unsafe { diptych_run_into(opened.0, input, 1, results.as_mut_ptr(), results.len()) }
}

/// All outputs of a run, by `diptych_run_tensors`.
fn run(opened: &Opened, input: &diptych_tensor) -> Result<Vec<Vec<u8>>, String> {
    let mut outputs = null_mut();
    // SAFETY: the tensor is that of a live slice; outputs live until they are freed.
    unsafe {
        match diptych_run_tensors(opened.0, input, 1, &raw mut outputs) {
            diptych_status::Ok => Ok(taken(outputs)),
            _ => Err(last()),
        }
    }
}

/// The outputs' bytes.
///
/// # Safety
/// They are not used again.
unsafe fn taken(outputs: *mut diptych_outputs) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        for index in 0..diptych_outputs_count(outputs) {
            let mut tensor: diptych_tensor = std::mem::zeroed();
            assert_eq!(diptych_outputs_tensor(outputs, index, &raw mut tensor), diptych_status::Ok);
            found.push(std::slice::from_raw_parts(tensor.elements.cast::<u8>(), tensor.bytes).to_vec());
        }
        diptych_outputs_free(outputs);
    }
    found
}

#[test]
fn outputs_are_chosen_by_name_and_written_where_the_caller_says() {
    let opened = Opened::new();
    let ports = opened.outputs();
    let numbers = floats(-1.0, 1.0);
    let input = tensor(&numbers, diptych_dtype::F32, &EXTENTS);
    let all = run(&opened, &input).expect("a run");
    assert!(ports.len() >= 3);
    // The last and the first, in that order, with room to spare at an odd address.
    let names = [&ports[ports.len() - 1].0, &ports[0].0].map(|name| text(name));
    let mut rooms = [vec![0xaau8; ports[ports.len() - 1].1 + 9], vec![0xaau8; ports[0].1 + 9]];
    let [one, two] = &mut rooms;
    let mut results = [result(&names[0], &mut one[1..]), result(&names[1], &mut two[1..])];
    assert_eq!(run_into(&opened, &input, &mut results), diptych_status::Ok, "{}", last());
    assert_eq!([results[0].bytes, results[1].bytes], [ports[ports.len() - 1].1, ports[0].1]);
    assert_eq!((results[1].rank, results[1].dtype), (4, diptych_dtype::F32 as i32));
    assert_eq!(results[1].extents.iter().product::<usize>() * 4, results[1].bytes);
    for (room, wanted) in rooms.iter().zip([&all[all.len() - 1], &all[0]]) {
        assert!(room[1..=wanted.len()] == wanted[..]);
        assert!(room[0] == 0xaa && room[1 + wanted.len()..].iter().all(|byte| *byte == 0xaa));
    }

    // No such name, twice, too little room, the same memory: nothing is written.
    let mut room = [f32::NAN; 8];
    let wrong = |results: &mut [diptych_result]| {
        assert_eq!(run_into(&opened, &input, results), diptych_status::Input);
        last()
    };
    let nothing = text("nothing");
    let message = wrong(&mut [result(&nothing, &mut room)]);
    assert!(message.starts_with("results: found no output \"nothing\", wanted one of "), "{message}");
    let twice = &mut [result(&names[0], &mut room), result(&names[0], &mut room)];
    assert!(wrong(twice).contains("twice, wanted each output once"));
    let message = wrong(&mut [result(&names[1], &mut room)]);
    let wanted =
        format!("output {:?}: found room for 32 bytes, wanted {} for f32 of shape", ports[0].0, ports[0].1);
    assert!(message.starts_with(&wanted), "{message}");
    let mut large = vec![f32::NAN; ports[0].1.max(ports[ports.len() - 1].1)];
    let same = large.as_mut_ptr();
    let mut overlapping = [result(&names[0], &mut large), result(&names[1], &mut room)];
    (overlapping[1].elements, overlapping[1].capacity) = (same.cast(), overlapping[0].capacity);
    assert!(wrong(&mut overlapping).contains("found memory of another output"));
    assert!(large.iter().chain(&room).all(|value| value.is_nan()));
    // What is wrong with the second result leaves the first one as it was.
    let mut missing = [result(&names[0], &mut large), result(&names[1], &mut room)];
    (missing[1].elements, missing[1].capacity) = (null_mut(), usize::MAX);
    assert!(wrong(&mut missing).contains("found NULL, wanted a pointer"));
    assert_eq!((missing[0].bytes, missing[0].rank), (0, 0));
    assert!(large.iter().all(|value| value.is_nan()));
    // Too little room for what the file fixes is found before the run, whose inputs are looked at later.
    let nonsense = tensor(&numbers[..3], diptych_dtype::F32, &[1, 3]);
    let mut small = [result(&names[1], &mut room)];
    assert_eq!(run_into(&opened, &nonsense, &mut small), diptych_status::Input);
    assert!(last().contains("found room for 32 bytes"), "{}", last());
    let mut nameless = [diptych_result { name: null(), ..result(&names[0], &mut large) }];
    assert_eq!(wrong(&mut nameless), "results: name: found NULL, wanted a pointer");
}

#[test]
fn outputs_that_are_not_wanted_are_not_computed() {
    let whole = Opened::new();
    let ports = whole.outputs();
    let wanted = &ports[1].0;
    let steps = |opened: &Opened| {
        unsafe extern "C" fn step(_: *const diptych_step, user: *mut c_void) {
            // SAFETY: `user` is what was given.
            unsafe { *user.cast::<usize>() += 1 };
        }
        let (numbers, mut steps) = (floats(-1.0, 1.0), 0usize);
        let input = diptych_input_data { elements: numbers.as_ptr(), length: numbers.len() };
        // SAFETY: the input is a live slice.
        let status =
            unsafe { diptych_profile(opened.0, &raw const input, 1, Some(step), (&raw mut steps).cast()) };
        assert_eq!(status, diptych_status::Ok, "{}", last());
        steps
    };
    let choose = |name: &str| {
        let name = text(name);
        Opened::with(MODEL, |options| {
            // SAFETY: the options and the name are live.
            assert_eq!(unsafe { diptych_options_output(options, name.as_ptr()) }, diptych_status::Ok);
        })
    };
    let one = choose(wanted).expect("an output");
    assert_eq!(one.outputs(), [ports[1].clone()]);
    assert!(steps(&one) < steps(&whole), "{} of {}", steps(&one), steps(&whole));
    let numbers = floats(-1.0, 1.0);
    let input = tensor(&numbers, diptych_dtype::F32, &EXTENTS);
    assert_eq!(run(&one, &input).expect("a run"), [run(&whole, &input).expect("a run")[1].clone()]);
    let Err((status, message)) = choose("nothing") else { panic!("an output of no name") };
    assert_eq!(status, diptych_status::Model);
    assert!(message.contains("found no output \"nothing\", wanted one of"), "{message}");
}

#[test]
fn several_runs_are_under_way() {
    let opened = Opened::new();
    let numbers: Vec<Vec<f32>> = (0..4).map(|frame| floats(-1.0, 0.25 * frame as f64)).collect();
    let inputs: Vec<diptych_tensor> =
        numbers.iter().map(|own| tensor(own, diptych_dtype::F32, &EXTENTS)).collect();
    let wanted: Vec<_> = inputs.iter().map(|input| run(&opened, input).expect("a run")).collect();
    assert_ne!(wanted[0], wanted[1]);
    let mut flights = [null_mut(); 4];
    // SAFETY: the tensors are those of live slices, and each flight is used once.
    unsafe {
        for (input, flight) in inputs.iter().zip(&mut flights) {
            assert_eq!(
                diptych_submit(opened.0, input, 1, &raw mut *flight),
                diptych_status::Ok,
                "{}",
                last()
            );
        }
        let mut outputs = null_mut();
        assert_eq!(diptych_flight_wait(flights[0], &raw mut outputs), diptych_status::Ok);
        assert!(taken(outputs) == wanted[0]);
        diptych_flight_free(flights[1]);
        let (name, bytes) = opened.outputs().remove(0);
        let (name, mut room) = (text(&name), vec![0u8; bytes]);
        let mut results = [result(&name, &mut room)];
        assert_eq!(diptych_flight_wait_into(flights[2], results.as_mut_ptr(), 1), diptych_status::Ok);
        assert!(room == wanted[2][0]);
        // A flight is freed by a wait that fails, too.
        let mut small = [result(&name, &mut room[..8])];
        assert_eq!(diptych_flight_wait_into(flights[3], small.as_mut_ptr(), 1), diptych_status::Input);
        assert_eq!(diptych_flight_wait(null_mut(), &raw mut outputs), diptych_status::Input);
        assert_eq!(last(), "flight: found NULL, wanted a pointer");
        assert_eq!(diptych_flight_wait_into(null_mut(), null_mut(), 0), diptych_status::Input);
        diptych_flight_free(null_mut());
        let mut flight = std::ptr::dangling_mut();
        assert_eq!(diptych_submit(null_mut(), null(), 0, &raw mut flight), diptych_status::Input);
        assert!(flight.is_null());
    }
}

#[test]
fn bytes_of_pictures_are_scaled_as_is_said_or_refused() {
    let numbers = bytes();
    let input = tensor(&numbers, diptych_dtype::U8, &EXTENTS);
    let refused = run(&Opened::new(), &input).expect_err("bytes without a scale");
    assert!(
        refused.contains("found a picture of bytes, of which the file does not say what numbers they are"),
        "{refused}"
    );
    assert!(
        refused.contains("wanted diptych_options_pixels before the session is opened, or floats"),
        "{refused}"
    );
    let with = |input: Option<&str>, means: &[f32], deviations: &[f32]| {
        let input = input.map(text);
        Opened::with(MODEL, |options| {
            let name = input.as_ref().map_or(null(), |input| input.as_ptr());
            // SAFETY: the options are live, and the arrays as long.
            let status = unsafe {
                diptych_options_pixels(options, name, means.as_ptr(), deviations.as_ptr(), means.len())
            };
            assert_eq!(status, diptych_status::Ok, "{}", last());
        })
    };
    let floats = |low, high| {
        let numbers = floats(low, high);
        run(&Opened::new(), &tensor(&numbers, diptych_dtype::F32, &EXTENTS)).expect("floats")
    };
    let found = |opened: Result<Opened, _>| run(&opened.expect("a session"), &input).expect("a picture");
    assert!(found(with(None, &[127.5], &[127.5])) == floats(-1.0, 1.0));
    let all = floats(0.0, 255.0);
    assert!(found(with(None, &[0.0; 3], &[1.0; 3])) == all);
    let name = {
        let opened = Opened::new();
        // SAFETY: the session is open; a port's name lives as long, and a port may be zeros.
        unsafe {
            let mut port: diptych_port = std::mem::zeroed();
            assert_eq!(diptych_input(opened.0, 0, &raw mut port), diptych_status::Ok);
            CStr::from_ptr(port.name).to_str().expect("UTF-8").to_owned()
        }
    };
    assert!(found(with(Some(&name), &[0.0], &[1.0])) == all);
    let Err((status, message)) = with(Some("other"), &[0.0], &[1.0]) else { panic!("no such input") };
    assert_eq!(status, diptych_status::Input);
    assert!(
        message.starts_with("diptych_options_pixels: found input \"other\", wanted one of "),
        "{message}"
    );
    // An input of integers takes bytes as they are.
    let ids = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/open_extents_past.onnx");
    let of_integers = Opened::with(ids, |options| {
        // SAFETY: the options are live.
        let status = unsafe { diptych_options_pixels(options, c"shape".as_ptr(), &0.0, &1.0, 1) };
        assert_eq!(status, diptych_status::Ok);
    });
    let Err((_, message)) = of_integers else { panic!("an input of integers") };
    assert!(message.starts_with("diptych_options_pixels: found input \"shape\""), "{message}");
    let two = with(None, &[0.0; 2], &[1.0; 2]).expect("a session");
    assert!(run(&two, &input).expect_err("three channels").contains("wanted 2 channels"));
    let options = diptych_options_new();
    // SAFETY: the options are live.
    unsafe {
        assert_eq!(diptych_options_pixels(options, null(), &0.0, &0.0, 1), diptych_status::Input);
        assert_eq!(diptych_options_pixels(options, null(), null(), null(), 1), diptych_status::Input);
        assert_eq!(diptych_options_pixels(options, null(), null(), null(), 0), diptych_status::Input);
        diptych_options_free(options);
    }
}

#[test]
fn bytes_are_scaled_as_the_file_says() {
    let shared = std::env::var("DIPTYCH_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into());
    let model = format!("{shared}/models/hand_landmark_lite.tflite");
    if !std::path::Path::new(&model).exists() {
        eprintln!("skipped: {model} is not there");
        return;
    }
    let opened = Opened::with(&model, |_| {}).expect("a network");
    let bytes: Vec<u8> = (0..224 * 224 * 3).map(|place| (place * 31 % 253) as u8).collect();
    // The metadata: means 0 and deviations 255.
    let floats: Vec<f32> = bytes.iter().map(|&byte| (f64::from(byte) / 255.0) as f32).collect();
    let extents = [1, 224, 224, 3];
    let found = run(&opened, &tensor(&bytes, diptych_dtype::U8, &extents)).expect("a picture");
    assert!(found == run(&opened, &tensor(&floats, diptych_dtype::F32, &extents)).expect("floats"));
}

#[test]
fn threads_and_values_are_options() {
    let threaded = Opened::with(MODEL, |options| {
        // SAFETY: the options are live.
        assert_eq!(unsafe { diptych_options_threads(options, 1) }, diptych_status::Ok);
    });
    let numbers = floats(-1.0, 1.0);
    let input = tensor(&numbers, diptych_dtype::F32, &EXTENTS);
    let one = run(&threaded.expect("a session"), &input).expect("a run");
    assert!(one.iter().map(Vec::len).eq(Opened::new().outputs().iter().map(|(_, bytes)| *bytes)));

    let past = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/open_extents_past.onnx");
    let shape = [3i64, -1];
    let opened = Opened::with(past, |options| {
        let given = tensor(&shape, diptych_dtype::I64, &[2]);
        // SAFETY: the options and the tensor are live.
        let status = unsafe { diptych_options_value(options, text("shape").as_ptr(), &raw const given) };
        assert_eq!(status, diptych_status::Ok, "{}", last());
        let short = diptych_tensor { bytes: 8, ..given };
        // SAFETY: the same.
        let status = unsafe { diptych_options_value(options, text("shape").as_ptr(), &raw const short) };
        assert_eq!(
            (status, last()),
            (diptych_status::Input, "value: found 8 bytes, wanted 16 for i64 of shape 2".to_owned())
        );
    });
    // SAFETY: the session is open.
    assert_eq!(unsafe { diptych_input_count(opened.as_ref().map_or(null_mut(), |opened| opened.0)) }, 2);
    // SAFETY: NULL is allowed.
    unsafe {
        assert_eq!(diptych_options_threads(null_mut(), 1), diptych_status::Input);
        assert_eq!(diptych_options_output(null_mut(), null()), diptych_status::Input);
        assert_eq!(diptych_options_value(null_mut(), null(), null()), diptych_status::Input);
        assert_eq!(diptych_options_pixels(null_mut(), null(), null(), null(), 0), diptych_status::Input);
    }
}

#[test]
fn devices_are_listed_and_a_gpu_is_never_the_cpu() {
    let mut devices = null_mut();
    // SAFETY: the list lives until it is freed.
    unsafe {
        assert_eq!(diptych_devices_new(&raw mut devices), diptych_status::Ok, "{}", last());
        let count = diptych_devices_count(devices);
        let device = |index| {
            let mut device: diptych_device_info = std::mem::zeroed();
            assert_eq!(diptych_devices_get(devices, index, &raw mut device), diptych_status::Ok);
            device
        };
        let read = |text: *const c_char| CStr::from_ptr(text).to_str().expect("UTF-8").to_owned();
        let last_one = device(count - 1);
        assert_eq!(
            (read(last_one.id), read(last_one.backend), last_one.software),
            ("cpu".into(), "cpu".into(), true)
        );
        assert!(last_one.pci.is_null() && last_one.uuid.is_null());
        let has_gpu = (0..count).any(|index| !device(index).software);
        for index in 0..count {
            let own = device(index);
            assert!(read(own.id).starts_with(&read(own.backend)) && !read(own.name).is_empty());
            // What is listed can be opened.
            let opened = Opened::with(MODEL, |options| {
                assert_eq!(diptych_options_device(options, own.id), diptych_status::Ok, "{}", last());
            });
            assert!(opened.is_ok(), "{}", last());
        }
        let mut none: diptych_device_info = std::mem::zeroed();
        assert_eq!(diptych_devices_get(devices, count, &raw mut none), diptych_status::Input);
        assert_eq!(last(), format!("device: found number {count}, wanted a number below {count}"));
        assert!(diptych_devices_missing(devices, text("nothing").as_ptr()).is_null());
        assert!(diptych_devices_missing(null(), null()).is_null());
        diptych_devices_free(devices);
        diptych_devices_free(null_mut());
        assert_eq!(diptych_devices_count(null()), 0);
        assert_eq!(diptych_devices_new(null_mut()), diptych_status::Input);

        let gpu = Opened::with(MODEL, |options| {
            assert_eq!(
                diptych_options_device(options, text("gpu").as_ptr()),
                diptych_status::Ok,
                "{}",
                last()
            );
        });
        match gpu {
            Ok(opened) => {
                assert!(has_gpu);
                assert!(!read(diptych_device(opened.0)).starts_with("cpu"));
            }
            Err((status, message)) => {
                assert!(!has_gpu && status == diptych_status::NoDevice, "{message}");
                assert!(message.contains("the best GPU") && message.contains("wgpu"), "{message}");
            }
        }
    }
}

#[test]
fn requests_of_a_batch_get_their_own_answers() {
    let opened = Opened::new();
    let numbers: Vec<Vec<f32>> = (0..5).map(|request| floats(-1.0, 0.25 * request as f64)).collect();
    let inputs: Vec<diptych_tensor> =
        numbers.iter().map(|own| tensor(own, diptych_dtype::F32, &EXTENTS)).collect();
    let alone: Vec<_> = inputs.iter().map(|input| run(&opened, input).expect("a run")).collect();
    let mut how = diptych_batch_options_default();
    assert_eq!((how.max_batch, how.max_waiting), (8, 32));
    let sizes = [1usize, 2];
    (how.max_batch, how.sizes, how.size_count, how.max_delay) = (2, sizes.as_ptr(), 2, 0.01);
    let [cpu, path] = ["cpu", MODEL].map(text);
    let devices = [cpu.as_ptr()];
    let mut batch = null_mut();
    // SAFETY: all pointers are those of live values, and each ticket is used once.
    unsafe {
        let open = |how: &diptych_batch_options, batch: &mut *mut diptych_batch| {
            diptych_batch_open_file(path.as_ptr(), null(), devices.as_ptr(), 1, how, batch)
        };
        assert_eq!(open(&how, &mut batch), diptych_status::Ok, "{}", last());
        assert_eq!(
            (diptych_batch_input_count(batch), diptych_batch_output_count(batch)),
            (1, opened.outputs().len())
        );
        let mut port: diptych_port = std::mem::zeroed();
        assert_eq!(diptych_batch_input(batch, 0, &raw mut port), diptych_status::Ok);
        assert_eq!(port.extents[..4], EXTENTS);
        assert_eq!(diptych_batch_output(batch, 0, &raw mut port), diptych_status::Ok);
        assert_eq!(port.bytes, alone[0][0].len());
        let near = |found: &[u8], wanted: &[u8]| {
            let floats = |bytes: &[u8]| {
                let words = bytes.as_chunks::<4>().0.iter();
                words.map(|word| f32::from_ne_bytes(*word)).collect::<Vec<f32>>()
            };
            // A batch may sum in another order.
            let (found, wanted) = (floats(found), floats(wanted));
            assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 1e-3 * (1.0 + b.abs())));
            assert_eq!(found.len(), wanted.len());
        };
        let mut tickets = [null_mut(); 5];
        for (input, ticket) in inputs.iter().zip(&mut tickets) {
            assert_eq!(
                diptych_batch_submit(batch, input, 1, &raw mut *ticket),
                diptych_status::Ok,
                "{}",
                last()
            );
        }
        for (&ticket, wanted) in tickets.iter().zip(&alone).take(3) {
            let mut outputs = null_mut();
            assert_eq!(diptych_ticket_wait(ticket, &raw mut outputs), diptych_status::Ok, "{}", last());
            taken(outputs).iter().zip(wanted).for_each(|(found, wanted)| near(found, wanted));
        }
        let (name, bytes) = opened.outputs().remove(1);
        let (name, mut room) = (text(&name), vec![0u8; bytes]);
        let mut results = [result(&name, &mut room)];
        assert_eq!(
            diptych_ticket_wait_into(tickets[3], results.as_mut_ptr(), 1),
            diptych_status::Ok,
            "{}",
            last()
        );
        near(&room, &alone[3][1]);
        diptych_ticket_free(tickets[4]);
        let mut ticket = std::ptr::dangling_mut();
        assert_eq!(
            diptych_batch_try_submit(batch, &raw const inputs[0], 1, &raw mut ticket),
            diptych_status::Ok
        );
        diptych_ticket_free(ticket);
        assert_eq!(diptych_batch_submit(batch, inputs.as_ptr(), 2, &raw mut ticket), diptych_status::Input);
        assert!(ticket.is_null() && last().starts_with("inputs: found 2 of them"), "{}", last());
        diptych_batch_close(batch);

        // Errors name the fields of the header.
        how.max_batch = 0;
        assert_eq!(open(&how, &mut batch), diptych_status::Input);
        assert!(
            last().contains("found 0")
                && last().contains("diptych_batch_options.max_batch")
                && batch.is_null(),
            "{}",
            last()
        );
        (how.max_batch, how.max_delay) = (2, f64::NAN);
        assert_eq!(open(&how, &mut batch), diptych_status::Input);
        assert!(last().starts_with("diptych_batch_options.max_delay: found NaN"), "{}", last());
        assert_eq!(diptych_batch_submit(null(), null(), 0, &raw mut ticket), diptych_status::Input);
        assert_eq!(diptych_ticket_wait(null_mut(), null_mut()), diptych_status::Input);
        assert_eq!((diptych_batch_input_count(null()), diptych_batch_output_count(null())), (0, 0));
        diptych_batch_close(null_mut());
        diptych_ticket_free(null_mut());
    }
}

#[test]
fn messages_name_the_functions_of_the_header() {
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/open_extents_past.onnx");
    let caches = |options| {
        // SAFETY: the options are live.
        assert_eq!(unsafe { diptych_options_caches(options, 4) }, diptych_status::Ok);
    };
    for model in [MODEL, network] {
        let Err((_, message)) = Opened::with(model, caches) else { continue };
        assert!(message.contains("diptych_options_caches") && !message.contains("::"), "{message}");
    }
}
