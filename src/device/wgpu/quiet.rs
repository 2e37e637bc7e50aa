//! What Vulkan's layers print when devices are listed.
//!
//! Mesa's layer `VK_LAYER_MESA_device_select` asks a Wayland compositor which GPU it uses, whenever an instance has the
//! extensions for windows, which wgpu's always has. Without `XDG_RUNTIME_DIR`, as in containers and services, there is no
//! compositor to ask, and libwayland prints "error: XDG_RUNTIME_DIR is invalid or not set in the environment." to stderr at
//! each listing. It offers a function that takes its messages instead.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;

/// libwayland's messages: a format of `printf` and its arguments, which are one pointer on all of Linux's ABIs.
type Handler = unsafe extern "C" fn(format: *const c_char, arguments: *const c_void);

const RTLD_NOW: c_int = 2;
const RTLD_NOLOAD: c_int = 4;
const RTLD_NODELETE: c_int = 0x1000;
/// Of `getauxval`: where the program begins.
const AT_ENTRY: c_ulong = 9;

/// `Dl_info` of `dlfcn.h`.
#[repr(C)]
struct Found {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;
    fn getauxval(what: c_ulong) -> c_ulong;
}

/// The file that this address was loaded from.
fn file_of(address: *const c_void) -> Option<Found> {
    let mut found =
        Found { file: ptr::null(), base: ptr::null_mut(), symbol: ptr::null(), address: ptr::null_mut() };
    // SAFETY: any address will do, and the structure is that of the header. Test: `this_code_stays`.
    let is_found = unsafe { dladdr(address, &mut found) } != 0;
    (is_found && !found.file.is_null()).then_some(found)
}

/// Keeps this code in the process: a program may close the library that it is part of, such as `libdiptych_c.so`, and libwayland
/// keeps its handler all the same. Whether it stays.
fn stays() -> bool {
    let Some(own) = file_of(traced as *const c_void) else { return false };
    // SAFETY: it takes a number.
    let entry = unsafe { getauxval(AT_ENTRY) } as usize as *const c_void;
    // The program itself is never unloaded.
    if file_of(entry).is_some_and(|program| program.base == own.base) {
        return true;
    }
    // SAFETY: the loader's own name of the file, which is loaded. The handle is not closed.
    !unsafe { dlopen(own.file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) }.is_null()
}

/// Says so to who traces. The arguments are not read.
unsafe extern "C" fn traced(_: *const c_char, _: *const c_void) {
    tracing::debug!("libwayland has no compositor to ask which GPU it uses");
}

/// Takes libwayland's messages, if an instance has loaded it and no part of the process can have a compositor.
pub(super) fn without_compositor() {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(set) {
        return;
    }
    // SAFETY: the name is text, and nothing is loaded that is not.
    let library = unsafe { dlopen(c"libwayland-client.so.0".as_ptr(), RTLD_NOW | RTLD_NOLOAD) };
    if library.is_null() {
        return;
    }
    // SAFETY: the library is there, and stays: this handle of it is not closed.
    let function = unsafe { dlsym(library, c"wl_log_set_handler_client".as_ptr()) };
    if function.is_null() || !stays() {
        return;
    }
    // SAFETY: it is `void wl_log_set_handler_client(wl_log_func_t handler)` since libwayland 1.0; the test
    // `listing_devices_prints_nothing` calls it.
    let function = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handler)>(function) };
    // SAFETY: the handler stays in the process: it was asked for above.
    unsafe { function(traced) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_code_stays() {
        assert!(stays());
        assert!(file_of(std::ptr::null()).is_none());
    }
}
