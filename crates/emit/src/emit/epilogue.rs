//! What happens to a sum before it is stored: bias, activation, residual.
//!
//! `y = activation(sum + bias) + residual` or `activation(sum + bias + residual)`, the same on every op and in
//! both languages. The GPU
//! text of an activation stands directly above its CPU `apply`.

use crate::{erf, vector};
use std::hash::{Hash, Hasher};

/// An `f32` that compares and hashes by its bits, so that specs can be keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bits(pub f32);

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Bits {}

impl Hash for Bits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// An element-wise function of the biased sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Activation {
    /// `x`.
    #[default]
    None,
    /// `max(x, 0)`; NaN of NaN.
    Relu,
    /// `min(max(x, 0), 6)`; NaN of NaN.
    Relu6,
    /// `x` if `x >= 0`, else `slope * x`; one slope for all channels.
    LeakyRelu(Bits),
    /// `x` if `x >= 0`, else `slope[c] * x`; one slope per channel.
    PRelu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `tanh(x)`.
    Tanh,
    /// `x * min(max(x + 3, 0), 6) / 6` (Howard et al., *Searching for MobileNetV3*, 2019).
    HardSwish,
    /// `min(max(x / 6 + 1/2, 0), 1)`; NaN of NaN.
    HardSigmoid,
    /// `x / (1 + exp(-x))` (Ramachandran et al., *Searching for Activation Functions*, 2017).
    Silu,
    /// `x (1 + erf(x / sqrt(2))) / 2` (Hendrycks and Gimpel, *Gaussian Error Linear Units*, 2016).
    Gelu,
    /// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`, an approximation of it.
    GeluTanh,
}

impl Activation {
    /// Short name for labels; empty for none.
    ///
    /// ```
    /// use diptych::Activation;
    ///
    /// assert_eq!((Activation::Relu6.name(), Activation::None.name()), ("relu6", ""));
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Activation::None => "",
            Activation::Relu => "relu",
            Activation::Relu6 => "relu6",
            Activation::LeakyRelu(_) => "leaky",
            Activation::PRelu => "prelu",
            Activation::Sigmoid => "sigmoid",
            Activation::Tanh => "tanh",
            Activation::HardSwish => "hswish",
            Activation::HardSigmoid => "hsigmoid",
            Activation::Silu => "silu",
            Activation::Gelu => "gelu",
            Activation::GeluTanh => "gelutanh",
        }
    }

    /// The function of `shared/functions` that the expression calls, if it calls one.
    #[doc(hidden)]
    pub const fn call(self) -> Option<&'static str> {
        match self {
            Activation::Relu | Activation::Relu6 | Activation::HardSigmoid => Some("is_nan"),
            Activation::Gelu => Some("gelu"),
            Activation::GeluTanh => Some("gelu_tanh"),
            _ => None,
        }
    }

    /// The expression of the activation of the vec4 (or scalar) expression `x`, with `splat`
    /// spelling a constant of `x`'s type, `in_f32` what a function of f32 makes of it, `is_nan` where it is no
    /// number, and `slope` the expression of the PReLU slopes.
    ///
    /// A NaN stays. `max`, `min` and `clamp` may make a bound of it, and a driver may make a `max` of a comparison
    /// and a choice: WGSL lets an implementation assume that there is no NaN. So it is found by its bits, or both
    /// sides of a choice are NaN.
    #[doc(hidden)]
    pub fn text(
        self,
        x: &str,
        slope: &str,
        splat: &dyn Fn(f32) -> String,
        in_f32: &dyn Fn(&str, &str) -> String,
        is_nan: &dyn Fn(&str) -> String,
    ) -> String {
        let (zero, one, six) = (splat(0.0), splat(1.0), splat(6.0));
        match self {
            Activation::None => x.to_owned(),
            Activation::Relu => format!("select(max({x}, {zero}), {x}, {})", is_nan(x)),
            Activation::Relu6 => format!("select(clamp({x}, {zero}, {six}), {x}, {})", is_nan(x)),
            Activation::LeakyRelu(slope) => {
                format!("select({x}, {} * {x}, {x} < {zero})", splat(slope.0))
            }
            Activation::PRelu => format!("select({x}, {slope} * {x}, {x} < {zero})"),
            Activation::Sigmoid => format!("{one} / ({one} + exp(-({x})))"),
            // Beyond +-10 tanh rounds to +-1; drivers that compute it from exp(2x) overflow there. A clamp
            // may make a bound of NaN, and a driver may take `x == x` to be true. NaN is not beyond 10, and stays.
            // OpenCL's `abs` is of integers alone, and some kernels are written in its C.
            Activation::Tanh => {
                let (low, high) = (splat(-10.0), splat(10.0));
                format!("tanh(select({x}, clamp({x}, {low}, {high}), max({x}, -({x})) > {high}))")
            }
            // The factor is 1 from 3 on: the other order overflows where the result does not.
            Activation::HardSwish => {
                format!("{x} * (clamp({x} + {}, {zero}, {six}) * {})", splat(3.0), splat(1.0 / 6.0))
            }
            Activation::HardSigmoid => {
                let line = format!("{x} * {} + {}", splat(1.0 / 6.0), splat(0.5));
                format!("select(clamp({line}, {zero}, {one}), {x}, {})", is_nan(x))
            }
            Activation::Silu => format!("{x} / ({one} + exp(-({x})))"),
            Activation::Gelu | Activation::GeluTanh => in_f32(self.call().unwrap_or_default(), x),
        }
    }

    /// The activation of `x` on the CPU, `slope` being the channel's PReLU slope.
    #[doc(hidden)]
    #[inline(always)]
    pub fn apply(self, x: f32, slope: f32) -> f32 {
        match self {
            Activation::None => x,
            Activation::Relu => vector::at_least(x, 0.0),
            Activation::Relu6 => vector::at_most(vector::at_least(x, 0.0), 6.0),
            Activation::LeakyRelu(slope) => {
                if x < 0.0 {
                    slope.0 * x
                } else {
                    x
                }
            }
            Activation::PRelu => {
                if x < 0.0 {
                    slope * x
                } else {
                    x
                }
            }
            Activation::Sigmoid => vector::sigmoid(x),
            Activation::Tanh => vector::tanh(x),
            Activation::HardSwish => x * ((x + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0)),
            Activation::HardSigmoid => vector::at_most(vector::at_least(x * (1.0 / 6.0) + 0.5, 0.0), 1.0),
            Activation::Silu => x * vector::sigmoid(x),
            Activation::Gelu => erf::gelu_f32(x),
            Activation::GeluTanh => erf::gelu_tanh_f32(x),
        }
    }

    /// The activation of `x` in f64, for the oracle.
    #[doc(hidden)]
    pub fn reference(self, x: f64, slope: f64) -> f64 {
        match self {
            Activation::None => x,
            Activation::Relu if x < 0.0 => 0.0,
            Activation::Relu => x,
            // A NaN stays in a clamp.
            Activation::Relu6 => x.clamp(0.0, 6.0),
            Activation::LeakyRelu(slope) => {
                if x >= 0.0 {
                    x
                } else {
                    f64::from(slope.0) * x
                }
            }
            Activation::PRelu => {
                if x >= 0.0 {
                    x
                } else {
                    slope * x
                }
            }
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::HardSwish => x * ((x + 3.0).clamp(0.0, 6.0) / 6.0),
            Activation::HardSigmoid => (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Gelu => erf::gelu(x),
            Activation::GeluTanh => erf::gelu_tanh(x),
        }
    }

    /// Whether `f(0) = 0`, so that the lanes beyond the channels, whose sums are zero, stay zero.
    #[doc(hidden)]
    pub const fn keeps_zero(self) -> bool {
        !matches!(self, Activation::Sigmoid | Activation::HardSigmoid)
    }

    /// The largest slope of the function, for error bounds: an error `e` in the biased sum moves
    /// the result by at most this times `e`. `slope` is the largest PReLU slope in magnitude.
    #[doc(hidden)]
    pub fn lipschitz(self, slope: f64) -> f64 {
        match self {
            Activation::None | Activation::Relu | Activation::Relu6 | Activation::Tanh => 1.0,
            Activation::LeakyRelu(slope) => f64::from(slope.0).abs().max(1.0),
            Activation::PRelu => slope.abs().max(1.0),
            Activation::Sigmoid => 0.25,
            Activation::HardSigmoid => 1.0 / 6.0,
            // The derivative (2x + 3) / 6 is largest at x = 3.
            Activation::HardSwish => 1.5,
            // At 2.4, sqrt(2) and 1.4.
            Activation::Silu => 1.1,
            Activation::Gelu | Activation::GeluTanh => 1.13,
        }
    }
}

/// Where a residual, a feature map of the output's shape, is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Residual {
    /// There is none.
    #[default]
    None,
    /// The residual `r` is added to the activation's result: `f(s) + r`.
    AfterActivation,
    /// The residual `r` is added to the activation's argument: `f(s + r)`.
    BeforeActivation,
}

impl Residual {
    /// Whether there is one.
    pub const fn is_some(self) -> bool {
        !matches!(self, Residual::None)
    }
}

impl From<bool> for Residual {
    fn from(given: bool) -> Self {
        if given { Residual::AfterActivation } else { Residual::None }
    }
}

/// What is done to a sum before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Epilogue {
    /// A bias per output channel is added first.
    pub bias: bool,
    /// The activation.
    pub activation: Activation,
    /// A residual of the output's shape is added.
    pub residual: Residual,
}

impl Epilogue {
    /// A bias, an activation and a residual; without an activation it is all one where the residual is added.
    pub fn new(bias: bool, activation: Activation, residual: Residual) -> Self {
        let after = residual.is_some() && activation == Activation::None;
        let residual = if after { Residual::AfterActivation } else { residual };
        Epilogue { bias, activation, residual }
    }

    /// What becomes of a biased sum, in f64, for the oracle.
    pub fn reference(&self, sum: f64, slope: f64, residual: f64) -> f64 {
        match self.residual {
            Residual::BeforeActivation => self.activation.reference(sum + residual, slope),
            _ => self.activation.reference(sum, slope) + residual,
        }
    }

    /// The part of a kernel's label that names the epilogue, such as `bias_relu6`.
    pub fn label(&self) -> String {
        let add = |here| if self.residual == here { "add" } else { "" };
        let parts = [
            if self.bias { "bias" } else { "" },
            add(Residual::BeforeActivation),
            self.activation.name(),
            add(Residual::AfterActivation),
        ];
        parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("_")
    }

    /// The statements that turn the accumulator variable `x` into the value to store; `bias`,
    /// `slope` and `residual` are the expressions that load them, `splat`, `in_f32` and `is_nan` as
    /// [`Activation::text`] has them.
    #[expect(clippy::too_many_arguments, reason = "the expressions of a statement, each by its name")]
    pub(crate) fn statements(
        &self,
        x: &str,
        bias: &str,
        slope: &str,
        residual: &str,
        splat: &dyn Fn(f32) -> String,
        in_f32: &dyn Fn(&str, &str) -> String,
        is_nan: &dyn Fn(&str) -> String,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if self.bias {
            lines.push(format!("{x} = {x} + {bias};"));
        }
        let add = |here| (self.residual == here).then(|| format!("{x} = {x} + {residual};"));
        lines.extend(add(Residual::BeforeActivation));
        if self.activation != Activation::None {
            lines.push(format!("{x} = {};", self.activation.text(x, slope, splat, in_f32, is_nan)));
        }
        lines.extend(add(Residual::AfterActivation));
        lines
    }
}
