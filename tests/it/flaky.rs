//! Kernels that are wrong in some runs, and devices that compute nothing: what the tuner and `diptych check` make of them,
//! on the devices of this machine.
//!
//! A device that stands before the real one lets a second kernel run behind each run of the bad one, which changes a bit of
//! what that stored where the host says so: what is computed on the device from the output is wrong as well.

use diptych::internals::Finding;
use diptych::internals::tune::db::{Database, Row, Verdict};
use diptych::internals::tune::repeat::{LEAST_RUNS, ROUNDS};
use diptych::internals::tune::{Bench, Check, OpBench, Outcome, Repeats, Round, Search, work_group};
use diptych::{
    Backend, Choice, Context, DType, Depthwise, Dialect, Memory, Precision, Result, Shape, SharedDatabase,
    Tuner,
};
use diptych_device::device::{
    Buffer, Device, DeviceInfo, Dispatch, Image, Pending, Pipeline, Recording, Resource, Slice,
};
use diptych_emit::emit::{
    Access, Binding, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use diptych_kernels::ops::Op;
use diptych_kernels::ops::depthwise::DepthwiseOp;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When the output of a bad kernel is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// In one run of so many, by chance.
    OneOf(u32),
    /// In the first run after the device was left alone for some milliseconds.
    AfterIdle,
    /// Never.
    Never,
    /// Nothing runs at all.
    Dead,
}

/// How long a device is idle until [`Fault::AfterIdle`] shows.
const IDLE: Duration = Duration::from_millis(5);
/// Dispatches of a recording at most that may be struck.
const FLAGS: usize = 4096;

/// Changes a bit of the first word, if the host has said so.
const STRIKE: &str = "
struct Params { at: u32 }
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(1)
fn strike() {
    dst[0] = dst[0] ^ src[params.at];
}
";
const STRIKE_LABEL: &str = "strike";

#[derive(Debug)]
struct State {
    random: u64,
    /// When the device was last given work, or had done it.
    last: Instant,
    runs: u32,
    struck: u32,
}

/// A device on which some kernels, known by a part of their labels, are wrong sometimes.
#[derive(Debug)]
pub(crate) struct Flaky {
    device: Arc<dyn Device>,
    fault: Fault,
    bad: Vec<String>,
    /// How many times as fast bad kernels seem to be.
    haste: u32,
    /// How often they run before the fault shows.
    grace: u32,
    strike: Pipeline,
    flags: Buffer,
    state: Mutex<State>,
}

impl Flaky {
    pub(crate) fn new(device: Arc<dyn Device>, fault: Fault, bad: &[String], seed: u64) -> Self {
        let binding = |operand, access| Binding::new(operand, Element::Scalar(DType::U32), access);
        let source = KernelSource {
            label: STRIKE_LABEL.to_owned(),
            entry: "strike".to_owned(),
            dialect: Dialect::Wgsl,
            text: STRIKE.to_owned(),
            interface: Interface {
                bindings: vec![binding(Operand::Src, Access::Read), binding(Operand::Dst, Access::ReadWrite)],
                params: vec![Param { name: "at", ty: ParamType::U32 }],
            },
            work_group: [1, 1, 1],
        };
        let strike = device.compile(&source).expect("a kernel");
        let flags = device.alloc(4 * FLAGS as u64, Memory::Device).expect("a buffer");
        let state = Mutex::new(State { random: seed, last: Instant::now(), runs: 0, struck: 0 });
        Flaky { device, fault, bad: bad.to_vec(), haste: 1, grace: 0, strike, flags, state }
    }

    fn is_bad(&self, label: &str) -> bool {
        self.bad.iter().any(|bad| bad == label)
    }

    /// Says which of the recording's runs are struck.
    fn aim(&self, recording: &Recording) {
        let strikes = recording.labels().iter().filter(|label| *label == STRIKE_LABEL).count();
        let state = &mut *self.state.lock().expect("no panic");
        let idle = state.last.elapsed() > IDLE;
        // Where the first dispatch is a bad one, that is the first behind the pause.
        let first = recording.labels().first().is_some_and(|label| self.is_bad(label));
        if strikes > 0 {
            let flags: Vec<u32> = (0..strikes)
                .map(|index| {
                    state.random =
                        state.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let struck = match self.fault {
                        Fault::OneOf(runs) => (state.random >> 33).is_multiple_of(u64::from(runs)),
                        Fault::AfterIdle => idle && first && index == 0,
                        Fault::Never | Fault::Dead => false,
                    };
                    state.runs += 1;
                    let struck = struck && state.runs > self.grace;
                    state.struck += u32::from(struck);
                    if struck { 1 << 20 } else { 0 }
                })
                .collect();
            self.device.write(&self.flags.whole(), bytemuck::cast_slice(&flags)).expect("flags");
        }
        state.last = Instant::now();
    }

    fn done(&self) {
        self.state.lock().expect("no panic").last = Instant::now();
    }

    fn struck(&self) -> u32 {
        self.state.lock().expect("no panic").struck
    }
}

impl Device for Flaky {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn alloc(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        self.device.alloc(bytes, memory)
    }

    fn alloc_image(&self, width: usize, height: usize, dtype: DType) -> Result<Image> {
        self.device.alloc_image(width, height, dtype)
    }

    fn write(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        self.device.write(slice, bytes)
    }

    fn read(&self, slice: &Slice) -> Result<Vec<u8>> {
        let mut read = self.device.read(slice)?;
        if self.fault == Fault::Dead {
            read.fill(0);
        }
        self.done();
        Ok(read)
    }

    fn map(&self, buffer: &Buffer, access: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.device.map(buffer, access)
    }

    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        self.device.compile(source)
    }

    unsafe fn compile_unchecked(&self, source: &KernelSource) -> Result<Pipeline> {
        // SAFETY: promised by the caller.
        unsafe { self.device.compile_unchecked(source) }
    }

    fn record(&self, dispatches: &[Dispatch]) -> Result<Recording> {
        let mut struck = Vec::with_capacity(dispatches.len());
        let mut strikes = 0;
        for dispatch in dispatches {
            struck.push(dispatch.clone());
            if !self.is_bad(dispatch.pipeline.label()) || strikes as usize >= FLAGS {
                continue;
            }
            let bindings = &dispatch.pipeline.interface().bindings;
            let place = bindings.iter().position(|binding| binding.access != Access::Read);
            if let Some(Resource::Buffer(slice)) = place.map(|place| dispatch.resources[place].clone()) {
                struck.push(Dispatch {
                    pipeline: self.strike.clone(),
                    resources: vec![(&self.flags).into(), slice.into()],
                    params: vec![Scalar::U32(strikes)],
                    groups: [1; 3],
                });
                strikes += 1;
            }
        }
        self.device.record(&struck)
    }

    fn submit(&self, recording: &Recording) -> Result<()> {
        self.aim(recording);
        self.device.submit(recording)
    }

    fn wait(&self) -> Result<()> {
        let waited = self.device.wait();
        self.done();
        waited
    }

    fn run(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Vec<Vec<u8>>> {
        self.aim(recording);
        let mut read = self.device.run(writes, recording, reads)?;
        if self.fault == Fault::Dead {
            read.iter_mut().for_each(|bytes| bytes.fill(0));
        }
        self.done();
        Ok(read)
    }

    fn start(
        &self,
        writes: &[(&Slice, &[u8])],
        recording: &Recording,
        reads: &[&Slice],
    ) -> Result<Box<dyn Pending>> {
        self.aim(recording);
        self.device.start(writes, recording, reads)
    }

    fn time(&self, recording: &Recording) -> Result<Vec<Duration>> {
        self.aim(recording);
        let times = self.device.time(recording)?;
        self.done();
        let labels = recording.labels().iter();
        let own = times.into_iter().zip(labels).filter(|(_, label)| *label != STRIKE_LABEL);
        let haste = |label: &str| if self.is_bad(label) { self.haste } else { 1 };
        Ok(own.map(|(time, label)| time / haste(label)).collect())
    }
}

/// The devices of this machine, the one that compiles faster first.
fn devices() -> Vec<Arc<dyn Device>> {
    let open = |backend| match Context::builder().backend(backend).without_kernel_cache().open() {
        Ok(context) => context.shared_device(),
        Err(error) if std::env::var_os("DIPTYCH_REQUIRE_DEVICES").is_some() => {
            panic!("{backend} is required: {error}")
        }
        Err(error) => {
            println!("skipping {backend}: {error}");
            None
        }
    };
    [Backend::OpenCl, Backend::Wgpu].into_iter().filter_map(open).collect()
}

fn problem(precision: Precision) -> Arc<dyn Op> {
    let (input, weights) = (Shape::nhwc(1, 12, 11, 24), Shape::nhwc(1, 3, 3, 24));
    let op = DepthwiseOp::new(input, weights, &Depthwise::default(), true, false, precision);
    Arc::new(op.expect("a valid op"))
}

fn label(op: &dyn Op, choice: &Choice, device: &dyn Device) -> String {
    op.plan(choice, &device.info().limits).expect("a kernel").spec.label()
}

/// A candidate that every search tries, and that is not the default.
fn candidate(op: &dyn Op, device: &dyn Device) -> Choice {
    let limits = &device.info().limits;
    let default = work_group::untuned(op, work_group::WorkGroup::Table, limits).expect("a default");
    let kernel = op.kernel("direct").expect("a kernel");
    let choice = kernel.choice([1, 1, 1], work_group::table(&*kernel, [1, 1, 1], limits));
    assert_ne!(choice, default);
    choice
}

/// All rounds of one candidate: how often it differed.
fn rounds(bench: &mut OpBench, choice: &Choice) -> Repeats {
    let mut all = Repeats::default();
    bench.prepare(choice).expect("compiled");
    // A check that is struck is no subject here.
    while bench.check(choice).expect("checked") != Check::Correct {}
    for number in 0..ROUNDS {
        let round = Round::new(number, LEAST_RUNS / ROUNDS, Duration::from_millis(8));
        let found = bench.repeat(choice, &round).expect("runs");
        assert_eq!(found.wrong, None);
        assert_eq!(found.differed > 0, found.detail.is_some());
        all.runs += round.runs;
        all.differed += found.differed;
    }
    all
}

#[test]
fn planted_faults_are_seen_as_often_as_they_strike_and_sound_kernels_are_not_accused() {
    const TRIES: u64 = 12;
    for device in devices() {
        for precision in [Precision::F32, Precision::F16Storage] {
            let op = problem(precision);
            let choice = candidate(&*op, &*device);
            let bad = [label(&*op, &choice, &*device)];
            for (fault, least) in [
                (Fault::OneOf(10), TRIES as usize - 1),
                (Fault::OneOf(100), 2),
                (Fault::AfterIdle, TRIES as usize),
            ] {
                let (mut caught, mut differed, mut struck) = (0, 0, 0);
                for seed in 0..TRIES {
                    let flaky = Arc::new(Flaky::new(Arc::clone(&device), fault, &bad, seed));
                    let mut bench = OpBench::new(Arc::clone(&flaky) as Arc<dyn Device>, Arc::clone(&op))
                        .expect("a bench");
                    let found = rounds(&mut bench, &choice);
                    caught += usize::from(found.differed > 0);
                    differed += found.differed;
                    struck += flaky.struck();
                }
                println!(
                    "{} {precision} {fault:?}: {caught} of {TRIES} caught; {differed} runs differed, {struck} were struck",
                    device.info()
                );
                assert!(caught >= least, "{fault:?}: {caught} of {TRIES}");
                // The checks before them may be struck too, and the first with other inputs.
                assert!(differed <= struck, "{fault:?}: {differed} of {struck}");
            }
            // The kernels around it are right.
            for seed in 0..TRIES {
                let flaky = Flaky::new(Arc::clone(&device), Fault::Never, &bad, seed);
                let mut bench = OpBench::new(Arc::new(flaky), Arc::clone(&op)).expect("a bench");
                assert_eq!(rounds(&mut bench, &choice), Repeats { differed: 0, runs: LEAST_RUNS });
            }
        }
    }
}

#[test]
fn outputs_in_images_and_large_ones_are_summed_up_too() {
    for device in devices() {
        let limits = device.info().limits.clone();
        let (input, weights) = (Shape::nhwc(1, 90, 91, 16), Shape::nhwc(1, 3, 3, 16));
        let op = DepthwiseOp::new(input, weights, &Depthwise::default(), true, false, Precision::F32);
        let op: Arc<dyn Op> = Arc::new(op.expect("a valid op"));
        for layout in [diptych::Layout::C4, diptych::Layout::Image2d] {
            let Ok(choice) = work_group::untuned_in(&*op, work_group::WorkGroup::Table, layout, &limits)
            else {
                continue;
            };
            let mut bench =
                OpBench::new(Arc::clone(&device), Arc::clone(&op)).expect("a bench").in_layout(layout);
            let found = rounds(&mut bench, &choice);
            assert_eq!(found, Repeats { differed: 0, runs: LEAST_RUNS }, "{} {layout}", device.info());
            // What is wrong in a buffer is seen however large it is; images are not struck.
            if layout == diptych::Layout::C4 {
                let bad = [label(&*op, &choice, &*device)];
                let flaky = Flaky::new(Arc::clone(&device), Fault::OneOf(4), &bad, 1);
                let mut bench = OpBench::new(Arc::new(flaky), Arc::clone(&op)).expect("a bench");
                let found = rounds(&mut bench, &choice);
                assert!((4..=30).contains(&found.differed), "{}: {found}", device.info());
            }
        }
    }
}

/// Tunes the problem on a device with bad kernels that seem fast.
fn tuned(
    device: &Arc<dyn Device>,
    fault: Fault,
    bad: &[Choice],
    search: Search,
    database: &SharedDatabase,
) -> Result<diptych::Report> {
    let op = problem(Precision::F32);
    let labels: Vec<String> = bad.iter().map(|choice| label(&*op, choice, &**device)).collect();
    let flaky = Flaky { haste: 64, grace: 20, ..Flaky::new(Arc::clone(device), fault, &labels, 3) };
    let mut tuner = Tuner::on(Arc::new(flaky)).database(Arc::clone(database)).search(search);
    tuner.begin_problem("planted", op)?;
    tuner.finish(|_| {})
}

#[test]
fn a_flaky_winner_is_recorded_with_how_often_and_not_chosen() {
    let Some(device) = devices().into_iter().next() else { return };
    let op = problem(Precision::F32);
    let bad = candidate(&*op, &*device);
    let database = SharedDatabase::default();
    let report = tuned(&device, Fault::AfterIdle, &[bad], Search::Fast, &database).expect("tuned");
    let found = &report.problems[0];
    assert_ne!(found.choice.expect("a choice"), bad);
    let trial = found.trials.iter().find(|trial| trial.choice == bad).expect("tried");
    // It seems 64 times as fast as it is: nothing else is looked at before it.
    let Outcome::Flaky { repeats, .. } = &trial.outcome else { panic!("{}", trial.outcome) };
    assert!(repeats.differed > 0 && repeats.runs >= LEAST_RUNS && trial.samples > 0, "{repeats}");
    assert!(report.to_string().contains("flaky: its output differed in "), "{report}");
    {
        let database = database.lock().expect("no panic");
        let row = database.rows().find(|row| row.key.choice == bad.into()).expect("on record");
        assert!(row.verdict.bars() && row.flaky() == Some(*repeats), "{row:?}");
        let winner = database.rows().find(|row| row.verdict == Verdict::Winner).expect("a winner");
        assert!(winner.repeats.is_some_and(|repeats| repeats.is_steady()), "{winner:?}");
    }
    // It is not tried again, and said to be flaky by the next tuner too.
    let op = problem(Precision::F32);
    let mut again = Tuner::on(device).database(database).search(Search::Fast).retune(true);
    again.begin_problem("again", op).expect("lined up");
    let report = again.finish(|_| {}).expect("tuned");
    let trial = report.problems[0].trials.iter().find(|trial| trial.choice == bad).expect("on record");
    assert!(matches!(&trial.outcome, Outcome::Barred { verdict } if verdict.starts_with("flaky: ")));
}

#[test]
fn a_flaky_default_is_replaced_and_it_is_said() {
    let Some(device) = devices().into_iter().next() else { return };
    let op = problem(Precision::F32);
    let limits = device.info().limits.clone();
    let default = work_group::untuned(&*op, work_group::WorkGroup::Table, &limits).expect("a default");
    for search in [Search::Table, Search::Fast] {
        let database = SharedDatabase::default();
        let report = tuned(&device, Fault::AfterIdle, &[default], search, &database).expect("tuned");
        let found = &report.problems[0];
        let choice = found.choice.expect("a choice");
        assert_ne!(choice, default, "{search:?}: {report}");
        let text = report.to_string();
        assert!(text.contains(&format!("the default {default} is flaky: its output differed in ")), "{text}");
        assert!(text.contains(&format!("{choice} takes its place")), "{text}");
        let database = database.lock().expect("no panic");
        let is_flaky = |row: &&Row| row.flaky().is_some();
        assert_eq!(database.rows().filter(is_flaky).count(), 1, "{search:?}");
        let device = diptych::internals::tune::key::DeviceKey::of(device.info());
        let chosen = database.choose(&device, &*op, diptych::Layout::C4, &limits).expect("a choice");
        assert_eq!(chosen.choice, choice, "{search:?}");
    }
}

#[test]
fn a_check_tells_what_is_flaky_from_what_is_wrong_and_what_is_steady() {
    let Some(device) = devices().into_iter().next() else { return };
    let op = problem(Precision::F32);
    let bad = candidate(&*op, &*device);
    let labels = [label(&*op, &bad, &*device)];
    let checked = |fault| {
        let flaky = Flaky::new(Arc::clone(&device), fault, &labels, 3);
        let mut tuner = Tuner::on(Arc::new(flaky));
        tuner.begin_problem("planted", problem(Precision::F32)).expect("lined up");
        let mut told = 0;
        let checked = tuner.check(64, true, |_, _| told += 1);
        (checked.map(|checked| (told, checked)), tuner.shared_database())
    };
    for fault in [Fault::OneOf(5), Fault::OneOf(1), Fault::Never] {
        let (found, database) = checked(fault);
        let (told, found) = found.expect("checked");
        assert!(told == found.len() && told > 3, "{told} of {}", found.len());
        assert!(database.lock().expect("no panic").is_empty(), "nothing is recorded");
        for one in &found {
            let (finding, repeats) = (&one.finding, one.repeats);
            let planted = one.choice == bad;
            match (fault, finding) {
                (Fault::OneOf(5), Finding::Flaky { detail }) if planted => {
                    assert!(repeats.runs >= 64 && (3..40).contains(&repeats.differed), "{repeats}");
                    assert!(!detail.is_empty() && one.worst > 1.0, "{detail}: {}", one.worst);
                }
                (Fault::OneOf(1), Finding::Wrong { detail }) if planted => {
                    assert!(
                        repeats.differed == repeats.runs && detail.contains("wanted"),
                        "{repeats} {detail}"
                    );
                }
                (_, Finding::Steady) if !planted || fault == Fault::Never => {
                    assert_eq!((repeats.differed, one.worst), (0, 0.0), "{one:?}");
                }
                _ => panic!("{fault:?}: {one:?}"),
            }
            assert_eq!(one.is_bad(), planted && fault != Fault::Never);
        }
    }
    let error = checked(Fault::Dead).0.expect_err("a dead device");
    assert!(error.to_string().contains("came back as zeros"), "{error}");
}

#[test]
fn a_device_that_computes_nothing_is_not_tuned_on() {
    for device in devices() {
        let directory = tempfile::tempdir().expect("a directory");
        let database: SharedDatabase =
            Arc::new(Mutex::new(Database::open(directory.path()).expect("opened")));
        let error = tuned(&device, Fault::Dead, &[], Search::Fast, &database).expect_err("a dead device");
        let text = error.to_string();
        assert!(error.is_unsupported(), "{text}");
        for words in [device.info().name.as_str(), "came back as zeros", "drm-shim"] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        assert!(database.lock().expect("no panic").is_empty());
        assert!(!directory.path().join("tuning.jsonl").exists());
    }
}
