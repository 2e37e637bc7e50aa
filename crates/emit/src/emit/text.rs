//! The texts of kernels within the program.

/// The text of a file, as [`include_str!`] gives it.
#[cfg(not(target_family = "wasm"))]
#[macro_export]
macro_rules! text {
    ($path:expr) => {
        include_str!($path)
    };
}

/// The text of a file without notes and indents, which no page should download.
#[cfg(target_family = "wasm")]
#[macro_export]
macro_rules! text {
    ($path:expr) => {{
        const WHOLE: &[u8] = include_str!($path).as_bytes();
        const BYTES: [u8; $crate::emit::text::shorten(WHOLE, &mut [])] = {
            let mut bytes = [0; $crate::emit::text::shorten(WHOLE, &mut [])];
            $crate::emit::text::shorten(WHOLE, &mut bytes);
            bytes
        };
        const TEXT: &str = match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            // Lines are left out as a whole.
            Err(_) => "",
        };
        TEXT
    }};
}

/// Writes `text` without its notes and its lines' indents to `short`, if that has room: how long it is.
pub const fn shorten(text: &[u8], short: &mut [u8]) -> usize {
    let (mut at, mut length) = (0, 0);
    while at < text.len() {
        while at < text.len() && text[at] == b' ' {
            at += 1;
        }
        let is_note = at + 2 < text.len() && text[at] == b'/' && text[at + 1] == b'/' && text[at + 2] == b'#';
        loop {
            if at == text.len() {
                break;
            }
            if !is_note {
                if length < short.len() {
                    short[length] = text[at];
                }
                length += 1;
            }
            at += 1;
            if text[at - 1] == b'\n' {
                break;
            }
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_indents_are_left_out() {
        let text =
            "//# What it computes.\nfn f() {\n    //% if x\n    //# Why.\n    let ä = 1; //# kept\n\n}";
        let wanted = "fn f() {\n//% if x\nlet ä = 1; //# kept\n\n}";
        let mut short = vec![0; shorten(text.as_bytes(), &mut [])];
        assert_eq!(shorten(text.as_bytes(), &mut short), wanted.len());
        assert_eq!(String::from_utf8_lossy(&short), wanted);
    }
}
