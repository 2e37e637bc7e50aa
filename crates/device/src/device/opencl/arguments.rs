//! Holds a compiled kernel against its [`Interface`](crate::emit::Interface).
//!
//! Arguments of a kernel in OpenCL C, buffers and images first:
//!
//! | binding | declared as |
//! |---|---|
//! | scalars of f32 or f16 | `__global float*`, `__global half*` |
//! | four-vectors of f32 | `__global float4*` |
//! | four-vectors of f16 | `__global uint2*` of two halves a word, `__global half*` or `__global half4*` |
//! | image | `__read_only image2d_t` or `__write_only image2d_t` |
//! | parameter | `uint`, `int`, `float` |
//! | the number of elements in a buffer, last, where a checked kernel asks for it | `uint` |
//!
//! What is only read is `const`. A driver that cannot say what a kernel's arguments are is
//! believed; their number is known to all.

use super::call::{Kernel, Owned, check as checked, failure};
use super::cl;
use crate::dtype::DType;
use crate::emit::{Access, Element, KernelSource, ParamType};
use crate::error::{Error, Result};
use crate::limits::Limits;
use cl3::device::cl_device_id;
use cl3::kernel::{
    CL_KERNEL_ARG_ACCESS_NONE, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_READ_ONLY,
    CL_KERNEL_ARG_ACCESS_WRITE_ONLY, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_ADDRESS_PRIVATE,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST, CL_KERNEL_ARG_TYPE_NAME,
    CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_NUM_ARGS,
    CL_KERNEL_WORK_GROUP_SIZE,
};

/// Checks that the device allows the work-group of `source` at all.
pub(super) fn check_work_group(limits: &Limits, source: &KernelSource) -> Result<()> {
    let sizes = source.work_group;
    let product = invocations(sizes);
    let fits = product > 0
        && product <= u64::from(limits.max_invocations)
        && sizes.iter().zip(limits.max_work_group).all(|(size, max)| *size <= max);
    if fits {
        return Ok(());
    }
    Err(Error::Reject {
        kernel: source.label.clone(),
        reason: format!(
            "its work-group is {sizes:?}, the device allows {:?} and {} invocations in all",
            limits.max_work_group, limits.max_invocations
        ),
    })
}

fn invocations(sizes: [u32; 3]) -> u64 {
    sizes.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul)
}

/// Checks the compiled kernel's arguments, of which the last `lengths` are numbers of elements, and its
/// work-group.
pub(super) fn check(
    kernel: &Owned<Kernel>,
    device: cl_device_id,
    source: &KernelSource,
    lengths: usize,
) -> Result<()> {
    let mut wanted = expected(source)?;
    wanted.extend((0..lengths).map(|_| Expected::value(None, ParamType::U32)));
    let number = cl::get_kernel_data(kernel.raw(), CL_KERNEL_NUM_ARGS);
    let number = integer(&checked("clGetKernelInfo", number)?);
    if number != Some(wanted.len() as u64) {
        return disagree(source, format!("{} arguments", number.unwrap_or(0)), wanted.len().to_string());
    }
    for (index, wanted) in (0..).zip(&wanted) {
        check_argument(kernel, index, wanted, source)?;
    }
    check_compiled_work_group(kernel, device, source)
}

fn disagree(source: &KernelSource, found: String, wanted: String) -> Result<()> {
    Err(Error::input(format!("kernel {}", source.label), found, wanted))
}

/// How an argument must be declared.
struct Expected {
    /// Its name, unless any will do.
    name: Option<&'static str>,
    types: &'static [&'static str],
    address: u32,
    access: u32,
    /// Whether what it points to is `const`, where it is a pointer.
    constant: Option<bool>,
}

impl Expected {
    /// A number that is passed by value.
    fn value(name: Option<&'static str>, ty: ParamType) -> Self {
        Expected {
            name,
            types: match ty {
                ParamType::U32 => &["uint", "unsignedint"],
                ParamType::I32 => &["int"],
                ParamType::F32 => &["float"],
            },
            address: CL_KERNEL_ARG_ADDRESS_PRIVATE,
            access: CL_KERNEL_ARG_ACCESS_NONE,
            // Drivers differ in whether they report `const` of what is passed by value.
            constant: None,
        }
    }
}

fn expected(source: &KernelSource) -> Result<Vec<Expected>> {
    let mut all = Vec::new();
    for binding in &source.interface.bindings {
        let name = binding.operand.name();
        all.push(match (binding.element, binding.access) {
            (Element::Image2d(_), Access::ReadWrite) => {
                return Err(Error::unsupported(
                    format!("kernel {}: an image that is read and written, {name}", source.label),
                    "OpenCL C 1.2 has none",
                ));
            }
            (Element::Image2d(_), access) => Expected {
                name: Some(name),
                types: &["image2d_t"],
                address: CL_KERNEL_ARG_ADDRESS_GLOBAL,
                access: match access {
                    Access::Read => CL_KERNEL_ARG_ACCESS_READ_ONLY,
                    Access::Write | Access::ReadWrite => CL_KERNEL_ARG_ACCESS_WRITE_ONLY,
                },
                constant: None,
            },
            (element, access) => Expected {
                name: binding.operand.is_named().then_some(name),
                types: match element {
                    Element::Vec4(DType::F32) => &["float4*"],
                    Element::Vec4(DType::F16) => &["uint2*", "half*", "half4*"],
                    Element::Vec4(DType::I32) => &["int4*"],
                    Element::Vec4(DType::U32) => &["uint4*"],
                    _ if element.dtype() == DType::F16 => &["half*"],
                    _ if element.dtype() == DType::I32 => &["int*"],
                    _ if element.dtype() == DType::U32 => &["uint*"],
                    _ => &["float*"],
                },
                address: CL_KERNEL_ARG_ADDRESS_GLOBAL,
                access: CL_KERNEL_ARG_ACCESS_NONE,
                constant: Some(access == Access::Read),
            },
        });
    }
    all.extend(
        source
            .interface
            .params
            .iter()
            .map(|param| Expected::value(Some(param.name).filter(|name| !name.is_empty()), param.ty)),
    );
    Ok(all)
}

fn check_argument(
    kernel: &Owned<Kernel>,
    index: u32,
    wanted: &Expected,
    source: &KernelSource,
) -> Result<()> {
    // None where the driver does not know, or says nothing.
    let ask = |what| cl::get_kernel_arg_data(kernel.raw(), index, what).ok();
    let number = |what| ask(what).as_deref().and_then(integer);
    let text = |what| {
        let text = String::from_utf8_lossy(&ask(what)?).replace(['\0', ' '], "");
        (!text.is_empty()).then_some(text)
    };
    let argument = |what: &str| format!("argument {index} {what}");
    if let (Some(name), Some(wanted)) = (text(CL_KERNEL_ARG_NAME), wanted.name)
        && name != wanted
    {
        return disagree(source, argument(&name), wanted.to_owned());
    }
    let called = wanted.name.unwrap_or("length");
    if let Some(ty) = text(CL_KERNEL_ARG_TYPE_NAME)
        && !wanted.types.contains(&ty.as_str())
    {
        let found = argument(&format!("{called} of type {ty}"));
        return disagree(source, found, wanted.types.join(" or "));
    }
    // Some drivers call the address space of an image private.
    let is_image = wanted.access != CL_KERNEL_ARG_ACCESS_NONE;
    if let Some(address) = number(CL_KERNEL_ARG_ADDRESS_QUALIFIER)
        && address != u64::from(wanted.address)
        && !is_image
    {
        let found = argument(&format!("{called} in address space {address:#x}"));
        return disagree(source, found, format!("{:#x}", wanted.address));
    }
    if let Some(access) = number(CL_KERNEL_ARG_ACCESS_QUALIFIER)
        && access != u64::from(wanted.access)
        && is_image
    {
        let found = argument(&format!("{called} with access {access:#x}"));
        return disagree(source, found, format!("{:#x}", wanted.access));
    }
    if let (Some(constant), Some(qualifiers)) = (wanted.constant, number(CL_KERNEL_ARG_TYPE_QUALIFIER))
        && constant != (qualifiers & u64::from(CL_KERNEL_ARG_TYPE_CONST) != 0)
    {
        let say = |constant| if constant { "a pointer to const" } else { "a pointer without const" };
        let found = argument(&format!("{called}, {}", say(!constant)));
        return disagree(source, found, say(constant).to_owned());
    }
    Ok(())
}

fn check_compiled_work_group(
    kernel: &Owned<Kernel>,
    device: cl_device_id,
    source: &KernelSource,
) -> Result<()> {
    let ask = |what| cl::get_kernel_work_group_data(kernel.raw(), device, what);
    let required = checked("clGetKernelWorkGroupInfo", ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE))?;
    let required: Vec<Option<u64>> = required.chunks_exact(size_of::<usize>()).map(integer).collect();
    let wanted = source.work_group.map(|size| Some(u64::from(size)));
    // All zero where the text requires nothing: then the work-group is what is enqueued.
    if required != wanted && required.iter().any(|size| *size != Some(0)) {
        let found = format!("reqd_work_group_size {:?}", required.into_iter().flatten().collect::<Vec<_>>());
        return disagree(source, found, format!("{:?}", source.work_group));
    }
    // Registers or local memory can allow less than the device does.
    let most = ask(CL_KERNEL_WORK_GROUP_SIZE).map_err(|code| failure("clGetKernelWorkGroupInfo", code))?;
    let most = integer(&most).unwrap_or(u64::MAX);
    let product = invocations(source.work_group);
    if product > most {
        return Err(Error::Reject {
            kernel: source.label.clone(),
            reason: format!("its work-group has {product} invocations, as compiled it can have {most}"),
        });
    }
    Ok(())
}

/// The integer of four or eight bytes in an answer.
fn integer(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
