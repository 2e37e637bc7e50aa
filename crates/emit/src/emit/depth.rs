//! How deeply a text in WGSL nests, and a stack that is large enough to read it on.
//!
//! naga and the drivers' compilers read, validate and write a text recursively: one call within another for each
//! operator, bracket and block within another. A few kilobytes of `!` end the process where the stack ends. So text from
//! outside the crate is looked at first: one that nests deeply is read on a thread with a large stack, and one that nests
//! beyond the bound is refused.

use crate::error::{Error, Result};
#[cfg(not(target_family = "wasm"))]
use crate::unwind::caught;

/// The most levels that a text may have: operators of one expression, brackets and blocks, and an `else` for each
/// `else if`.
#[cfg(not(target_family = "wasm"))]
pub(crate) const MAX_LEVELS: usize = 1024;
/// The most levels that a text may have in a web page, whose threads have a stack of fixed size: operators of one expression,
/// brackets and blocks, and an `else` for each `else if`.
#[cfg(target_family = "wasm")]
pub(crate) const MAX_LEVELS: usize = 256;

/// The most declarations of a module: one may need the next.
pub(crate) const MAX_DECLARATIONS: usize = 4096;

/// Levels and declarations that any thread's stack is large enough for.
#[cfg(not(target_family = "wasm"))]
const FEW: (usize, usize) = (48, 256);

/// The stack for more. A level was measured to take 1 to 9 KiB without optimisation, and here has 64; the system gives
/// only what is used.
#[cfg(not(target_family = "wasm"))]
const STACK: usize = 64 << 20;

/// Levels that a bracket counts for: reading what is in it takes a call for each precedence of operators.
const BRACKET: usize = 4;

/// How deeply a text nests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Depth {
    pub(crate) levels: usize,
    pub(crate) declarations: usize,
}

/// What is between two brackets, so far.
#[derive(Debug, Default)]
struct Open {
    /// Whether the brackets hold a block of statements, and not expressions separated by commas.
    is_block: bool,
    /// The deepest of the statements or expressions that are over.
    deepest: usize,
    /// Levels of what is left of the last operator.
    left: usize,
    /// Signs before the present operand, and levels within it.
    signs: usize,
    operand: usize,
    has_operand: bool,
    /// `else`s of the present chain; whether a block has just ended, which another may continue.
    elses: usize,
    after_block: bool,
}

impl Open {
    fn levels(&self) -> usize {
        self.deepest.max(self.left).max(self.signs + self.operand)
    }

    /// An expression or statement is over.
    fn separate(&mut self) {
        self.deepest = self.levels();
        (self.left, self.signs, self.operand, self.has_operand) = (0, 0, 0, false);
    }

    /// A sign before an operand, or an operator between two.
    fn operator(&mut self) {
        if self.has_operand {
            self.left = self.left.max(self.signs + self.operand) + 1;
            (self.signs, self.operand, self.has_operand) = (0, 0, false);
        } else {
            self.signs += 1;
        }
    }

    /// What was in brackets: an operand, or what follows one, as arguments or an index do.
    fn bracketed(&mut self, levels: usize) {
        self.operand = match self.has_operand {
            true => (self.operand + 1).max(levels),
            false => levels,
        };
        self.has_operand = true;
    }
}

impl Depth {
    /// How deeply `text` nests, which need not be WGSL. It is an upper bound, but for a few levels.
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut open = vec![Open { is_block: true, ..Open::default() }];
        let (mut at, mut declarations) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.starts_with(b"//") {
                at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                continue;
            }
            if rest.starts_with(b"/*") {
                at += comment(rest);
                continue;
            }
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
            let word = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            at += word.max(1);
            if byte.is_ascii_whitespace() {
                continue;
            }
            let outermost = open.len() == 1;
            let Some(own) = open.last_mut() else { break };
            let word = rest.get(..word).unwrap_or_default();
            if std::mem::take(&mut own.after_block) {
                own.elses = if word == b"else" { own.elses + 1 } else { 0 };
            }
            match byte {
                _ if !word.is_empty() => own.has_operand = true,
                b'(' | b'[' | b'{' => {
                    open.push(Open { is_block: byte == b'{', ..Open::default() });
                }
                b')' | b']' | b'}' => {
                    declarations += usize::from(byte == b'}' && open.len() == 2);
                    close(&mut open);
                }
                b';' | b',' | b':' => {
                    own.separate();
                    declarations += usize::from(byte == b';' && outermost);
                }
                b'.' if own.has_operand => own.operand += 1,
                b'@' => {}
                _ => own.operator(),
            }
        }
        while open.len() > 1 {
            close(&mut open);
        }
        Depth { levels: open.first().map_or(0, Open::levels), declarations }
    }
}

/// Ends the innermost brackets; without any, nothing.
fn close(open: &mut Vec<Open>) {
    if open.len() < 2 {
        return;
    }
    let Some(ended) = open.pop() else { return };
    let Some(own) = open.last_mut() else { return };
    let levels = ended.levels() + BRACKET;
    if ended.is_block {
        own.separate();
        own.deepest = own.deepest.max(levels + own.elses);
        own.after_block = true;
    } else {
        own.bracketed(levels);
    }
}

/// The length of the comment that `text` begins with. Comments nest.
fn comment(text: &[u8]) -> usize {
    let (mut nested, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(b"/*") {
            (nested, at) = (nested + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (nested, at) = (nested.saturating_sub(1), at + 2);
            if nested == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Refuses a text that nests too deeply.
fn checked(label: &str, text: &str) -> Result<Depth> {
    let depth = Depth::of(text);
    if depth.levels > MAX_LEVELS {
        return Err(Error::input(
            format!("kernel {label:?}"),
            format!("operators, brackets and blocks within one another, {} levels of them", depth.levels),
            format!(
                "at most {MAX_LEVELS}: give parts of long expressions names with `let`, and write long chains of \
                 `else if` as `switch`"
            ),
        ));
    }
    if depth.declarations > MAX_DECLARATIONS {
        let found = format!("{} declarations", depth.declarations);
        return Err(Error::input(format!("kernel {label:?}"), found, format!("at most {MAX_DECLARATIONS}")));
    }
    Ok(depth)
}

/// Does `work`, which reads the foreign `text`, where the stack is large enough for it.
///
/// # Errors
/// If the text nests too deeply, the system gives no such stack, or what reads the text panics.
#[cfg(not(target_family = "wasm"))]
pub fn on_large_stack<T: Send>(
    label: &str,
    text: &str,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let Depth { levels, declarations } = checked(label, text)?;
    let work = move || caught(format!("a reader of kernel {label:?}"), work)?;
    if levels <= FEW.0 && declarations <= FEW.1 {
        return work();
    }
    #[expect(clippy::disallowed_methods, reason = "a deep text wants a large stack")]
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("diptych shader".to_owned()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, work).map_err(|error| {
            Error::Internal(format!("no thread with a stack of {STACK} bytes for kernel {label:?}: {error}"))
        })?;
        let died = |_| Err(Error::Internal(format!("the thread that read kernel {label:?} died")));
        thread.join().unwrap_or_else(died)
    })
}

/// Calls `work` on this thread: a web page cannot start one with a larger stack, so [`MAX_LEVELS`] is what its own stack is large
/// enough for.
#[cfg(target_family = "wasm")]
pub fn on_large_stack<T>(label: &str, text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    checked(label, text)?;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str) -> usize {
        Depth::of(text).levels
    }

    /// How much an expression adds to the levels of the function that it stands in.
    fn expression(text: &str) -> usize {
        levels(&format!("fn f() {{ x = {text}; }}")) - BRACKET
    }

    #[test]
    fn each_operator_of_an_expression_is_a_level() {
        assert_eq!(expression("a"), 1);
        assert_eq!(expression(&"!".repeat(100)), 100);
        assert_eq!(expression(&format!("{}a", "- ".repeat(100))), 100);
        assert_eq!(expression(&format!("{}a", "*&".repeat(100))), 200);
        for more in ["+x[i]", "^i", "||(x[i]>0.0)", ".x", "[0]", "&&a", "<<1u", "*f(a, b)"] {
            let found = expression(&format!("a{}", more.repeat(100)));
            assert!((100..=210).contains(&found), "{more}: {found}");
        }
        assert!(expression(&format!("{}a{}", "(".repeat(100), ")".repeat(100))) >= 100 * BRACKET);
        assert!(expression(&format!("{}a{}", "f(b, ".repeat(100), ")".repeat(100))) >= 100 * BRACKET);
        assert!(expression(&format!("1 + {}a{}", "(-".repeat(100), ")".repeat(100))) >= 100 * (BRACKET + 1));
    }

    #[test]
    fn what_stands_side_by_side_is_no_deeper_than_its_deepest_part() {
        assert_eq!(levels(&"fn f() { x = a + b; }\n".repeat(300)), levels("fn f() { x = a + b; }"));
        let statements =
            |count: usize| levels(&format!("fn f() {{ {} }}", "x = a * b + c[i];".repeat(count)));
        assert_eq!(statements(1), statements(1000));
        assert_eq!(expression(&format!("f({})", "a + b, ".repeat(100))), expression("f(a + b)"));
        let blocks = |count: usize| levels(&format!("fn f() {{ {} }}", "if a { b(); }".repeat(count)));
        assert_eq!(blocks(1), blocks(1000));
    }

    #[test]
    fn each_else_if_is_a_level() {
        let chain = |count: usize| {
            levels(&format!("fn f() {{ if a {{ }}{} else {{ }} }}", " else if b { c(); }".repeat(count)))
        };
        assert_eq!(chain(500), chain(100) + 400);
    }

    #[test]
    fn comments_and_damage_count_for_nothing() {
        let plain = "fn f() { x = a; }";
        for text in [
            format!("// {}\n{plain}", "(".repeat(5000)),
            format!("/* {} /* */ */ {plain}", "(".repeat(5000)),
            format!("{plain} {}", ")".repeat(5000)),
            format!("{plain} /* {}", "!".repeat(5000)),
        ] {
            assert_eq!(levels(&text), levels(plain));
        }
        assert_eq!(levels(""), 0);
        assert!(levels(&"{".repeat(100)) >= 100);
        assert_eq!(Depth::of(&"const a = 1;".repeat(70)).declarations, 70);
        assert_eq!(Depth::of(&"fn f() { g(); h(); }".repeat(70)).declarations, 70);
    }

    #[test]
    fn what_is_too_deep_is_refused_with_both_numbers() {
        let deep = |count: usize| format!("fn f() {{ x = {}a; }}", "!".repeat(count));
        assert_eq!(on_large_stack("k", &deep(MAX_LEVELS - BRACKET), || Ok(7)).expect("taken"), 7);
        let error = on_large_stack("k", &deep(5000), || Ok(7)).expect_err("too deep").to_string();
        assert!(error.contains("5004 levels") && error.contains("at most 1024"), "{error}");
        let many = "const a = 1;".repeat(MAX_DECLARATIONS + 1);
        let error = on_large_stack("k", &many, || Ok(7)).expect_err("too many").to_string();
        assert!(error.contains("4097 declarations"), "{error}");
    }
}
