//! A file of fields within fields, whatever its format: what mutations change.

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// A number of so many bytes; 0 bytes are a number of variable length.
    Number { value: u64, width: u8 },
    /// A list of numbers.
    Numbers { values: Vec<u64>, width: u8 },
    /// Text or data.
    Bytes(Vec<u8>),
    /// Fields by number. A format with repeated fields has them several times.
    Table(Vec<(u32, Tree)>),
    /// A list of tables.
    Tables(Vec<Tree>),
}

impl Tree {
    /// How many values there are in it, itself included.
    pub fn size(&self) -> usize {
        1 + match self {
            Tree::Number { .. } | Tree::Numbers { .. } | Tree::Bytes(_) => 0,
            Tree::Table(fields) => fields.iter().map(|(_, field)| field.size()).sum(),
            Tree::Tables(tables) => tables.iter().map(Tree::size).sum(),
        }
    }

    /// Value `index` in the order of the file.
    pub fn at(&mut self, index: &mut usize) -> Option<&mut Tree> {
        if *index == 0 {
            return Some(self);
        }
        *index -= 1;
        match self {
            Tree::Number { .. } | Tree::Numbers { .. } | Tree::Bytes(_) => None,
            Tree::Table(fields) => fields.iter_mut().find_map(|(_, field)| field.at(index)),
            Tree::Tables(tables) => tables.iter_mut().find_map(|table| table.at(index)),
        }
    }

    /// Calls `visit` with each value and the numbers of the fields that lead to it.
    pub fn walk<'a>(&'a self, path: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32], &'a Tree)) {
        visit(path, self);
        match self {
            Tree::Number { .. } | Tree::Numbers { .. } | Tree::Bytes(_) => {}
            Tree::Table(fields) => {
                for (number, field) in fields {
                    path.push(*number);
                    field.walk(path, visit);
                    path.pop();
                }
            }
            Tree::Tables(tables) => tables.iter().for_each(|table| table.walk(path, visit)),
        }
    }
}
