//! What decided on the kernel of a step.

use crate::tune::db::Source;
use std::fmt;

/// What decided on a kernel.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    not(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm"))),
    expect(unreachable_pub, reason = "devices alone have it in their steps")
)]
pub enum By {
    /// The caller.
    Hand,
    /// An order of preference, or the measured times of the network: what they say.
    Pick(String),
    /// The tuner's record.
    Record(Source),
    /// The rule.
    Rule,
    /// The rule, whose kernel gave way to one that is compiled for other extents.
    Compiled,
    /// The CPU computes it: why.
    Host(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Hand => f.write_str("by hand"),
            By::Pick(why) | By::Host(why) => f.write_str(why),
            By::Record(source) => source.fmt(f),
            By::Rule => f.write_str("rule"),
            By::Compiled => f.write_str("rule, as compiled for other extents"),
        }
    }
}
