//! The entries of session options that are Diptych's own: `session.diptych.*`.

use crate::status::{Failure, wrong};
use diptych::{DeviceSelector, Precision};
use std::path::PathBuf;

/// What such entries begin with.
pub(crate) const PREFIX: &str = "session.diptych.";

/// What the entries say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub(crate) backend: Option<DeviceSelector>,
    pub(crate) precision: Precision,
    pub(crate) seed: u64,
    pub(crate) record: Option<PathBuf>,
    pub(crate) dequantize: bool,
    pub(crate) caches: Option<usize>,
    pub(crate) plans: Option<std::num::NonZeroUsize>,
    pub(crate) signature: Option<String>,
}

/// The names behind the prefix.
const NAMES: [&str; 8] =
    ["backend", "caches", "dequantize", "plans", "precision", "record", "seed", "signature"];

fn number<T: std::str::FromStr>(what: &str, text: &str, wanted: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| wrong(what, format!("{text:?}"), wanted))
}

impl Config {
    /// Takes an entry by its name behind the prefix.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let what = &format!("{PREFIX}{name}");
        match name {
            "backend" => self.backend = Some(text.parse()?),
            "precision" => {
                let found =
                    Precision::ALL.into_iter().chain([Precision::Auto]).find(|own| own.to_string() == text);
                let wanted = || {
                    let names: Vec<String> = Precision::ALL.iter().map(Precision::to_string).collect();
                    wrong(what, format!("{text:?}"), format!("one of {}, auto", names.join(", ")))
                };
                self.precision = found.ok_or_else(wanted)?;
            }
            "seed" => self.seed = number(what, text, "a number of 64 bits")?,
            "record" if text.is_empty() => return Err(wrong(what, "an empty path", "a folder's")),
            "record" => self.record = Some(text.into()),
            "dequantize" => {
                self.dequantize = match text {
                    "0" => false,
                    "1" => true,
                    _ => return Err(wrong(what, format!("{text:?}"), "0 or 1")),
                }
            }
            "caches" => self.caches = Some(number(what, text, "a number of places")?),
            "plans" => self.plans = Some(number(what, text, "a number from 1 on")?),
            "signature" => self.signature = Some(text.to_owned()),
            _ => return Err(wrong(what, "an entry of no such name", format!("one of {}", NAMES.join(", ")))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_taken_and_wrong_ones_are_named() {
        let mut config = Config::default();
        let texts = ["opencl:1", "64", "1", "3", "f16", "tuned", "7", "serve"];
        for (name, text) in NAMES.iter().zip(texts) {
            config.set(name, text).expect("an entry");
        }
        assert_eq!(config.backend.expect("a device").to_string(), "opencl:1");
        assert_eq!((config.caches, config.dequantize, config.seed), (Some(64), true, 7));
        assert_eq!((config.plans.map(usize::from), config.precision), (Some(3), Precision::F16));
        assert_eq!((config.record, config.signature.as_deref()), (Some("tuned".into()), Some("serve")));

        let refused = |name, text| Config::default().set(name, text).expect_err("wrong").message;
        assert_eq!(
            refused("speed", "1"),
            "session.diptych.speed: found an entry of no such name, wanted one of backend, caches, dequantize, plans, \
             precision, record, seed, signature"
        );
        assert_eq!(refused("dequantize", "yes"), "session.diptych.dequantize: found \"yes\", wanted 0 or 1");
        assert_eq!(refused("plans", "0"), "session.diptych.plans: found \"0\", wanted a number from 1 on");
        assert!(refused("precision", "f8").contains("wanted one of f32, "), "{}", refused("precision", "f8"));
    }
}
