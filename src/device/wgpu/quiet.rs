//! What Vulkan's layers print when devices are listed.
//!
//! Mesa's layer `VK_LAYER_MESA_device_select` asks a Wayland compositor which GPU it uses, whenever an instance has the
//! extensions for windows, which wgpu's always has. Without `XDG_RUNTIME_DIR`, as in containers and services, there is no
//! compositor to ask, and libwayland prints "error: XDG_RUNTIME_DIR is invalid or not set in the environment." to stderr at
//! each listing. It offers a function that takes its messages instead.

use std::ffi::{c_char, c_int, c_void};

/// libwayland's messages: a format of `printf` and its arguments, which are one pointer on all of Linux's ABIs.
type Handler = unsafe extern "C" fn(format: *const c_char, arguments: *const c_void);

const RTLD_NOW: c_int = 2;
const RTLD_NOLOAD: c_int = 4;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
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
    if function.is_null() {
        return;
    }
    // SAFETY: it is `void wl_log_set_handler_client(wl_log_func_t handler)` since libwayland 1.0; the test
    // `listing_devices_prints_nothing` calls it.
    let function = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handler)>(function) };
    // SAFETY: the handler lives as long as the process, as this crate is not unloaded while the instance lives.
    unsafe { function(traced) };
}
