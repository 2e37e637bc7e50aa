//! What the functions of the header do with what C may give them.

use diptych_c::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/posenet/data/posenet_figures.tflite");

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
        let mut session = null_mut();
        let options = diptych_options_new();
        // SAFETY: all pointers are those of live values.
        unsafe {
            assert_eq!(diptych_options_device(options, text("cpu").as_ptr()), diptych_status::Ok);
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
        assert_eq!(diptych_options_record(null_mut(), null()), diptych_status::Input);
        assert_eq!(diptych_options_dimension(null_mut(), null(), 1), diptych_status::Input);
        assert_eq!(run(null_mut(), null(), null()), diptych_status::Input);
        assert_eq!(diptych_run_typed(null_mut(), null(), 1, null(), 1), diptych_status::Input);
        assert_eq!(diptych_profile_typed(null_mut(), null(), 0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_tune(null_mut(), 1.0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_profile(null_mut(), null(), 0, None, null_mut()), diptych_status::Input);
        assert_eq!(diptych_input(null(), 0, null_mut()), diptych_status::Input);
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
