//! Tables on a terminal: cells are wrapped where a table would be wider.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};

/// An empty table in this style, no wider than the terminal; as wide as its cells where the output
/// goes elsewhere.
pub(crate) fn table(style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// A node's name as a table shows it. Converters join the names of all operators that became one node by
/// semicolons; on a terminal, whose width they would not fit, the first stands for them.
pub(crate) fn node_name(name: &str, terminal: bool) -> String {
    match name.split_once(';') {
        Some((first, _)) if terminal => format!("{first};.."),
        _ => name.to_owned(),
    }
}

/// Columns of numbers: their ends stand below each other.
pub(crate) fn numbers(table: &mut Table, columns: &[usize]) {
    for &index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comfy_table::presets;

    #[test]
    fn joined_names_are_cut_on_a_terminal() {
        assert_eq!(node_name("a/Relu;b/Conv;c", true), "a/Relu;..");
        assert_eq!(node_name("a/Relu;b/Conv;c", false), "a/Relu;b/Conv;c");
        assert_eq!(node_name("a/Relu", true), "a/Relu");
    }

    #[test]
    fn cells_are_wrapped_to_the_width() {
        let mut table = table(presets::UTF8_HORIZONTAL_ONLY);
        table.set_width(40).set_header(["kernel", "why"]);
        table.add_row(["pointwise_micro_f32_t4x2x1", "a long explanation of a choice in many words"]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(40), "{table}");
        assert!(table.to_string().contains("explanation"), "{table}");
    }
}
