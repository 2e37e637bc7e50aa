//! Between which numbers an expression of a kernel's text is.

use super::RangeOf;

/// `least ..= most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

/// Any number.
const ANY: Range = Range { least: 0, most: u32::MAX as u64 };

impl Range {
    fn new(least: u64, most: u64) -> Self {
        Range { least: least.min(ANY.most), most: most.min(ANY.most) }
    }
}

/// What `name` is where the text is read at `at`: known, a constant, or what was given to it last before.
pub(super) fn named(text: &str, at: usize, name: &str, known: RangeOf<'_>) -> Option<Range> {
    if let Some(found) = known(name) {
        return Some(found);
    }
    let before = &text[..at];
    let given = ["let", "const"].into_iter().filter_map(|word| {
        let head = format!("{word} {name}: u32 = ");
        before.rfind(&head).map(|begin| (begin, begin + head.len()))
    });
    let (begin, from) = given.max()?;
    let (value, _) = text[from..].split_once(';')?;
    // What it is made of was given before.
    Some(of(value, &|name| named(text, begin, name, known)))
}

/// The most turns of a loop.
pub(super) fn turns(
    begin: &str,
    condition: &str,
    update: &str,
    names: &dyn Fn(&str) -> Option<Range>,
) -> u64 {
    let (_, first) = begin.split_once(" = ").unwrap_or(("", "0u"));
    let start = of(first, names);
    // Of several conditions the first one has the bound.
    let condition = condition.split(" && ").next().unwrap_or(condition);
    let variable: String =
        update.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let change = update[variable.len()..].trim();
    let doubled = [format!("= 2u * {variable}"), format!("= {variable} / 2u")];
    if doubled.iter().any(|known| known == change) {
        return 32;
    }
    if change == "--" && condition == format!("{variable} > 0u") {
        return start.most;
    }
    let step = match change {
        "++" => Some(1),
        change => change.strip_prefix("+= ").map(|step| of(step, names).least.max(1)),
    };
    let (Some(step), Some((_, bound))) = (step, condition.split_once(" <")) else { return ANY.most };
    let (bound, more) = bound.strip_prefix('=').map_or((bound, 0), |bound| (bound, 1));
    // A window's end that is so far behind its beginning.
    let first = first.trim();
    let length = bound.trim().strip_prefix("min(").and_then(|rest| rest.strip_suffix(')'));
    let length = length.and_then(|rest| rest.rsplit_once(", ")).and_then(|(_, last)| {
        last.strip_prefix(first)
            .and_then(|rest| rest.strip_prefix(" + "))
            .map(|length| of(length, names).most)
    });
    let whole = (of(bound, names).most + more).saturating_sub(start.least);
    length.map_or(whole, |length| length.min(whole)).div_ceil(step)
}

/// The range of an expression of whole numbers; any number where it is not understood.
pub(super) fn of(text: &str, names: &dyn Fn(&str) -> Option<Range>) -> Range {
    let mut reader = Reader { rest: text.trim(), names };
    match reader.sum() {
        Some(range) if reader.rest.is_empty() => range,
        _ => ANY,
    }
}

struct Reader<'a> {
    rest: &'a str,
    names: &'a dyn Fn(&str) -> Option<Range>,
}

impl Reader<'_> {
    fn take(&mut self, mark: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(mark) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn sum(&mut self) -> Option<Range> {
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                let right = self.product()?;
                left = Range::new(left.least + right.least, left.most + right.most);
            } else if self.take("-") {
                let right = self.product()?;
                // Below 0 it is a large number.
                left = if left.least < right.most {
                    ANY
                } else {
                    Range::new(left.least - right.most, left.most - right.least)
                };
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self) -> Option<Range> {
        let mut left = self.value()?;
        loop {
            if self.take("*") {
                let right = self.value()?;
                left = Range::new(left.least * right.least, left.most * right.most);
            } else if self.take("/") {
                let right = self.value()?;
                left = Range::new(left.least / right.most.max(1), left.most / right.least.max(1));
            } else if self.take("%") {
                let right = self.value()?;
                let within = left.most < right.least;
                left = if within { left } else { Range::new(0, left.most.min(right.most.saturating_sub(1))) };
            } else {
                return Some(left);
            }
        }
    }

    fn value(&mut self) -> Option<Range> {
        self.rest = self.rest.trim_start();
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        let end = self.rest.find(|letter: char| !(letter.is_alphanumeric() || "_.".contains(letter)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            let value = word.trim_end_matches('u').parse().ok()?;
            return Some(Range::new(value, value));
        }
        if word.is_empty() {
            return None;
        }
        if !self.take("(") {
            return Some((self.names)(word).unwrap_or(ANY));
        }
        let (left, both) = (self.sum()?, self.take(","));
        let right = if both { self.sum()? } else { left };
        if !self.take(")") {
            return None;
        }
        Some(match word {
            "min" => Range::new(left.least.min(right.least), left.most.min(right.most)),
            "max" => Range::new(left.least.max(right.least), left.most.max(right.most)),
            "u32" => left,
            _ => ANY,
        })
    }
}
