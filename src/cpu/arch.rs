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
        // `pulp::Arch` asks a variable, so that code for both would be kept.
        #[cfg(target_feature = "simd128")]
        // SAFETY: where there are no such vectors, a module that was compiled with them is not loaded.
        let simd = unsafe { pulp::wasm::Simd128::new_unchecked() };
        #[cfg(not(target_feature = "simd128"))]
        let simd = pulp::Scalar::new();
        pulp::Simd::vectorize(simd, op)
    }
}
