//! What a text that computes with halves begins with.

/// What precedes a text that computes with halves: the extension `cl_khr_fp16`, or stand-ins for its functions.
///
/// NVIDIA's compiler takes half arithmetic, does not list the extension, and has none of its functions:
/// those that kernels call are declared here as it would have them. `a * b + c` is contracted as `mad`
/// is, and what has no instruction for halves is computed in f32. Nor can it load a constant vector of
/// four halves as such ("Do not know how to split the result of this operator"), nor as four words of
/// their length, which it takes for the same: they come as two pairs.
pub const HALF_ARITHMETIC: &str = "\
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#ifdef cl_khr_fp16
#define load_half4(src, index) src[index]
#define widened(x) convert_float4(x)
#else
#define HALF_FUNCTION static __attribute__((overloadable))
HALF_FUNCTION half convert_half(const float x) { return (half)x; }
HALF_FUNCTION half4 convert_half4(const float4 x) { return (half4)((half)x.x, (half)x.y, (half)x.z, (half)x.w); }
HALF_FUNCTION float convert_float(const half x) { return (float)x; }
HALF_FUNCTION float4 widened(const half4 x) { return (float4)((float)x.x, (float)x.y, (float)x.z, (float)x.w); }
HALF_FUNCTION half4 load_half4(__global const half4* src, const uint index) {
    const uint2 bits = ((__global const uint2*)src)[index];
    return (half4)(__builtin_astype(bits.x, half2), __builtin_astype(bits.y, half2));
}
HALF_FUNCTION half mad(const half a, const half b, const half c) { return a * b + c; }
HALF_FUNCTION half4 mad(const half4 a, const half4 b, const half4 c) { return a * b + c; }
HALF_FUNCTION half min(const half x, const half y) { return y < x ? y : x; }
HALF_FUNCTION half4 min(const half4 x, const half4 y) {
    return (half4)(min(x.x, y.x), min(x.y, y.y), min(x.z, y.z), min(x.w, y.w));
}
HALF_FUNCTION half max(const half x, const half y) { return x < y ? y : x; }
HALF_FUNCTION half4 max(const half4 x, const half4 y) {
    return (half4)(max(x.x, y.x), max(x.y, y.y), max(x.z, y.z), max(x.w, y.w));
}
HALF_FUNCTION half clamp(const half x, const half low, const half high) { return min(max(x, low), high); }
HALF_FUNCTION half4 clamp(const half4 x, const half4 low, const half4 high) { return min(max(x, low), high); }
HALF_FUNCTION half select(const half a, const half b, const int c) { return c ? b : a; }
HALF_FUNCTION half4 select(const half4 a, const half4 b, const short4 c) {
    return (half4)(c.x ? b.x : a.x, c.y ? b.y : a.y, c.z ? b.z : a.z, c.w ? b.w : a.w);
}
HALF_FUNCTION half exp(const half x) { return (half)exp((float)x); }
HALF_FUNCTION half4 exp(const half4 x) { return convert_half4(exp(widened(x))); }
HALF_FUNCTION half tanh(const half x) { return (half)tanh((float)x); }
HALF_FUNCTION half4 tanh(const half4 x) { return convert_half4(tanh(widened(x))); }
#endif
";
