//! Devices and networks of the command line.

use anyhow::{Context as _, Result};
use diptych::{Context, DeviceSelector};
use diptych_datafusion::{Models, Network, Normalisation, Options};

/// Which networks, and how they run.
#[derive(Debug, Clone, clap::Args)]
pub struct Networks {
    /// NAME=FILE: a TensorFlow Lite or ONNX file that queries may call; the one named `pose` by `pose(image)`, which
    /// otherwise is the bundled one. NAME=FILE,MEAN,DEVIATION: how it takes colours, 127.5,127.5 if not said.
    #[arg(long = "model", value_name = "NAME=FILE")]
    models: Vec<String>,
    /// Pictures of one run of a network at most.
    #[arg(long, default_value_t = 8)]
    pub batch: usize,
    /// Pictures that are decoded at the same time; unless said, as many as the machine has threads.
    #[arg(long)]
    threads: Option<usize>,
}

impl Networks {
    /// The options that these are, on a device.
    pub fn options(&self, device: &str) -> Result<Options> {
        let mut networks = self.models.iter().map(|text| network(text)).collect::<Result<Vec<_>>>()?;
        if !self.models.iter().any(|text| text.starts_with("pose=")) {
            networks.push(Network::figures("pose"));
        }
        let device = Context::builder().device(device.parse::<DeviceSelector>()?);
        let options = Options { device, networks, max_batch: self.batch, ..Options::default() };
        Ok(Options { threads: self.threads.unwrap_or(options.threads), ..options })
    }

    /// Makes the networks ready on a device.
    pub async fn open(&self, device: &str) -> Result<Models> {
        let options = self.options(device)?;
        Ok(tokio::task::spawn_blocking(move || Models::open(options)).await??)
    }

    /// These options as arguments of another program's command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["--batch".to_owned(), self.batch.to_string()];
        for model in &self.models {
            words.extend(["--model".to_owned(), model.clone()]);
        }
        if let Some(threads) = self.threads {
            words.extend(["--threads".to_owned(), threads.to_string()]);
        }
        words
    }
}

fn network(text: &str) -> Result<Network> {
    let wanted = || format!("--model: found {text:?}, wanted NAME=FILE or NAME=FILE,MEAN,DEVIATION");
    let (name, rest) = text.split_once('=').with_context(wanted)?;
    let network = |path: &str| Network::file(name, path);
    match rest.split(',').collect::<Vec<_>>()[..] {
        [path] => Ok(network(path)),
        [path, mean, deviation] => {
            let mean = [mean.parse().with_context(wanted)?; 3];
            let deviation = [deviation.parse().with_context(wanted)?; 3];
            Ok(network(path).normalisation(Normalisation { mean, deviation }))
        }
        _ => Err(anyhow::Error::msg(wanted())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read() -> Result<()> {
        for text in ["pose", "pose=a,1", "pose=a,b,c", "pose=a,1,2,3"] {
            assert!(network(text).is_err(), "{text}");
        }
        network("pose=model.onnx,0,255")?;
        Ok(())
    }
}
