//! Small ONNX files: the fields of `onnx.proto` that they need.

/// A type of elements, by its number in `TensorProto.DataType`.
pub const F32: u64 = 1;
pub const U8: u64 = 2;
pub const I8: u64 = 3;
pub const U16: u64 = 4;
pub const I16: u64 = 5;
pub const I32: u64 = 6;
pub const I64: u64 = 7;
pub const BOOL: u64 = 9;
pub const F16: u64 = 10;
pub const F64: u64 = 11;
pub const U32: u64 = 12;

/// A message in the making.
#[derive(Default, Clone)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }
}

/// An extent: fixed, or open with a name, which may be empty.
#[derive(Clone, Copy)]
pub enum Extent {
    Fixed(u64),
    Open(&'static str),
}

/// An input or an output.
fn described(name: &str, element: u64, extents: &[Extent]) -> Message {
    let shape = extents.iter().fold(Message::default(), |shape, extent| {
        let extent = match extent {
            Extent::Fixed(extent) => Message::default().number(1, *extent),
            Extent::Open("") => Message::default(),
            Extent::Open(name) => Message::default().text(2, name),
        };
        shape.message(1, &extent)
    });
    let tensor = Message::default().number(1, element).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A file.
#[derive(Default, Clone)]
pub struct File {
    graph: Message,
    model: Message,
}

impl File {
    pub fn new() -> Self {
        File { graph: Message::default().text(2, "small"), model: Message::default().number(1, 8) }
    }

    pub fn input(mut self, name: &str, element: u64, extents: &[Extent]) -> Self {
        self.graph = self.graph.message(11, &described(name, element, extents));
        self
    }

    pub fn output(mut self, name: &str, element: u64, extents: &[Extent]) -> Self {
        self.graph = self.graph.message(12, &described(name, element, extents));
        self
    }

    /// A constant of floats.
    pub fn floats(self, name: &str, extents: &[u64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, F32, extents, &bytes)
    }

    /// A constant of integers of 64 bits.
    pub fn integers(self, name: &str, extents: &[u64], values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, I64, extents, &bytes)
    }

    fn constant(mut self, name: &str, element: u64, extents: &[u64], bytes: &[u8]) -> Self {
        let tensor = extents.iter().fold(Message::default(), |tensor, extent| tensor.number(1, *extent));
        let tensor = tensor.number(2, element).text(8, name).bytes(9, bytes);
        self.graph = self.graph.message(5, &tensor);
        self
    }

    pub fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.node_with(op, inputs, outputs, &[])
    }

    /// A node with attributes that are integers.
    pub fn node_with(
        mut self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, u64)],
    ) -> Self {
        let node = inputs.iter().fold(Message::default(), |node, name| node.text(1, name));
        let node = outputs.iter().fold(node, |node, name| node.text(2, name)).text(4, op);
        let node = attributes.iter().fold(node, |node, (name, value)| {
            node.message(5, &Message::default().text(1, name).number(3, *value).number(20, 2))
        });
        self.graph = self.graph.message(1, &node);
        self
    }

    /// What the file says of itself.
    pub fn about(mut self) -> Self {
        let property = |key, value| Message::default().text(1, key).text(2, value);
        self.model = self
            .model
            .text(2, "a test")
            .text(4, "ai.example")
            .number(5, 7)
            .text(6, "adds numbers")
            .message(14, &property("author", "nobody"))
            .message(14, &property("labels", "cat, dog"));
        self
    }

    pub fn build(self) -> Vec<u8> {
        let opset = Message::default().number(2, 18);
        self.model.message(8, &opset).message(7, &self.graph).0
    }
}
