//! The emitter: a [`KernelSpec`] in, source text in either language out.
//!
//! A kernel is a hand-written template in WGSL, `shaders/<op>/<variant>.wgsl`, rendered by `emit/template` in
//! a syntax that hides in comments: `//% if`, `//% for` (statements), `${...}` (values), `//#` (notes that
//! are not emitted). OpenCL C is printed from it by [`opencl`]. What WGSL cannot express is written in OpenCL C,
//! `cl/<op>/<variant>.cl`; a kernel that has such a text is not printed.

pub mod dialect;
pub mod element;
pub mod epilogue;
pub(crate) mod halves;
pub mod interface;

#[cfg(feature = "shaders")]
pub mod check;
mod constants;
#[cfg(feature = "shaders")]
pub mod depth;
mod folded;
#[cfg(feature = "shaders")]
pub mod opencl;
mod order;
mod prologue;
mod template;
mod templates;
#[doc(hidden)]
pub mod text;
pub mod turns;
pub mod winograd;
pub mod words;

#[doc(hidden)]
pub use crate::text;
pub use constants::Value;
pub use dialect::Dialect;
pub use element::ElementFunction;
pub use epilogue::{Activation, Bits, Epilogue, Residual};
pub use folded::Folded;
pub use interface::{Access, Binding, Element, Interface, Least, Operand, Param, ParamType, Scalar};
pub use prologue::Prologue;

use crate::dtype::Precision;
use crate::error::Result;
use std::borrow::Cow;
use std::sync::Arc;

/// The text of a kernel as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Template {
    /// The language. From WGSL, OpenCL C is printed.
    pub dialect: Dialect,
    /// The text, not rendered.
    pub text: &'static str,
}

/// Everything that decides a kernel's text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSpec {
    /// The op: the folder of its texts.
    pub op: &'static str,
    /// The variant: the name of its text.
    pub variant: &'static str,
    /// Named constants, printed once at the top in this order.
    pub constants: Vec<(&'static str, Value)>,
    /// Outputs per invocation along x, y and z.
    pub tile: [u32; 3],
    /// Invocations per work-group along x, y and z.
    pub work_group: [u32; 3],
    /// Storage and arithmetic.
    pub precision: Precision,
    /// Buffers of vec4s of halves are typed as such in every precision, which needs native halves.
    pub native_half: bool,
    /// What happens to the first of two sums before it is multiplied, in the kernels of `gate`.
    pub between: Option<Epilogue>,
    /// What happens to a sum before it is stored.
    pub epilogue: Epilogue,
    /// What happens to what the epilogue gives.
    pub function: Option<ElementFunction>,
    /// What it computes in the place of an operand.
    pub prologue: Option<Prologue>,
    /// What its op has it compute, where the text leaves that open.
    pub body: Body,
    /// How its grid is launched, where that is not work-group by work-group along each axis.
    pub folded: Option<Folded>,
    /// How many copies of its body each loop has, where they are not one: for devices that end loops after so many
    /// turns ([`Limits::max_turns`](crate::limits::Limits::max_turns)).
    pub copies: Option<Vec<u64>>,
    /// The kernel's arguments.
    pub interface: Interface,
    /// Its text; none if it is an application's.
    pub template: Option<Template>,
    /// The text, if it is an application's: it is compiled with checks.
    pub foreign: Option<Foreign>,
}

/// Statements that an op makes, where its kernels' texts have a place for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Body {
    /// The statements.
    pub statements: Vec<String>,
    /// Which functions of `shaders/shared/functions.wgsl` they call.
    pub calls: Vec<&'static str>,
}

/// A compute shader of an application.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// What the application calls it.
    pub name: Arc<str>,
    /// The name of the kernel function.
    pub entry: Arc<str>,
    /// The WGSL.
    pub text: Arc<str>,
}

impl KernelSpec {
    /// The kernel's name for people, benches and the tuner, such as
    /// `pointwise_micro_f32_t4x1x1_bias_relu6_wg8x4x8`.
    pub fn label(&self) -> String {
        if let Some(Foreign { name, .. }) = &self.foreign {
            return format!("{}_{name}", self.op);
        }
        let [tx, ty, tz] = self.tile;
        let [x, y, z] = self.work_group;
        let between = self.between.map(|between| between.label());
        let function = if self.function.is_some() { "function" } else { "" };
        let prologue = if self.prologue.is_some() { "prologue" } else { "" };
        let parts =
            [prologue.to_owned(), between.unwrap_or_default(), self.epilogue.label(), function.to_owned()];
        let epilogue =
            parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("_then_");
        let separator = if epilogue.is_empty() { "" } else { "_" };
        let images = if self.maps_are_images() { "_image2d" } else { "" };
        let written = self.interface.binding(Operand::Dst).map(|(_, binding)| binding.element.dtype());
        let computed = match written.filter(|dtype| !dtype.is_float()) {
            Some(integer) => integer.to_string(),
            None => self.precision.to_string(),
        };
        format!(
            "{}_{}{images}_{computed}_t{tx}x{ty}x{tz}{separator}{epilogue}_wg{x}x{y}x{z}",
            self.op, self.variant
        )
    }

    /// Whether it is a kernel for buffers whose feature maps are images instead. One for images alone says so
    /// in its variant's name.
    fn maps_are_images(&self) -> bool {
        let source = self.interface.binding(Operand::Src).map(|(_, binding)| binding.element);
        !self.variant.contains("image2d") && matches!(source, Some(Element::Image2d(_)))
    }

    /// The name of the kernel function.
    pub fn entry(&self) -> String {
        format!("{}_{}", self.op, self.variant)
    }

    /// Renders the kernel. An application's is WGSL in every dialect: a device that does not take WGSL
    /// prints its own language from it, with checks.
    ///
    /// # Errors
    /// If there is no such template in `dialect`, or it uses a name that the spec does not give.
    pub fn render(&self, dialect: Dialect) -> Result<KernelSource> {
        let written = self.render_written(dialect)?;
        match dialect {
            Dialect::OpenClC if self.foreign.is_none() => written.into_opencl(),
            _ => Ok(written),
        }
    }

    /// Renders the text that the kernel in `dialect` is made from: one in WGSL, unless the kernel is
    /// written in OpenCL C.
    ///
    /// # Errors
    /// Those of [`KernelSpec::render`].
    pub fn render_written(&self, dialect: Dialect) -> Result<KernelSource> {
        match &self.foreign {
            None => templates::render_written(self, dialect),
            Some(Foreign { entry, text, .. }) => Ok(KernelSource {
                label: self.label(),
                entry: entry.to_string(),
                dialect: Dialect::Wgsl,
                text: text.to_string(),
                interface: self.interface.clone(),
                work_group: self.work_group,
            }),
        }
    }
}

/// A rendered kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSource {
    /// Its label.
    pub label: String,
    /// The name of the kernel function.
    pub entry: String,
    /// The language.
    pub dialect: Dialect,
    /// The source text.
    pub text: String,
    /// The arguments it takes.
    pub interface: Interface,
    /// Invocations per work-group.
    pub work_group: [u32; 3],
}

/// How the declaration of an extent of the work-group begins in WGSL.
const EXTENT: &str = "const WG_";

/// How the templates say that there is a work-group.
const NAMED_EXTENTS: &str = "@compute @workgroup_size(WG_X, WG_Y, WG_Z)";

impl KernelSource {
    /// Whether a text in WGSL says more of the work-group than that it has one.
    pub fn depends_on_work_group(&self) -> bool {
        let shared = ["@workgroup_size", "WG_", "var<workgroup>", "local_invocation", "workgroup_id"];
        self.text
            .lines()
            .filter(|line| !line.starts_with(EXTENT) && *line != NAMED_EXTENTS)
            .any(|line| shared.iter().any(|word| line.contains(word)))
    }

    /// The text, without the work-group of a kernel in WGSL that does not depend on it.
    pub fn without_work_group(&self) -> Cow<'_, str> {
        if self.dialect == Dialect::OpenClC || self.depends_on_work_group() {
            return Cow::Borrowed(&self.text);
        }
        let rest = self.text.lines().filter(|line| !line.starts_with(EXTENT));
        Cow::Owned(rest.collect::<Vec<_>>().join("\n"))
    }

    /// The kernel in OpenCL C, without checks.
    ///
    /// # Errors
    /// [`Error::Compile`](crate::error::Error::Compile) if it cannot be said in that language.
    pub fn into_opencl(self) -> Result<KernelSource> {
        match self.dialect {
            Dialect::OpenClC => Ok(self),
            #[cfg(feature = "shaders")]
            Dialect::Wgsl => opencl::translate(&self),
            #[cfg(not(feature = "shaders"))]
            Dialect::Wgsl => {
                let kernel = format!("kernel {} in OpenCL C", self.label);
                Err(crate::error::Error::unsupported(kernel, "no GPU backend is compiled in"))
            }
        }
    }
}
