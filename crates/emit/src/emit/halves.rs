//! What kernels in OpenCL C say of halves before anything else.

/// Halves are stored, and sums kept in f32: four at once.
///
/// A pointer to halves promises two bytes of alignment, and `vloada_half4`, which promises eight, is
/// four loads of two bytes all the same where it matters: NVIDIA's compiler (driver 580) makes them.
/// A vector's bytes may be looked at through any pointer; with lanes as wide as a half, compilers see
/// through the pointer to the register.
pub(crate) const STORAGE: &str = "\
static float4 load_half4(__global const half* src, const uint index) {
    const ushort4 bits = ((__global const ushort4*)src)[index];
    return vload_half4(0, (const half*)&bits);
}
static void store_half4(const float4 value, __global half* dst, const uint index) {
    ushort4 bits;
    vstore_half4_rte(value, 0, (half*)&bits);
    ((__global ushort4*)dst)[index] = bits;
}
";
