//! Many pictures to one animation, with the rate of each stage while it goes on.

use crate::draw;
use crate::frames::{animate, frames, medians, rates};
use crate::model;
use crate::network::Network;
use crate::options::Options;
use crate::progress::Stages;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::time::Instant;

/// From a frame to a frame of the animation.
pub const STAGES: [&str; 8] = ["decode", "resize", "upload", "network", "download", "pose", "draw", "encode"];

/// Makes the animation, and gives its report.
pub fn film(options: &Options, source: &Path, model: &Path, network: &mut Network) -> Result<String> {
    let (count, frames) = frames(source, options.fps)?;
    let output = options.output();
    let stages = Stages::new(&STAGES, count);
    let mut times = Vec::new();
    animate(&output, |add| {
        let mut clock = Instant::now();
        for frame in frames {
            let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed();
            let (picture, delay) = frame?;
            let decode = lap();
            let input = network.model.input(&picture)?;
            let resize = lap();
            let (heads, run) = network.run_in_stages(&input)?;
            lap();
            let poses = model::poses(&heads, &network.model, picture.pixels.dimensions(), options.several())?;
            let pose = lap();
            let drawn = draw::draw(&picture.pixels, &poses, options.min_score)?;
            let draw = lap();
            add(drawn, delay).with_context(|| format!("{}", source.display()))?;
            let row = [decode, resize, run.upload, run.network, run.download, pose, draw, lap()];
            stages.show(&row);
            times.push(row);
        }
        Ok(())
    })?;
    stages.clear();
    Ok(format!(
        "model    {}\ndevice   {}\n\n{}\n\nframes   {}\ndrawing  {}\n",
        model.display(),
        network.device,
        rates(&STAGES, &medians(&times)),
        times.len(),
        output.display()
    ))
}
