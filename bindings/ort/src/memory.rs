//! Memory of the host: what describes it, and what allocates it.

use crate::pointers::{hand_out, no_memory, own, put};
use crate::status::{Failure, calls, unsupported};
use diptych_pointers::{shared, text};
use ort_sys::{
    ORT_API_VERSION, OrtAllocator, OrtAllocatorType, OrtDeviceMemoryType, OrtMemType, OrtMemoryInfo,
    OrtMemoryInfoDeviceType, OrtSession,
};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// Where memory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryInfo {
    pub(crate) name: Cow<'static, CStr>,
    id: c_int,
    allocator: OrtAllocatorType,
    memory: OrtMemType,
}

/// The memory of all values.
pub(crate) static HOST: MemoryInfo = MemoryInfo {
    name: Cow::Borrowed(c"Cpu"),
    id: 0,
    allocator: OrtAllocatorType::OrtDeviceAllocator,
    memory: OrtMemType::OrtMemTypeDefault,
};

/// It as C knows it.
pub(crate) fn host() -> *const OrtMemoryInfo {
    (&raw const HOST).cast()
}

/// What the inputs of the session that copies tensors want. It differs from the memory of all values, for `ort` binds what
/// is borrowed by copying it first, if a run might leave an output in the same memory, and copies it by this session: on
/// and on.
static NOT_ALIASED: MemoryInfo = MemoryInfo {
    name: Cow::Borrowed(c"Cpu"),
    id: 1,
    allocator: OrtAllocatorType::OrtDeviceAllocator,
    memory: OrtMemType::OrtMemTypeDefault,
};

/// It as C knows it.
pub(crate) fn not_aliased() -> *const OrtMemoryInfo {
    (&raw const NOT_ALIASED).cast()
}

impl MemoryInfo {
    pub(crate) fn is_host(&self) -> bool {
        self.name == HOST.name
    }

    /// An error unless it is the host's.
    pub(crate) fn must_be_host(&self) -> Result<(), Failure> {
        if self.is_host() {
            return Ok(());
        }
        let reason = "values lie in the host's memory, \"Cpu\"; a run copies them to the device and back";
        Err(unsupported(format!("memory {:?}", self.name.to_string_lossy()), reason))
    }

    fn device_type(&self) -> OrtMemoryInfoDeviceType {
        if self.is_host() {
            OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU
        } else {
            OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU
        }
    }
}

calls! {
    fn CreateMemoryInfo(
        name: *const c_char,
        allocator: OrtAllocatorType,
        id: c_int,
        memory: OrtMemType,
        out: *mut *mut OrtMemoryInfo,
    ) {
        let name = diptych_pointers::c_text(text("name", name)?);
        hand_out(out, MemoryInfo { name: Cow::Owned(name), id, allocator, memory })
    }

    fn CreateCpuMemoryInfo(allocator: OrtAllocatorType, memory: OrtMemType, out: *mut *mut OrtMemoryInfo) {
        hand_out(out, MemoryInfo { allocator, memory, ..HOST.clone() })
    }

    /// 0 if they are equal.
    fn CompareMemoryInfo(one: *const OrtMemoryInfo, other: *const OrtMemoryInfo, out: *mut c_int) {
        put("out", out, c_int::from(own(one)? != own(other)?))
    }

    fn MemoryInfoGetName(info: *const OrtMemoryInfo, out: *mut *const c_char) {
        put("out", out, own(info)?.name.as_ptr())
    }

    fn MemoryInfoGetId(info: *const OrtMemoryInfo, out: *mut c_int) {
        put("out", out, own(info)?.id)
    }

    fn MemoryInfoGetMemType(info: *const OrtMemoryInfo, out: *mut OrtMemType) {
        put("out", out, own(info)?.memory)
    }

    fn MemoryInfoGetType(info: *const OrtMemoryInfo, out: *mut OrtAllocatorType) {
        put("out", out, own(info)?.allocator)
    }

    fn AllocatorAlloc(allocator: *mut OrtAllocator, bytes: usize, out: *mut *mut c_void) {
        put("out", out, allocate(allocator, bytes)?.cast())
    }

    fn AllocatorFree(allocator: *mut OrtAllocator, pointer: *mut c_void) {
        free(allocator, pointer)
    }

    fn AllocatorGetInfo(allocator: *const OrtAllocator, out: *mut *const OrtMemoryInfo) {
        let info = shared("allocator", allocator)?.Info;
        let info = info.ok_or_else(|| crate::status::wrong("allocator", "no function Info", "one"))?;
        put("out", out, info(allocator))
    }

    fn GetAllocatorWithDefaultOptions(out: *mut *mut OrtAllocator) {
        put("out", out, (&raw const DEFAULT).cast_mut())
    }

    fn CreateAllocator(session: *const OrtSession, info: *const OrtMemoryInfo, out: *mut *mut OrtAllocator) {
        own(session)?;
        own(info)?.must_be_host()?;
        // Of no state: any of them frees what another one allocated.
        put("out", out, Box::into_raw(Box::new(DEFAULT)))
    }
}

pub(crate) unsafe extern "system" fn ReleaseAllocator(allocator: *mut OrtAllocator) {
    // The default one is not the caller's.
    if !allocator.is_null() && !std::ptr::eq(allocator, &raw const DEFAULT) {
        // SAFETY: the caller's promise: it is of `CreateAllocator`, and is released once.
        drop(unsafe { Box::from_raw(allocator) });
    }
}

pub(crate) unsafe extern "system" fn MemoryInfoGetDeviceType(
    info: *const OrtMemoryInfo,
    out: *mut OrtMemoryInfoDeviceType,
) {
    // SAFETY: the caller's promise: it is NULL, or of this table and not released.
    let info = unsafe { own(info) };
    if let (Ok(info), false) = (info, out.is_null()) {
        // SAFETY: the caller's promise: it points to memory for the result.
        unsafe { out.write(info.device_type()) };
    }
}

pub(crate) unsafe extern "system" fn MemoryInfoGetDeviceMemType(
    _: *const OrtMemoryInfo,
) -> OrtDeviceMemoryType {
    OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT
}

pub(crate) unsafe extern "system" fn MemoryInfoGetVendorId(_: *const OrtMemoryInfo) -> u32 {
    0
}

/// What stands before a block: its size.
const HEADER: usize = 64;

/// The allocator of the host's memory.
static DEFAULT: OrtAllocator = OrtAllocator {
    version: ORT_API_VERSION,
    Alloc: Some(alloc_host),
    Free: Some(free_host),
    Info: Some(info_of_host),
    Reserve: Some(reserve_host),
    GetStats: None,
    AllocOnStream: None,
    Shrink: None,
};

/// The default allocator, for values.
pub(crate) fn default_allocator() -> *mut OrtAllocator {
    (&raw const DEFAULT).cast_mut()
}

/// So many zero bytes at a multiple of 64; NULL if there is no memory for them.
fn block(bytes: usize) -> *mut c_void {
    let Some(layout) = bytes.checked_add(HEADER).and_then(|all| Layout::from_size_align(all, HEADER).ok())
    else {
        return null_mut();
    };
    // SAFETY: the header alone makes it longer than nothing.
    let block = unsafe { alloc_zeroed(layout) };
    if block.is_null() {
        return null_mut();
    }
    // SAFETY: the header is long enough and aligned for a size, and what follows it is within the block.
    unsafe {
        block.cast::<usize>().write(layout.size());
        block.add(HEADER).cast()
    }
}

unsafe extern "system" fn alloc_host(_: *mut OrtAllocator, bytes: usize) -> *mut c_void {
    block(bytes)
}

unsafe extern "system" fn reserve_host(_: *const OrtAllocator, bytes: usize) -> *mut c_void {
    block(bytes)
}

unsafe extern "system" fn free_host(_: *mut OrtAllocator, pointer: *mut c_void) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: the caller's promise: `block` gave it, so the header stands before it, with the layout it was made with.
    unsafe {
        let block = pointer.cast::<u8>().sub(HEADER);
        let size = block.cast::<usize>().read();
        dealloc(block, Layout::from_size_align_unchecked(size, HEADER));
    }
}

unsafe extern "system" fn info_of_host(_: *const OrtAllocator) -> *const OrtMemoryInfo {
    host()
}

/// So many bytes of an allocator, of the host's memory.
///
/// # Safety
/// `allocator` is NULL, or one that may be called.
pub(crate) unsafe fn allocate(allocator: *mut OrtAllocator, bytes: usize) -> Result<*mut u8, Failure> {
    // SAFETY: the caller promises that `allocator` is NULL, or one that may be called; `shared` refuses NULL.
    let own = unsafe { shared("allocator", allocator) }?.Alloc;
    let own = own.ok_or_else(|| crate::status::wrong("allocator", "no function Alloc", "one"))?;
    // SAFETY: the caller promises that the allocator may be called; it is not NULL and has this function (checked above).
    let block = unsafe { own(allocator, bytes) };
    if block.is_null() { Err(no_memory(bytes)) } else { Ok(block.cast()) }
}

/// Gives a block back.
///
/// # Safety
/// `allocator` is NULL, or one that may be called; `pointer` is NULL, or a block of it that is not used again.
pub(crate) unsafe fn free(allocator: *mut OrtAllocator, pointer: *mut c_void) -> Result<(), Failure> {
    // SAFETY: the caller promises that `allocator` is NULL, or one that may be called; `shared` refuses NULL.
    let own = unsafe { shared("allocator", allocator) }?.Free;
    let own = own.ok_or_else(|| crate::status::wrong("allocator", "no function Free", "one"))?;
    // SAFETY: the caller promises that the allocator may be called and that `pointer` is NULL or a block of it; the
    // allocator is not NULL and has this function (checked above).
    unsafe { own(allocator, pointer) };
    Ok(())
}

const _: () = assert!(HEADER >= size_of::<usize>() && HEADER.is_power_of_two());
