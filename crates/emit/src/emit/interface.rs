//! What a kernel is given: buffers, images and scalar parameters, the same in both languages.
//!
//! The templates print their declarations from here; naga's reflection and OpenCL's kernel-argument
//! query are held against it.

use crate::dtype::DType;

/// The part an argument plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operand {
    /// The feature map that is read.
    Src,
    /// Packed weights.
    Weights,
    /// One value per output channel, added to the sum.
    Bias,
    /// One PReLU slope per output channel.
    Slope,
    /// A feature map of the output's shape, added after the activation.
    Residual,
    /// The feature map that is written.
    Dst,
    /// GEMM's left operand.
    A,
    /// GEMM's right operand.
    B,
    /// GEMM's result, read as well where `beta` is not zero.
    C,
    /// Packed weights of the first of two convolutions in one op (`gate`).
    Window,
    /// One value for each channel of the first convolution, added to its sum.
    WindowBias,
    /// The queries of an attention.
    Query,
    /// Its keys.
    Key,
    /// Its values.
    Value,
    /// What says which keys a query attends.
    Mask,
    /// Where the queries begin among the keys.
    Begins,
    /// How many keys there are.
    Ends,
    /// What the sums of integers of each output channel are multiplied by.
    Scale,
    /// The scales of quantized weights.
    Scales,
    /// Their zero points.
    Zeros,
    /// What the work-groups of a kernel tell each other: atomic words that are zero before a run and left so.
    Scratch,
    /// An input of an op that has several of one kind, counted from 0.
    Arg(u8),
    /// An input of an application's kernel, counted from 0.
    Input(u8),
    /// An output of an application's kernel, counted from 0.
    Output(u8),
    /// A result beside `Dst` of an op that has several, counted from 1.
    Result(u8),
    /// What a kernel reads in the place of an operand that it computes, counted from 0.
    Read(u8),
}

const ARGS: [&str; MAX_ARGS] = ["arg0", "arg1", "arg2", "arg3", "arg4", "arg5", "arg6"];

/// The most inputs of one kind that a kernel binds: WebGPU guarantees eight storage buffers, and one is
/// written.
pub const MAX_ARGS: usize = 7;

/// Names of an application's operands in messages: a device binds no more of each.
const INPUTS: [&str; 8] =
    ["input 0", "input 1", "input 2", "input 3", "input 4", "input 5", "input 6", "input 7"];
/// Names of results beside the first.
const RESULTS: [&str; MAX_RESULTS - 1] = ["dst1", "dst2", "dst3"];

/// Names of what is read in the place of an operand.
const READS: [&str; MAX_ARGS] = ["read0", "read1", "read2", "read3", "read4", "read5", "read6"];

/// The most results of an op.
pub const MAX_RESULTS: usize = 4;

const OUTPUTS: [&str; 8] =
    ["output 0", "output 1", "output 2", "output 3", "output 4", "output 5", "output 6", "output 7"];

impl Operand {
    /// The argument's name in the kernel text.
    pub const fn name(self) -> &'static str {
        match self {
            Operand::Src => "src",
            Operand::Window => "window",
            Operand::WindowBias => "window_bias",
            Operand::Weights => "weights",
            Operand::Bias => "bias",
            Operand::Slope => "slope",
            Operand::Residual => "residual",
            Operand::Dst => "dst",
            Operand::A => "mat_a",
            Operand::B => "mat_b",
            Operand::C => "mat_c",
            Operand::Query => "query",
            Operand::Key => "key",
            Operand::Value => "value",
            Operand::Mask => "mask",
            Operand::Begins => "begins",
            Operand::Ends => "ends",
            Operand::Scale => "scale",
            Operand::Scales => "scales",
            Operand::Zeros => "zeros",
            Operand::Scratch => "scratch",
            Operand::Arg(index) if (index as usize) < ARGS.len() => ARGS[index as usize],
            Operand::Arg(_) => "an argument",
            Operand::Input(index) if (index as usize) < INPUTS.len() => INPUTS[index as usize],
            Operand::Output(index) if (index as usize) < OUTPUTS.len() => OUTPUTS[index as usize],
            Operand::Input(_) => "an input",
            Operand::Output(_) => "an output",
            Operand::Result(index) if index > 0 && (index as usize) < MAX_RESULTS => {
                RESULTS[index as usize - 1]
            }
            Operand::Result(_) => "a result",
            Operand::Read(index) if (index as usize) < READS.len() => READS[index as usize],
            Operand::Read(_) => "what is read",
        }
    }

    /// Its number, which never changes.
    #[doc(hidden)]
    pub const fn number(self) -> u64 {
        match self {
            Operand::Src => 0,
            Operand::Weights => 1,
            Operand::Bias => 2,
            Operand::Slope => 3,
            Operand::Residual => 4,
            Operand::Dst => 5,
            Operand::A => 6,
            Operand::B => 7,
            Operand::C => 8,
            Operand::Window => 9,
            Operand::WindowBias => 10,
            Operand::Query => 11,
            Operand::Key => 12,
            Operand::Value => 13,
            Operand::Mask => 14,
            Operand::Begins => 15,
            Operand::Ends => 16,
            Operand::Scale => 17,
            Operand::Scales => 18,
            Operand::Zeros => 19,
            Operand::Scratch => 20,
            Operand::Arg(index) => 128 + index as u64,
            Operand::Input(index) => 256 + index as u64,
            Operand::Output(index) => 512 + index as u64,
            Operand::Result(index) => 768 + index as u64,
            Operand::Read(index) => 1024 + index as u64,
        }
    }

    /// Whether the kernel text calls the argument [`Operand::name`]; an application's calls it what it
    /// likes.
    #[doc(hidden)]
    pub const fn is_named(self) -> bool {
        !matches!(self, Operand::Input(_) | Operand::Output(_))
    }
}

/// What one element of an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// A buffer of scalars.
    Scalar(DType),
    /// A buffer of four-vectors.
    Vec4(DType),
    /// An RGBA image whose channels are of this type (OpenCL only).
    Image2d(DType),
    /// A buffer of atomic `u32`.
    Atomic,
}

impl Element {
    /// Bytes of one element: a scalar, a vec4 or a pixel.
    pub const fn bytes(self) -> usize {
        match self {
            Element::Scalar(dtype) => dtype.bytes(),
            Element::Atomic => DType::U32.bytes(),
            Element::Vec4(dtype) | Element::Image2d(dtype) => 4 * dtype.bytes(),
        }
    }

    /// The type of one component.
    pub const fn dtype(self) -> DType {
        match self {
            Element::Scalar(dtype) | Element::Vec4(dtype) | Element::Image2d(dtype) => dtype,
            Element::Atomic => DType::U32,
        }
    }
}

/// What the kernel does with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only read.
    Read,
    /// Only written.
    Write,
    /// Read and written.
    ReadWrite,
}

/// One buffer or image argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Its part.
    pub operand: Operand,
    /// What it holds.
    pub element: Element,
    /// What is done with it.
    pub access: Access,
    /// What it holds at least, where that is known: a dispatch with less is refused.
    pub least: Least,
}

impl Binding {
    /// A binding of any size.
    pub const fn new(operand: Operand, element: Element, access: Access) -> Self {
        Binding { operand, element, access, least: Least::Element }
    }

    /// The words that a kernel's work-groups tell each other something in, the last of its bindings.
    pub const fn scratch(words: usize) -> Self {
        let least = Least::Bytes(4 * words as u64);
        Binding { operand: Operand::Scratch, element: Element::Atomic, access: Access::ReadWrite, least }
    }

    /// Bytes of the scratch memory that it is, if it is that.
    #[doc(hidden)]
    pub const fn scratch_bytes(&self) -> Option<u64> {
        match (self.operand, self.least) {
            (Operand::Scratch, Least::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// What an argument holds at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Least {
    /// One element. How many more there are, the kernel finds out.
    #[default]
    Element,
    /// So many bytes of a buffer.
    Bytes(u64),
    /// So many columns and rows of an image's pixels.
    Pixels([usize; 2]),
}

/// The type of a scalar parameter. All are four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// `u32` / `uint`.
    U32,
    /// `i32` / `int`.
    I32,
    /// `f32` / `float`.
    F32,
}

/// One scalar parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name, `params.<name>` in WGSL and `<name>` in OpenCL C; empty where an application's kernel
    /// calls it what it likes.
    pub name: &'static str,
    /// Its type.
    pub ty: ParamType,
}

/// The value of a scalar parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// A `u32`.
    U32(u32),
    /// An `i32`.
    I32(i32),
    /// An `f32`.
    F32(f32),
}

impl Scalar {
    /// Its type.
    #[doc(hidden)]
    pub const fn ty(self) -> ParamType {
        match self {
            Scalar::U32(_) => ParamType::U32,
            Scalar::I32(_) => ParamType::I32,
            Scalar::F32(_) => ParamType::F32,
        }
    }

    /// Its four bytes, as the device reads them.
    #[doc(hidden)]
    pub const fn bytes(self) -> [u8; 4] {
        match self {
            Scalar::U32(value) => value.to_ne_bytes(),
            Scalar::I32(value) => value.to_ne_bytes(),
            Scalar::F32(value) => value.to_ne_bytes(),
        }
    }
}

/// Every argument of a kernel, in order: buffers and images first, scalars after.
///
/// WGSL binds argument `i` at `@group(0) @binding(i)` and the scalars as one uniform struct at
/// the binding after the last; OpenCL C takes all of them as kernel arguments in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Interface {
    /// Buffers and images.
    pub bindings: Vec<Binding>,
    /// Scalars.
    pub params: Vec<Param>,
}

impl Interface {
    /// The binding of `operand`, and its index.
    pub fn binding(&self, operand: Operand) -> Option<(usize, &Binding)> {
        self.bindings.iter().enumerate().find(|(_, binding)| binding.operand == operand)
    }

    /// Bytes of the scalar block.
    pub fn param_bytes(&self) -> usize {
        4 * self.params.len()
    }
}

impl ParamType {
    /// How the language spells it.
    pub const fn name(self, dialect: super::Dialect) -> &'static str {
        match (dialect, self) {
            (super::Dialect::Wgsl, ParamType::U32) => "u32",
            (super::Dialect::Wgsl, ParamType::I32) => "i32",
            (super::Dialect::Wgsl, ParamType::F32) => "f32",
            (super::Dialect::OpenClC, ParamType::U32) => "uint",
            (super::Dialect::OpenClC, ParamType::I32) => "int",
            (super::Dialect::OpenClC, ParamType::F32) => "float",
        }
    }
}
