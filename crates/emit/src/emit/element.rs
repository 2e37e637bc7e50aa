//! A function of each element of a result, which a kernel calls behind its epilogue.

use super::Operand;

/// A function of vec4s in f32 that a kernel calls with each value before it stores it. `x0` is what its epilogue gives, `x1`, `x2`, ... are
/// numbers of the same channels and then elements of the same places, `f0`, `f1`, ... are scalars of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ElementFunction {
    /// Statements of WGSL, the last of which returns the result.
    pub statements: Vec<String>,
    /// Which functions of `shaders/shared/functions.wgsl` they call.
    pub calls: Vec<&'static str>,
    /// The operands that `x1`, ... are elements of: vec4s for each slice of channels.
    pub channels: Vec<Operand>,
    /// The operands that those behind them are elements of, which lie where the result does.
    pub elements: Vec<Operand>,
    /// How many scalars there are.
    pub scalars: usize,
}

/// Its name in a kernel's text.
pub(super) const NAME: &str = "of_element";

/// Names of scalars of a kernel's element function.
pub const SCALARS: [&str; 16] =
    ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15"];

impl ElementFunction {
    /// How many operands it reads beside the result.
    const fn operands(&self) -> usize {
        self.channels.len() + self.elements.len()
    }

    /// The function in WGSL.
    pub(super) fn wgsl(&self) -> String {
        let vectors = (0..=self.operands()).map(|place| format!("x{place}: vec4<f32>"));
        let scalars = SCALARS.iter().take(self.scalars).map(|name| format!("{name}: f32"));
        let arguments: Vec<String> = vectors.chain(scalars).collect();
        let statements: String = self.statements.iter().map(|line| format!("    {line}\n")).collect();
        format!("fn {NAME}({}) -> vec4<f32> {{\n{statements}}}\n\n", arguments.join(", "))
    }

    /// The function with `functions`, which it calls, in OpenCL C; their names begin with the function's own there, since a
    /// kernel that is written in OpenCL C may have others of these names.
    ///
    /// # Errors
    /// If the writer refuses the text.
    #[cfg(feature = "shaders")]
    pub(super) fn opencl(&self, functions: &str) -> crate::error::Result<String> {
        let mut text = functions.to_owned() + &self.wgsl();
        let names: Vec<String> = functions
            .split("fn ")
            .skip(1)
            .filter_map(|rest| rest.split_once('(').map(|(name, _)| name.to_owned()))
            .collect();
        for name in names {
            text = renamed(&text, &name, &format!("{NAME}_{name}"));
        }
        // The writer prints entry points with what they call.
        let vectors = (0..=self.operands()).map(|place| format!("x[{place}u]"));
        let scalars = (0..self.scalars).map(|place| format!("x[0u][{}u]", place % 4));
        let arguments: Vec<String> = vectors.chain(scalars).collect();
        let entry = format!(
            "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;\n\
             @compute @workgroup_size(1)\nfn {NAME}_caller() {{\n    y[0u] = {NAME}({});\n}}\n",
            arguments.join(", ")
        );
        let options = super::opencl::Options { checked: false, halves: true, fixed_work_group: true };
        let printed = super::opencl::print(NAME, &(text + &entry), &format!("{NAME}_caller"), options)?;
        // The functions stand before the entry point.
        let before = printed.text.split("__kernel").next().unwrap_or_default();
        Ok(before.to_owned())
    }
}

/// `text` with each call and the declaration of the function `name` as those of `new`.
#[cfg(feature = "shaders")]
fn renamed(text: &str, name: &str, new: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, found) = rest.split_at(at);
        let behind = &found[name.len()..];
        let whole = before.bytes().next_back().is_none_or(|byte| !is_word(byte)) && behind.starts_with('(');
        out.push_str(before);
        out.push_str(if whole { new } else { name });
        rest = behind;
    }
    out + rest
}

#[cfg(all(test, feature = "shaders"))]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_printed_with_what_it_calls_under_names_of_its_own() {
        let function = ElementFunction {
            statements: vec![
                "let s0: vec4<f32> = select(x0, x1, is_nan(x0));".to_owned(),
                "return s0 * vec4<f32>(f0);".to_owned(),
            ],
            calls: vec!["is_nan"],
            channels: vec![Operand::Arg(1)],
            elements: Vec::new(),
            scalars: 1,
        };
        let functions = "fn is_nan(x: vec4<f32>) -> vec4<bool> {\n    return (bitcast<vec4<u32>>(x) & \
                         vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);\n}\n";
        let text = function.opencl(functions).expect("the writer knows all of it");
        assert!(text.contains("of_element_is_nan(") && !text.contains(" is_nan("), "{text}");
        assert!(text.contains("of_element(") && !text.contains("__kernel"), "{text}");
    }
}
