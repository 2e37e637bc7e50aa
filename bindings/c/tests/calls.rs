//! What the functions of the header do with what C may give them.

use diptych_c::*;
use std::ffi::{CStr, CString, c_void};
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

fn no_port() -> diptych_port {
    diptych_port { name: null(), rank: 0, extents: [0; 6], elements: 0, dtype: diptych_dtype::F16, bytes: 0 }
}

/// A session on the CPU.
struct Opened(*mut diptych_session);

// SAFETY: the header says that threads may share a session.
unsafe impl Sync for Opened {}

impl Opened {
    fn new() -> Self {
        Opened::of(&std::fs::read(MODEL).expect("the bundled network"))
    }

    fn of(model: &[u8]) -> Self {
        Opened::seeded(model, 0)
    }

    fn seeded(model: &[u8], seed: u64) -> Self {
        Opened::with(model, seed, None)
    }

    fn with_caches(model: &[u8], places: Option<usize>) -> Self {
        Opened::with(model, 0, places)
    }

    fn with(model: &[u8], seed: u64, places: Option<usize>) -> Self {
        let mut session = null_mut();
        let options = diptych_options_new();
        // SAFETY: all pointers are those of live values.
        unsafe {
            assert_eq!(diptych_options_seed(options, seed), diptych_status::Ok);
            assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
            if let Some(places) = places {
                assert_eq!(diptych_options_caches(options, places), diptych_status::Ok);
            }
            let status = diptych_open_bytes(model.as_ptr(), model.len(), options, &raw mut session);
            assert_eq!(status, diptych_status::Ok, "{}", last());
            diptych_options_free(options);
        }
        assert!(!session.is_null());
        Opened(session)
    }

    /// Elements of each input, and of each output.
    fn elements(&self) -> [Vec<usize>; 2] {
        // SAFETY: the session is open.
        let counts = unsafe { [diptych_input_count(self.0), diptych_output_count(self.0)] };
        let of = |get: unsafe extern "C" fn(*const _, usize, *mut diptych_port) -> diptych_status, count| {
            let port = |index| {
                let mut port = no_port();
                // SAFETY: the session is open, and the port lives.
                assert_eq!(unsafe { get(self.0, index, &raw mut port) }, diptych_status::Ok);
                assert_eq!(port.extents.iter().product::<usize>(), port.elements);
                assert_eq!((port.dtype, port.bytes), (diptych_dtype::F32, 4 * port.elements));
                port.elements
            };
            (0..count).map(port).collect()
        };
        [of(diptych_input, counts[0]), of(diptych_output, counts[1])]
    }

    fn run(&self, input: &[f32], outputs: &mut [Vec<f32>]) -> diptych_status {
        let input = [diptych_input_data { elements: input.as_ptr(), length: input.len() }];
        let outputs: Vec<diptych_output_data> = outputs
            .iter_mut()
            .map(|output| diptych_output_data { elements: output.as_mut_ptr(), length: output.len() })
            .collect();
        // SAFETY: the lengths are those of live vectors.
        unsafe { diptych_run(self.0, input.as_ptr(), 1, outputs.as_ptr(), outputs.len()) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { diptych_close(self.0) };
    }
}

#[test]
fn null_is_an_error_everywhere() {
    let mut session = null_mut();
    let run = |session, inputs, outputs| {
        // SAFETY: NULL is allowed.
        unsafe { diptych_run(session, inputs, 1, outputs, 1) }
    };
    // SAFETY: NULL is allowed.
    unsafe {
        assert_eq!(diptych_open_file(null(), null(), &raw mut session), diptych_status::Input);
        assert_eq!(last(), "path: found NULL, wanted a pointer");
        assert_eq!(diptych_open_file(text(MODEL).as_ptr(), null(), null_mut()), diptych_status::Input);
        assert_eq!(diptych_open_bytes(null(), 5, null(), &raw mut session), diptych_status::Input);
        assert_eq!(diptych_options_device(null_mut(), null()), diptych_status::Input);
        assert_eq!(diptych_options_f16(null_mut(), true), diptych_status::Input);
        assert_eq!(diptych_options_seed(null_mut(), 1), diptych_status::Input);
        assert_eq!(diptych_options_dequantize(null_mut(), true), diptych_status::Input);
        assert_eq!(diptych_options_record(null_mut(), null()), diptych_status::Input);
        assert_eq!(diptych_options_dimension(null_mut(), null(), 1), diptych_status::Input);
        assert_eq!(run(null_mut(), null(), null()), diptych_status::Input);
        assert_eq!(diptych_run_typed(null_mut(), null(), 1, null(), 1), diptych_status::Input);
        assert_eq!(diptych_profile_typed(null_mut(), null(), 0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_tune(null_mut(), 1.0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_profile(null_mut(), null(), 0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_input(null(), 0, null_mut()), diptych_status::Input);
        assert_eq!(diptych_input_axis(null(), 0, 0, null_mut()), diptych_status::Input);
        let mut outputs = std::ptr::dangling_mut();
        assert_eq!(diptych_run_tensors(null_mut(), null(), 1, &raw mut outputs), diptych_status::Input);
        assert!(outputs.is_null());
        assert_eq!(diptych_outputs_tensor(null(), 0, null_mut()), diptych_status::Input);
        assert_eq!(diptych_outputs_count(null()), 0);
        diptych_outputs_free(null_mut());
        assert_eq!((diptych_input_count(null()), diptych_output_count(null())), (0, 0));
        assert!(diptych_device(null()).is_null());
        diptych_close(null_mut());
        diptych_options_free(null_mut());
    }
    let opened = Opened::new();
    assert_eq!(run(opened.0, null(), null()), diptych_status::Input);
    assert_eq!(last(), "inputs: found NULL, wanted a pointer");
}

#[test]
fn what_cannot_be_opened_says_why() {
    // Any address will do: a failure sets it to NULL.
    let mut session = std::ptr::dangling_mut();
    let options = diptych_options_new();
    // SAFETY: all pointers are those of live values.
    unsafe {
        let missing = text("no such file");
        assert_eq!(diptych_open_file(missing.as_ptr(), null(), &raw mut session), diptych_status::File);
        assert!(last().starts_with("no such file: ") && session.is_null(), "{}", last());
        let status = diptych_open_bytes(b"no model".as_ptr(), 8, null(), &raw mut session);
        assert_eq!(status, diptych_status::Model, "{}", last());
        assert_eq!(diptych_open_file(c"\xff".as_ptr(), null(), &raw mut session), diptych_status::Input);
        assert!(last().starts_with("path: "), "{}", last());
        assert_eq!(diptych_options_device(options, text("wgpu:").as_ptr()), diptych_status::Input);
        let device = text("opencl:no such GPU");
        assert_eq!(diptych_options_device(options, device.as_ptr()), diptych_status::Ok);
        let path = text(MODEL);
        assert_eq!(diptych_open_file(path.as_ptr(), options, &raw mut session), diptych_status::NoDevice);
        assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
        assert_eq!(diptych_options_dimension(options, text("nothing").as_ptr(), 2), diptych_status::Ok);
        let status = diptych_open_file(path.as_ptr(), options, &raw mut session);
        assert!(status != diptych_status::Ok && last().contains("nothing"), "{status:?} {}", last());
        diptych_options_free(options);
    }
}

#[test]
fn runs_read_and_write_the_callers_memory_and_nothing_else() {
    let opened = Opened::new();
    let [inputs, outputs] = opened.elements();
    let input: Vec<f32> = (0..inputs[0]).map(|k| k as f32 / inputs[0] as f32).collect();
    let fresh = || outputs.iter().map(|&length| vec![f32::NAN; length]).collect::<Vec<_>>();

    let mut found = fresh();
    assert_eq!(opened.run(&input, &mut found), diptych_status::Ok, "{}", last());
    assert!(found.iter().flatten().all(|value| value.is_finite()));

    // Too short, too many, overlapping.
    assert_eq!(opened.run(&input[1..], &mut fresh()), diptych_status::Input);
    assert!(last().contains(&format!("found {} elements", inputs[0] - 1)), "{}", last());
    let mut short = fresh();
    short[0].pop();
    assert_eq!(opened.run(&input, &mut short), diptych_status::Input);
    assert!(short[1..].iter().flatten().all(|value| value.is_nan()));
    assert_eq!(opened.run(&input, &mut []), diptych_status::Input);
    assert!(last().starts_with("outputs: found 0 of them"), "{}", last());
    let whole = [diptych_input_data { elements: input.as_ptr(), length: input.len() }];
    let mut own = fresh();
    let shared: Vec<diptych_output_data> = outputs
        .iter()
        .map(|&length| diptych_output_data {
            elements: own[0].as_mut_ptr(),
            length: length.min(own[0].len()),
        })
        .collect();
    if outputs.len() > 1 && outputs[1] <= outputs[0] {
        // SAFETY: what overlaps is refused before it is used.
        let status = unsafe { diptych_run(opened.0, whole.as_ptr(), 1, shared.as_ptr(), shared.len()) };
        assert_eq!(status, diptych_status::Input);
        assert!(last().contains("memory of an input or another output"), "{}", last());
    }

    // Threads take turns.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut own = fresh();
                assert_eq!(opened.run(&input, &mut own), diptych_status::Ok, "{}", last());
                assert!(own == found);
            });
        }
    });
}

/// A field of a protocol buffer's message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// An ONNX model of inputs `x` and `k` of two elements of int64: their sum `y`, whether `x` is greater, and `x` as floats.
fn integers() -> Vec<u8> {
    let port = |name: &[u8], kind: u8| {
        let tensor = [number(1, kind), field(2, &field(1, &number(1, 2)))].concat();
        [field(1, name), field(2, &field(1, &tensor))].concat()
    };
    let node = |inputs: &[&[u8]], output: &[u8], op: &[u8], rest: &[u8]| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(1, input)).collect();
        field(1, &[inputs, field(2, output), field(4, op), rest.to_vec()].concat())
    };
    // The attribute `to`: float.
    let to = field(5, &[field(1, b"to"), number(3, 1), vec![0xa0, 0x01, 2]].concat());
    let graph = [
        node(&[b"x", b"k"], b"y", b"Add", &[]),
        node(&[b"x", b"k"], b"g", b"Greater", &[]),
        node(&[b"x"], b"f", b"Cast", &to),
        field(2, b"graph"),
        field(11, &port(b"x", 7)),
        field(11, &port(b"k", 7)),
        field(12, &port(b"y", 7)),
        field(12, &port(b"g", 9)),
        field(12, &port(b"f", 1)),
    ]
    .concat();
    let length = [graph.len() as u8 & 0x7f | 0x80, (graph.len() >> 7) as u8];
    [number(1, 8), vec![7 << 3 | 2], length.to_vec(), graph, field(8, &number(2, 13))].concat()
}

#[test]
fn integers_go_in_and_come_out_as_they_are() {
    let opened = Opened::of(&integers());
    let mut ports = [no_port(), no_port(), no_port(), no_port()];
    // SAFETY: the session is open, and the ports live.
    unsafe {
        assert_eq!(diptych_input(opened.0, 0, &raw mut ports[0]), diptych_status::Ok);
        (0..3).zip(&mut ports[1..]).for_each(|(index, port)| {
            assert_eq!(diptych_output(opened.0, index, &raw mut *port), diptych_status::Ok);
        });
    }
    let types = ports.each_ref().map(|port| (port.dtype, port.bytes));
    let (long, truth, float) = (diptych_dtype::I64, diptych_dtype::Bool, diptych_dtype::F32);
    assert_eq!(types, [(long, 16), (long, 16), (truth, 2), (float, 8)]);

    let (x, k) = ([1i64 << 53, -5], [1i64, 7]);
    // At an address that is no multiple of anything.
    let mut moved = [0u8; 17];
    moved[1..].copy_from_slice(&k.map(i64::to_ne_bytes).concat());
    let given = [
        diptych_input_bytes { elements: x.as_ptr().cast(), bytes: 16 },
        diptych_input_bytes { elements: moved[1..].as_ptr().cast(), bytes: 16 },
    ];
    let (mut sum, mut greater, mut floats) = ([0i64; 2], [9u8; 4], [f32::NAN; 2]);
    let found = [
        diptych_output_bytes { elements: sum.as_mut_ptr().cast(), bytes: 16 },
        diptych_output_bytes { elements: greater.as_mut_ptr().cast(), bytes: 2 },
        diptych_output_bytes { elements: floats.as_mut_ptr().cast(), bytes: 8 },
    ];
    // SAFETY: the lengths are those of live arrays.
    let status = unsafe { diptych_run_typed(opened.0, given.as_ptr(), 2, found.as_ptr(), 3) };
    assert_eq!(status, diptych_status::Ok, "{}", last());
    assert_eq!((sum, greater), ([(1 << 53) + 1, 2], [1, 0, 9, 9]));
    assert_eq!(floats, [(1u64 << 53) as f32, -5.0]);

    unsafe extern "C" fn step(_: *const diptych_step, user: *mut c_void) {
        // SAFETY: `user` is what was given.
        unsafe { *user.cast::<usize>() += 1 };
    }
    let mut steps = 0usize;
    let count = (&raw mut steps).cast();
    // SAFETY: the same.
    let status = unsafe { diptych_profile_typed(opened.0, given.as_ptr(), 2, Some(step), count) };
    assert_eq!(status, diptych_status::Ok, "{}", last());
    assert!(steps > 0);

    // Too few bytes, overlapping, NULL.
    let run = |inputs: &[diptych_input_bytes; 2], outputs: &[diptych_output_bytes; 3]| {
        // SAFETY: what does not fit is refused before it is used.
        let status = unsafe { diptych_run_typed(opened.0, inputs.as_ptr(), 2, outputs.as_ptr(), 3) };
        assert_eq!(status, diptych_status::Input);
        last()
    };
    let short = diptych_input_bytes { elements: x.as_ptr().cast(), bytes: 8 };
    let [_, second] = &given;
    let second = diptych_input_bytes { ..*second };
    assert_eq!(run(&[short, second], &found), "input \"x\": found 8 bytes, wanted 16 for i64 of shape 2");
    let null = diptych_input_bytes { elements: null(), bytes: 16 };
    let second = diptych_input_bytes { elements: moved[1..].as_ptr().cast(), bytes: 16 };
    assert_eq!(run(&[null, second], &found), "input \"x\": found NULL, wanted a pointer");
    let same = || diptych_output_bytes { elements: sum.as_ptr().cast_mut().cast(), bytes: 16 };
    let [_, truths, rest] = &found;
    let overlapping = [
        same(),
        diptych_output_bytes { elements: same().elements, bytes: truths.bytes },
        diptych_output_bytes { ..*rest },
    ];
    assert!(run(&given, &overlapping).contains("memory of an input or another output"), "{}", last());

    // The functions of floats convert.
    let [x, k] = [[3.0f32, -5.0], [1.0, 7.0]];
    let floats_of = |values: &[f32; 2]| diptych_input_data { elements: values.as_ptr(), length: 2 };
    let mut outputs = [[f32::NAN; 2]; 3];
    let [one, two, three] = &mut outputs;
    let targets =
        [one, two, three].map(|values| diptych_output_data { elements: values.as_mut_ptr(), length: 2 });
    let run = |x: &[f32; 2]| {
        // SAFETY: the lengths are those of live arrays.
        unsafe { diptych_run(opened.0, [floats_of(x), floats_of(&k)].as_ptr(), 2, targets.as_ptr(), 3) }
    };
    assert_eq!(run(&x), diptych_status::Ok, "{}", last());
    assert_eq!(run(&[0.5, 1.0]), diptych_status::Input);
    assert!(last().contains("input \"x\": found 0.5 at element 0"), "{}", last());
    assert_eq!(outputs, [[4.0, 2.0], [1.0, 0.0], [3.0, -5.0]]);
}

/// A tensor to give. What is beyond its rank is anything.
fn tensor<T>(elements: &[T], dtype: diptych_dtype, own: &[usize]) -> diptych_tensor {
    let mut extents = [usize::MAX; 6];
    extents.iter_mut().zip(own).for_each(|(extent, own)| *extent = *own);
    let (elements, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
    diptych_tensor { elements, bytes, dtype: dtype as i32, rank: own.len(), extents }
}

fn no_tensor() -> diptych_tensor {
    diptych_tensor { elements: null(), bytes: 0, dtype: -1, rank: 9, extents: [9; 6] }
}

/// An output of a run: extents, type, and elements as bytes.
type Found = (Vec<usize>, i32, Vec<u8>);

fn run_tensors(opened: &Opened, inputs: &[diptych_tensor]) -> Result<Vec<Found>, String> {
    let mut outputs = null_mut();
    // SAFETY: the tensors are those of live slices, or are refused before they are used.
    let status = unsafe { diptych_run_tensors(opened.0, inputs.as_ptr(), inputs.len(), &raw mut outputs) };
    if status != diptych_status::Ok {
        assert!(outputs.is_null());
        return Err(last());
    }
    let mut found = Vec::new();
    // SAFETY: the outputs live until they are freed below, and `tensor` lives.
    unsafe {
        for index in 0..diptych_outputs_count(outputs) {
            let mut tensor = no_tensor();
            assert_eq!(diptych_outputs_tensor(outputs, index, &raw mut tensor), diptych_status::Ok);
            assert!(tensor.extents[tensor.rank..].iter().all(|extent| *extent == 1));
            let bytes = std::slice::from_raw_parts(tensor.elements.cast::<u8>(), tensor.bytes);
            found.push((tensor.extents[..tensor.rank].to_vec(), tensor.dtype, bytes.to_vec()));
        }
        let mut tensor = no_tensor();
        assert_eq!(diptych_outputs_tensor(outputs, found.len(), &raw mut tensor), diptych_status::Input);
        assert_eq!(last(), format!("output: found number {0}, wanted a number below {0}", found.len()));
        diptych_outputs_free(outputs);
    }
    Ok(found)
}

/// The path of a file that joins `past` and `x` to `present` and reads `x` in the order of `shape`, all of open extents.
const PAST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/open_extents_past.onnx");

#[test]
fn each_run_decides_the_extents_that_a_file_leaves_open() {
    let opened = Opened::of(&std::fs::read(PAST).expect("a file of the tests"));
    let axis = |input, axis| {
        let mut name = null();
        // SAFETY: the session is open; a name lives as long as it.
        unsafe {
            let status = diptych_input_axis(opened.0, input, axis, &raw mut name);
            assert!(status == diptych_status::Ok || name.is_null());
            (status, (!name.is_null()).then(|| CStr::from_ptr(name).to_str().expect("UTF-8").to_owned()))
        }
    };
    let fixed = (diptych_status::Ok, None);
    let named = |name: &str| (diptych_status::Ok, Some(name.to_owned()));
    assert_eq!([axis(0, 0), axis(0, 1), axis(0, 2)], [named("batch"), named("length"), fixed.clone()]);
    assert_eq!([axis(1, 1), axis(2, 0)], [named("past"), fixed]);
    assert_eq!(axis(0, 3).0, diptych_status::Input);
    assert_eq!(last(), "axis: found number 3, wanted a number below 3");
    assert_eq!(axis(3, 0).0, diptych_status::Input);

    let (float, long) = (diptych_dtype::F32, diptych_dtype::I64);
    let of_longs = |values: &[i64]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let of_floats = |values: &[f32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let extents = |get: unsafe extern "C" fn(*const _, usize, *mut diptych_port) -> diptych_status, index| {
        let mut port = no_port();
        // SAFETY: the session is open, and the port lives.
        assert_eq!(unsafe { get(opened.0, index, &raw mut port) }, diptych_status::Ok);
        port.extents[..port.rank].to_vec()
    };
    assert_eq!([extents(diptych_input, 0), extents(diptych_input, 1)], [[1, 1, 4], [1, 1, 4]]);
    // No past, of which there is nothing to point to; then one of two, with floats at an odd address.
    for (length, past) in [(3, 0), (1, 2), (3, 0)] {
        let x: Vec<f32> = (0..4 * length).map(|k| (k % 3) as f32).collect();
        let before = vec![7.0f32; 4 * past];
        let shape = [2i64, -1];
        let mut moved = vec![0u8];
        moved.extend(of_floats(&x));
        let empty = diptych_tensor { elements: null(), ..tensor::<f32>(&[], float, &[1, 0, 4]) };
        let given = [
            diptych_tensor { dtype: float as i32, ..tensor(&moved[1..], float, &[1, length, 4]) },
            if past == 0 { empty } else { tensor(&before, float, &[1, past, 4]) },
            tensor(&shape, long, &[2]),
        ];
        let found = run_tensors(&opened, &given).expect("a run");
        let present = [&before[..], &x].concat();
        assert_eq!(found[0], (vec![1, past + length, 4], float as i32, of_floats(&present)));
        assert_eq!(found[1].0, [1, past + length, 3]);
        assert_eq!(found[2], (vec![2, 2 * length], float as i32, of_floats(&x)));
        assert_eq!(found[3], (vec![3], long as i32, of_longs(&[1, (past + length) as i64, 4])));
        let places = x.iter().filter(|value| **value != 0.0).count();
        assert_eq!(found[4].0, [3, places]);
        // The ports have the last run's extents, so the other functions run those again.
        assert_eq!([extents(diptych_input, 0), extents(diptych_input, 1)], [[1, length, 4], [1, past, 4]]);
        assert_eq!(extents(diptych_output, 4), [3, places]);
        let bytes =
            |tensor: &diptych_tensor| diptych_input_bytes { elements: tensor.elements, bytes: tensor.bytes };
        let mut room: Vec<Vec<u8>> = found.iter().map(|output| vec![0; output.2.len()]).collect();
        let targets: Vec<diptych_output_bytes> = room
            .iter_mut()
            .map(|room| diptych_output_bytes { elements: room.as_mut_ptr().cast(), bytes: room.len() })
            .collect();
        // SAFETY: the lengths are those of live vectors.
        let status = unsafe {
            diptych_run_typed(
                opened.0,
                given.each_ref().map(bytes).as_ptr(),
                3,
                targets.as_ptr(),
                targets.len(),
            )
        };
        assert_eq!(status, diptych_status::Ok, "{}", last());
        assert!(room.iter().eq(found.iter().map(|output| &output.2)));
    }

    // What does not fit.
    let (x, shape) = ([1.0f32; 12], [3i64, 4]);
    let given =
        || [tensor(&x, float, &[1, 3, 4]), tensor(&x[..4], float, &[1, 1, 4]), tensor(&shape, long, &[2])];
    let refused = |change: &dyn Fn(&mut [diptych_tensor; 3])| {
        let mut given = given();
        change(&mut given);
        run_tensors(&opened, &given).expect_err("a refusal")
    };
    assert_eq!(
        refused(&|given| given[0].extents[1] = 2),
        "input \"x\": found 48 bytes, wanted 32 for f32 of shape 1x2x4"
    );
    assert_eq!(refused(&|given| given[0].rank = 7), "input \"x\": found 7 axes, wanted at most 6");
    assert_eq!(refused(&|given| given[0].dtype = 10), "input \"x\": found type 10, wanted a diptych_dtype");
    assert_eq!(refused(&|given| given[0].elements = null()), "input \"x\": found NULL, wanted a pointer");
    assert_eq!(
        refused(&|given| given[0] = tensor(&x, float, &[3, 4])),
        "input \"x\": found shape 3x4, wanted a tensor of batchxlengthx4"
    );
    assert!(refused(&|given| given[1] = tensor(&x[..8], float, &[2, 1, 4])).contains("Concat"));
    assert!(
        run_tensors(&opened, &given()[..2]).expect_err("a refusal").starts_with("inputs: found 2 of them")
    );
    // Other types, if their numbers are the input's.
    let mut other = given();
    let small = [4i8, 3];
    other[2] = tensor(&small, diptych_dtype::I8, &[2]);
    assert_eq!(run_tensors(&opened, &other).expect("a run")[2].0, [4, 3]);
}

/// The path of a file that adds random numbers to `x`.
const NOISE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/random/extents.onnx");

#[test]
fn a_seed_decides_what_each_run_draws() {
    let model = std::fs::read(NOISE).expect("a file of the tests");
    let x = [0.0f32; 9];
    let runs = |seed| {
        let opened = Opened::seeded(&model, seed);
        let run =
            || run_tensors(&opened, &[tensor(&x, diptych_dtype::F32, &[9])]).expect("a run").remove(0).2;
        [run(), run()]
    };
    let drawn = [runs(0), runs(u64::MAX)];
    assert_eq!([runs(0), runs(u64::MAX)], drawn);
    assert!(drawn[0][0] != drawn[0][1] && drawn[0] != drawn[1]);
}

#[test]
fn a_profile_tells_every_step_and_the_cpu_is_not_tuned() {
    unsafe extern "C" fn step(step: *const diptych_step, user: *mut c_void) {
        // SAFETY: the step lives, and `user` is what was given.
        let (step, steps) = unsafe { (&*step, &mut *user.cast::<Vec<(String, f64)>>()) };
        // SAFETY: the name lives as long as the step.
        let name = unsafe { CStr::from_ptr(step.name) }.to_str().expect("UTF-8");
        steps.push((name.to_owned(), step.microseconds));
    }
    let opened = Opened::new();
    let input = vec![0.5f32; opened.elements()[0][0]];
    let given = [diptych_input_data { elements: input.as_ptr(), length: input.len() }];
    let mut steps: Vec<(String, f64)> = Vec::new();
    let user = (&raw mut steps).cast();
    // SAFETY: all pointers are those of live values.
    unsafe {
        assert_eq!(diptych_profile(opened.0, given.as_ptr(), 1, Some(step), user), diptych_status::Ok);
        assert_eq!(diptych_profile(opened.0, given.as_ptr(), 1, None, user), diptych_status::Input);
        assert_eq!(diptych_tune(opened.0, 1.0, None, null_mut()), diptych_status::Unsupported);
        assert_eq!(diptych_tune(opened.0, -1.0, None, null_mut()), diptych_status::Input);
    }
    assert!(steps.len() > 10 && steps.iter().any(|(_, time)| *time > 0.0), "{steps:?}");
}

/// A decoder of two layers.
const DECODER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/kept_decoder.onnx");

#[test]
fn a_decoder_keeps_its_caches() {
    let model = std::fs::read(DECODER).expect("a file of the tests");
    let opened = Opened::with_caches(&model, Some(4));
    // SAFETY: the session is open.
    let counts = unsafe { [diptych_input_count(opened.0), diptych_output_count(opened.0)] };
    assert_eq!(counts, [3, 1]);
    let long = diptych_dtype::I64;
    let step = |begin: usize, count: usize| {
        let places: Vec<i64> = (begin..begin + count).map(|place| place as i64).collect();
        let ids: Vec<i64> = places.iter().map(|place| (7 * place + 3) % 32).collect();
        let mask = vec![1i64; begin + count];
        let given = [
            tensor(&ids, long, &[1, count]),
            tensor(&mask, long, &[1, begin + count]),
            tensor(&places, long, &[1, count]),
        ];
        Ok::<_, String>(run_tensors(&opened, &given)?[0].2.clone())
    };
    let runs = || -> Result<Vec<Vec<u8>>, String> {
        [(0, 2), (2, 1), (3, 1)].map(|(a, b)| step(a, b)).into_iter().collect()
    };
    let first = runs().expect("four places");
    assert!(step(4, 1).is_err(), "a fifth one");
    // SAFETY: the session is open.
    unsafe {
        assert_eq!(diptych_truncate(opened.0, 5), diptych_status::Input);
        assert_eq!(diptych_truncate(opened.0, 2), diptych_status::Ok);
    }
    let both = step(2, 2).expect("two tokens at once");
    let close = |one: &[u8], other: &[u8]| {
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes
                .chunks_exact(4)
                .map(|word| f32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
                .collect()
        };
        floats(one).iter().zip(floats(other)).all(|(one, other)| (one - other).abs() < 1e-4)
    };
    assert!(close(&both, &[&first[1][..], &first[2]].concat()));
    // SAFETY: the session is open.
    assert_eq!(unsafe { diptych_reset(opened.0) }, diptych_status::Ok);
    assert_eq!(runs().expect("four places again"), first);
    // Other caches than none are refused where there are none to be found by name.
    let options = diptych_options_new();
    let mut session = null_mut();
    let network = std::fs::read(MODEL).expect("the bundled network");
    // SAFETY: all pointers are those of live values.
    unsafe {
        assert_eq!(diptych_options_caches(options, 4), diptych_status::Ok);
        let status = diptych_open_bytes(network.as_ptr(), network.len(), options, &raw mut session);
        assert!(status != diptych_status::Ok && session.is_null(), "{}", last());
        diptych_options_free(options);
    }
}

/// A product of floats with int8 weights.
const DYNAMIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/dynamic_int8.onnx");

/// A session with an option set, and what it gives for some numbers.
fn with_option(set: impl FnOnce(*mut diptych_options)) -> (String, Vec<f32>) {
    let mut session = null_mut();
    let options = diptych_options_new();
    set(options);
    // SAFETY: all pointers are those of live values.
    let opened = unsafe {
        let status = diptych_open_file(text(DYNAMIC).as_ptr(), options, &raw mut session);
        assert_eq!(status, diptych_status::Ok, "{}", last());
        diptych_options_free(options);
        Opened(session)
    };
    let [inputs, outputs] = opened.elements();
    let x: Vec<f32> = (0..inputs[0]).map(|at| (at * 37 % 101) as f32 / 17.0 - 2.3).collect();
    let mut found = vec![vec![f32::NAN; outputs[0]]];
    assert_eq!(opened.run(&x, &mut found), diptych_status::Ok, "{}", last());
    // SAFETY: the session is open.
    let device = unsafe { CStr::from_ptr(diptych_device(opened.0)) }.to_str().expect("UTF-8").to_owned();
    (device, found.remove(0))
}

#[test]
fn the_fastest_device_is_measured() {
    // SAFETY: the options are live.
    let set = |options| unsafe { diptych_options_device(options, text("fastest").as_ptr()) };
    let (device, _) = with_option(|options| assert_eq!(set(options), diptych_status::Ok));
    assert!(device.contains("the fastest of"), "{device}");
}

#[test]
fn floats_are_rounded_at_each_run_unless_that_is_turned_off() {
    let of = |dequantize| {
        with_option(|options| {
            // SAFETY: the options are live.
            unsafe {
                assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
                assert_eq!(diptych_options_dequantize(options, dequantize), diptych_status::Ok);
            }
        })
        .1
    };
    let [bytes, floats] = [of(false), of(true)];
    let most = floats.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
    let off = bytes.iter().zip(&floats).fold(0.0, |off: f32, (a, b)| off.max((a - b).abs()));
    assert!(off <= 1e-4 * most, "{off} of {most}");
}

#[test]
fn a_frame_becomes_an_input() {
    let format = text("NV12");
    let frame = diptych_frame {
        format: format.as_ptr(),
        width: 8,
        height: 4,
        stride: 0,
        matrix: 0,
        full_range: false,
        siting: 0,
        fit: 0,
        mean: [0.5; 3],
        deviation: [0.5; 3],
    };
    // BT.601's red.
    let data: Vec<u8> = [81; 32].into_iter().chain([90, 240].repeat(8)).collect();
    let mut found = [9.0f32; 4 * 2 * 3];
    let made = |frame: &diptych_frame, bytes: usize, found: &mut [f32]| {
        let (elements, length) = (found.as_mut_ptr(), found.len());
        // SAFETY: all pointers are those of live values.
        unsafe { diptych_frame_input(frame, data.as_ptr(), bytes, 4, 2, elements, length) }
    };
    assert_eq!(made(&frame, data.len(), &mut found), diptych_status::Ok);
    assert!(
        found.chunks_exact(3).all(|pixel| { pixel[0] > 0.98 && pixel[1] < -0.98 && pixel[2] < -0.98 }),
        "{found:?}"
    );
    assert_eq!(made(&frame, 47, &mut found), diptych_status::Input);
    assert!(last().contains("47 bytes") && last().contains("48"), "{}", last());
    assert_eq!(made(&frame, data.len(), &mut found[..23]), diptych_status::Input);
    assert!(last().contains("23 floats") && last().contains("24"), "{}", last());
    let wrong = diptych_frame { matrix: 3, ..frame };
    assert_eq!(made(&wrong, data.len(), &mut found), diptych_status::Input);
    assert!(last().contains("matrix") && last().contains('3'), "{}", last());
}

/// An ONNX model whose `y` is `x` and two floats that lie in the file "weights".
fn with_weights_elsewhere() -> Vec<u8> {
    let port = |name: &[u8]| {
        let tensor = [number(1, 1), field(2, &field(1, &number(1, 2)))].concat();
        [field(1, name), field(2, &field(1, &tensor))].concat()
    };
    let place = field(13, &[field(1, b"location"), field(2, b"weights")].concat());
    let weights = [number(1, 2), number(2, 1), field(8, b"w"), place, number(14, 1)].concat();
    let add = [field(1, b"x"), field(1, b"w"), field(2, b"y"), field(4, b"Add")].concat();
    let graph = [
        field(1, &add),
        field(2, b"graph"),
        field(5, &weights),
        field(11, &port(b"x")),
        field(12, &port(b"y")),
    ]
    .concat();
    [number(1, 8), field(7, &graph), field(8, &number(2, 13))].concat()
}

#[test]
fn a_model_in_memory_is_given_the_files_of_its_weights() {
    let (model, mut session) = (with_weights_elsewhere(), null_mut());
    let weights: Vec<u8> = [10.0f32, 20.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let options = diptych_options_new();
    // SAFETY: all pointers are those of live values.
    unsafe {
        assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
        let status = diptych_open_bytes(model.as_ptr(), model.len(), options, &raw mut session);
        assert_eq!(status, diptych_status::Model);
        assert!(last().contains("diptych_options_file") && !last().contains("::"), "{}", last());
        let name = text("weights");
        let set = diptych_options_file(options, name.as_ptr(), weights.as_ptr(), weights.len());
        assert_eq!(set, diptych_status::Ok, "{}", last());
        assert_eq!(diptych_options_file(options, name.as_ptr(), null(), 4), diptych_status::Input);
        assert_eq!(diptych_options_file(null_mut(), name.as_ptr(), null(), 0), diptych_status::Input);
        let status = diptych_open_bytes(model.as_ptr(), model.len(), options, &raw mut session);
        assert_eq!(status, diptych_status::Ok, "{}", last());
        let (x, mut y) = ([1.0f32, 2.0], [f32::NAN; 2]);
        let input = diptych_input_data { elements: x.as_ptr(), length: 2 };
        let output = diptych_output_data { elements: y.as_mut_ptr(), length: 2 };
        assert_eq!(diptych_run(session, &raw const input, 1, &raw const output, 1), diptych_status::Ok);
        assert_eq!(y, [11.0, 22.0]);
        diptych_close(session);
        diptych_options_free(options);
    }
}
