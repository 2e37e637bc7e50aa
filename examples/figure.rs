//! Draws a person or a hand to try networks on.
//!
//! ```text
//! cargo run --example figure -- docs/book/src/pictures/figure.png
//! cargo run --example figure -- hand.png hand
//! ```

#[path = "shared/figures.rs"]
mod figures;

use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().context("usage: figure FILE.png [person|hand]")?);
    let picture = match arguments.next() {
        None => figures::person()?,
        Some(what) if what == "person" => figures::person()?,
        Some(what) if what == "hand" => figures::hand()?,
        Some(what) => bail!("found {what:?}, wanted person or hand"),
    };
    picture.save(&path).with_context(|| format!("{}", path.display()))
}
