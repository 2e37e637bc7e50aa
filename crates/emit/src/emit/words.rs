//! The small vocabulary that templates share: what depends on the precision, or must never diverge between
//! kernels.
//!
//! | word | WGSL, f32 | WGSL, packed halves |
//! |---|---|---|
//! | `${acc4}` | `vec4<f32>` | `vec4<f32>` |
//! | `splat("x")` | `vec4<f32>(x)` | `vec4<f32>(x)` |
//! | `load4("src", "i")` | `src[i]` | `unpack_half4(src[i])` |
//! | `load("src", "i")` | `src[i]` | |
//! | `stored("src", "i")` | `src[i]`, not converted | |
//! | `lane("src", "i", "l")` | `src[i][l]` | `unpack2x16float(src[i][l / 2u])[l % 2u]` |
//! | `set_lane("local", "i", "l", "v")` | `local[i][l] = v;` | `local[i][l] = v;` |
//! | `store4("dst", "i", "v")` | `dst[i] = v;` | `dst[i] = pack_half4(v);` |
//! | `fma4("a", "b", "c")` | `fma(a, b, c)` | `fma(a, b, c)` |
//! | `transform("input", 2, 0, "d")` | `d0 - d2` | `d0 - d2` |
//! | `${barrier}` | `workgroupBarrier()` | `workgroupBarrier()` |
//! | `param("alpha")` | `params.alpha` | `params.alpha` |
//!
//! Loads convert from the storage type to the accumulator's, stores convert back. For an image
//! argument, `load4` and `store4` use their `column` and `row` expressions instead of the index. The few
//! kernels that are written in OpenCL C, all with sums in f32, know fewer words.

mod between;
mod declared;

use super::element::{NAME, SCALARS};
use super::{Binding, Dialect, Element, KernelSpec, Operand, Prologue, Residual, halves, winograd};
use crate::dtype::{DType, Precision};

/// The parameter of kernels that must not store what their sum or activation is in the lanes beyond the
/// channels: the channels of the destination.
pub const CHANNELS: &str = "dst_channels";

/// The vocabulary for one spec in one language.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    dialect: Dialect,
    spec: KernelSpec,
}

impl Words {
    pub(crate) fn new(spec: &KernelSpec, dialect: Dialect) -> Self {
        Words { dialect, spec: spec.clone() }
    }

    /// The type that is computed in: an integer where integers are written.
    fn accumulator(&self) -> DType {
        let written = self.element(Operand::Dst.name()).map(Element::dtype);
        match written.filter(|dtype| !dtype.is_float()) {
            Some(integer) => integer,
            None => self.spec.precision.accumulator(),
        }
    }

    /// The scalar type that sums are kept in.
    pub(crate) fn acc(&self) -> &'static str {
        match (self.dialect, self.accumulator()) {
            (Dialect::OpenClC, _) => "float",
            (Dialect::Wgsl, DType::F16) => "f16",
            (Dialect::Wgsl, DType::I32) => "i32",
            (Dialect::Wgsl, DType::U32) => "u32",
            (Dialect::Wgsl, _) => "f32",
        }
    }

    /// The vec4 type that sums are kept in.
    pub(crate) fn acc4(&self) -> &'static str {
        match (self.dialect, self.accumulator()) {
            (Dialect::OpenClC, _) => "float4",
            (Dialect::Wgsl, DType::F16) => "vec4<f16>",
            (Dialect::Wgsl, DType::I32) => "vec4<i32>",
            (Dialect::Wgsl, DType::U32) => "vec4<u32>",
            (Dialect::Wgsl, _) => "vec4<f32>",
        }
    }

    /// A vec4 of four times `x`, or of four values.
    pub(crate) fn splat(&self, x: &str) -> String {
        match self.dialect {
            Dialect::Wgsl => format!("{}({x})", self.acc4()),
            Dialect::OpenClC => format!("({})({x})", self.acc4()),
        }
    }

    /// A vec4 constant.
    pub(crate) fn constant4(&self, value: f32) -> String {
        let suffix = match self.accumulator() {
            DType::F16 => "h",
            DType::I32 => return self.splat(&format!("{}i", value as i32)),
            DType::U32 => return self.splat(&format!("{}u", value as u32)),
            _ => "f",
        };
        self.splat(&format!("{value:?}{suffix}"))
    }

    /// What the kernel computes in the place of the operand of this name, if it does.
    fn prologue(&self, name: &str) -> Option<&Prologue> {
        self.spec.prologue.as_ref().filter(|own| own.operand.name() == name)
    }

    fn element(&self, name: &str) -> Option<Element> {
        if let Some(own) = self.prologue(name) {
            return Some(own.element);
        }
        self.spec
            .interface
            .bindings
            .iter()
            .find(|binding| binding.operand.name() == name)
            .map(|binding| binding.element)
    }

    /// Reads a vec4 as the accumulator's type.
    pub(crate) fn load4(&self, name: &str, index: &str, column: &str, row: &str) -> Result<String, String> {
        let (acc4, element) = (self.acc4(), self.element(name));
        let narrow = self.accumulator() == DType::F16;
        if let (Some(own), Dialect::Wgsl, Some(Element::Vec4(_))) =
            (self.prologue(name), self.dialect, element)
        {
            let value = own.call(index);
            return Ok(if narrow { format!("{acc4}({value})") } else { value });
        }
        Ok(match (self.dialect, element) {
            (Dialect::OpenClC, Some(Element::Vec4(DType::F32))) => format!("{name}[{index}]"),
            (Dialect::OpenClC, Some(Element::Vec4(DType::F16))) => format!("load_half4({name}, {index})"),
            (Dialect::Wgsl, Some(Element::Vec4(dtype))) if dtype == self.accumulator() => {
                format!("{name}[{index}]")
            }
            (Dialect::Wgsl, Some(Element::Vec4(DType::F16))) if !self.spec.native_half => {
                format!("unpack_half4({name}[{index}])")
            }
            (Dialect::Wgsl, Some(Element::Vec4(_))) => format!("{acc4}({name}[{index}])"),
            (Dialect::Wgsl, Some(Element::Image2d(_))) if !column.is_empty() => {
                let load = format!("textureLoad({name}, vec2<u32>({column}, {row}), 0)");
                if narrow { format!("{acc4}({load})") } else { load }
            }
            _ => return Err(format!("load4 cannot read {name} ({element:?})")),
        })
    }

    /// Reads a scalar as the accumulator's type.
    pub(crate) fn load(&self, name: &str, index: &str) -> Result<String, String> {
        match (self.dialect, self.element(name)) {
            (Dialect::Wgsl, Some(Element::Scalar(dtype))) if dtype == self.accumulator() => {
                Ok(format!("{name}[{index}]"))
            }
            (Dialect::Wgsl, Some(Element::Scalar(_))) => Ok(format!("{}({name}[{index}])", self.acc())),
            (_, element) => Err(format!("load cannot read {name} ({element:?})")),
        }
    }

    /// Reads a scalar as the type that it is stored in.
    pub(crate) fn stored(&self, name: &str, index: &str) -> Result<String, String> {
        match (self.dialect, self.element(name)) {
            (Dialect::Wgsl, Some(Element::Scalar(_))) => Ok(format!("{name}[{index}]")),
            (_, element) => Err(format!("stored cannot read {name} ({element:?})")),
        }
    }

    /// Reads lane `lane` of vec4 `index`, for lanes known only at run time.
    pub(crate) fn lane(&self, name: &str, index: &str, lane: &str) -> Result<String, String> {
        match (self.dialect, self.element(name)) {
            (Dialect::Wgsl, Some(Element::Vec4(DType::F16))) if !self.spec.native_half => {
                Ok(format!("unpack2x16float({name}[{index}][{lane} / 2u])[{lane} % 2u]"))
            }
            (Dialect::Wgsl, Some(Element::Vec4(_))) => Ok(format!("{name}[{index}][{lane}]")),
            (_, element) => Err(format!("lane cannot read {name} ({element:?})")),
        }
    }

    /// The statement that writes lane `lane` of vec4 `index` of the work-group's memory.
    pub(crate) fn set_lane(&self, name: &str, index: &str, lane: &str, value: &str) -> String {
        format!("{name}[{index}][{lane}] = {value};")
    }

    /// The statement that writes a vec4 of the accumulator's type.
    pub(crate) fn store4(
        &self,
        name: &str,
        index: &str,
        value: &str,
        column: &str,
        row: &str,
    ) -> Result<String, String> {
        let element = self.element(name);
        let narrow = self.accumulator() == DType::F16;
        Ok(match (self.dialect, element) {
            (Dialect::OpenClC, Some(Element::Vec4(DType::F32))) => format!("{name}[{index}] = {value};"),
            (Dialect::OpenClC, Some(Element::Vec4(DType::F16))) => {
                format!("store_half4({value}, {name}, {index});")
            }
            (Dialect::Wgsl, Some(Element::Vec4(dtype))) if dtype == self.accumulator() => {
                format!("{name}[{index}] = {value};")
            }
            (Dialect::Wgsl, Some(Element::Vec4(DType::F16))) if self.spec.native_half => {
                format!("{name}[{index}] = vec4<f16>({value});")
            }
            (Dialect::Wgsl, Some(Element::Vec4(DType::F16))) => {
                format!("{name}[{index}] = pack_half4({value});")
            }
            (Dialect::Wgsl, Some(Element::Image2d(_))) if !column.is_empty() => {
                let value = if narrow { format!("vec4<f32>({value})") } else { value.to_owned() };
                format!("textureStore({name}, vec2<u32>({column}, {row}), {value});")
            }
            _ => return Err(format!("store4 cannot write {name} ({element:?})")),
        })
    }

    /// The statement that writes a scalar of the accumulator's type.
    pub(crate) fn store(&self, name: &str, index: &str, value: &str) -> Result<String, String> {
        match (self.dialect, self.element(name)) {
            (Dialect::Wgsl, Some(Element::Scalar(dtype))) if dtype == self.accumulator() => {
                Ok(format!("{name}[{index}] = {value};"))
            }
            (Dialect::Wgsl, Some(Element::Scalar(DType::F16))) => {
                Ok(format!("{name}[{index}] = f16({value});"))
            }
            (Dialect::Wgsl, Some(Element::Scalar(DType::F32))) => {
                Ok(format!("{name}[{index}] = f32({value});"))
            }
            (_, element) => Err(format!("store cannot write {name} ({element:?})")),
        }
    }

    /// `a * b + c`, rounded once where the hardware does so.
    pub(crate) fn fma4(&self, a: &str, b: &str, c: &str) -> String {
        match self.dialect {
            Dialect::Wgsl => format!("fma({a}, {b}, {c})"),
            // OpenCL's `fma` is emulated where the hardware rounds twice; `mad` never is.
            Dialect::OpenClC => format!("mad({a}, {b}, {c})"),
        }
    }

    /// A float parameter as the accumulator's type.
    pub(crate) fn param(&self, name: &str) -> String {
        match (self.dialect, self.accumulator()) {
            (Dialect::OpenClC, _) => name.to_owned(),
            (Dialect::Wgsl, DType::F16) => format!("f16(params.{name})"),
            (Dialect::Wgsl, _) => format!("params.{name}"),
        }
    }

    /// Whether the kernel takes a scalar of this name.
    fn has_scalar(&self, name: &str) -> bool {
        self.spec.interface.params.iter().any(|param| param.name == name)
    }

    /// How far place `place` along an axis is from the first one, by the scalar `name` from each to the next. Where the kernel has
    /// a scalar `{name}_within`, the axis is two: `within` places of the inner one follow each other at that distance, and
    /// all begin at `{name}_first`.
    pub(crate) fn apart(&self, name: &str, place: &str) -> String {
        let scalar = |name: &str| match self.dialect {
            Dialect::OpenClC => name.to_owned(),
            Dialect::Wgsl => format!("params.{name}"),
        };
        let (outer, inner) = (scalar(name), format!("{name}_within"));
        if !self.has_scalar(&inner) {
            return format!("{outer} * {place}");
        }
        let (first, inner, within) = (scalar(&format!("{name}_first")), scalar(&inner), scalar("within"));
        format!("({first} + {outer} * ({place} / {within}) + {inner} * ({place} % {within}))")
    }

    /// Waits for the work-group and makes its local memory's writes visible.
    pub(crate) fn barrier(&self) -> &'static str {
        match self.dialect {
            Dialect::Wgsl => "workgroupBarrier()",
            Dialect::OpenClC => "barrier(CLK_LOCAL_MEM_FENCE)",
        }
    }

    /// A sum with the factors of a Winograd transform: see [`winograd::sum`].
    pub(crate) fn transform(
        &self,
        which: &str,
        results: usize,
        row: usize,
        prefix: &str,
    ) -> Result<String, String> {
        let suffix = if self.accumulator() == DType::F16 { "h" } else { "f" };
        winograd::sum(which, results, row, prefix, suffix)
    }

    /// Zero as the accumulator's scalar type.
    pub(crate) fn zero(&self) -> &'static str {
        match self.accumulator() {
            DType::F16 => "0.0h",
            DType::I32 => "0i",
            DType::U32 => "0u",
            _ => "0.0f",
        }
    }

    /// A function of an f32 vec4, of `x` in the accumulator's type.
    fn in_f32(&self, function: &str, x: &str) -> String {
        match self.accumulator() {
            DType::F16 => format!("{}({function}(vec4<f32>({x})))", self.acc4()),
            _ => format!("{function}({x})"),
        }
    }

    /// Where the vec4 `x` of the accumulator's type is no number.
    fn is_nan(&self, x: &str) -> String {
        match self.accumulator() {
            DType::F16 => format!("is_nan(vec4<f32>({x}))"),
            _ => format!("is_nan({x})"),
        }
    }

    /// The epilogue's statements on the accumulator variable `x`: `slice` indexes the per-channel
    /// vec4s, `index` the residual's (`column` and `row` where it is an image).
    pub(crate) fn epilogue(
        &self,
        x: &str,
        slice: &str,
        index: &str,
        column: &str,
        row: &str,
    ) -> Result<Vec<String>, String> {
        let epilogue = &self.spec.epilogue;
        let optional = |wanted: bool, operand: Operand, index: &str, column: &str, row: &str| {
            if wanted { self.load4(operand.name(), index, column, row) } else { Ok(String::new()) }
        };
        let bias = optional(epilogue.bias, Operand::Bias, slice, "", "")?;
        let wants_slope = epilogue.activation == super::Activation::PRelu;
        let slope = optional(wants_slope, Operand::Slope, slice, "", "")?;
        let vec4_residual = !matches!(self.element(Operand::Residual.name()), Some(Element::Scalar(_)));
        let residual =
            optional(epilogue.residual.is_some() && vec4_residual, Operand::Residual, index, column, row)?;
        let mut steps = *epilogue;
        if !vec4_residual {
            steps.residual = Residual::None;
        }
        let splat = |value: f32| self.constant4(value);
        let in_f32 = |function: &str, x: &str| self.in_f32(function, x);
        let is_nan = |x: &str| self.is_nan(x);
        let mut lines = steps.statements(x, &bias, &slope, &residual, &splat, &in_f32, &is_nan);
        lines.extend(self.of_element(x, slice, [index, column, row])?);
        if self.spec.interface.params.iter().any(|param| param.name == CHANNELS) {
            let zero = self.constant4(0.0);
            let lanes = match self.dialect {
                Dialect::Wgsl => {
                    format!("4u * ({slice}) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.{CHANNELS})")
                }
                Dialect::OpenClC => {
                    format!("4u * ({slice}) + (uint4)(0u, 1u, 2u, 3u) < (uint4)({CHANNELS})")
                }
            };
            lines.push(format!("{x} = select({zero}, {x}, {lanes});"));
        }
        Ok(lines)
    }

    /// The statement that makes of the accumulator variable `x` what the kernel's element function gives.
    fn of_element(
        &self,
        x: &str,
        slice: &str,
        [index, column, row]: [&str; 3],
    ) -> Result<Option<String>, String> {
        let Some(function) = &self.spec.function else { return Ok(None) };
        let narrow = self.accumulator() == DType::F16;
        let in_f32 = |text: String| if narrow { format!("vec4<f32>({text})") } else { text };
        let mut arguments = vec![in_f32(x.to_owned())];
        for operand in &function.channels {
            arguments.push(in_f32(self.load4(operand.name(), slice, "", "")?));
        }
        for operand in &function.elements {
            arguments.push(in_f32(self.load4(operand.name(), index, column, row)?));
        }
        let scalars = SCALARS.iter().take(function.scalars);
        arguments.extend(scalars.map(|name| match self.dialect {
            Dialect::Wgsl => format!("params.{name}"),
            Dialect::OpenClC => (*name).to_owned(),
        }));
        let result = format!("{NAME}({})", arguments.join(", "));
        let result = if narrow { self.splat(&result) } else { result };
        Ok(Some(format!("{x} = {result};")))
    }

    /// The named constants, one a line, last the work-group's extents where `template` names them.
    pub(crate) fn constants(&self, template: &str) -> String {
        let [x, y, z] = self.spec.work_group;
        let extents = [("WG_X", x), ("WG_Y", y), ("WG_Z", z)];
        let extents = extents.map(|(name, value)| (name, value.into()));
        let named = if template.contains("WG_") { &extents[..] } else { &[] };
        let own = self.spec.constants.iter();
        own.chain(named)
            .map(|&(name, value)| value.declare(name, self.dialect))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Whether a text in WGSL names the type f16.
    fn names_halves(&self) -> bool {
        let scalars = |binding: &Binding| binding.element == Element::Scalar(DType::F16);
        self.spec.precision == Precision::F16
            || self.spec.native_half
            || self.spec.interface.bindings.iter().any(scalars)
    }

    /// What must come before everything else: language extensions, and functions of OpenCL C.
    pub(crate) fn enables(&self) -> &'static str {
        match self.dialect {
            Dialect::Wgsl if self.names_halves() => "enable f16;\n",
            Dialect::OpenClC if self.packs_halves() => halves::STORAGE,
            _ => "",
        }
    }

    /// Whether vec4s of halves are arguments of a kernel that computes in f32.
    fn packs_halves(&self) -> bool {
        let bindings = &self.spec.interface.bindings;
        bindings.iter().any(|binding| binding.element == Element::Vec4(DType::F16))
    }
}
