//! Built-in functions.

use super::expressions::{Body, Text, is_half};
use super::places::LANES;
use super::types;
use super::{Outcome, refuse};
use naga::{Expression, Handle, MathFunction, ScalarKind, TypeInner};

/// Functions of floats that OpenCL C has by another name or the same.
fn same(function: MathFunction) -> Option<&'static str> {
    use MathFunction as M;
    Some(match function {
        M::Cos => "cos",
        M::Cosh => "cosh",
        M::Sin => "sin",
        M::Sinh => "sinh",
        M::Tan => "tan",
        M::Tanh => "tanh",
        M::Acos => "acos",
        M::Asin => "asin",
        M::Atan => "atan",
        M::Atan2 => "atan2",
        M::Asinh => "asinh",
        M::Acosh => "acosh",
        M::Atanh => "atanh",
        M::Radians => "radians",
        M::Degrees => "degrees",
        M::Ceil => "ceil",
        M::Floor => "floor",
        M::Round => "rint",
        M::Trunc => "trunc",
        M::Ldexp => "ldexp",
        M::Exp => "exp",
        M::Exp2 => "exp2",
        M::Log => "log",
        M::Log2 => "log2",
        M::Pow => "pow",
        M::Cross => "cross",
        M::Distance => "distance",
        M::Length => "length",
        M::Normalize => "normalize",
        M::Fma => "mad",
        M::Mix => "mix",
        M::Step => "step",
        M::SmoothStep => "smoothstep",
        M::Sqrt => "sqrt",
        M::InverseSqrt => "rsqrt",
        _ => return None,
    })
}

impl Body<'_, '_> {
    pub(super) fn math(
        &mut self,
        handle: Handle<Expression>,
        function: MathFunction,
        arguments: &[Handle<Expression>],
    ) -> Outcome<Text> {
        use MathFunction as M;
        let &[first, ..] = arguments else { return refuse(None, "a function of nothing") };
        let kind = self.scalar_kind(first);
        let ty = self.type_of(first)?;
        let texts = arguments.iter().map(|one| self.expression(*one)).collect::<Outcome<Vec<_>>>()?;
        let joined = texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>().join(", ");
        let call = |name: &str| Ok(Text::atom(format!("{name}({joined})")));
        let x = &texts[0];
        match (function, kind) {
            (M::Abs, Some(ScalarKind::Float)) => call("fabs"),
            (M::Abs, Some(ScalarKind::Sint)) => Ok(Text::atom(format!("as_{ty}(abs({}))", x.text))),
            (M::Abs, _) => Ok(x.clone()),
            // OpenCL C says nothing of `min` and `max` where an operand is no number.
            (M::Min, Some(ScalarKind::Float)) if self.m.options.checked => call("fmin"),
            (M::Max, Some(ScalarKind::Float)) if self.m.options.checked => call("fmax"),
            (M::Clamp, Some(ScalarKind::Float)) if self.m.options.checked => {
                let [low, high] = [&texts[1].text, &texts[2].text];
                Ok(Text::atom(format!("fmin(fmax({}, {low}), {high})", x.text)))
            }
            (M::Min, _) => call("min"),
            (M::Max, _) => call("max"),
            (M::Clamp, Some(ScalarKind::Float)) => call("clamp"),
            // Where the bounds are crossed, the upper one holds.
            (M::Clamp, _) => {
                Ok(Text::atom(format!("min(max({}, {}), {})", x.text, texts[1].text, texts[2].text)))
            }
            (M::Saturate, _) => Ok(Text::atom(format!("clamp({}, ({ty})(0.0f), ({ty})(1.0f))", x.text))),
            (M::Sign, Some(ScalarKind::Float)) => call("sign"),
            (M::Sign, _) => Ok(Text::atom(format!("clamp({}, ({ty})(-1), ({ty})(1))", x.text))),
            (M::Dot, Some(ScalarKind::Float)) if self.scalar_of(first).is_some_and(|of| !is_half(of)) => {
                call("dot")
            }
            (M::CountOneBits, _) => call("popcount"),
            (M::CountLeadingZeros, _) => call("clz"),
            _ => match same(function) {
                Some(name) => call(name),
                None => self.helped(handle, function, arguments, &ty, &joined, x),
            },
        }
    }

    /// The functions that OpenCL C lacks.
    fn helped(
        &mut self,
        handle: Handle<Expression>,
        function: MathFunction,
        arguments: &[Handle<Expression>],
        ty: &str,
        joined: &str,
        x: &Text,
    ) -> Outcome<Text> {
        use MathFunction as M;
        let size = match *self.inner(arguments[0]) {
            TypeInner::Vector { size, .. } => size as usize,
            _ => 1,
        };
        let signed = self.scalar_kind(arguments[0]) == Some(ScalarKind::Sint);
        let lanes = &LANES[..size];
        let result = self.type_of(handle)?;
        let cast = |value: String| if signed { format!("as_{ty}({value})") } else { value };
        let bits = if signed { format!("as_u{ty}(x)") } else { "x".to_owned() };
        let unsigned = if signed { format!("u{ty}") } else { ty.to_owned() };
        let (parameters, body) = match function {
            M::Fract => (vec!["x"], "    return x - floor(x);\n".to_owned()),
            M::Dot => {
                let terms = |side: &str, lane: &str| {
                    let scalar = ty.trim_end_matches(|c: char| c.is_ascii_digit());
                    if signed { format!("as_u{scalar}({side}.{lane})") } else { format!("{side}.{lane}") }
                };
                let sum: Vec<_> =
                    lanes.iter().map(|lane| format!("{} * {}", terms("x", lane), terms("y", lane))).collect();
                let sum = sum.join(" + ");
                let sum = if signed { format!("as_{result}({sum})") } else { sum };
                (vec!["x", "y"], format!("    return {sum};\n"))
            }
            M::Dot4I8Packed | M::Dot4U8Packed => (vec!["x", "y"], dot_of_bytes(function == M::Dot4I8Packed)),
            M::FaceForward => (vec!["x", "i", "n"], "    return dot(n, i) < 0.0f ? x : -x;\n".to_owned()),
            M::Reflect => (vec!["x", "n"], "    return x - 2.0f * dot(n, x) * n;\n".to_owned()),
            M::Refract => (
                vec!["x", "n", "ratio"],
                format!(
                    "    const float d = dot(n, x);\n    const float k = 1.0f - ratio * ratio * (1.0f - d * d);\n    return k < 0.0f ? ({ty})(0.0f) : ratio * x - (ratio * d + sqrt(k)) * n;\n"
                ),
            ),
            M::QuantizeToF16 => {
                let each = |lane: &str| {
                    let of = if size == 1 { "x".to_owned() } else { format!("x.{lane}") };
                    format!(
                        "    vstore_half_rte({of}, 0, (half*)&bits);\n    result{} = vload_half(0, (const half*)&bits);\n",
                        if size == 1 { String::new() } else { format!(".{lane}") }
                    )
                };
                let lines: String = lanes.iter().map(|lane| each(lane)).collect();
                (vec!["x"], format!("    ushort bits;\n    {ty} result;\n{lines}    return result;\n"))
            }
            M::CountTrailingZeros => {
                let value = cast(format!("popcount(~{bits} & ({bits} - 1u))"));
                (vec!["x"], format!("    return {value};\n"))
            }
            M::ReverseBits => {
                let mut lines = format!("    {unsigned} b = {bits};\n");
                for (shift, mask) in
                    [(1, "0x55555555u"), (2, "0x33333333u"), (4, "0x0f0f0f0fu"), (8, "0x00ff00ffu")]
                {
                    lines += &format!("    b = ((b >> {shift}u) & {mask}) | ((b & {mask}) << {shift}u);\n");
                }
                lines += &format!("    return {};\n", cast("(b >> 16u) | (b << 16u)".to_owned()));
                (vec!["x"], lines)
            }
            M::FirstLeadingBit => {
                let of = if signed { format!("as_u{ty}(x ^ (x >> 31))") } else { "x".to_owned() };
                (vec!["x"], format!("    return {};\n", cast(format!("31u - clz({of})"))))
            }
            M::FirstTrailingBit => {
                let count = format!("popcount(~{bits} & ({bits} - 1u))");
                // 32 where there is none, which is all bits set: 31 - (31 - 32).
                let value = match size {
                    1 => format!("({bits} == 0u ? 0xffffffffu : {count})"),
                    _ => format!("select({count}, ({unsigned})(0xffffffffu), {bits} == 0u)"),
                };
                (vec!["x"], format!("    return {};\n", cast(value)))
            }
            M::ExtractBits => (vec!["x", "offset", "count"], extract(ty, signed)),
            M::InsertBits => (vec!["x", "y", "offset", "count"], insert(ty, &unsigned, signed)),
            M::Outer => {
                let columns = match *self.inner(arguments[1]) {
                    TypeInner::Vector { size, .. } => size as usize,
                    _ => 1,
                };
                let lines: String =
                    (0..columns).map(|c| format!("    result.c[{c}] = x * y.{};\n", LANES[c])).collect();
                (vec!["x", "y"], format!("    {result} result;\n{lines}    return result;\n"))
            }
            M::Transpose => return self.transpose(handle, arguments[0], x),
            M::Determinant => (vec!["x"], determinant(self.inner(arguments[0]))?),
            M::Modf | M::Frexp => return self.parted(handle, function, ty, x),
            other => return self.packing(other, x),
        };
        let mut types = Vec::new();
        for argument in arguments {
            types.push(self.type_of(*argument)?);
        }
        let name = format!("wgsl_{}_{}", format!("{function:?}").to_lowercase(), types.join("_"));
        let list: Vec<_> =
            types.iter().zip(parameters).map(|(ty, name)| format!("const {ty} {name}")).collect();
        let text = format!("static {result} {name}({}) {{\n{body}}}\n", list.join(", "));
        self.m.helper(&name, text);
        Ok(Text::atom(format!("{name}({joined})")))
    }

    fn transpose(&mut self, handle: Handle<Expression>, of: Handle<Expression>, x: &Text) -> Outcome<Text> {
        let &TypeInner::Matrix { columns, rows, scalar } = self.inner(of) else {
            return refuse(None, "the transpose of what is no matrix");
        };
        let (from, to) = (self.type_of(of)?, self.type_of(handle)?);
        let column = types::vector(columns, scalar)?;
        let lines: String = (0..rows as usize)
            .map(|row| {
                let lanes: Vec<_> = (0..columns as u8).map(|c| format!("x.c[{c}].{}", LANES[row])).collect();
                format!("    result.c[{row}] = ({column})({});\n", lanes.join(", "))
            })
            .collect();
        let name = format!("wgsl_transpose_{from}");
        self.m.helper(
            &name,
            format!(
                "static {to} {name}(const {from} x) {{\n    {to} result;\n{lines}    return result;\n}}\n"
            ),
        );
        Ok(Text::atom(format!("{name}({})", x.text)))
    }

    /// `modf` and `frexp`, which give a struct in WGSL.
    fn parted(
        &mut self,
        handle: Handle<Expression>,
        function: MathFunction,
        ty: &str,
        x: &Text,
    ) -> Outcome<Text> {
        let Some(of) = self.handle_of_type(handle) else { return refuse(None, "a struct without a type") };
        let result = self.m.type_name(of)?;
        let (first, second) =
            (self.m.types.member(of, 0)?.to_owned(), self.m.types.member(of, 1)?.to_owned());
        let word = if function == MathFunction::Modf { "modf" } else { "frexp" };
        let other = if word == "modf" { ty.to_owned() } else { ty.replace("float", "int") };
        let name = format!("wgsl_{word}_{ty}");
        self.m.helper(
            &name,
            format!(
                "static {result} {name}(const {ty} x) {{\n    {result} result;\n    {other} second;\n    result.{first} = {word}(x, &second);\n    result.{second} = second;\n    return result;\n}}\n"
            ),
        );
        Ok(Text::atom(format!("{name}({})", x.text)))
    }
}

/// `count` bits from `offset` on, both cut off at the width.
fn extract(ty: &str, signed: bool) -> String {
    // A shift by the whole width would be one by nothing.
    let last = if signed { format!("({ty})(0)") } else { format!("({ty})(0u)") };
    format!(
        "    const uint o = min(offset, 32u);\n    const uint c = min(count, 32u - o);\n    return c == 0u ? {last} : (x << (32u - o - c)) >> (32u - c);\n"
    )
}

fn insert(ty: &str, unsigned: &str, signed: bool) -> String {
    let (x, y) = if signed {
        (format!("as_{unsigned}(x)"), format!("as_{unsigned}(y)"))
    } else {
        ("x".into(), "y".into())
    };
    let value = format!("(({x} & ~mask) | (({y} << o) & mask))");
    let value = if signed { format!("as_{ty}({value})") } else { value };
    format!(
        "    const uint o = min(offset, 32u);\n    const uint c = min(count, 32u - o);\n    const uint mask = c == 0u ? 0u : (0xffffffffu >> (32u - c)) << o;\n    return {value};\n"
    )
}

fn determinant(of: &TypeInner) -> Outcome<String> {
    let TypeInner::Matrix { columns, .. } = of else {
        return refuse(None, "the determinant of what is no matrix");
    };
    let minor = |a: &str, b: &str, r: usize, s: usize| {
        format!("({a}.{0} * {b}.{1} - {a}.{1} * {b}.{0})", LANES[r], LANES[s])
    };
    Ok(match *columns as usize {
        2 => format!("    return {};\n", minor("x.c[0]", "x.c[1]", 0, 1)),
        3 => "    return dot(x.c[0], cross(x.c[1], x.c[2]));\n".to_owned(),
        _ => {
            // By pairs of columns: the minors of the first two times those of the last two.
            let pairs = [
                (0, 1, 2, 3, '+'),
                (0, 2, 1, 3, '-'),
                (0, 3, 1, 2, '+'),
                (1, 2, 0, 3, '+'),
                (1, 3, 0, 2, '-'),
                (2, 3, 0, 1, '+'),
            ];
            let terms: Vec<_> = pairs
                .iter()
                .map(|&(a, b, c, d, sign)| {
                    format!(
                        "{sign} {} * {}",
                        minor("x.c[0]", "x.c[1]", a, b),
                        minor("x.c[2]", "x.c[3]", c, d)
                    )
                })
                .collect();
            format!("    return 0.0f {};\n", terms.join(" "))
        }
    })
}

/// The sum of the products of four bytes. A device has an instruction for it, says the extension `cl_khr_integer_dot_product`, or
/// who compiles the text, by defining `NAGA_OPENCL_DP4A`: NVIDIA's devices of compute capability 6.1 and later have PTX's `dp4a`.
fn dot_of_bytes(signed: bool) -> String {
    let (letter, int, name) = if signed { ("s", "int", "char") } else { ("u", "uint", "uchar") };
    format!(
        "#if defined(__opencl_c_integer_dot_product_input_4x8bit_packed)\n    \
         return dot_4x8packed_{letter}{letter}_{int}(x, y);\n\
         #elif defined(NAGA_OPENCL_DP4A)\n    \
         {int} sum;\n    \
         __asm(\"dp4a.{letter}32.{letter}32 %0, %1, %2, 0;\" : \"=r\"(sum) : \"r\"(x), \"r\"(y));\n    \
         return sum;\n\
         #else\n    \
         const {int}4 products = convert_{int}4(as_{name}4(x)) * convert_{int}4(as_{name}4(y));\n    \
         return products.x + products.y + products.z + products.w;\n\
         #endif\n"
    )
}
