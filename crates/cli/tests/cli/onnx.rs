//! ONNX models of one node, written by hand.

/// A field of a protocol buffer's message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// An input or output of floats.
fn port(name: &[u8], extents: &[u8]) -> Vec<u8> {
    typed(name, 1, extents)
}

/// An input or output of elements of the type that ONNX gives this number.
fn typed(name: &[u8], kind: u8, extents: &[u8]) -> Vec<u8> {
    let shape: Vec<u8> = extents.iter().flat_map(|&extent| field(1, &number(1, extent))).collect();
    let tensor = field(1, &[number(1, kind), field(2, &shape)].concat());
    [field(1, name), field(2, &tensor)].concat()
}

/// The numbers of types in ONNX files.
pub(crate) const INT64: u8 = 7;
pub(crate) const BOOL: u8 = 9;

/// The sum of the inputs `x` and `k` of this type and two elements.
pub(crate) fn sum(kind: u8) -> Vec<u8> {
    let node = [field(1, b"x"), field(1, b"k"), field(2, b"y"), field(4, b"Add")].concat();
    model(&node, &[typed(b"x", kind, &[2]), typed(b"k", kind, &[2])], &typed(b"y", kind, &[2]))
}

/// Whether each of two elements of the input `x` of int64 is greater than that of `k`.
pub(crate) fn greater() -> Vec<u8> {
    let node = [field(1, b"x"), field(1, b"k"), field(2, b"y"), field(4, b"Greater")].concat();
    model(&node, &[typed(b"x", INT64, &[2]), typed(b"k", INT64, &[2])], &typed(b"y", BOOL, &[2]))
}

/// A model of one node.
fn model(node: &[u8], inputs: &[Vec<u8>], output: &[u8]) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| field(11, input)).collect();
    let graph = [field(1, node), field(2, b"graph"), inputs, field(12, output)];
    [number(1, 8), field(7, &graph.concat()), field(8, &number(2, 13))].concat()
}

/// The product of the inputs `x` and `k` of two elements.
pub(crate) fn product() -> Vec<u8> {
    let node = [field(1, b"x"), field(1, b"k"), field(2, b"y"), field(4, b"Mul")].concat();
    model(&node, &[port(b"x", &[2]), port(b"k", &[2])], &port(b"y", &[2]))
}

/// The input `x` as it is, if none of its numbers is negative: its absolute values.
pub(crate) fn absolute(extents: &[u8]) -> Vec<u8> {
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"Abs")].concat();
    model(&node, &[port(b"x", extents)], &port(b"y", extents))
}

/// A node that reads what it writes: no network.
pub(crate) fn of_itself(extents: &[u8]) -> Vec<u8> {
    let node = [field(1, b"x"), field(1, b"y"), field(2, b"y"), field(4, b"Add")].concat();
    model(&node, &[port(b"x", extents)], &port(b"y", extents))
}
