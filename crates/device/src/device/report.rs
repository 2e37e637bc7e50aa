//! What a driver's compiler says of a kernel: registers, spills, instructions, memory.

use std::fmt;

/// What a driver said of one kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompilerReport {
    /// By which means it was asked, such as `VK_KHR_pipeline_executable_properties`; `None` where the driver has none.
    pub means: Option<&'static str>,
    /// What the driver made of the kernel: one program, or several of which it runs one.
    pub programs: Vec<CompiledProgram>,
    /// What its compiler printed, beside that.
    pub log: String,
}

/// A program of the device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledProgram {
    /// The driver's name for the program.
    pub name: String,
    /// Invocations of a subgroup; 0 where that is not said.
    pub subgroup: u32,
    /// What the driver counted, in its order and words.
    pub statistics: Vec<Statistic>,
}

/// A number that a driver gives of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistic {
    /// The driver's name for the number, such as `registers`.
    pub name: String,
    /// What the driver says it is.
    pub description: String,
    /// The number.
    pub value: f64,
}

impl Statistic {
    #[cfg(feature = "opencl")]
    pub(super) fn new(name: &str, description: &str, value: f64) -> Self {
        Statistic { name: name.to_owned(), description: description.to_owned(), value }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.value)
    }
}
