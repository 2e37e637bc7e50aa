//! Tables: a line below the heading and none between rows, and no word is broken.
//!
//! Tables go to standard output. On a terminal that is too narrow, a table wraps its cells between words and cuts names in their
//! middle. Elsewhere it is as wide as its cells.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// The columns of the terminal, if standard output is one.
fn terminal_width() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// Between two columns.
const GAP: usize = 2;

/// What a cut leaves of names and labels, at least: first of names alone, then of labels too, and of both where that does not
/// suffice.
const LEAST: [[usize; 2]; 3] = [[16, usize::MAX], [16, 24], [8, 12]];

/// A heading and rows.
#[derive(Debug, Clone)]
pub(crate) struct Rows<const N: usize> {
    heads: [&'static str; N],
    rows: Vec<[String; N]>,
    numbers: &'static [usize],
    names: &'static [usize],
    labels: &'static [usize],
}

impl<const N: usize> Rows<N> {
    pub(crate) fn new(heads: [&'static str; N]) -> Self {
        Rows { heads, rows: Vec::new(), numbers: &[], names: &[], labels: &[] }
    }

    /// Columns of numbers: their ends stand below each other.
    pub(crate) fn numbers(self, numbers: &'static [usize]) -> Self {
        Rows { numbers, ..self }
    }

    /// Columns of names, which may be cut.
    pub(crate) fn names(self, names: &'static [usize]) -> Self {
        Rows { names, ..self }
    }

    /// Columns of labels, which are cut where cutting the names does not suffice.
    pub(crate) fn labels(self, labels: &'static [usize]) -> Self {
        Rows { labels, ..self }
    }

    pub(crate) fn add(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// The table as it is written.
    pub(crate) fn text(&self) -> String {
        self.within(terminal_width())
    }

    /// The table, of at most `width` letters a line if its words allow that.
    fn within(&self, width: Option<usize>) -> String {
        let widths = width.map(|width| self.widths(width));
        let cell = |(column, text): (usize, &str)| match &widths {
            Some(widths) => self.fitted(column, text, widths[column]),
            None => text.to_owned(),
        };
        let line = LineStyle::none().fill('\u{2500}').junction('\u{2500}');
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(line));
        let head = |(column, text): (usize, &'static str)| match &widths {
            Some(widths) => wrapped(text, widths[column]),
            None => text.to_owned(),
        };
        table.set_header(self.heads.iter().copied().enumerate().map(head));
        for row in &self.rows {
            table.add_row(row.iter().map(String::as_str).enumerate().map(cell));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            // Between columns the style has a blank of its own.
            column.set_padding((0, if index + 1 < N { GAP as u16 - 1 } else { 0 }));
            if self.numbers.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n")
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        std::iter::once(self.heads[column]).chain(self.rows.iter().map(move |row| row[column].as_str()))
    }

    /// The widths of the columns for lines of `width` letters: the widest column that may shrink does, until they fit.
    fn widths(&self, width: usize) -> [usize; N] {
        let longest = |column: usize, of: fn(&str) -> usize| self.cells(column).map(of).max().unwrap_or(0);
        let mut widths: [usize; N] = std::array::from_fn(|column| longest(column, letters));
        let words: [usize; N] = std::array::from_fn(|column| longest(column, longest_word));
        let room = width.saturating_sub(GAP * N.saturating_sub(1));
        for [names, labels] in LEAST {
            // No word of a heading is broken.
            let head = |column: usize| longest_word(self.heads[column]);
            let least = |column: usize| match column {
                _ if self.names.contains(&column) => names.max(head(column)),
                _ if self.labels.contains(&column) => labels.max(head(column)).min(words[column]),
                _ => words[column],
            };
            while widths.iter().sum::<usize>() > room {
                let shrinking = (0..N).filter(|&column| widths[column] > least(column));
                let Some(widest) = shrinking.max_by_key(|&column| widths[column]) else { break };
                widths[widest] -= 1;
            }
        }
        widths
    }

    /// A cell's text in lines of `width` letters.
    fn fitted(&self, column: usize, text: &str, width: usize) -> String {
        if self.names.contains(&column) || self.labels.contains(&column) {
            return cut(text, width);
        }
        wrapped(text, width)
    }
}

/// A text in lines of `width` letters, or of one word.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if letters(line) + 1 + letters(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// A line: on a terminal wrapped to its width, the lines behind the first one indented.
pub(crate) fn line(text: &str) -> String {
    const INDENT: usize = 3;
    let Some(width) = terminal_width().filter(|width| letters(text) > *width) else { return text.to_owned() };
    wrapped(text, width.saturating_sub(INDENT)).replace('\n', &format!("\n{:INDENT$}", ""))
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(letters).max().unwrap_or(0)
}

/// A name of at most `width` letters: a little of its beginning and more of its end, in which names of one network differ.
fn cut(name: &str, width: usize) -> String {
    let length = letters(name);
    if length <= width {
        return name.to_owned();
    }
    let kept = width.saturating_sub(2);
    let (head, tail) = (kept / 4, kept - kept / 4);
    let (head, tail): (String, String) =
        (name.chars().take(head).collect(), name.chars().skip(length - tail).collect());
    format!("{head}..{tail}")
}

/// A node's name as a table shows it. Converters join the names of all operators that became one node by
/// semicolons; on a terminal, whose width they would not fit, the first stands for them.
pub(crate) fn node_name(name: &str, terminal: bool) -> String {
    match name.split_once(';') {
        Some((first, _)) if terminal => format!("{first};.."),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_names_are_cut_on_a_terminal() {
        assert_eq!(node_name("a/Relu;b/Conv;c", true), "a/Relu;..");
        assert_eq!(node_name("a/Relu;b/Conv;c", false), "a/Relu;b/Conv;c");
        assert_eq!(node_name("a/Relu", true), "a/Relu");
    }

    fn rows() -> Rows<4> {
        let mut rows = Rows::new(["name", "kernel", "us", "source"]).numbers(&[2]).names(&[0]).labels(&[1]);
        let mut add = |name: &str, us: &str| {
            let cells =
                [name, "conv2d_direct_f32_t4x1x1_bias_relu6_wg8x4x8", us, "the rule, for want of a verdict"];
            rows.add(cells.map(str::to_owned));
        };
        add("MobilenetV1/MobilenetV1/Conv2d_0/Relu6", "1.5");
        add("short", "1234.5");
        rows
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_with_a_line_for_each_row() {
        let text = rows().within(None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].chars().all(|letter| letter == '\u{2500}'), "{text}");
        let end = |line: &str, number: &str| line.find(number).map(|at| at + number.len());
        assert_eq!(end(lines[2], " 1.5"), end(lines[3], "1234.5"), "{text}");
        assert!(lines[2].contains("the rule, for want of a verdict"), "{text}");
    }

    #[test]
    fn cells_are_wrapped_between_words_and_names_are_cut() {
        for width in [120, 100, 90, 80, 60] {
            let text = rows().within(Some(width));
            assert!(text.lines().all(|line| letters(line) <= width), "{width}:\n{text}");
            let words = ["conv2d_direct_f32_t4x1x1_bias_relu6_wg8x4x8", "verdict", "1234.5", "short"];
            for word in words.iter().skip(usize::from(width <= 90)) {
                assert!(text.contains(word), "{width}: no {word} in\n{text}");
            }
            assert!(text.contains("..") && text.contains("Relu6"), "{width}:\n{text}");
        }
        // Words that are wider than the terminal stay whole.
        assert!(rows().within(Some(10)).contains("verdict"));
    }

    #[test]
    fn a_cut_keeps_both_ends() {
        assert_eq!(cut("abcdefghij", 10), "abcdefghij");
        assert_eq!(cut("abcdefghijk", 10), "ab..fghijk");
    }
}
