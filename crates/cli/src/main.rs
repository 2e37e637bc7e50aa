//! The `diptych` command line.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
//! 2 wrong usage, 130 interrupted.

mod article;
mod bench;
mod candidates;
mod charts;
mod check;
mod compare;
mod compile;
mod db;
mod devices;
mod emit;
mod flags;
mod hub;
mod inspect;
mod interrupt;
mod npy;
mod output;
mod replay;
mod run;
mod table;
mod tune;

use clap::{Parser, Subcommand};
use diptych::Setting;
use std::borrow::Cow;
use std::process::ExitCode;

/// Neural networks and matrix products on any GPU with Vulkan or OpenCL.
#[derive(Debug, Parser)]
#[command(name = "diptych", version = env!("DIPTYCH_VERSION"))]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the devices of both APIs, and the CPU.
    Devices(devices::Arguments),
    /// Show, merge or export the tuner's record.
    Db(db::Arguments),
    /// Time the kernels of a model or an op on this machine's devices, and keep the fastest in the record.
    Tune(tune::Arguments),
    /// Run every kernel of a model or of the ops' examples many times on this machine's devices, and compare the results with
    /// the oracles and with each other.
    ///
    /// Nothing is timed or recorded. The report has the device, its driver and each kernel, to be attached to a bug. The command
    /// fails if a kernel is wrong, flaky or does not run.
    Check(check::Arguments),
    /// Time two records' choices for a model against each other.
    Compare(compare::Arguments),
    /// Time a network's nodes with several work-groups, untuned and tuned, on every API.
    Article(article::Arguments),
    /// Measure ops and networks on every API of this machine, interleaved; draw and compare.
    Bench(Box<bench::Arguments>),
    /// Run a TensorFlow Lite or ONNX model on tensors, pictures or random numbers.
    Run(Box<run::Arguments>),
    /// Repeat a run that `run --replay-out` kept, on any device, and say where the results part.
    ///
    /// Each step's result is held against the op's oracle, which is given what the step read, on both devices: a fault
    /// shows in its own step. The command fails if a result is beyond its bound.
    Replay(replay::Arguments),
    /// Show a TensorFlow Lite or ONNX model: its graph, shapes, operators and the kernels that would run it.
    Inspect(inspect::Arguments),
    /// Compile the kernels of models, of ops or of the whole space on a device, and tell what its driver says of each.
    ///
    /// Instructions, registers, spills, occupancy, local memory and estimates of time, as far as the driver tells them.
    /// Nothing runs. Each kernel that a driver refuses, crashes at or does not come to an end with is named, and the others
    /// are compiled all the same: a process of its own compiles.
    Compile(Box<compile::Arguments>),
    /// Print the work-groups that a rule gives.
    ///
    /// One `x y z` a line, in the rule's own order and with its own repeats. A flag that the rule
    /// does not look at is ignored. Where the rule has no work-group, the command fails.
    Candidates(candidates::Arguments),
    /// Print the kernel that would run an op.
    ///
    /// The first line is a comment with its label and work-group. The device is assumed to have the
    /// least that WebGPU promises, or what OpenCL 1.2 devices commonly have, and half arithmetic if
    /// --precision f16 asks for it. Variant, tile and work-group are those of an untuned session
    /// where they are left out.
    Emit(emit::Arguments),
}

impl Command {
    /// The words that name models.
    fn models(&mut self) -> Vec<hub::Word<'_>> {
        match self {
            Command::Run(own) => vec![hub::Word::Path(&mut own.model)],
            Command::Inspect(own) => vec![hub::Word::Path(&mut own.model)],
            Command::Compare(own) => vec![hub::Word::Path(&mut own.model)],
            Command::Article(own) => vec![hub::Word::Path(&mut own.model)],
            Command::Tune(own) => vec![hub::Word::Text(&mut own.what)],
            Command::Check(own) => own.model.iter_mut().map(hub::Word::Path).collect(),
            Command::Bench(own) => own.model.iter_mut().map(hub::Word::Path).collect(),
            Command::Compile(own) => own.models.iter_mut().map(hub::Word::Path).collect(),
            _ => Vec::new(),
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    let fetched = hub::fetch(arguments.command.models());
    let done = fetched.and_then(|()| run_command(&arguments.command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // As `diptych run MODEL | head` wants it.
        Err(error) if output::nobody_reads(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format_args!("error: {}", sentence(&error)));
            if error.is::<interrupt::Interrupted>() {
                return interrupt::EXIT_CODE.into();
            }
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Devices(arguments) => devices::main(arguments),
        Command::Db(arguments) => db::main(arguments),
        Command::Tune(arguments) => tune::main(arguments),
        Command::Check(arguments) => check::main(arguments),
        Command::Compare(arguments) => compare::main(arguments),
        Command::Article(arguments) => article::main(arguments),
        Command::Bench(arguments) => bench::main(arguments),
        Command::Run(arguments) => run::main(arguments),
        Command::Replay(arguments) => replay::main(arguments),
        Command::Inspect(arguments) => inspect::main(arguments),
        Command::Compile(arguments) => compile::main(arguments),
        Command::Candidates(arguments) => candidates::main(arguments),
        Command::Emit(arguments) => emit::main(arguments),
    }
}

/// The flags that the library's errors name by the fields that they fill.
fn flag(setting: &Setting) -> Option<Cow<'static, str>> {
    Some(Cow::Owned(match setting {
        Setting::Values(inputs) => {
            let flags: Vec<String> =
                inputs.iter().map(|name| format!("--value {}=...", name.escape_debug())).collect();
            flags.join(" ")
        }
        Setting::Dimension(name) => format!("--dimension {}=EXTENT", name.escape_debug()),
        Setting::Dimensions => "--dimension".to_owned(),
        Setting::MeasuredInputs => "--input".to_owned(),
        // No command has it.
        _ => return None,
    }))
}

/// An error with its causes, without those that the text before already contains.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        // Its text has its causes.
        let library = cause.downcast_ref::<diptych::Error>();
        let told = library.map_or_else(|| cause.to_string(), |error| error.told(&flag));
        if text.is_empty() {
            text = told;
        } else if !text.ends_with(&told) {
            text = format!("{text}: {told}");
        }
        if library.is_some() {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::BackendChoice;
    use clap::CommandFactory;
    use diptych::Backend;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn run_takes_named_and_unnamed_inputs() {
        let line =
            "diptych run m.tflite --input x.npy --input a/b=dir/y=1.npy --dump out --backend cpu --runs 3";
        let Command::Run(run) = parse(line).expect("a valid line").command else { panic!("not run") };
        let inputs: Vec<_> =
            run.input.iter().map(|input| (input.name.as_deref(), input.path.to_str())).collect();
        assert_eq!(inputs, [(None, Some("x.npy")), (Some("a/b"), Some("dir/y=1.npy"))]);
        assert_eq!(
            (run.on.backend, run.runs, run.profile),
            (BackendChoice::One(Backend::Cpu), Some(3), false)
        );
        assert_eq!(run.dump.as_deref(), Some("out".as_ref()));
    }

    #[cfg(unix)]
    #[test]
    fn paths_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStrExt;
        let parse = |words: &[&[u8]]| {
            let words = words.iter().map(|word| std::ffi::OsStr::from_bytes(word));
            Arguments::try_parse_from([std::ffi::OsStr::new("diptych")].into_iter().chain(words))
        };
        let line =
            [&b"run"[..], b"m\xff", b"--input", b"\xff.npy", b"--input", b"x=\xfe=.npy", b"--dump", b"\xfd"];
        let Command::Run(run) = parse(&line).expect("a valid line").command else { panic!("not run") };
        let inputs: Vec<_> = run
            .input
            .iter()
            .map(|input| (input.name.as_deref(), input.path.as_os_str().as_bytes()))
            .collect();
        assert_eq!(inputs, [(None, &b"\xff.npy"[..]), (Some("x"), b"\xfe=.npy")]);
        let error = parse(&[b"run", b"m", b"--input", b"\xff=x.npy"]).expect_err("no text");
        assert!(error.to_string().contains("wanted a NAME of UTF-8"), "{error}");
        let Command::Tune(tune) = parse(&[b"tune", b"m\xff"]).expect("a valid line").command else {
            panic!("not tune")
        };
        assert_eq!(tune.what.as_bytes(), b"m\xff");
    }

    #[test]
    fn a_cause_is_reported_once() {
        let missing = diptych::tflite::load("no/such.tflite").expect_err("no file");
        let text = sentence(&anyhow::Error::from(missing).context("model"));
        assert!(text.starts_with("model: no/such.tflite: "), "{text}");
        assert_eq!(text.matches("os error").count(), 1, "{text}");
    }

    #[test]
    fn wrong_usage_says_what_is_possible() {
        for (line, words) in [
            ("diptych", "Usage"),
            ("diptych run m.tflite --image x.png --range 0", "BLACK,WHITE"),
            ("diptych run --input x.npy", "<MODEL>"),
            ("diptych run m.tflite --input x.npy --backend cuda", "auto, gpu, wgpu, opencl, cpu"),
            ("diptych run m.tflite --input x.npy --runs 0", "1.."),
            ("diptych run m.tflite --input =x.npy", "NAME=FILE"),
            ("diptych run m.tflite --input x=", "NAME=FILE"),
            ("diptych devices all", "unexpected argument"),
            ("diptych candidates --generator paddle", "--grid"),
            ("diptych candidates --generator best --grid 1,1,1", "tflite-conv-fast"),
            ("diptych candidates --generator paddle --grid 1,1", "wanted X,Y,Z"),
            ("diptych emit gemm", "--backend"),
            ("diptych emit lstm --backend wgsl", "depthwise"),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(words), "{line}: {error}");
        }
    }
}
