//! Many pictures to an animation: frames are read and drawn while the network computes others.

use crate::draw;
use crate::frames::{Shown, animate, frames, medians, rates};
use crate::ink::Ink;
use crate::network::Network;
use crate::options::Options;
use crate::progress::Stages;
use crate::tables::{Latency, milliseconds, rounded};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// What becomes of a frame. The network computes it while others are read and drawn: what is left is waited for.
pub const STAGES: [&str; 5] = ["decode", "prepare", "wait", "draw", "encode"];

/// How often the network is run by itself to measure its time.
const ALONE: usize = 5;

/// Frames that were given to the network and are not drawn yet, with the times of their first two stages, and
/// what went wrong with the one after them.
#[derive(Default)]
struct UnderWay {
    frames: VecDeque<(Shown, [Duration; 2])>,
    failed: Option<anyhow::Error>,
    /// Time spent on reading frames since it was asked last.
    spent: Duration,
}

/// Makes the animation, and gives its report.
pub fn film(options: &Options, source: &Path, network: &mut Network, ink: &Ink) -> Result<String> {
    let (count, mut frames) = frames(source, options.fps)?;
    let output = options.output();
    let stages = Stages::new(&STAGES, count);
    let (mut times, mut results, mut last) = (Vec::new(), Vec::new(), None);
    let Network { session, work, .. } = &mut *network;
    let under_way = RefCell::new(UnderWay::default());
    let inputs = std::iter::from_fn(|| {
        let start = Instant::now();
        let read = frames.next()?.and_then(|shown| {
            let decoded = start.elapsed();
            let inputs = work.inputs(&shown.0.pixels)?;
            Ok((shown, [decoded, start.elapsed() - decoded], inputs))
        });
        let mut under_way = under_way.borrow_mut();
        under_way.spent += start.elapsed();
        match read {
            Ok((shown, times, inputs)) => {
                under_way.frames.push_back((shown, times));
                Some(inputs)
            }
            Err(error) => {
                under_way.failed = Some(error);
                None
            }
        }
    });
    let start = Instant::now();
    animate(&output, |add| {
        let mut stream = session.stream(inputs);
        loop {
            let asked = Instant::now();
            let Some(outputs) = stream.next() else { break };
            let outputs = outputs?;
            let (((picture, delay), [decoded, prepared]), spent) = {
                let mut under_way = under_way.borrow_mut();
                let frame = under_way.frames.pop_front().context("a result without a frame")?;
                (frame, std::mem::take(&mut under_way.spent))
            };
            let waited = asked.elapsed().saturating_sub(spent);
            let mut clock = Instant::now();
            let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
            let found = work.read(&outputs, &picture.pixels)?;
            let drawn = draw::draw(&picture.pixels, &found, &work.labels, ink)?;
            let draw = lap();
            add(drawn, delay).with_context(|| format!("{}", source.display()))?;
            let row = [decoded, prepared, waited, draw, lap()];
            stages.show(&row);
            times.push(row);
            results.push(found.json(&work.labels));
            last = Some(picture);
        }
        // The frames before were fine, but the film is not whole.
        match under_way.borrow_mut().failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    })?;
    let all = start.elapsed();
    stages.clear();
    let mut alone = Vec::new();
    if let Some(picture) = last {
        let inputs = network.work.inputs(&picture.pixels)?;
        for _ in 0..ALONE {
            alone.push(network.run(&inputs)?.1);
        }
    }
    let alone = Latency::of(&alone).map_or(0.0, |latency| latency.median_ms);
    let medians = medians(&times);
    let fps = times.len() as f64 / all.as_secs_f64().max(1e-9);
    if options.json {
        let named = STAGES
            .iter()
            .zip(&medians)
            .map(|(name, time)| ((*name).to_owned(), rounded(milliseconds(*time), 3).into()));
        let object = json!({
            "model": network.file.display().to_string(),
            "device": network.device,
            "output": output.display().to_string(),
            "frames": results,
            "median_ms": Value::Object(named.collect()),
            "network_ms": rounded(alone, 4),
            "fps": rounded(fps, 2),
        });
        return Ok(format!("{object:#}\n"));
    }
    Ok(format!(
        "model    {}\ndevice   {}\n\n{}\n\nnetwork  {alone:.3} ms a frame by itself ({:.1} fps), host to host\n\
         frames   {} in {:.2} s, {fps:.1} a second\ndrawing  {}\n",
        network.file.display(),
        network.device,
        rates(&STAGES, &medians),
        1e3 / alone.max(1e-6),
        times.len(),
        all.as_secs_f64(),
        output.display()
    ))
}
