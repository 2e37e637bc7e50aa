//! Kernels: from text to pipeline, once per text.

use super::scope::{Scopes, unpanicked};
#[cfg(not(any(target_family = "wasm", target_vendor = "apple")))]
use super::statistics;
use super::{Owner, WgpuDevice, lock};
use crate::device::Pipeline;
use crate::device::cache::{CacheKey, KernelCache};
use crate::device::handle::RawPipeline as AnyPipeline;
#[cfg(not(target_family = "wasm"))]
use crate::device::report::CompilerReport;
use crate::emit::{Access, Dialect, Element, Interface, KernelSource, Least};
#[cfg(feature = "shaders")]
use crate::emit::{check, depth::on_large_stack};
use crate::error::{Error, Result, numbered};
use std::borrow::Cow;
use std::num::NonZeroU64;

/// A compiled kernel and the layout of its arguments.
#[derive(Debug, Clone)]
pub(crate) struct RawPipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    pub(super) owner: Owner,
}

/// What a compiled kernel is found by: its text, what the text is compiled for, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    text: String,
    entry: String,
    interface: Interface,
    checks: Checks,
}

/// How a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Checks {
    /// The text is from outside the crate.
    foreign: bool,
    /// Every access is kept within bounds and every loop ended, in the kernel.
    bounds: bool,
    /// Work-group memory begins as zeros.
    zeroed: bool,
}

impl WgpuDevice {
    /// Compiles text from any source.
    pub(super) async fn compile_checked(&self, source: &KernelSource) -> Result<Pipeline> {
        let checks = Checks { foreign: true, bounds: true, zeroed: true };
        // wgpu and drivers read a text as naga does: one call within another for what is nested.
        #[cfg(all(feature = "shaders", not(target_family = "wasm")))]
        return on_large_stack(&source.label, &source.text, || {
            crate::task::block_on(self.pipeline(source, checks, checked))
        });
        #[cfg(all(feature = "shaders", target_family = "wasm"))]
        on_large_stack(&source.label, &source.text, || Ok(()))?;
        #[cfg(any(not(feature = "shaders"), target_family = "wasm"))]
        self.pipeline(source, checks, checked).await
    }

    /// Compiles text without wgpu's checks, unless the device was opened to keep them.
    ///
    /// # Safety
    /// That of [`crate::device::Device::compile_unchecked`].
    pub(super) async unsafe fn compile_trusted(&self, source: &KernelSource) -> Result<Pipeline> {
        let (bounds, zeroed) = (self.inner.checked_shaders, self.inner.zeroed_memory);
        let checks = Checks { foreign: false, bounds, zeroed };
        if checks.bounds {
            return self.pipeline(source, checks, checked).await;
        }
        self.pipeline(source, checks, |device, descriptor| {
            // SAFETY: promised by the caller. The checks of ray queries and mesh shaders stay on: no
            // kernel has any.
            unsafe { device.create_shader_module_trusted(descriptor, trusted()) }
        })
        .await
    }

    /// The kernel of `source`, whose module `load` makes according to `checks`.
    async fn pipeline(
        &self,
        source: &KernelSource,
        checks: Checks,
        load: impl Fn(&wgpu::Device, wgpu::ShaderModuleDescriptor<'_>) -> wgpu::ShaderModule,
    ) -> Result<Pipeline> {
        let refuse = |log: String| self.refusal_of(source, log);
        if source.dialect != Dialect::Wgsl {
            return Err(refuse(format!("the source is {}, wanted {}", source.dialect, Dialect::Wgsl)));
        }
        let key = Key {
            text: source.text.clone(),
            entry: source.entry.clone(),
            interface: without_sizes(&source.interface),
            checks,
        };
        let known = lock(&self.inner.pipelines).get(&key).cloned();
        let raw = match known {
            Some(raw) => raw,
            None => {
                #[cfg(feature = "shaders")]
                if cfg!(debug_assertions) && !checks.foreign {
                    // The tests of the emitter do so for every kernel, and a start should not parse each
                    // text twice.
                    check::check_interface(source)?;
                }
                if checks.foreign {
                    self.check_foreign(source)?;
                }
                // What is beyond a buffer is its last element, as on OpenCL, whatever the driver would make of it.
                #[cfg(feature = "shaders")]
                let within =
                    if checks.foreign { Cow::Owned(check::clamped(source)?) } else { Cow::Borrowed(source) };
                #[cfg(not(feature = "shaders"))]
                let within = Cow::Borrowed(source);
                // Compiled without the lock, so that threads compile side by side.
                let raw = self.build(&within, checks, load).await;
                let raw = raw.map_err(|refusal| self.not_compiled(source, refusal))?;
                lock(&self.inner.pipelines).entry(key).or_insert(raw).clone()
            }
        };
        Ok(Pipeline {
            raw: AnyPipeline::Wgpu(raw),
            label: source.label.clone(),
            interface: source.interface.clone(),
            work_group: source.work_group,
        })
    }

    /// Compiles a kernel anew, as the ops' kernels are, and gives what the driver says of it.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn examined(&self, source: &KernelSource) -> Result<CompilerReport> {
        if source.dialect != Dialect::Wgsl {
            let found = format!("the source is {}, wanted {}", source.dialect, Dialect::Wgsl);
            return Err(self.refusal_of(source, found));
        }
        #[cfg(not(target_vendor = "apple"))]
        drop(statistics::said());
        let checks =
            Checks { foreign: false, bounds: self.inner.checked_shaders, zeroed: self.inner.zeroed_memory };
        let built = crate::task::block_on(self.build(source, checks, |device, descriptor| {
            if checks.bounds {
                return checked(device, descriptor);
            }
            // SAFETY: nothing is dispatched of the kernel, which ends with this function.
            unsafe { device.create_shader_module_trusted(descriptor, trusted()) }
        }));
        built.map_err(|refusal| self.not_compiled(source, refusal))?;
        #[cfg(target_vendor = "apple")]
        return Ok(CompilerReport::default());
        #[cfg(not(target_vendor = "apple"))]
        Ok(CompilerReport {
            means: self.inner.tells.load(std::sync::atomic::Ordering::Relaxed).then_some(statistics::MEANS),
            programs: statistics::said(),
            log: String::new(),
        })
    }

    fn refusal_of(&self, source: &KernelSource, log: String) -> Error {
        Error::Compile {
            kernel: source.label.clone(),
            api: self.api(),
            log,
            source_text: numbered(&source.text),
        }
    }

    fn not_compiled(&self, source: &KernelSource, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Log(log) => self.refusal_of(source, log),
            Refusal::Panic(panic) => self.lost(panic),
            // What is wrong with a text is no matter of memory, or of a device that is gone.
            Refusal::Wgpu(error) => match self.refused("create_compute_pipeline", &error) {
                Error::Driver { message, .. } => self.refusal_of(source, message),
                error => error,
            },
        }
    }

    /// Refuses text from outside the crate that could do harm, or that nothing here can read.
    fn check_foreign(&self, source: &KernelSource) -> Result<()> {
        #[cfg(feature = "shaders")]
        return check::check_foreign(source, self.inner.limits.max_compute_workgroup_storage_size);
        #[cfg(not(feature = "shaders"))]
        Err(Error::unsupported(
            format!("kernel {:?}", source.label),
            "the crate was built without feature `shaders`",
        ))
    }

    async fn build(
        &self,
        source: &KernelSource,
        checks: Checks,
        load: impl Fn(&wgpu::Device, wgpu::ShaderModuleDescriptor<'_>) -> wgpu::ShaderModule,
    ) -> Result<RawPipeline, Refusal> {
        let device = &self.inner.device;
        let entries = layout_entries(&source.interface).map_err(Refusal::Log)?;
        let label = Some(source.label.as_str());
        let kept = self.kept(source, checks);
        let scopes = Scopes::open(device);
        let built = unpanicked(|| {
            let descriptor = wgpu::ShaderModuleDescriptor {
                label,
                source: wgpu::ShaderSource::Wgsl(Cow::Borrowed(&source.text)),
            };
            let module = load(device, descriptor);
            let layout = device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let cache = kept.as_ref().map(|(_, _, data)| {
                let descriptor =
                    wgpu::PipelineCacheDescriptor { label, data: data.as_deref(), fallback: true };
                // SAFETY: the data are what `get_data` gave for this device and driver, which are
                // part of their key, and their hash says that they are whole; wgpu looks at their
                // head once more. Test: `compiled_kernels_are_kept`.
                unsafe { device.create_pipeline_cache(&descriptor) }
            });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(&source.entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: checks.zeroed,
                    ..Default::default()
                },
                cache: cache.as_ref(),
            });
            (RawPipeline { pipeline, layout, owner: self.inner.owner }, cache)
        });
        let error = scopes.close().await;
        let (raw, cache) = built.map_err(Refusal::Panic)?;
        if let Some(error) = error {
            return Err(Refusal::Wgpu(error));
        }
        if let (Some((disk, key, before)), Some(cache)) = (kept, cache)
            && let Some(data) = cache.get_data()
            && before.as_ref() != Some(&data)
        {
            disk.put(key, &data);
        }
        Ok(raw)
    }

    /// Where the driver's work on `source` is kept between starts, and what is there.
    fn kept(
        &self,
        source: &KernelSource,
        checks: Checks,
    ) -> Option<(KernelCache, CacheKey, Option<Vec<u8>>)> {
        if !self.inner.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let disk = lock(&self.inner.cache).clone()?;
        let info = &self.inner.info;
        let checked = if checks.bounds { "checked" } else { "trusted" };
        let zeroed = if checks.zeroed { "zeroed" } else { "not zeroed" };
        let key = CacheKey::of(&[
            "wgpu 30",
            info.api,
            &info.name,
            &info.driver,
            checked,
            zeroed,
            &source.entry,
            &source.text,
        ]);
        let data = disk.get(key);
        Some((disk, key, data))
    }
}

/// Why there is no pipeline.
enum Refusal {
    Log(String),
    Panic(String),
    Wgpu(wgpu::Error),
}

/// The interface of a kernel that serves operands of any size, as the text does.
fn without_sizes(interface: &Interface) -> Interface {
    let mut interface = interface.clone();
    interface.bindings.iter_mut().for_each(|binding| binding.least = Least::Element);
    interface
}

fn checked(device: &wgpu::Device, descriptor: wgpu::ShaderModuleDescriptor<'_>) -> wgpu::ShaderModule {
    device.create_shader_module(descriptor)
}

fn trusted() -> wgpu::ShaderRuntimeChecks {
    let mut checks = wgpu::ShaderRuntimeChecks::checked();
    checks.bounds_checks = false;
    checks.force_loop_bounding = false;
    checks.int_div_checks = false;
    checks
}

/// The bind group layout of an interface: buffers in order, then the uniform block.
fn layout_entries(interface: &Interface) -> Result<Vec<wgpu::BindGroupLayoutEntry>, String> {
    let entry = |binding: usize, ty, bytes: usize| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            // Said here, wgpu checks it when arguments are bound and not at each dispatch.
            min_binding_size: NonZeroU64::new(bytes as u64),
        },
        count: None,
    };
    let texture = |binding: usize| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Texture {
            sample_type: wgpu::TextureSampleType::Float { filterable: false },
            view_dimension: wgpu::TextureViewDimension::D2,
            multisampled: false,
        },
        count: None,
    };
    let mut entries = Vec::with_capacity(interface.bindings.len() + 1);
    for (index, binding) in interface.bindings.iter().enumerate() {
        if let Element::Image2d(_) = binding.element {
            if binding.access != Access::Read {
                return Err(format!("argument {} is an image that is written", binding.operand.name()));
            }
            entries.push(texture(index));
            continue;
        }
        let read_only = binding.access == Access::Read;
        // Bindings are whole words.
        let bytes = binding.element.bytes().next_multiple_of(4);
        entries.push(entry(index, wgpu::BufferBindingType::Storage { read_only }, bytes));
    }
    if !interface.params.is_empty() {
        entries.push(entry(
            interface.bindings.len(),
            wgpu::BufferBindingType::Uniform,
            interface.param_bytes(),
        ));
    }
    Ok(entries)
}
