//! Changes to a text, word by word.

use super::noise::Noise;

/// `text` with some of its words changed, some by those of `words`.
pub fn mutate(text: &str, words: &[&str], noise: &mut Noise) -> String {
    let mut parts: Vec<&str> = split(text);
    for _ in 0..1 + noise.below(3) {
        let (one, other) = (noise.below(parts.len()), noise.below(parts.len()));
        let length = 1 + noise.below(12).min(noise.below(12));
        let end = |from: usize, parts: &[&str]| (from + length).min(parts.len());
        match noise.below(7) {
            0 => drop(parts.drain(one..end(one, &parts))),
            1 => {
                let copied = parts[other..end(other, &parts)].to_vec();
                parts.splice(one..one, copied);
            }
            2 if !parts.is_empty() => parts.swap(one, other),
            3 if !parts.is_empty() => parts[one] = parts[other],
            4 => parts.insert(one, noise.of(words).copied().unwrap_or(" ")),
            5 if !parts.is_empty() => parts[one] = noise.of(words).copied().unwrap_or(" "),
            _ if !parts.is_empty() => parts[one] = noise.of(&NUMBERS).copied().unwrap_or("0"),
            _ => {}
        }
    }
    parts.concat()
}

/// Numbers at which something ends, in several notations.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "64",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "0.5",
    "1e38",
    "1e400",
    "0u",
    "7i",
    "1.5f",
];

/// Names and numbers, blanks, and single other characters.
fn split(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        let now = kind(c);
        if last.is_some_and(|last| last != now || now == 2) {
            parts.push(&text[start..at]);
            start = at;
        }
        last = Some(now);
    }
    parts.push(&text[start..]);
    parts
}
