//! Options of custom operators: a map from names to numbers, as a FlexBuffer.
//!
//! Every place is checked against the bytes. Source: the description of FlexBuffers' binary format.

use crate::model::reason::Reason;

/// The most entries that are read.
const MAX_ENTRIES: usize = 256;

/// What a map has under a name.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Integer(i64),
    Number(f64),
    Integers(Vec<i64>),
}

/// A map from names to numbers and lists of integers; entries of other types are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Map(Vec<(String, Entry)>);

/// The bytes, and what is read of them.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn unsigned(&self, at: usize, width: usize) -> Option<u64> {
        let bytes = self.0.get(at..at.checked_add(width)?)?;
        let mut whole = [0; 8];
        whole.get_mut(..width)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }

    fn signed(&self, at: usize, width: usize) -> Option<i64> {
        let shift = 64 - 8 * u32::try_from(width).ok()?;
        Some((self.unsigned(at, width)? << shift) as i64 >> shift)
    }

    fn float(&self, at: usize, width: usize) -> Option<f64> {
        match width {
            4 => Some(f64::from(f32::from_bits(self.unsigned(at, 4)? as u32))),
            8 => Some(f64::from_bits(self.unsigned(at, 8)?)),
            _ => None,
        }
    }

    /// Where an offset that is stored at `at` leads.
    fn target(&self, at: usize, width: usize) -> Option<usize> {
        at.checked_sub(usize::try_from(self.unsigned(at, width)?).ok()?)
    }

    fn text(&self, at: usize) -> Option<String> {
        let rest = self.0.get(at..)?;
        let length = rest.iter().take(256).position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn entry(&self, at: usize, width: usize, packed: u8) -> Option<Entry> {
        let own = 1usize << (packed & 3);
        Some(match packed >> 2 {
            1 => Entry::Integer(self.signed(at, width)?),
            2 | 26 => Entry::Integer(i64::try_from(self.unsigned(at, width)?).ok()?),
            3 => Entry::Number(self.float(at, width)?),
            6 => Entry::Integer(self.signed(self.target(at, width)?, own)?),
            7 => Entry::Integer(i64::try_from(self.unsigned(self.target(at, width)?, own)?).ok()?),
            8 => Entry::Number(self.float(self.target(at, width)?, own)?),
            kind @ (11 | 12) => {
                let first = self.target(at, width)?;
                let count = usize::try_from(self.unsigned(first.checked_sub(own)?, own)?).ok()?;
                if count > self.0.len() {
                    return None;
                }
                let of = |index: usize| {
                    let at = first + index * own;
                    if kind == 11 {
                        self.signed(at, own)
                    } else {
                        i64::try_from(self.unsigned(at, own)?).ok()
                    }
                };
                Entry::Integers((0..count).map(of).collect::<Option<Vec<_>>>()?)
            }
            _ => return None,
        })
    }

    fn map(&self) -> Option<Map> {
        let end = self.0.len();
        let width = usize::from(*self.0.get(end.checked_sub(1)?)?);
        let packed = *self.0.get(end.checked_sub(2)?)?;
        if !matches!(width, 1 | 2 | 4 | 8) || packed >> 2 != 9 {
            return None;
        }
        let (values, own) = (self.target(end.checked_sub(2 + width)?, width)?, 1usize << (packed & 3));
        let count = usize::try_from(self.unsigned(values.checked_sub(own)?, own)?).ok()?;
        let keys = self.target(values.checked_sub(3 * own)?, own)?;
        let key_width = usize::try_from(self.unsigned(values.checked_sub(2 * own)?, own)?).ok()?;
        if !matches!(key_width, 1 | 2 | 4 | 8) || count > MAX_ENTRIES {
            return None;
        }
        let mut entries = Vec::new();
        for index in 0..count {
            let key = self.text(self.target(keys + index * key_width, key_width)?)?;
            let kind = *self.0.get(values + count * own + index)?;
            if let Some(entry) = self.entry(values + index * own, own, kind) {
                entries.push((key, entry));
            }
        }
        Some(Map(entries))
    }
}

impl Map {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Reason> {
        let wrong = || {
            Reason::from(format!(
                "found options of {} bytes, wanted a map of names (FlexBuffer)",
                bytes.len()
            ))
        };
        Reader(bytes).map().ok_or_else(wrong)
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, entry)| entry)
    }

    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        match self.entry(key)? {
            Entry::Integer(value) => Some(*value),
            Entry::Number(value) => Some(*value as i64),
            Entry::Integers(_) => None,
        }
    }

    pub(super) fn number(&self, key: &str) -> Option<f32> {
        match self.entry(key)? {
            Entry::Integer(value) => Some(*value as f32),
            Entry::Number(value) => Some(*value as f32),
            Entry::Integers(_) => None,
        }
    }

    pub(super) fn truth(&self, key: &str) -> Option<bool> {
        self.integer(key).map(|value| value != 0)
    }

    pub(super) fn integers(&self, key: &str) -> Option<&[i64]> {
        match self.entry(key)? {
            Entry::Integers(values) => Some(values),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A map of numbers, whole ones or not, in the order of their names: four bytes for each place and value.
    pub(in super::super) fn map(entries: &[(&str, f32, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut names = Vec::new();
        for (name, ..) in entries {
            names.push(bytes.len());
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let count = entries.len() as u32;
        bytes.extend(count.to_le_bytes());
        let keys = bytes.len();
        for name in names {
            let back = (bytes.len() - name) as u32;
            bytes.extend(back.to_le_bytes());
        }
        let back = (bytes.len() - keys) as u32;
        for number in [back, 4, count] {
            bytes.extend(number.to_le_bytes());
        }
        let values = bytes.len();
        for (_, value, whole) in entries {
            bytes.extend(if *whole { (*value as i32).to_le_bytes() } else { value.to_le_bytes() });
        }
        bytes.extend(entries.iter().map(|(.., whole)| if *whole { 1 << 2 | 2 } else { 3 << 2 | 2 }));
        let back = (bytes.len() - values) as u8;
        bytes.extend([back, 9 << 2 | 2, 1]);
        bytes
    }

    #[test]
    fn names_are_read() {
        let bytes = map(&[("height", 16.0, true), ("scale", 1.5, false), ("width", -2.0, true)]);
        let map = Map::read(&bytes).expect("a map");
        assert_eq!(map.integer("height"), Some(16));
        assert_eq!(map.number("scale"), Some(1.5));
        assert_eq!(map.integer("width"), Some(-2));
        assert_eq!(map.integer("depth"), None);
        // As MediaPipe's files have it: widths of one byte.
        let narrow = b"output_height\0output_width\0\x02\x1c\x0f\x02\x01\x02\x10\x10\x04\x04\x04$\x01";
        let map = Map::read(narrow).expect("a map");
        assert_eq!((map.integer("output_height"), map.integer("output_width")), (Some(16), Some(16)));
    }

    #[test]
    fn what_is_damaged_is_refused_or_read_otherwise() {
        let bytes = map(&[("height", 16.0, true), ("scale", 1.5, false)]);
        for end in 0..bytes.len() {
            drop(Map::read(&bytes[..end]));
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 4, 127, 255] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                drop(Map::read(&bytes));
            }
        }
        assert!(Map::read(&[]).is_err());
        assert!(Map::read(&bytes[1..bytes.len() - 1]).is_err());
    }
}
