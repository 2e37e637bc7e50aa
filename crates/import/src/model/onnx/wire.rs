//! The wire format of protocol buffers: fields, each a number and a value.
//!
//! What is read borrows from the file. A message within a message is bytes until it is read itself, so that reading
//! does not recurse.
//!
//! Source: Google, *Protocol Buffers: Encoding*.

use crate::model::reason::Reason;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Number(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
}

/// The fields of a message, in the order of the file.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    /// The number and the value of the next field; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Reason> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let field = u32::try_from(tag >> 3).ok().filter(|field| *field > 0);
        let field = field.ok_or_else(|| format!("found field {}, wanted a number from 1 on", tag >> 3))?;
        let value = match tag & 7 {
            0 => Wire::Number(self.number()?),
            1 => Wire::Eight(self.fixed()?),
            2 => {
                let length = self.number()?;
                let length = usize::try_from(length).map_err(|_| cut_short(length, self.rest.len()))?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Four(self.fixed()?),
            other => return refused!("found wire type {other} in field {field}, wanted 0, 1, 2 or 5"),
        };
        Ok(Some((field, value)))
    }

    fn number(&mut self) -> Result<u64, Reason> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or("found the end of the file within a number")?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        refused!("found a number of more than 10 bytes")
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let (bytes, rest) =
            self.rest.split_first_chunk().ok_or_else(|| cut_short(N as u64, self.rest.len()))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let (bytes, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| cut_short(length as u64, self.rest.len()))?;
        self.rest = rest;
        Ok(bytes)
    }
}

fn cut_short(wanted: u64, found: usize) -> Reason {
    format!("the file is damaged or cut short: found {found} bytes, wanted {wanted}").into()
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], Reason> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            other => refused!("found {other:?}, wanted bytes"),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Reason> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "found a text that is no UTF-8".into())
    }

    pub(super) fn integer(self) -> Result<i64, Reason> {
        match self {
            Wire::Number(number) => Ok(number as i64),
            other => refused!("found {other:?}, wanted an integer"),
        }
    }

    pub(super) fn float(self) -> Result<f32, Reason> {
        match self {
            Wire::Four(bytes) => Ok(f32::from_le_bytes(bytes)),
            other => refused!("found {other:?}, wanted a float"),
        }
    }

    /// Integers, of which a field may hold one or many.
    pub(super) fn integers(self, into: &mut Vec<i64>) -> Result<(), Reason> {
        match self {
            Wire::Number(number) => into.push(number as i64),
            Wire::Bytes(bytes) => {
                let mut numbers = Fields::new(bytes);
                while !numbers.rest.is_empty() {
                    into.push(numbers.number()? as i64);
                }
            }
            other => return refused!("found {other:?}, wanted integers"),
        }
        Ok(())
    }

    /// Numbers of `N` bytes, of which a field may hold one or many.
    pub(super) fn numbers<const N: usize, T>(
        self,
        into: &mut Vec<T>,
        read: impl Fn([u8; N]) -> T,
    ) -> Result<(), Reason> {
        let bytes = match &self {
            Wire::Bytes(bytes) => bytes,
            Wire::Four(bytes) => &bytes[..],
            Wire::Eight(bytes) => &bytes[..],
            Wire::Number(_) => return refused!("found {self:?}, wanted numbers of {N} bytes"),
        };
        let (numbers, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return refused!("found {} bytes, wanted numbers of {N}", bytes.len());
        }
        into.extend(numbers.iter().map(|&number| read(number)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_and_damage_is_reported() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 0, 0, 0x80, 0x3f];
        let mut fields = Fields::new(&bytes);
        assert_eq!(fields.next(), Ok(Some((1, Wire::Number(150)))));
        assert_eq!(fields.next().map(|field| field.map(|(_, wire)| wire.text())), Ok(Some(Ok("hi"))));
        assert_eq!(fields.next().map(|field| field.map(|(_, wire)| wire.float())), Ok(Some(Ok(1.0))));
        assert_eq!(fields.next(), Ok(None));
        for damaged in
            [&[0x08][..], &[0x08, 0x80], &[0x12, 5, b'x'], &[0x1d, 0, 0], &[0x00, 1], &[0x0b, 1], &[0xff; 11]]
        {
            assert!(Fields::new(damaged).next().is_err(), "{damaged:?}");
        }
        assert!(
            Fields::new(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).next().is_err()
        );
    }

    #[test]
    fn lists_are_packed_or_not() {
        let mut found = Vec::new();
        Wire::Bytes(&[1, 0xac, 0x02]).integers(&mut found).expect("packed");
        Wire::Number(7).integers(&mut found).expect("one");
        assert_eq!(found, [1, 300, 7]);
        assert!(Wire::Bytes(&[0; 6]).numbers(&mut Vec::new(), f32::from_le_bytes).is_err());
    }
}
