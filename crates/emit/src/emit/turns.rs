//! How often the loops of a kernel are taken by one invocation, and loops with several turns in one.
//!
//! Mesa's llvmpipe ends every loop of an invocation when all of its loops together have made 65,535 turns, and says
//! nothing (`LP_MAX_TGSI_LOOP_ITERATIONS` of Mesa's `gallivm`). A kernel that makes more on such a device gets its
//! loops' bodies several times over, each behind the loop's own condition. Nothing else may change a text, so that
//! those of other devices and of ordinary extents are as they are written.

mod range;

pub use range::Range;
use std::ops::Range as Span;

/// What is known of a name in a text.
pub(crate) type RangeOf<'a> = &'a dyn Fn(&str) -> Option<Range>;

/// The most copies of a loop's body.
const MOST_COPIES: u64 = 256;

/// The most bytes of a text with its copies.
const MOST_BYTES: usize = 128 << 10;

/// A `for` loop: where its parts are in the text, how many turns it makes at most, and those within.
#[derive(Debug)]
struct Loop {
    condition: Span<usize>,
    update: Span<usize>,
    body: Span<usize>,
    turns: u64,
    copies: u64,
    inner: Vec<Loop>,
}

impl Loop {
    /// Turns of this loop and those within.
    fn all(&self) -> u64 {
        let inner: u64 = self.inner.iter().map(Loop::all).fold(0, u64::saturating_add);
        self.turns.div_ceil(self.copies).saturating_add(self.turns.saturating_mul(inner))
    }

    /// Gives loops copies so that there are at most so many turns, the innermost first. A loop with `continue` stays.
    fn limit(&mut self, text: &str, most: u64) {
        if self.all() <= most {
            return;
        }
        let count = self.inner.len().max(1) as u64;
        let share = (most / self.turns.max(1)).max(1) / count;
        self.inner.iter_mut().for_each(|inner| inner.limit(text, share.max(1)));
        let of_inner = self.all() - self.turns.div_ceil(self.copies);
        let continues = text[self.body.clone()].contains("continue;");
        if self.all() > most && !continues {
            let left = most.saturating_sub(of_inner).max(1);
            self.copies = self.turns.div_ceil(left).next_power_of_two().min(MOST_COPIES);
        }
    }

    fn list(&self, copies: &mut Vec<u64>) {
        copies.push(self.copies);
        self.inner.iter().for_each(|inner| inner.list(copies));
    }
}

/// How many copies each loop of the kernel function `entry` of `text` needs, in the order of the text, for an
/// invocation to make at most so many turns; `None` if none needs any.
///
/// # Errors
/// If copies do not help: how many turns there are.
pub fn copies(text: &str, entry: &str, known: RangeOf<'_>, most: u64) -> Result<Option<Vec<u64>>, u64> {
    let mut loops = loops(text, entry, known);
    let all = |loops: &[Loop]| loops.iter().map(Loop::all).fold(0, u64::saturating_add);
    if all(&loops) <= most {
        return Ok(None);
    }
    // One loop may have what the others leave.
    for index in 0..loops.len() {
        let others = all(&loops) - loops[index].all();
        let share = most.saturating_sub(others).max(most / (loops.len() as u64 + 1));
        loops[index].limit(text, share);
    }
    let mut list = Vec::new();
    loops.iter().for_each(|each| each.list(&mut list));
    let turns = all(&loops);
    if turns > most || unrolled(text, entry, &list).len() > MOST_BYTES {
        return Err(turns);
    }
    Ok(Some(list))
}

/// The most turns of one loop of the kernel function `entry` of `text`.
pub fn longest(text: &str, entry: &str, known: RangeOf<'_>) -> u64 {
    fn of(loops: &[Loop]) -> u64 {
        loops.iter().map(|each| each.turns.max(of(&each.inner))).max().unwrap_or(0)
    }
    of(&loops(text, entry, known))
}

/// `text` with so many copies of the bodies of its loops, in the order of the text.
pub(crate) fn unrolled(text: &str, entry: &str, copies: &[u64]) -> String {
    let loops = loops(text, entry, &|_| None);
    let mut copies = copies.iter().copied();
    let mut out = String::with_capacity(2 * text.len());
    let mut done = 0;
    for each in &loops {
        write(text, each, &mut copies, &mut done, &mut out);
    }
    out.push_str(&text[done..]);
    out
}

/// Writes the text up to the end of a loop's body.
fn write(text: &str, own: &Loop, copies: &mut dyn Iterator<Item = u64>, done: &mut usize, out: &mut String) {
    let count = copies.next().unwrap_or(1);
    out.push_str(&text[*done..own.body.start]);
    let mut body = String::new();
    let mut at = own.body.start;
    for inner in &own.inner {
        write(text, inner, copies, &mut at, &mut body);
    }
    body.push_str(&text[at..own.body.end]);
    *done = own.body.end;
    if count < 2 {
        out.push_str(&body);
        return;
    }
    let (condition, update) = (&text[own.condition.clone()], &text[own.update.clone()]);
    let next = format!("{update};\nif (!({condition})) {{\nbreak;\n}}\n");
    for copy in 0..count {
        out.push_str(if copy == 0 { "\n{" } else { "{" });
        out.push_str(&body);
        out.push_str("}\n");
        if copy + 1 < count {
            out.push_str(&next);
        }
    }
}

/// The loops of the kernel function `entry`.
fn loops(text: &str, entry: &str, known: RangeOf<'_>) -> Vec<Loop> {
    let begin = text.find(&format!("fn {entry}(")).unwrap_or(text.len());
    within(text, begin..text.len(), known)
}

/// The loops of a part of the text that are in no other loop of it.
fn within(text: &str, span: Span<usize>, known: RangeOf<'_>) -> Vec<Loop> {
    let mut loops = Vec::new();
    let mut at = span.start;
    while let Some(found) = text.get(at..span.end).and_then(|rest| rest.find("for (")) {
        let head = at + found + "for (".len();
        let Some(end) = closing(text, head, b'(', b')') else { break };
        let Some(open) = text[end..].find('{').map(|open| end + open + 1) else { break };
        let Some(close) = closing(text, open, b'{', b'}') else { break };
        at = close;
        let header = &text[head..end];
        let (Some(first), Some(last)) = (header.find(';'), header.rfind(';')) else { continue };
        let begin = header[..first].trim();
        let condition = head + first + 1..head + last;
        let update = head + last + 1..end;
        let names = |name: &str| range::named(text, head, name, known);
        let turns = range::turns(begin, text[condition.clone()].trim(), text[update.clone()].trim(), &names);
        let trimmed = |span: Span<usize>| {
            let part = &text[span.clone()];
            let start = span.start + part.len() - part.trim_start().len();
            start..start + part.trim().len()
        };
        loops.push(Loop {
            condition: trimmed(condition),
            update: trimmed(update),
            inner: within(text, open..close, known),
            body: open..close,
            turns,
            copies: 1,
        });
    }
    loops
}

/// Where the bracket is closed that was opened before `at`.
fn closing(text: &str, at: usize, open: u8, close: u8) -> Option<usize> {
    let mut depth = 1;
    for (offset, &byte) in text.as_bytes().get(at..)?.iter().enumerate() {
        depth += i32::from(byte == open) - i32::from(byte == close);
        if depth == 0 {
            return Some(at + offset);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "
const SIZE: u32 = 4u;
fn kernel(lid: vec3<u32>) {
    let end: u32 = min(params.count, 100000u) / SIZE;
    for (var i: u32 = 0u; i < end; i++) {
        for (var k: u32 = lid.x; k < params.few; k += 2u) {
            sum = sum + src[i + k];
        }
    }
}
";

    fn known(name: &str) -> Option<Range> {
        let exact = |value: u64| Some(Range { least: value, most: value });
        match name {
            "params.count" => exact(400_000),
            "params.few" => exact(6),
            "lid.x" => Some(Range { least: 0, most: 63 }),
            _ => None,
        }
    }

    #[test]
    fn turns_follow_from_what_is_known() {
        let found = loops(SUM, "kernel", &known);
        assert_eq!((found.len(), found[0].turns, found[0].inner[0].turns), (1, 25_000, 3));
        assert_eq!(found[0].all(), 25_000 + 75_000);
        assert_eq!(copies(SUM, "kernel", &known, 100_000), Ok(None));
        assert_eq!(copies(SUM, "kernel", &known, 65_000), Ok(Some(vec![2, 2])));
        assert_eq!(copies(SUM, "kernel", &known, 30_000), Ok(Some(vec![8, 4])));
        assert_eq!(copies(SUM, "kernel", &known, 20_000), Err(25_000 + 25_000u64.div_ceil(256)));
    }

    #[test]
    fn a_copy_comes_behind_the_condition() {
        let text = unrolled(SUM, "kernel", &[1, 2]);
        let compact: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = "k += 2u) { { sum = sum + src[i + k]; } k += 2u; if (!(k < params.few)) { break; } \
                      { sum = sum + src[i + k]; } } } }";
        assert!(compact.ends_with(wanted), "{compact}");
        assert_eq!(unrolled(SUM, "kernel", &[1, 1]), SUM);
    }
}
