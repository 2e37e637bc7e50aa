//! Small networks as ONNX files.

use std::path::Path;

/// A field of bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut length = content.len();
    let mut field = vec![number << 3 | 2];
    while length >= 0x80 {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(content);
    field
}

/// A field of a small number.
fn number(field: u8, value: u8) -> [u8; 2] {
    assert!(value < 0x80, "a number of one byte");
    [field << 3, value]
}

/// An extent that is open and has the same name at each place.
pub(crate) const SIDE: u8 = u8::MAX;

/// An input or output of f32 (1) or bytes (2); an extent of 0 is open and has the name of its place.
fn value(name: &str, element: u8, dims: &[u8]) -> Vec<u8> {
    let dim = |(place, &extent): (usize, &u8)| match extent {
        0 => bytes(1, &bytes(2, format!("open{place}").as_bytes())),
        SIDE => bytes(1, &bytes(2, b"side")),
        extent => bytes(1, &number(1, extent)),
    };
    let shape: Vec<u8> = dims.iter().enumerate().flat_map(dim).collect();
    let tensor = [number(1, element).to_vec(), bytes(2, &shape)].concat();
    [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat()
}

/// What the network is.
pub(crate) enum Net {
    /// Its picture of floats as it is, where that is not negative.
    Floats,
    /// Its picture of bytes as floats.
    Bytes,
    /// Two pictures, added.
    Two,
}

/// Writes a network of a picture of these dimensions.
pub(crate) fn write(path: &Path, net: &Net, dims: &[u8]) -> String {
    let element = if matches!(net, Net::Bytes) { 2 } else { 1 };
    let (op, inputs): (&str, &[&str]) = match net {
        Net::Floats => ("Relu", &["picture"]),
        Net::Bytes => ("Cast", &["picture"]),
        Net::Two => ("Add", &["picture", "other"]),
    };
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input.as_bytes())).collect();
    node.extend([bytes(2, b"same"), bytes(3, b"node"), bytes(4, op.as_bytes())].concat());
    if matches!(net, Net::Bytes) {
        // To f32.
        node.extend(bytes(5, &[bytes(1, b"to"), number(3, 1).to_vec(), [0xa0, 0x01, 2].to_vec()].concat()));
    }
    let mut graph = [bytes(1, &node), bytes(2, b"small")].concat();
    graph.extend(inputs.iter().flat_map(|input| bytes(11, &value(input, element, dims))));
    graph.extend(bytes(12, &value("same", 1, dims)));
    let opset = bytes(8, &[bytes(1, b""), number(2, 13).to_vec()].concat());
    let model = [number(1, 8).to_vec(), bytes(7, &graph), opset].concat();
    std::fs::write(path, model).expect("a file");
    path.display().to_string()
}
