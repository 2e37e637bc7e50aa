//! From a graph to what runs: passes that make units of nodes, choose a kernel and a form for each, and
//! plan the memory. Sessions, the tuner, the benchmarks and the CPU all run what comes out of here.
//!
//! | pass | what it does |
//! |---|---|
//! | `network`, `unit`, `def_use` | one unit for each node with kernels; views are noted, nodes of constants are computed |
//! | `unread` | what no output needs is left out |
//! | `border` | zeros or mirror images around a map become the padding of the one that reads it |
//! | `without_elements` | nodes without results are left out, and so are inputs of no elements |
//! | `quantized` | operators between quantized values are computed on bytes |
//! | `chain` | functions of each element join what they follow: an epilogue, or each other |
//! | `idioms` | normalisations and softmax that were written out become one unit; for devices, weighted maps, means with products behind them, and gated products do |
//! | `stack` | units that read one input, and only leave the network or are pixels, become one |
//! | `host` | which units the CPU computes between two recordings |
//! | `precision`, `cut` | which units store f16, where the session or the caller asks for several precisions |
//! | `idioms::compose` | units that are nests of loops join those that read what they write, where that takes less time |
//! | `idioms::follow` | a function of each element becomes a part of the kernel that writes these elements |
//! | `idioms::precede` | a nest that a product of few rows or an update of a state reads becomes a part of the reader's kernel |
//! | `forms` | the layout of the units that compute in several |
//! | `choose` | the kernel of each unit: by hand, by preference, by measured times, by rule |
//! | `known` | kernels that are compiled for other extents, in place of those that the rule chose |
//! | `of_graph`, `builder`, `conversions` | forms of values and the conversions between them: the steps of a run, which are the `program` |
//! | `of_op` | the program of one op on operands that its caller keeps |
//! | `join` | concatenations whose inputs are written where they belong, without a kernel |
//! | `constants` | constants as their kernels read them |
//! | `alike` | constants that are alike are stored once |
//! | `memory` | which values share a buffer |
//! | `written` | what units write as outputs of the program, for runs that are looked at |
//! | `wiring`, `arrangement` | the steps of a run whose inputs and outputs lie in an application's buffers |

mod alias;
mod alike;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod arrangement;
mod border;
mod builder;
mod by;
mod chain;
mod choose;
mod choosing;
mod constants;
mod conversions;
mod cut;
mod def_use;
mod forms;
mod function_dims;
mod halves;
mod host;
mod idioms;
#[cfg(not(target_family = "wasm"))]
mod image_conversion;
mod join;
mod kernel;
mod known;
mod memory;
mod mistakes;
mod network;
mod network_values;
#[cfg(not(target_family = "wasm"))]
mod observed;
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
mod observed_units;
mod of_graph;
#[cfg(not(target_family = "wasm"))]
mod of_op;
mod parts;
mod precision;
mod prepare;
mod program;
mod quantized;
mod rewrites;
mod savings;
mod simplify;
mod stack;
mod states;
mod step;
mod stored_as;
mod unit;
mod unread;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
mod wiring;
mod without_elements;
#[cfg(not(target_family = "wasm"))]
mod written;

pub(crate) use alias::Alias;
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub(crate) use arrangement::{Arrangement, check_arrangement};
#[cfg(all(any(feature = "wgpu", feature = "opencl"), not(target_family = "wasm")))]
pub use by::By;
pub(crate) use choose::on_cpu;
pub(crate) use constants::{Constant, MIN_SHARED, Packed, PackedAs, pack, packed_bytes};
pub(crate) use halves::op_on;
pub(crate) use idioms::{compose, compose_on_cpu, follow, round_activations};
#[cfg(not(target_family = "wasm"))]
pub(crate) use image_conversion::change_times;
pub(crate) use known::{CompiledKernels, decisive};
pub(crate) use memory::{Lifetime, MemoryPlan, least, plan};
pub(crate) use network::Network;
#[cfg(not(target_family = "wasm"))]
pub(crate) use observed::{Observed, observed};
#[cfg(all(feature = "cpu", not(target_family = "wasm")))]
pub(crate) use observed_units::{ObservedOperand, ObservedUnit, observed_units};
pub(crate) use precision::has_halves;
pub(crate) use program::Program;
pub(crate) use rewrites::Rewrites;
pub(crate) use simplify::{joined, simplified};
pub(crate) use stack::multiple;
pub(crate) use states::InPlace;
pub(crate) use step::{HostSource, OperandMemory, Part, Step, Stored, Work, can_be_a_step};
pub(crate) use unit::{Input, Unit};
#[cfg(any(feature = "wgpu", feature = "opencl"))]
pub(crate) use wiring::{Lent, PortIndex, Spot, WiredStep, Wiring};
#[cfg(not(target_family = "wasm"))]
pub(crate) use written::Written;
