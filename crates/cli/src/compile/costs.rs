//! What the drivers tell, each in words of its own, as the few numbers that kernels are compared by.

use super::file::{Kernel, Program};

/// The numbers of a kernel; `None` where the driver does not tell. Of several programs of one kernel the largest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Costs {
    /// Instructions of the program.
    pub(super) instructions: Option<f64>,
    /// Registers of an invocation (vector registers, full registers).
    pub(super) registers: Option<f64>,
    /// What does not fit them: in the driver's unit, registers, instructions or bytes.
    pub(super) spills: Option<f64>,
    /// Subgroups that a part of the device has at a time.
    pub(super) waves: Option<f64>,
    /// Bytes of local memory of a work-group.
    pub(super) local: Option<f64>,
    /// Clocks that the compiler estimates: of the whole, or of waiting.
    pub(super) clocks: Option<f64>,
}

/// A column of the report.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) of: fn(&Costs) -> Option<f64>,
    /// What drivers call it; those of one row are added up.
    names: &'static [&'static [&'static str]],
}

/// The columns, each with what the drivers call it: Mesa's for AMD (RADV), Adreno (Turnip), Intel (ANV), Broadcom (V3DV),
/// Apple (Honeykrisp), Mali (PanVK) and NVIDIA (NVK), NVIDIA's own for Vulkan and for OpenCL, and OpenCL's.
pub(super) const COLUMNS: [Column; 6] = [
    Column {
        title: "instructions",
        of: |costs| costs.instructions,
        names: &[&["Instructions"], &["Instruction Count"], &["Instruction count"], &["Instrs"]],
    },
    Column {
        title: "registers",
        of: |costs| costs.registers,
        names: &[
            &["VGPRs"],
            &["Registers used"],
            &["Register Count"],
            &["Max live registers"],
            &["GPRs"],
            &["Work registers"],
            &["Number of GPRs"],
            &["registers"],
        ],
    },
    Column {
        title: "spills",
        of: |costs| costs.spills,
        names: &[
            &["Spilled SGPRs", "Spilled VGPRs"],
            &["STP Count", "LDP Count"],
            &["Spill Count", "Fill Count"],
            &["TMU Spills", "TMU Fills"],
            &["Spill Size"],
            &["Thread memory"],
            &["Scratch Size"],
            &["Spills", "Fills"],
            &["Spills to memory", "Fills from memory"],
            &["spill stores", "spill loads"],
            &["Local Memory Size"],
        ],
    },
    Column {
        title: "waves",
        of: |costs| costs.waves,
        names: &[
            &["Subgroups per SIMD"],
            &["Max Waves Per Core"],
            &["Thread Count"],
            &["Threads"],
            &["Max warps/SM"],
            &["Max dispatch width"],
        ],
    },
    Column {
        title: "local memory",
        of: |costs| costs.local,
        names: &[
            &["LDS size"],
            &["Workgroup Memory Size"],
            &["Shared Memory Size"],
            &["shared memory"],
            &["CL_KERNEL_LOCAL_MEM_SIZE"],
        ],
    },
    Column {
        title: "clocks",
        of: |costs| costs.clocks,
        names: &[
            &["Latency"],
            &["Cycle Count"],
            &["Estimated cycles stalled on SS", "Estimated cycles stalled on SY"],
            &["Static cycle count"],
        ],
    },
];

impl Costs {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let programs = kernel.outcome.programs();
        let [instructions, registers, spills, waves, local, clocks] =
            COLUMNS.map(|column| most(programs, column.names));
        Costs { instructions, registers, spills, waves, local, clocks }
    }

    /// Whether something does not fit the registers, as far as the driver tells.
    pub(super) fn spills(&self) -> bool {
        self.spills.is_some_and(|spills| spills > 0.0)
    }
}

/// The largest that one of the programs has of what is called by one of these rows of names.
fn most(programs: &[Program], names: &[&[&str]]) -> Option<f64> {
    let told = programs.iter().filter_map(|program| {
        names.iter().find_map(|row| {
            let named = |name: &&str| {
                let told = program.statistics.iter().find(|told| told.name.eq_ignore_ascii_case(name));
                told.map(|told| told.value)
            };
            row.iter().filter_map(named).reduce(|a, b| a + b)
        })
    });
    told.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::file::{Outcome, Statistic};

    fn costs(programs: &[&[(&str, f64)]]) -> Costs {
        let programs = programs.iter().map(|told| Program {
            name: String::new(),
            subgroup: 0,
            statistics: told
                .iter()
                .map(|&(name, value)| Statistic { name: name.to_owned(), value })
                .collect(),
        });
        Costs::of(&Kernel {
            label: String::new(),
            op: String::new(),
            variant: String::new(),
            work_group: [1; 3],
            outcome: Outcome::Compiled { seconds: 0.0, programs: programs.collect() },
        })
    }

    #[test]
    fn each_driver_is_understood() {
        let adreno = costs(&[&[
            ("Max Waves Per Core", 16.0),
            ("Instruction Count", 394.0),
            ("Registers used", 12.0),
            ("STP Count", 2.0),
            ("LDP Count", 3.0),
            ("Estimated cycles stalled on SS", 10.0),
            ("Estimated cycles stalled on SY", 20.0),
        ]]);
        let wanted = Costs {
            instructions: Some(394.0),
            registers: Some(12.0),
            spills: Some(5.0),
            waves: Some(16.0),
            local: None,
            clocks: Some(30.0),
        };
        assert_eq!(adreno, wanted);
        assert!(adreno.spills());
        // One that the device takes with either width.
        let intel = costs(&[&[("Spill Count", 0.0), ("Cycle Count", 7.0)], &[("Spill Count", 4.0)]]);
        assert_eq!((intel.spills, intel.clocks), (Some(4.0), Some(7.0)));
        assert_eq!(costs(&[&[("Hash", 1.0)]]), Costs::default());
        assert!(!costs(&[]).spills());
    }
}
