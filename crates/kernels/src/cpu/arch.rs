//! Which vectors the machine has.

use pulp::{NullaryFnOnce, Simd};

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
        #[cfg(target_feature = "relaxed-simd")]
        // SAFETY: where there are no such vectors, a module that was compiled with them is not loaded.
        let simd = unsafe { pulp::wasm::RelaxedSimd::new_unchecked() };
        #[cfg(all(target_feature = "simd128", not(target_feature = "relaxed-simd")))]
        // SAFETY: the same.
        let simd = unsafe { pulp::wasm::Simd128::new_unchecked() };
        #[cfg(not(target_feature = "simd128"))]
        let simd = pulp::Scalar::new();
        apart(simd, Whole(simd, op))
    }
}

/// A kernel with its vectors. Not a closure: that would be a function that is compiled to be small.
#[cfg(target_family = "wasm")]
struct Whole<S, Op>(S, Op);

#[cfg(target_family = "wasm")]
impl<S: Simd, Op: pulp::WithSimd> NullaryFnOnce for Whole<S, Op> {
    type Output = Op::Output;

    #[inline(always)]
    fn call(self) -> Op::Output {
        self.1.with_simd(self.0)
    }
}

/// A part of a kernel in a function of its own, with the vectors of `simd`.
#[cfg(not(target_family = "wasm"))]
#[inline(always)]
pub(crate) fn apart<S: Simd, Op: NullaryFnOnce>(simd: S, op: Op) -> Op::Output {
    simd.vectorize(op)
}

/// A part of a kernel in a function of its own. It is compiled to be fast where the rest of the module is compiled to be small.
#[cfg(target_family = "wasm")]
#[cfg_attr(optimize_attribute, optimize(speed))]
#[inline(never)]
pub(crate) fn apart<S: Simd, Op: NullaryFnOnce>(_: S, op: Op) -> Op::Output {
    op.call()
}
