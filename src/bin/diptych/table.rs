//! Tables on a terminal: cells are wrapped where a table would be wider.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};

/// An empty table in this style, no wider than the terminal; as wide as its cells where the output
/// goes elsewhere.
pub(crate) fn table(style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic);
    table
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
    fn cells_are_wrapped_to_the_width() {
        let mut table = table(presets::UTF8_HORIZONTAL_ONLY);
        table.set_width(40).set_header(["kernel", "why"]);
        table.add_row(["pointwise_micro_f32_t4x2x1", "a long explanation of a choice in many words"]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(40), "{table}");
        assert!(table.to_string().contains("explanation"), "{table}");
    }
}
