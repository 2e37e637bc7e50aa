//! The two languages a kernel is emitted in.

use std::fmt;

/// A shading language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// WGSL, run by wgpu.
    Wgsl,
    /// OpenCL C 1.2, run by OpenCL.
    OpenClC,
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Dialect; 2] = [Dialect::Wgsl, Dialect::OpenClC];

    /// Folder and file ending of the templates: `shaders/<op>/<variant>.wgsl` or
    /// `cl/<op>/<variant>.cl`.
    #[doc(hidden)]
    pub const fn folder_and_ending(self) -> (&'static str, &'static str) {
        match self {
            Dialect::Wgsl => ("shaders", "wgsl"),
            Dialect::OpenClC => ("cl", "cl"),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Wgsl => "WGSL",
            Dialect::OpenClC => "OpenCL C",
        })
    }
}
