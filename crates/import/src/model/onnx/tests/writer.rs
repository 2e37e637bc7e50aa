//! Files made from a few lines: only what the tests need of the format.

/// A field of bytes.
fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    let mut out = number((field << 3 | 2) as u64);
    out.extend(number(value.len() as u64));
    out.extend_from_slice(value);
    out
}

/// A field that is a number.
fn int(field: u32, value: i64) -> Vec<u8> {
    [number(u64::from(field << 3)), number(value as u64)].concat()
}

fn number(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// An option of an operator.
#[derive(Clone)]
pub(super) enum Attribute {
    Int(&'static str, i64),
    Ints(&'static str, &'static [i64]),
    Float(&'static str, f32),
    Text(&'static str, &'static str),
    Texts(&'static str, &'static [&'static str]),
    /// A network, as [`network`] writes it.
    Graph(&'static str, Vec<u8>),
}

/// An operator.
#[derive(Clone, Default)]
pub(super) struct Node {
    pub(super) op: &'static str,
    pub(super) domain: &'static str,
    pub(super) inputs: Vec<&'static str>,
    pub(super) outputs: Vec<&'static str>,
    pub(super) attributes: Vec<Attribute>,
}

impl Node {
    pub(super) fn new(op: &'static str, inputs: &[&'static str], outputs: &[&'static str]) -> Self {
        Node { op, inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..Node::default() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.inputs.iter().for_each(|name| out.extend(bytes(1, name.as_bytes())));
        self.outputs.iter().for_each(|name| out.extend(bytes(2, name.as_bytes())));
        out.extend(bytes(4, self.op.as_bytes()));
        out.extend(bytes(7, self.domain.as_bytes()));
        for attribute in &self.attributes {
            let own = match attribute {
                Attribute::Int(name, value) => {
                    [bytes(1, name.as_bytes()), int(3, *value), int(20, 2)].concat()
                }
                Attribute::Ints(name, values) => {
                    let values = values.iter().flat_map(|&value| int(8, value)).collect();
                    [bytes(1, name.as_bytes()), values, int(20, 7)].concat()
                }
                Attribute::Float(name, value) => {
                    [bytes(1, name.as_bytes()), number(2 << 3 | 5), value.to_le_bytes().to_vec(), int(20, 1)]
                        .concat()
                }
                Attribute::Text(name, value) => {
                    [bytes(1, name.as_bytes()), bytes(4, value.as_bytes()), int(20, 3)].concat()
                }
                Attribute::Texts(name, values) => {
                    let values = values.iter().flat_map(|value| bytes(9, value.as_bytes())).collect();
                    [bytes(1, name.as_bytes()), values, int(20, 8)].concat()
                }
                Attribute::Graph(name, value) => {
                    [bytes(1, name.as_bytes()), bytes(6, value), int(20, 5)].concat()
                }
            };
            out.extend(bytes(5, &own));
        }
        out
    }
}

fn constant(name: &str, extents: &[usize], kind: i64, data: Vec<u8>) -> Vec<u8> {
    let dims: Vec<u8> = extents.iter().flat_map(|&extent| int(1, extent as i64)).collect();
    [dims, int(2, kind), bytes(8, name.as_bytes()), data].concat()
}

/// A constant of f32.
pub(super) fn floats(name: &str, extents: &[usize], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    constant(name, extents, 1, bytes(9, &data))
}

/// A constant of i64.
pub(super) fn integers(name: &str, extents: &[usize], values: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|&value| number(value as u64)).collect();
    constant(name, extents, 7, bytes(7, &data))
}

/// A constant of u8.
pub(super) fn small(name: &str, extents: &[usize], values: &[u8]) -> Vec<u8> {
    constant(name, extents, 2, bytes(9, values))
}

/// A constant of the type of this number, as its bytes.
pub(super) fn of_type(number: i64, name: &str, extents: &[usize], data: &[u8]) -> Vec<u8> {
    constant(name, extents, number, bytes(9, data))
}

/// A constant of f32 whose data are in another file.
pub(super) fn external(name: &str, extents: &[usize], place: &str) -> Vec<u8> {
    let pair = [bytes(1, b"location"), bytes(2, place.as_bytes())].concat();
    constant(name, extents, 1, [bytes(13, &pair), int(14, 1)].concat())
}

/// A file of one network whose inputs are f32.
#[derive(Clone, Default)]
pub(super) struct File<'a> {
    pub(super) inputs: Vec<(&'a str, Vec<usize>)>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) constants: Vec<Vec<u8>>,
    pub(super) nodes: Vec<Node>,
    /// Extents that are left open: the input, the axis, and the name.
    pub(super) open: Vec<(&'a str, usize, &'a str)>,
}

impl File<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut graph = Vec::new();
        self.nodes.iter().for_each(|node| graph.extend(bytes(1, &node.bytes())));
        graph.extend(bytes(2, b"a network"));
        self.constants.iter().for_each(|constant| graph.extend(bytes(5, constant)));
        for (name, extents) in &self.inputs {
            let mut shape = Vec::new();
            for (axis, &extent) in extents.iter().enumerate() {
                let open = self.open.iter().find(|open| open.0 == *name && open.1 == axis);
                let own = open.map_or_else(|| int(1, extent as i64), |open| bytes(2, open.2.as_bytes()));
                shape.extend(bytes(1, &own));
            }
            let kind = bytes(1, &[int(1, 1), bytes(2, &shape)].concat());
            graph.extend(bytes(11, &[bytes(1, name.as_bytes()), bytes(2, &kind)].concat()));
        }
        self.outputs.iter().for_each(|name| graph.extend(bytes(12, &bytes(1, name.as_bytes()))));
        model(&graph)
    }
}

/// A network within an operator, of inputs without extents.
pub(super) fn network(inputs: &[&str], nodes: &[Node], outputs: &[&str]) -> Vec<u8> {
    let mut graph = Vec::new();
    nodes.iter().for_each(|node| graph.extend(bytes(1, &node.bytes())));
    inputs.iter().for_each(|name| graph.extend(bytes(11, &bytes(1, name.as_bytes()))));
    outputs.iter().for_each(|name| graph.extend(bytes(12, &bytes(1, name.as_bytes()))));
    graph
}

/// A constant of four-bit integers with a sign.
pub(super) fn nibbles(name: &str, extents: &[usize], values: &[u8]) -> Vec<u8> {
    constant(name, extents, 22, bytes(9, values))
}

/// A file around a network.
pub(super) fn model(graph: &[u8]) -> Vec<u8> {
    let file = [int(1, 8), bytes(8, &int(2, 17)), bytes(7, graph)].concat();
    crate::model::corpus::kept("onnx", file)
}

/// A network with a node whose branch is another one.
pub(super) fn nested(inner: &[u8]) -> Vec<u8> {
    let attribute = [bytes(1, b"then_branch"), bytes(6, inner)].concat();
    bytes(1, &[bytes(4, b"If"), bytes(5, &attribute)].concat())
}

/// A file whose network calls the first of so many functions, each of which calls the next one.
pub(super) fn chained(count: usize) -> Vec<u8> {
    let call = |index: usize| {
        let name = format!("f{index}");
        [bytes(1, b"x"), bytes(2, b"y"), bytes(4, name.as_bytes()), bytes(7, b"own")].concat()
    };
    let opset = [bytes(1, b"own"), int(2, 1)].concat();
    let mut file = [int(1, 8), bytes(8, &int(2, 17)), bytes(8, &opset)].concat();
    for index in 0..count {
        let node = match index + 1 == count {
            true => [bytes(1, b"x"), bytes(2, b"y"), bytes(4, b"Relu")].concat(),
            false => call(index + 1),
        };
        let name = format!("f{index}");
        let own = [
            bytes(1, name.as_bytes()),
            bytes(4, b"x"),
            bytes(5, b"y"),
            bytes(7, &node),
            bytes(9, &int(2, 17)),
            bytes(9, &opset),
            bytes(10, b"own"),
        ];
        file.extend(bytes(25, &own.concat()));
    }
    let kind = bytes(1, &[int(1, 1), bytes(2, &bytes(1, &int(1, 2)))].concat());
    let input = bytes(11, &[bytes(1, b"x"), bytes(2, &kind)].concat());
    file.extend(bytes(7, &[bytes(1, &call(0)), input, bytes(12, &bytes(1, b"y"))].concat()));
    file
}
