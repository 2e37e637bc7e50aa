//! Which vectors the machine has.

#[cfg(not(target_family = "wasm"))]
pub(crate) use pulp::Arch;

/// The vectors that the module was compiled for: WebAssembly is not told what the machine has, and code for others is
/// only larger.
#[cfg(target_family = "wasm")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arch;

#[cfg(target_family = "wasm")]
impl Arch {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Arch
    }

    #[inline(always)]
    pub(crate) fn dispatch<Op: pulp::WithSimd>(self, op: Op) -> Op::Output {
        // A constant with `simd128` among the features that are compiled for.
        pulp::Arch::new().dispatch(op)
    }
}
