//! A compute shader of an application as an op: WGSL with bounds checks, on every API.

use super::op::Op;
use super::operator::{Arguments, Lowered, Operator};
use super::{OperandInfo, Role};
use crate::dims::Dims;
use crate::dtype::Precision;
use crate::emit::{Access, Binding, Foreign, Interface, Least, Operand, Param, ParamType, Scalar};
use crate::error::{Error, Result};
use crate::sorted;
use crate::unwind::caught;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

mod host;
mod op;
mod reflect;

use op::CustomOp;
use reflect::Reflection;

const OP: &str = "custom";
const VARIANT: &str = "shader";

type Extents = dyn Fn(&[Dims]) -> Result<Vec<Dims>> + Send + Sync;
type Grid = dyn Fn(&[Dims], &[Dims]) -> [usize; 3] + Send + Sync;
type Uniform = dyn Fn(&[Dims], &[Dims]) -> Vec<(&'static str, Scalar)> + Send + Sync;
type Host = dyn Fn(&[&[f32]], &mut [&mut [f32]]) -> Result<()> + Send + Sync;

/// Why no GPU computes what has no shader.
const NO_SHADER: &str = "it is a function on the CPU, without a shader";

/// A WGSL compute shader of the application, to be a node of a graph (`Graph::custom`).
///
/// It runs through Vulkan and, printed as OpenCL C, through OpenCL; always with checks, so that no index
/// leaves its array: one beyond the end, or below 0, is that of the last element, which is read or written. The text has one compute entry point; its bindings are of group 0 and counted from
/// 0:
///
/// | declared as | is |
/// |---|---|
/// | `var<storage, read> x: array<f32>` or `array<vec4<f32>>` | the next input |
/// | `var<storage, read_write> y: array<f32>` or `array<vec4<f32>>` | the next output; it holds zeros or earlier results where the shader does not write |
/// | `var<uniform> p: P`, the last binding | the values of [`Custom::uniform`]; members `f32`, `u32`, `i32` |
///
/// A tensor's elements are f32, the last extent varying fastest: a feature map is NHWC. `arrayLength`
/// is the number of elements. The work-group is the one in the text.
///
/// ```
/// use diptych::{Custom, Graph, Shape};
///
/// let invert = Custom::new("invert", "
///     @group(0) @binding(0) var<storage, read> x: array<f32>;
///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
///     @compute @workgroup_size(64)
///     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
///         if id.x < arrayLength(&x) { y[id.x] = 1.0 - x[id.x]; }
///     }
/// ")?;
/// let mut graph = Graph::new();
/// let x = graph.input("picture", Shape::nhwc(1, 480, 640, 3))?;
/// let y = graph.custom("negative", &invert, &[x])?;
/// graph.output(y[0])?;
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Clone)]
pub struct Custom {
    name: Arc<str>,
    shader: Option<Shader>,
    outputs: Arc<Extents>,
    grid: Arc<Grid>,
    uniform: Arc<Uniform>,
    host: Option<Arc<Host>>,
}

/// A text, and what it says of itself.
#[derive(Debug, Clone)]
struct Shader {
    foreign: Foreign,
    reflection: Arc<Reflection>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Custom {
    /// Parses and validates the text, and reads its interface from it. By default each output
    /// has the dimensions of the first input, and an invocation runs for each element of the first output
    /// along x.
    ///
    /// ```
    /// use diptych::Custom;
    ///
    /// let error = Custom::new("broken", "fn main() { return 1; }").unwrap_err();
    /// println!("{error}"); // the numbered source, and what is wrong in it
    /// ```
    ///
    /// # Errors
    /// [`Error::Compile`] with the numbered source, if the text is not WGSL; or if it has not one
    /// compute entry point, or a binding that is not of the kinds above: each is named with what was
    /// found and wanted.
    pub fn new(name: &str, wgsl: &str) -> Result<Self> {
        let reflection = reflect::reflect(name, wgsl)?;
        let foreign =
            Foreign { name: name.into(), entry: reflection.entry.as_str().into(), text: wgsl.into() };
        let outputs = reflection.count(Access::ReadWrite);
        let first = move |inputs: &[Dims]| Ok(vec![inputs.first().copied().unwrap_or(Dims::SCALAR); outputs]);
        let each = |_: &[Dims], outputs: &[Dims]| [outputs.first().map_or(1, |dims| dims.elements()), 1, 1];
        Ok(Custom {
            name: name.into(),
            shader: Some(Shader { foreign, reflection: Arc::new(reflection) }),
            outputs: Arc::new(first),
            grid: Arc::new(each),
            uniform: Arc::new(|_, _| Vec::new()),
            host: None,
        })
    }

    /// A function that the CPU computes, in a session on a GPU too: at each run what it reads is downloaded, and
    /// what it writes is uploaded where the GPU wants it (`MemoryUse::downloads`). `outputs` says the
    /// dimensions of the outputs, from those of the inputs; `run` reads the inputs and writes the outputs.
    ///
    /// If a function of a `Custom` panics, the call that needed it returns [`Error::Panicked`], and session, batch and
    /// pool go on.
    ///
    /// ```
    /// use diptych::{Backend, Context, Custom, Graph, HostTensor, Session, SessionOptions, Shape};
    ///
    /// let sort = Custom::host("sort", |inputs| Ok(inputs.to_vec()), |inputs, outputs| {
    ///     for (x, y) in inputs.iter().zip(outputs) {
    ///         y.copy_from_slice(x);
    ///         y.sort_by(f32::total_cmp);
    ///     }
    ///     Ok(())
    /// });
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Shape::nhwc(1, 1, 1, 3))?;
    /// let y = graph.custom("sorted", &sort, &[x])?;
    /// graph.output(y[0])?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// let x = HostTensor::new(Shape::nhwc(1, 1, 1, 3), vec![3.0, 1.0, 2.0])?;
    /// assert_eq!(&*session.run(&[("x", &x)])?[0].to_f32(), &[1.0, 2.0, 3.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn host(
        name: &str,
        outputs: impl Fn(&[Dims]) -> Result<Vec<Dims>> + Send + Sync + 'static,
        run: impl Fn(&[&[f32]], &mut [&mut [f32]]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Custom {
            name: name.into(),
            shader: None,
            outputs: Arc::new(outputs),
            grid: Arc::new(|_, _| [1; 3]),
            uniform: Arc::new(|_, _| Vec::new()),
            host: Some(Arc::new(run)),
        }
    }

    /// The dimensions of the outputs, from those of the inputs.
    ///
    /// ```
    /// use diptych::{Custom, Dims, Graph};
    /// # let text = "
    /// #     @group(0) @binding(0) var<storage, read> x: array<f32>;
    /// #     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    /// #     @compute @workgroup_size(64)
    /// #     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    /// #         if id.x < arrayLength(&y) { y[id.x] = x[2u * id.x]; }
    /// #     }
    /// # ";
    ///
    /// // A shader that keeps every second element.
    /// let half = Custom::new("half", text)?.outputs(|inputs| Ok(vec![Dims::new(&[inputs[0].elements() / 2])?]));
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", Dims::new(&[10])?)?;
    /// let y = graph.custom("y", &half, &[x])?;
    /// assert_eq!(graph.dims(y[0])?.extents(), [5]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn outputs(self, outputs: impl Fn(&[Dims]) -> Result<Vec<Dims>> + Send + Sync + 'static) -> Self {
        Custom { outputs: Arc::new(outputs), ..self }
    }

    /// Invocations along x, y and z, from the dimensions of inputs and outputs; rounded up to whole
    /// work-groups. A grid without invocations is refused when the node is added: nothing would write the outputs.
    ///
    /// ```
    /// use diptych::{Custom};
    /// # let text = "
    /// #     @group(0) @binding(0) var<storage, read> x: array<f32>;
    /// #     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    /// #     @compute @workgroup_size(64)
    /// #     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    /// #         if id.x < arrayLength(&y) { y[id.x] = x[2u * id.x]; }
    /// #     }
    /// # ";
    ///
    /// // One invocation for each element of the output, which is also what happens without this call.
    /// let half = Custom::new("half", text)?.grid(|_inputs, outputs| [outputs[0].elements(), 1, 1]);
    /// # let _ = half;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn grid(self, grid: impl Fn(&[Dims], &[Dims]) -> [usize; 3] + Send + Sync + 'static) -> Self {
        Custom { grid: Arc::new(grid), ..self }
    }

    /// The members of the uniform, by name, from the dimensions of inputs and outputs.
    ///
    /// ```
    /// use diptych::{Custom, Scalar};
    ///
    /// let scale = Custom::new("scale", "
    ///     struct Parameters { factor: f32 }
    ///     @group(0) @binding(0) var<storage, read> x: array<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///     @group(0) @binding(2) var<uniform> parameters: Parameters;
    ///     @compute @workgroup_size(64)
    ///     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ///         if id.x < arrayLength(&x) { y[id.x] = parameters.factor * x[id.x]; }
    ///     }
    /// ")?
    /// .uniform(|_inputs, _outputs| vec![("factor", Scalar::F32(0.5))]);
    /// # let _ = scale;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn uniform(
        self,
        uniform: impl Fn(&[Dims], &[Dims]) -> Vec<(&'static str, Scalar)> + Send + Sync + 'static,
    ) -> Self {
        Custom { uniform: Arc::new(uniform), ..self }
    }

    /// The kernel on the CPU: reads the inputs and writes the outputs. Without it a network with this node
    /// runs on GPUs only.
    ///
    /// ```
    /// use diptych::{Backend, Context, Custom, Graph, HostTensor, Session, SessionOptions};
    ///
    /// let double = Custom::new("double", "
    ///     @group(0) @binding(0) var<storage, read> x: array<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(64)
    ///     fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ///         if id.x < arrayLength(&x) { y[id.x] = 2.0 * x[id.x]; }
    ///     }
    /// ")?
    /// .on_cpu(|inputs, outputs| outputs[0].iter_mut().zip(inputs[0]).for_each(|(y, x)| *y = 2.0 * x));
    /// let mut graph = Graph::new();
    /// let two = HostTensor::vector(vec![2.0])?;
    /// let x = graph.input("x", two.dims())?;
    /// let y = graph.custom("y", &double, &[x])?;
    /// graph.output(y[0])?;
    /// let mut session = Session::new(&Context::new(Backend::Cpu)?, &graph, SessionOptions::default())?;
    /// assert_eq!(*session.run(&[("x", &two)])?[0].to_f32(), [4.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    #[must_use]
    pub fn on_cpu(self, run: impl Fn(&[&[f32]], &mut [&mut [f32]]) + Send + Sync + 'static) -> Self {
        let run = move |inputs: &[&[f32]], outputs: &mut [&mut [f32]]| {
            run(inputs, outputs);
            Ok(())
        };
        Custom { host: Some(Arc::new(run)), ..self }
    }

    fn refused<T>(&self, found: String, wanted: String) -> Result<T> {
        Err(Error::input(format!("kernel {:?}", self.name), found, wanted))
    }

    /// What a function of the application gives, or the error that its panic is.
    fn told<T>(&self, of: &str, function: impl FnOnce() -> T) -> Result<T> {
        caught(format!("the function of Custom::{of} of kernel {:?}", self.name), function)
    }

    /// The dimensions of the outputs.
    fn extents(&self, inputs: &[Dims]) -> Result<Vec<Dims>> {
        self.told("outputs", || (self.outputs)(inputs))?
    }

    /// The values of the uniform's members in their order.
    fn params(&self, shader: &Shader, inputs: &[Dims], outputs: &[Dims]) -> Result<Vec<Scalar>> {
        let values = self.told("uniform", || (self.uniform)(inputs, outputs))?;
        let members = &shader.reflection.members;
        let told = |ty: ParamType| ty.name(crate::emit::Dialect::Wgsl);
        let wanted = || members.iter().map(|(name, ty)| format!("{name}: {}", told(*ty))).collect::<Vec<_>>();
        let params = members.iter().map(|(name, ty)| {
            let value = values.iter().find(|(own, value)| own == name && value.ty() == *ty);
            value.map(|(_, value)| *value)
        });
        let params: Option<Vec<Scalar>> = params.collect();
        match params {
            Some(params) if params.len() == values.len() => Ok(params),
            _ => {
                let found = values.iter().map(|(name, value)| format!("{name}: {}", told(value.ty())));
                let found = found.collect::<Vec<_>>().join(", ");
                self.refused(format!("uniform [{found}]"), format!("[{}]", wanted().join(", ")))
            }
        }
    }

    fn lowered(&self, inputs: &[Dims]) -> Result<CustomOp> {
        let Some(shader) = &self.shader else { return self.on_host(inputs) };
        let wanted = shader.reflection.count(Access::Read);
        if inputs.len() != wanted {
            return self
                .refused(format!("{} inputs", inputs.len()), format!("{wanted}, as its bindings say"));
        }
        let outputs = self.extents(inputs)?;
        let wanted = shader.reflection.count(Access::ReadWrite);
        if outputs.len() != wanted {
            return self
                .refused(format!("{} outputs", outputs.len()), format!("{wanted}, as its bindings say"));
        }
        let (mut operands, mut bindings) = (Vec::new(), Vec::new());
        let (mut read, mut written) = (inputs.iter().enumerate(), outputs.iter().enumerate());
        for &(access, element) in &shader.reflection.buffers {
            let (next, role) = match access {
                Access::Read => (read.next(), Role::Input),
                Access::Write | Access::ReadWrite => (written.next(), Role::Output),
            };
            let Some((index, dims)) = next else {
                return Err(Error::Internal(format!("{self:?} has more bindings than it was given")));
            };
            let operand = match role {
                Role::Input => Operand::Input(index as u8),
                _ => Operand::Output(index as u8),
            };
            let lanes = element.bytes() / element.dtype().bytes();
            if !dims.elements().is_multiple_of(lanes) {
                let found = format!("{} of {dims}, {} elements", operand.name(), dims.elements());
                return self.refused(found, format!("whole elements of {lanes} values"));
            }
            let least = Least::Bytes(4 * dims.elements() as u64);
            bindings.push(Binding { operand, element, access, least });
            operands.push(OperandInfo::new(operand, dims.shape(), role));
        }
        let params = self.params(shader, inputs, &outputs)?;
        let grid = self.told("grid", || (self.grid)(inputs, &outputs))?;
        if grid.contains(&0) {
            return self.refused(format!("a grid of {grid:?}"), "an invocation along each axis".to_owned());
        }
        let [x, y, z] = grid.map(u32::try_from);
        let (Ok(x), Ok(y), Ok(z)) = (x, y, z) else {
            return self.refused(format!("a grid of {grid:?}"), "invocations in 32 bits".to_owned());
        };
        let unnamed = params.iter().map(|value| Param { name: "", ty: value.ty() }).collect();
        let interface = Interface { bindings, params: unnamed };
        Ok(CustomOp { custom: self.clone(), dims: outputs, operands, interface, params, grid: [x, y, z] })
    }

    /// What has no shader.
    fn on_host(&self, inputs: &[Dims]) -> Result<CustomOp> {
        let outputs = self.extents(inputs)?;
        if inputs.len().max(outputs.len()) > 1 + usize::from(u8::MAX) || outputs.is_empty() {
            let found = format!("{} inputs, {} outputs", inputs.len(), outputs.len());
            return self.refused(found, "at most 256, and an output".to_owned());
        }
        let read = inputs.iter().enumerate();
        let read = read.map(|(index, dims)| (Operand::Input(index as u8), dims, Role::Input));
        let written = outputs.iter().enumerate();
        let written = written.map(|(index, dims)| (Operand::Output(index as u8), dims, Role::Output));
        let info =
            |(operand, dims, role): (Operand, &Dims, Role)| OperandInfo::new(operand, dims.shape(), role);
        let operands = read.chain(written).map(info).collect();
        let interface = Interface { bindings: Vec::new(), params: Vec::new() };
        Ok(CustomOp {
            custom: self.clone(),
            dims: outputs,
            operands,
            interface,
            params: Vec::new(),
            grid: [1; 3],
        })
    }

    /// The dimensions of the inputs, in the order of their bindings.
    fn inputs(arguments: Arguments<'_>) -> Vec<Dims> {
        let mut inputs: Vec<_> = arguments.inputs.iter().collect();
        sorted::sort_by_key(&mut inputs, |argument| argument.operand);
        inputs.iter().map(|argument| argument.dims).collect()
    }
}

impl Operator for Custom {
    fn name(&self) -> &'static str {
        OP
    }

    fn lower(&self, arguments: Arguments<'_>, _precision: Precision) -> Result<Lowered> {
        Ok(Lowered::Op(Arc::new(self.lowered(&Custom::inputs(arguments))?)))
    }

    fn outputs(&self, _arguments: Arguments<'_>, op: &dyn Op) -> Vec<Dims> {
        op.as_any().downcast_ref::<CustomOp>().map(|op| op.dims.clone()).unwrap_or_default()
    }

    fn same(&self, other: &dyn Operator) -> bool {
        (other as &dyn Any).downcast_ref::<Custom>().is_some_and(|other| {
            let text = |custom: &Custom| custom.shader.as_ref().map(|shader| shader.foreign.clone());
            let host = match (&self.host, &other.host) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                _ => false,
            };
            self.name == other.name
                && text(self) == text(other)
                && (host || self.shader.is_some())
                && Arc::ptr_eq(&self.outputs, &other.outputs)
                && Arc::ptr_eq(&self.grid, &other.grid)
                && Arc::ptr_eq(&self.uniform, &other.uniform)
        })
    }
}
