//! The files in which an ONNX file has its weights.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Seek};
use std::path::Path;

/// The deepest message that is looked into: graphs in attributes of nodes of graphs.
const MAX_DEPTH: usize = 48;

/// The longest name of a file.
const MAX_NAME: u64 = 4096;

/// A kind of message, of `onnx.proto`.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Function,
    /// A pair of texts.
    Entry,
}

impl Kind {
    /// The message in a field, if it may lead to a name.
    fn field(self, number: u64) -> Option<Kind> {
        Some(match (self, number) {
            (Kind::Model, 7) | (Kind::Attribute, 6 | 11) => Kind::Graph,
            (Kind::Model, 25) => Kind::Function,
            (Kind::Graph, 1) | (Kind::Function, 7) => Kind::Node,
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) => Kind::Tensor,
            (Kind::Node, 5) => Kind::Attribute,
            (Kind::Tensor, 13) => Kind::Entry,
            _ => return None,
        })
    }
}

/// The names that a file's tensors give to other files, each once. Weights themselves are not read.
pub(crate) fn external_files(path: &Path) -> Result<BTreeSet<String>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut scan = Scan { reader: BufReader::new(file), at: 0, names: BTreeSet::new() };
    scan.message(Kind::Model, length, 0)?;
    Ok(scan.names)
}

struct Scan<R> {
    reader: BufReader<R>,
    at: u64,
    names: BTreeSet<String>,
}

fn damaged() -> Error {
    Error::new(ErrorKind::InvalidData, "found a message of another form, wanted an ONNX file")
}

impl<R: Read + Seek> Scan<R> {
    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.at += 1;
        let [byte] = byte;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        self.reader.seek_relative(i64::try_from(bytes).map_err(|_| damaged())?)?;
        self.at += bytes;
        Ok(())
    }

    fn text(&mut self, bytes: u64) -> Result<Option<String>> {
        if bytes > MAX_NAME {
            self.skip(bytes)?;
            return Ok(None);
        }
        let mut text = vec![0; bytes as usize];
        self.reader.read_exact(&mut text)?;
        self.at += bytes;
        Ok(String::from_utf8(text).ok())
    }

    fn message(&mut self, kind: Kind, end: u64, depth: usize) -> Result<()> {
        let (mut key, mut value) = (None, None);
        while self.at < end {
            let tag = self.number()?;
            let bytes = match tag & 7 {
                0 => {
                    self.number()?;
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => self.number()?,
                _ => return Err(damaged()),
            };
            let next = self.at.checked_add(bytes).filter(|next| *next <= end).ok_or_else(damaged)?;
            match (kind, tag >> 3, kind.field(tag >> 3)) {
                (Kind::Entry, 1, _) => key = self.text(bytes)?,
                (Kind::Entry, 2, _) => value = self.text(bytes)?,
                (_, _, Some(inner)) if tag & 7 == 2 && depth < MAX_DEPTH => {
                    self.message(inner, next, depth + 1)?
                }
                _ => self.skip(bytes)?,
            }
        }
        if self.at != end {
            return Err(damaged());
        }
        if key.as_deref() == Some("location") {
            self.names.extend(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len() as u16;
        [&[number << 3 | 2, length as u8 | 0x80, (length >> 7) as u8], bytes].concat()
    }

    fn names(bytes: &[u8]) -> Result<Vec<String>> {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, bytes)?;
        Ok(external_files(file.path())?.into_iter().collect())
    }

    #[test]
    fn names_are_found_in_weights_and_in_constants_of_nodes() {
        let entry = |key: &str, value: &str| {
            field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
        };
        let tensor =
            |name: &str| [field(9, b"weights"), entry("location", name), entry("offset", "7")].concat();
        let node = field(1, &field(5, &field(5, &tensor("in a node"))));
        let graph = [field(5, &tensor("b")), node, field(5, &tensor("a")), field(5, &tensor("b"))].concat();
        let model = [vec![8, 8], field(2, b"by hand"), field(7, &graph)].concat();
        assert_eq!(names(&model).expect("names"), ["a", "b", "in a node"]);
        assert!(names(b"\x08\x08").expect("no names").is_empty());
        for length in 0..model.len() {
            // An error or fewer names.
            let _ = names(&model[..length]);
        }
        assert!(names(&model[..model.len() - 1]).is_err());
    }
}
