//! Buffers of an application as inputs and outputs.

use super::bound::{Bound, PortBuffer};
use super::device::DeviceSession;
use super::picture::ShownPictures;
use super::ports::{every, unknown};
use super::{Port, Session};
use crate::device::Recording;
use crate::device::adopt::Adopted;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::lower::{Arrangement, PortIndex, check_arrangement};
use std::sync::Arc;

/// A part of an application's buffer that holds an input, or is to hold an output.
///
/// Without anything else said it is the whole buffer, and holds f32 in NHWC order.
///
/// | layout | dtype | bytes |
/// |---|---|---|
/// | `Nhwc` | `F32` | 4 for each element |
/// | `Nhwc` | `F16` | 2 for each element, whole vectors of four elements |
/// | `C4` | `F32`, `F16` | [`Layout::elements`] of the port's shape, times 4 or 2; lanes beyond the channels are zero |
#[derive(Debug, Clone, Copy)]
pub struct BufferBinding<B> {
    pub(super) buffer: B,
    offset: u64,
    bytes: Option<u64>,
    arrangement: Arrangement,
}

impl<B> BufferBinding<B> {
    /// All of `buffer`, as f32 in NHWC order.
    ///
    /// ```
    /// use diptych::{BufferBinding, DType, Layout, wgpu};
    ///
    /// # fn part(buffer: &wgpu::Buffer) {
    /// // 4096 bytes of a buffer from byte 256 on: f16 in slices of four channels.
    /// let binding = BufferBinding::new(buffer).offset(256).bytes(4096).dtype(DType::F16).layout(Layout::C4);
    /// # let _ = binding;
    /// # }
    /// ```
    pub fn new(buffer: B) -> Self {
        let arrangement = Arrangement { layout: Layout::Nhwc, dtype: DType::F32 };
        BufferBinding { buffer, offset: 0, bytes: None, arrangement }
    }

    /// From this byte on.
    ///
    /// ```
    /// use diptych::{BufferBinding, DType, Layout, wgpu};
    ///
    /// # fn part(buffer: &wgpu::Buffer) {
    /// // 4096 bytes of a buffer from byte 256 on: f16 in slices of four channels.
    /// let binding = BufferBinding::new(buffer).offset(256).bytes(4096).dtype(DType::F16).layout(Layout::C4);
    /// # let _ = binding;
    /// # }
    /// ```
    #[must_use]
    pub fn offset(self, offset: u64) -> Self {
        BufferBinding { offset, ..self }
    }

    /// So many bytes; without it, to the buffer's end. No byte beyond is touched.
    ///
    /// ```
    /// use diptych::{BufferBinding, DType, Layout, wgpu};
    ///
    /// # fn part(buffer: &wgpu::Buffer) {
    /// // 4096 bytes of a buffer from byte 256 on: f16 in slices of four channels.
    /// let binding = BufferBinding::new(buffer).offset(256).bytes(4096).dtype(DType::F16).layout(Layout::C4);
    /// # let _ = binding;
    /// # }
    /// ```
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        BufferBinding { bytes: Some(bytes), ..self }
    }

    /// The order of the elements: [`Layout::Nhwc`] or [`Layout::C4`].
    ///
    /// ```
    /// use diptych::{BufferBinding, DType, Layout, wgpu};
    ///
    /// # fn part(buffer: &wgpu::Buffer) {
    /// // 4096 bytes of a buffer from byte 256 on: f16 in slices of four channels.
    /// let binding = BufferBinding::new(buffer).offset(256).bytes(4096).dtype(DType::F16).layout(Layout::C4);
    /// # let _ = binding;
    /// # }
    /// ```
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        BufferBinding { arrangement: Arrangement { layout, ..self.arrangement }, ..self }
    }

    /// The elements' type.
    ///
    /// ```
    /// use diptych::{BufferBinding, DType, Layout, wgpu};
    ///
    /// # fn part(buffer: &wgpu::Buffer) {
    /// // 4096 bytes of a buffer from byte 256 on: f16 in slices of four channels.
    /// let binding = BufferBinding::new(buffer).offset(256).bytes(4096).dtype(DType::F16).layout(Layout::C4);
    /// # let _ = binding;
    /// # }
    /// ```
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Self {
        BufferBinding { arrangement: Arrangement { dtype, ..self.arrangement }, ..self }
    }

    /// The part with another buffer in its place, which `of` makes of this one.
    #[cfg(feature = "opencl")]
    pub(super) fn map<T>(self, of: impl FnOnce(B) -> T) -> BufferBinding<T> {
        let BufferBinding { buffer, offset, bytes, arrangement } = self;
        BufferBinding { buffer: of(buffer), offset, bytes, arrangement }
    }

    /// The buffer of a port.
    pub(super) fn of_port(
        &self,
        port: &Port,
        end: PortIndex,
        adopted: Adopted,
        alignment: u64,
    ) -> Result<PortBuffer> {
        check_arrangement(&port.name, self.arrangement)?;
        let (first, whole) = adopted.part;
        let bytes = match self.bytes {
            Some(bytes) => bytes,
            None => whole.saturating_sub(self.offset),
        };
        if self.offset.checked_add(bytes).is_none_or(|end| end > whole) {
            let found = format!("{bytes} bytes from offset {}", self.offset);
            let wanted = format!("a part of the buffer's {whole} bytes");
            return Err(Error::input(format!("buffer of {:?}", port.name), found, wanted));
        }
        // The part lies within the buffer, so that the sum does.
        let offset = first.saturating_add(self.offset);
        let name = port.name.clone();
        let buffer = PortBuffer { name, end, adopted, offset, bytes, arrangement: self.arrangement };
        buffer.check(port, alignment)?;
        Ok(buffer)
    }
}

/// The size and usages that an application's buffer needs to be bound to a port: see [`Session::required_usages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredUsage {
    /// The port's name.
    pub port: String,
    /// Whether it is an input, not an output.
    pub is_input: bool,
    /// The bytes from the offset on, of f32 in NHWC order. A buffer with fewer, but all of the port's elements, is
    /// read or written by one kernel more.
    pub bytes: u64,
    /// What the offset must be a multiple of.
    pub alignment: u64,
    /// What the buffer must allow.
    #[cfg(feature = "wgpu")]
    pub wgpu: wgpu::BufferUsages,
}

/// A run, and what makes inputs of pictures before it.
pub(super) type BoundRun = (Arc<Bound>, Vec<Arc<Recording>>);

/// What an input is given.
#[derive(Debug, Clone)]
pub(super) enum PortInput {
    Buffer(PortBuffer),
    Pictures(ShownPictures),
}

impl Session {
    /// What the buffers of `encode` and `enqueue` must be, so that they are bound and not copied: of wgpu's usages
    /// `STORAGE` and nothing else, of OpenCL an output with `CL_MEM_READ_WRITE` and an input that is not
    /// `CL_MEM_WRITE_ONLY`.
    ///
    /// ```
    /// # fn tell(session: &diptych::Session) -> diptych::Result<()> {
    /// for usage in session.required_usages()? {
    ///     println!("{}: {} bytes, aligned to {}", usage.port, usage.bytes, usage.alignment);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the session runs on the CPU, or the CPU computes some of its nodes.
    pub fn required_usages(&self) -> Result<Vec<RequiredUsage>> {
        let session = self.on_device("required usages")?;
        let (bindings, alignment) = (session.bindings("required usages")?, session.alignment()?);
        let usage = |(port, end): (&Port, PortIndex)| RequiredUsage {
            port: port.name.clone(),
            is_input: matches!(end, PortIndex::Input(_)),
            bytes: bindings.wiring.bound_bytes(end),
            alignment,
            #[cfg(feature = "wgpu")]
            wgpu: wgpu::BufferUsages::STORAGE,
        };
        let plan = self.extents.plan();
        let inputs = plan.inputs.iter().zip((0..).map(PortIndex::Input));
        Ok(inputs.chain(plan.outputs.iter().zip((0..).map(PortIndex::Output))).map(usage).collect())
    }

    /// Lets go of the application's buffers and textures. Without it, a session holds on to those of its last calls
    /// of `encode` or `enqueue`, eight sets of them.
    ///
    /// ```
    /// # fn done(session: &mut diptych::Session) {
    /// session.unbind(); // the application's buffers are no longer held
    /// # }
    /// ```
    pub fn unbind(&mut self) {
        if let Ok(session) = self.extents.plan_mut().runner.device_mut("buffers of a device") {
            session.unbind();
        }
    }

    pub(super) fn on_device(&self, what: &str) -> Result<&DeviceSession> {
        if self.extents.open().is_some_and(|plans| !plans.is_whole()) {
            let why = "the last run was of several parts, or there was none: run the session first";
            return Err(Error::unsupported(what, why));
        }
        self.extents.plan().runner.device(what)
    }

    /// The ports' buffers: one for each input, and those of the outputs that are wanted.
    pub(super) fn port_buffers<I, O>(
        &self,
        inputs: &[(&str, I)],
        outputs: &[(&str, O)],
        input: &mut dyn FnMut(&Port, PortIndex, &I) -> Result<PortInput>,
        output: &mut dyn FnMut(&Port, PortIndex, &O) -> Result<PortBuffer>,
    ) -> Result<Vec<PortInput>> {
        let plan = self.extents.plan();
        let mut found: Vec<Option<PortInput>> = vec![None; plan.inputs.len()];
        for (name, given) in inputs {
            let (index, port) = find(&plan.inputs, name, "input")?;
            if found[index].is_some() {
                return Err(Error::input(format!("input {name:?}"), "two buffers", "one"));
            }
            found[index] = Some(input(port, PortIndex::Input(index), given)?);
        }
        let mut buffers = every("input", &plan.inputs, found)?;
        for (name, given) in outputs {
            let (index, port) = find(&plan.outputs, name, "output")?;
            let end = PortIndex::Output(index);
            if buffers.iter().any(|given| matches!(given, PortInput::Buffer(buffer) if buffer.end == end)) {
                return Err(Error::input(format!("output {name:?}"), "two buffers", "one"));
            }
            buffers.push(PortInput::Buffer(output(port, end, given)?));
        }
        Ok(buffers)
    }

    /// The run with these ports, and what makes inputs of pictures before it, at once.
    pub(super) fn bound(&mut self, given: Vec<PortInput>) -> Result<BoundRun> {
        let work = self.bound_async(given);
        #[cfg(not(target_family = "wasm"))]
        return crate::task::block_on(work);
        #[cfg(target_family = "wasm")]
        {
            let first = || {
                Error::unsupported(
                    "a run of new buffers",
                    "its kernels are not compiled: await Session::bind",
                )
            };
            crate::task::at_once(work).ok_or_else(first)?
        }
    }

    /// [`Session::bound`], awaited.
    pub(super) async fn bound_async(&mut self, given: Vec<PortInput>) -> Result<BoundRun> {
        let plan = self.extents.plan_mut();
        let session = plan.runner.device_mut("buffers of a device")?;
        let (mut buffers, mut recordings) = (Vec::with_capacity(given.len()), Vec::new());
        for (index, given) in given.into_iter().enumerate() {
            buffers.push(match (given, plan.inputs.get(index)) {
                (PortInput::Buffer(buffer), _) => buffer,
                (PortInput::Pictures(shown), Some(port)) => {
                    let (buffer, recording) = session.pictures(index, port, shown).await?;
                    recordings.push(recording);
                    buffer
                }
                (PortInput::Pictures(_), None) => {
                    return Err(Error::Internal("pictures as an output".to_owned()));
                }
            });
        }
        Ok((session.bound(buffers).await?, recordings))
    }
}

fn find<'p>(ports: &'p [Port], name: &str, what: &str) -> Result<(usize, &'p Port)> {
    let found = ports.iter().enumerate().find(|(_, port)| port.name == name);
    found.ok_or_else(|| unknown(what, name, ports))
}
