//! Identifiers of OpenCL C: WGSL's names, where the language and the writer leave them free.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Keywords, types, macros and built-in functions of OpenCL C 1.2, and what the writer defines itself. Those with the
/// beginnings below are left out.
const RESERVED: &str = "\
    auto break case char const continue default do double else enum extern float for goto if inline \
    int long register restrict return short signed sizeof static struct switch typedef union \
    unsigned void volatile while bool true false asm typeof kernel global local constant private \
    read_only write_only read_write uchar ushort uint ulong half quad complex imaginary size_t \
    ptrdiff_t intptr_t uintptr_t event_t sampler_t image1d_t image2d_t image3d_t generic pipe \
    uniform NULL NAN INFINITY HUGE_VALF MAXFLOAT FLT_MAX FLT_MIN FLT_EPSILON INT_MAX INT_MIN \
    UINT_MAX main widened load_half4 \
    acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cbrt ceil copysign cos cosh \
    cospi erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb \
    ldexp lgamma lgamma_r log log10 log1p log2 logb mad maxmag minmag modf nan nextafter pow pown \
    powr remainder remquo rint rootn round rsqrt sin sincos sinh sinpi sqrt tan tanh tanpi tgamma \
    trunc half_cos half_divide half_exp half_exp10 half_exp2 half_log half_log10 half_log2 half_powr \
    half_recip half_rsqrt half_sin half_sqrt half_tan abs abs_diff add_sat clamp clz ctz hadd mad mad24 \
    mad_hi mad_sat max min mul24 mul_hi popcount rhadd rotate sub_sat upsample degrees mix radians \
    sign smoothstep step cross distance dot fast_distance fast_length fast_normalize length normalize \
    all any bitselect isequal isfinite isgreater isgreaterequal isinf isless islessequal islessgreater \
    isnan isnormal isnotequal isordered isunordered select signbit barrier mem_fence read_mem_fence \
    write_mem_fence async_work_group_copy async_work_group_strided_copy wait_group_events prefetch \
    printf shuffle shuffle2 vec_step";

static RESERVED_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| RESERVED.split_whitespace().collect());

/// Beginnings of names that are the language's, the drivers' or the writer's own.
const RESERVED_BEGINNINGS: &[&str] = &[
    "atom_",
    "atomic_",
    "cl_",
    "CL_",
    "CLK_",
    "get_",
    "intel_",
    "native_",
    "read_image",
    "sub_group_",
    "vload",
    "vstore",
    "wgsl_",
    "work_group_",
    "write_image",
];

/// What precedes a type in the name of a conversion.
const CONVERSIONS: &[&str] = &["as_", "convert_"];

/// Vector types are a scalar type and a number.
const SCALARS: &[&str] =
    &["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double", "half"];

/// The names that are taken in a scope.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// The last number that was put behind a name.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// `wanted`, or what is nearest to it and free.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        let base = sanitized(wanted);
        if self.taken.insert(base.clone()) {
            return base;
        }
        let count = self.numbers.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let name = format!("{base}_{count}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn sanitized(name: &str) -> String {
    let mut out = String::new();
    for c in name.trim_start_matches('_').chars() {
        match c {
            '_' if out.ends_with('_') => {}
            '_' => out.push('_'),
            c if c.is_ascii_alphanumeric() => out.push(c),
            c => out.push_str(&format!("u{:x}", u32::from(c))),
        }
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'v');
    }
    if RESERVED_BEGINNINGS.iter().any(|beginning| out.starts_with(beginning)) {
        out.insert_str(0, "v_");
    }
    if is_reserved(&out) {
        out.push('_');
    }
    out
}

fn is_reserved(name: &str) -> bool {
    let of = CONVERSIONS.iter().find_map(|conversion| name.strip_prefix(conversion)).unwrap_or(name);
    let scalar = of.split('_').next().unwrap_or(of).trim_end_matches(|c: char| c.is_ascii_digit());
    let is_type = of == name && scalar == name.trim_end_matches(|c: char| c.is_ascii_digit());
    RESERVED_WORDS.contains(name) || (SCALARS.contains(&scalar) && (is_type || of != name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_where_they_are_free() {
        let mut names = Names::default();
        assert_eq!(names.claim("src_w"), "src_w");
        assert_eq!(names.claim("src_w"), "src_w_1");
        assert_eq!(names.claim("step"), "step_");
        assert_eq!(names.claim("erf"), "erf_");
        assert_eq!(names.claim("half_recip"), "half_recip_");
        assert_eq!(names.claim("vload4"), "v_vload4");
        assert_eq!(names.claim("sub_group_size"), "v_sub_group_size");
        assert_eq!(names.claim("float4"), "float4_");
        assert_eq!(names.claim("kernel"), "kernel_");
        assert_eq!(names.claim("get_local_id"), "v_get_local_id");
        assert_eq!(names.claim("__modf_result_f32"), "modf_result_f32");
        assert_eq!(names.claim("convert_half4"), "convert_half4_");
        assert_eq!(names.claim("convert_int4_sat"), "convert_int4_sat_");
        assert_eq!(names.claim("convert_pack"), "convert_pack");
        assert_eq!(names.claim("half_sum"), "half_sum");
        assert_eq!(names.claim("été"), "ue9tue9");
        assert_eq!(names.claim(""), "v");
    }
}
