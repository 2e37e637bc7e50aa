//! Values packed into 32 bits.

use super::expressions::{Body, Text};
use super::{Outcome, refuse};
use naga::{
    AddressSpace, BinaryOperator, Expression, Handle, MathFunction, Scalar, SwizzleComponent, TypeInner,
    VectorSize,
};

/// Halves are looked at as lanes as wide as they are: compilers see through a pointer to such to the
/// register, and a load of four is one of eight bytes. See [`crate::emit::halves`].
const UNPACK_HALF4: &str = "\
static float4 wgsl_unpack_half4(const uint2 bits) {
    const ushort4 halves = as_ushort4(bits);
    return vload_half4(0, (const half*)&halves);
}
";
const PACK_HALF4: &str = "\
static uint2 wgsl_pack_half4(const float4 value) {
    ushort4 halves;
    vstore_half4_rte(value, 0, (half*)&halves);
    return as_uint2(halves);
}
";
const UNPACK_HALF2: &str = "\
static float2 wgsl_unpack_half2(const uint bits) {
    const ushort2 halves = as_ushort2(bits);
    return vload_half2(0, (const half*)&halves);
}
";
const PACK_HALF2: &str = "\
static uint wgsl_pack_half2(const float2 value) {
    ushort2 halves;
    vstore_half2_rte(value, 0, (half*)&halves);
    return as_uint(halves);
}
";

impl Body<'_, '_> {
    /// Four halves in two words, packed or unpacked at once.
    pub(super) fn packed_halves(
        &mut self,
        handle: Handle<Expression>,
        components: &[Handle<Expression>],
    ) -> Outcome<Option<Text>> {
        let &[low, high] = components else { return Ok(None) };
        let quad = TypeInner::Vector { size: VectorSize::Quad, scalar: Scalar::F32 };
        let pair = TypeInner::Vector { size: VectorSize::Bi, scalar: Scalar::U32 };
        let from = |function: MathFunction| {
            Some((self.math_argument(low, function)?, self.math_argument(high, function)?))
        };
        if *self.inner(handle) == quad
            && let Some((low, high)) = from(MathFunction::Unpack2x16float)
            && let Expression::AccessIndex { base, index: 0 } = self.function.expressions[low]
            && let Expression::AccessIndex { base: other, index: 1 } = self.function.expressions[high]
            && base == other
            && *self.inner(base) == pair
        {
            let bits = self.expression(base)?;
            self.m.helper("wgsl_unpack_half4", UNPACK_HALF4.to_owned());
            return Ok(Some(Text::atom(format!("wgsl_unpack_half4({})", bits.text))));
        }
        let half_of = |handle: Handle<Expression>, wanted: [SwizzleComponent; 2]| match self
            .function
            .expressions[handle]
        {
            Expression::Swizzle { size: VectorSize::Bi, vector, pattern } => {
                (pattern[..2] == wanted[..] && *self.inner(vector) == quad).then_some(vector)
            }
            _ => None,
        };
        if *self.inner(handle) == pair
            && let Some((low, high)) = from(MathFunction::Pack2x16float)
            && let Some(vector) = half_of(low, [SwizzleComponent::X, SwizzleComponent::Y])
            && half_of(high, [SwizzleComponent::Z, SwizzleComponent::W]) == Some(vector)
        {
            let value = self.expression(vector)?;
            self.m.helper("wgsl_pack_half4", PACK_HALF4.to_owned());
            return Ok(Some(Text::atom(format!("wgsl_pack_half4({})", value.text))));
        }
        Ok(None)
    }

    /// One of two halves that are unpacked from memory, chosen at run time: it is loaded alone.
    pub(super) fn unpacked_half(
        &mut self,
        of: Handle<Expression>,
        index: Handle<Expression>,
    ) -> Outcome<Option<Text>> {
        let Some(word) = self.math_argument(of, MathFunction::Unpack2x16float) else { return Ok(None) };
        let Expression::Load { pointer } = self.function.expressions[word] else { return Ok(None) };
        let in_buffer = matches!(*self.inner(pointer),
            TypeInner::Pointer { space, .. } | TypeInner::ValuePointer { space, .. }
                if matches!(space, AddressSpace::Storage { .. }));
        // The lane of a vector has no address in OpenCL C.
        let lane = matches!(self.function.expressions[pointer], Expression::AccessIndex { base, .. }
            if self.pointee(base).is_ok_and(|inner| matches!(*inner, TypeInner::Vector { .. })));
        if self.values.contains_key(&word) || !in_buffer || lane {
            return Ok(None);
        }
        let space = self.qualifier(pointer)?;
        if let Some((vector, array, half)) = self.half_of_pair(pointer, index)
            && let Expression::GlobalVariable(handle) = self.function.expressions[array]
            && let Some(name) =
                self.m.globals.get(&handle).filter(|known| known.plain).map(|k| k.name.clone())
        {
            let (vector, half) = (self.index(vector, array)?, self.expression(half)?);
            let half = if self.m.options.checked { format!("min({}, 3u)", half.text) } else { half.wrap(4) };
            return Ok(Some(Text::atom(format!(
                "vload_half(4u * ({vector}) + {half}, ({space}half*){name})"
            ))));
        }
        let (place, index) = (self.place(pointer)?, self.expression(index)?.text);
        let index = if self.m.options.checked { format!("min((uint)({index}), 1u)") } else { index };
        Ok(Some(Text::atom(format!("vload_half({index}, ({space}half*)&{})", place.wrap(0)))))
    }

    /// The vector, its array and the half, of `array[vector][half / 2]` and the one of its halves `half % 2`.
    fn half_of_pair(
        &self,
        pointer: Handle<Expression>,
        index: Handle<Expression>,
    ) -> Option<(Handle<Expression>, Handle<Expression>, Handle<Expression>)> {
        let expressions = &self.function.expressions;
        let by_two = |handle: Handle<Expression>, wanted: BinaryOperator| match expressions[handle] {
            Expression::Binary { op, left, right }
                if op == wanted
                    && self.literal_index(right) == Some(2)
                    && !self.values.contains_key(&handle) =>
            {
                Some(left)
            }
            _ => None,
        };
        let Expression::Access { base, index: word } = expressions[pointer] else { return None };
        let Expression::Access { base: array, index: vector } = expressions[base] else { return None };
        let half = by_two(word, BinaryOperator::Divide)?;
        let pair = TypeInner::Vector { size: VectorSize::Bi, scalar: Scalar::U32 };
        let of_pairs = self.pointee(base).is_ok_and(|inner| *inner == pair);
        (by_two(index, BinaryOperator::Modulo)? == half && of_pairs).then_some((vector, array, half))
    }

    /// A built-in function that packs or unpacks.
    pub(super) fn packing(&mut self, function: MathFunction, x: &Text) -> Outcome<Text> {
        use MathFunction as M;
        let x = &x.text;
        // WGSL rounds halves up, whatever the rounding mode.
        let normalised = |vector: &str, bytes: &str, size: u8, low: &str, high: &str| {
            format!(
                "as_uint(convert_{bytes}(floor(0.5f + {high} * clamp({x}, ({vector}{size})({low}), ({vector}{size})(1.0f)))))"
            )
        };
        let text = match function {
            M::Pack4x8snorm => normalised("float", "char4", 4, "-1.0f", "127.0f"),
            M::Pack4x8unorm => normalised("float", "uchar4", 4, "0.0f", "255.0f"),
            M::Pack2x16snorm => normalised("float", "short2", 2, "-1.0f", "32767.0f"),
            M::Pack2x16unorm => normalised("float", "ushort2", 2, "0.0f", "65535.0f"),
            M::Pack4xI8 => format!("as_uint(convert_uchar4(as_uint4({x}) & 255u))"),
            M::Pack4xU8 => format!("as_uint(convert_uchar4(({x}) & 255u))"),
            M::Pack4xI8Clamp => format!("as_uint(convert_char4_sat({x}))"),
            M::Pack4xU8Clamp => format!("as_uint(convert_uchar4_sat({x}))"),
            M::Unpack4x8snorm => {
                format!("max(convert_float4(as_char4({x})) / 127.0f, (float4)(-1.0f))")
            }
            M::Unpack4x8unorm => format!("(convert_float4(as_uchar4({x})) / 255.0f)"),
            M::Unpack2x16snorm => {
                format!("max(convert_float2(as_short2({x})) / 32767.0f, (float2)(-1.0f))")
            }
            M::Unpack2x16unorm => format!("(convert_float2(as_ushort2({x})) / 65535.0f)"),
            M::Unpack4xI8 => format!("convert_int4(as_char4({x}))"),
            M::Unpack4xU8 => format!("convert_uint4(as_uchar4({x}))"),
            M::Unpack2x16float => {
                self.m.helper("wgsl_unpack_half2", UNPACK_HALF2.to_owned());
                format!("wgsl_unpack_half2({x})")
            }
            M::Pack2x16float => {
                self.m.helper("wgsl_pack_half2", PACK_HALF2.to_owned());
                format!("wgsl_pack_half2({x})")
            }
            other => return refuse(None, format!("the function {other:?}")),
        };
        Ok(Text::atom(text))
    }
}
