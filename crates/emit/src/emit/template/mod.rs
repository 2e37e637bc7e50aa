//! The language of kernels' templates, in comments of the language that they are written in.
//!
//! | in a text | |
//! |---|---|
//! | `//# ...` as a line | a note, which is not emitted |
//! | `//% ...` as a line, `/*% ... %*/` within one | a statement |
//! | `${...}` | the value of an expression |
//!
//! Statements: `set NAME = E`; `if E`, `elif E`, `else`, `endif`; `for NAMES in E` with `if E` for some of them,
//! `endfor`; `macro NAME(NAMES)`, `endmacro`; `include "NAME"`, which stands for that piece's text. Names that a loop
//! or a macro gives end with it, and a macro sees those from before it. In a loop, `loop.index0` counts from zero and
//! `loop.last` is 1 the last time.
//!
//! Expressions, those that bind least first: `E if E else E` (without `else` nothing), `or`, `and`, `not`,
//! `== != < <= > >= in`, `+ -`, `~` (joins texts), `* // %` (as Euclid divides), `**`, `- E`, `E | FILTER`,
//! `E is defined`, `E[E]`, calls, `[E, E]`, `(E, E)`. Filters: `trim`, `indent(N)` of all lines but the first and
//! empty ones, `min`, `reverse`. `range(END)`, `range(START, END)` and `range(START, END, STEP)` are known everywhere,
//! other functions are the caller's. Values are integers, texts and lists; 0, `""` and `[]` are false. What is unknown
//! is an error.

mod expression;
mod nodes;
mod render;
mod value;

pub(super) use render::render;
pub(super) use value::Value;

/// Functions that texts call, by name, with their arguments and those that are named.
pub(super) trait Functions {
    fn call(&self, name: &str, arguments: &[Value], named: &[(&str, Value)]) -> Result<Value, String>;
}

#[cfg(test)]
mod tests;
