//! The machine and the command of a benchmark run, without the machine's paths.

use super::row::{Device, Machine, SCHEMA};
use diptych::Context;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// This run.
pub(super) fn here() -> Machine {
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = processor().unwrap_or_else(|| "processor of unknown name".to_owned());
    Machine {
        schema: SCHEMA,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: format!("{processor}, {threads} threads"),
        date: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or_else(|_| String::new(), |now| date(now.as_secs())),
        command: command(std::env::args()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
        debug_build: cfg!(debug_assertions),
    }
}

/// The device of `context`.
pub(super) fn device(context: &Context) -> Device {
    let info = context.info();
    match &info.device {
        Some(device) => Device {
            backend: info.backend.to_string(),
            api: device.api.to_owned(),
            name: device.name.clone(),
            driver: device.driver.clone(),
            is_cpu: device.is_cpu,
        },
        None => Device {
            backend: info.backend.to_string(),
            api: "CPU".to_owned(),
            name: processor().unwrap_or_else(|| "processor".to_owned()),
            driver: String::new(),
            is_cpu: true,
        },
    }
}

/// The processor's name, where a file has it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| ["model name", "Model"].iter().any(|key| line.starts_with(key)))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Seconds since 1970 as a date: Howard Hinnant's *chrono-compatible low-level date algorithms*.
fn date(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * in_year + 2) / 153;
    let (day, month) =
        (in_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year + 400 * era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", time / 3600, time / 60 % 60)
}

/// A command line whose paths have lost their folders.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let bare = |argument: String| match argument.rsplit_once(['/', '\\']) {
        Some((folders, name)) => match folders.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => format!("{flag}={name}"),
            _ => name.to_owned(),
        },
        None => argument,
    };
    arguments.map(bare).collect::<Vec<_>>().join(" ")
}

/// What `DIPTYCH_COMMIT` said when the program was built, or else the commit of the checkout that it
/// lies in, where git reports it. A program that was installed elsewhere has none.
fn commit() -> Option<String> {
    if let Some(built) = option_env!("DIPTYCH_COMMIT") {
        return Some(built.to_owned());
    }
    let program = std::env::current_exe().ok()?;
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(program.parent()?).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let manifest = std::fs::read_to_string(Path::new(&root).join("Cargo.toml")).ok()?;
    let ours = manifest.lines().any(|line| line == "name = \"diptych\"");
    ours.then(|| git(&["describe", "--always", "--dirty", "--abbrev=10"]))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01 00:00"),
            (951_825_599, "2000-02-29 11:59"),
            (1_795_217_400, "2026-11-20 23:30"),
            (4_107_542_399, "2100-02-28 23:59"),
        ] {
            assert_eq!(date(seconds), wanted);
        }
    }

    #[test]
    fn a_command_keeps_its_flags_and_loses_its_folders() {
        let line = "/opt/x/diptych bench --model=/data/m.tflite --report ../out --suite gemm";
        let wanted = "diptych bench --model=m.tflite --report out --suite gemm";
        assert_eq!(command(line.split(' ').map(str::to_owned)), wanted);
    }
}
