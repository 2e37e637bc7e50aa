//! A writer of small TensorFlow Lite files, valid or not.

use super::super::names::{OPERATORS, element};
use super::super::options::OPTIONS;
use super::super::options::{Conv2dOptions, DepthwiseOptions, LeakyReluOptions};
use super::super::tables::slot;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, WIPOffset};

type Written = WIPOffset<TableFinishedWIPOffset>;

/// The code of an operator.
pub(super) fn code(name: &str) -> i32 {
    OPERATORS.iter().position(|known| *known == name).expect("an operator of the schema") as i32
}

pub(super) const SAME: i8 = 0;
pub(super) const VALID: i8 = 1;

/// A tensor to write.
#[derive(Debug, Clone, Default)]
pub(super) struct TensorSpec {
    pub(super) name: Option<String>,
    pub(super) shape: Vec<i32>,
    pub(super) signature: Option<Vec<i32>>,
    pub(super) element_type: i8,
    pub(super) buffer: u32,
    pub(super) quantised: Option<Scales>,
    pub(super) variable: bool,
    pub(super) sparse: Option<Sparse>,
    /// Whether its zero points lie where four bytes may begin, as some writers have them.
    pub(super) loose: bool,
}

/// The scales and zero points of a tensor, and their axis.
#[derive(Debug, Clone)]
pub(super) struct Scales(pub(super) Vec<f32>, pub(super) Vec<i64>, pub(super) i32);

/// How a sparse tensor is stored: the order of its levels, the map of its blocks, and each level.
#[derive(Debug, Clone, Default)]
pub(super) struct Sparse {
    pub(super) order: Vec<i32>,
    pub(super) blocks: Vec<i32>,
    pub(super) levels: Vec<Level>,
}

/// A level of a sparse tensor.
#[derive(Debug, Clone)]
pub(super) enum Level {
    Dense(i32),
    /// Segments and indices, in one, two or four bytes each.
    Listed(u8, Vec<i32>, Vec<i32>),
}

/// A buffer to write.
#[derive(Debug, Clone, Default)]
pub(super) struct BufferSpec {
    pub(super) data: Option<Vec<u8>>,
    pub(super) outside: Option<[u64; 2]>,
}

/// The options of an operator.
#[derive(Debug, Clone, Default)]
pub(super) enum OptionsSpec {
    #[default]
    None,
    Conv2d(Window),
    Depthwise(Window, i32),
    LeakyRelu(f32),
    /// A table of this type, by the ids of its fields.
    Fields(u8, Vec<(u16, Field)>),
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(super) enum Field {
    Byte(i8),
    Bool(bool),
    Int(i32),
    Long(i64),
    Float(f32),
    Ints(Vec<i32>),
    Floats(Vec<f32>),
    Text(&'static str),
}

/// The options of a window; strides and dilations are height, width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) padding: i8,
    pub(super) stride: [i32; 2],
    pub(super) dilation: [i32; 2],
    pub(super) activation: i8,
}

impl Default for Window {
    fn default() -> Self {
        Window { padding: SAME, stride: [1, 1], dilation: [1, 1], activation: 0 }
    }
}

/// An operator to write.
#[derive(Debug, Clone, Default)]
pub(super) struct OpSpec {
    pub(super) code: i32,
    /// Written into the first field of the code, `code` being left out.
    pub(super) old_writer: bool,
    pub(super) custom: Option<String>,
    pub(super) custom_options: Option<Vec<u8>>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
    pub(super) options: OptionsSpec,
}

/// Names with their tensors.
pub(super) type Names = Vec<(&'static str, u32)>;

/// A file to write.
#[derive(Debug, Clone)]
pub(super) struct FileSpec {
    pub(super) version: u32,
    pub(super) identifier: &'static str,
    pub(super) networks: usize,
    pub(super) buffers: Vec<BufferSpec>,
    pub(super) tensors: Vec<TensorSpec>,
    pub(super) ops: Vec<OpSpec>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
    /// Names of a signature's inputs and outputs, with their tensors.
    pub(super) signature: Option<[Names; 2]>,
    /// Further signatures: the key, the network, and names as above.
    pub(super) signatures: Vec<(&'static str, u32, [Names; 2])>,
    pub(super) description: Option<&'static str>,
    /// The name and buffer of metadata.
    pub(super) metadata: Option<(&'static str, u32)>,
    /// Further networks.
    pub(super) called: Vec<NetworkSpec>,
}

/// A network that others call; its constants are in the file's buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct NetworkSpec {
    pub(super) tensors: Vec<TensorSpec>,
    pub(super) ops: Vec<OpSpec>,
    pub(super) inputs: Vec<i32>,
    pub(super) outputs: Vec<i32>,
}

impl FileSpec {
    /// A file with one input and no operators; buffer 0 is the empty one, as the format wants.
    pub(super) fn with_input(name: &str, shape: &[i32]) -> Self {
        let mut file = FileSpec {
            version: 3,
            identifier: "TFL3",
            networks: 1,
            buffers: vec![BufferSpec::default()],
            tensors: Vec::new(),
            ops: Vec::new(),
            inputs: vec![0],
            outputs: Vec::new(),
            signature: None,
            signatures: Vec::new(),
            description: None,
            metadata: None,
            called: Vec::new(),
        };
        file.map(name, shape);
        file
    }

    /// Adds a feature map.
    pub(super) fn map(&mut self, name: &str, shape: &[i32]) -> i32 {
        self.tensors.push(TensorSpec {
            name: Some(name.to_owned()),
            shape: shape.to_vec(),
            ..Default::default()
        });
        self.tensors.len() as i32 - 1
    }

    /// Adds a float32 constant that counts up in quarters.
    pub(super) fn constant(&mut self, name: &str, shape: &[i32]) -> i32 {
        let count: i32 = shape.iter().product();
        let data = (0..count).flat_map(|i| (i as f32 * 0.25).to_le_bytes()).collect();
        self.constant_of(name, shape, element::FLOAT32, data)
    }

    /// Adds an int32 constant.
    pub(super) fn integers(&mut self, name: &str, shape: &[i32], values: &[i32]) -> i32 {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant_of(name, shape, element::INT32, data)
    }

    /// Adds a float16 constant that counts up in quarters.
    pub(super) fn half_constant(&mut self, name: &str, shape: &[i32]) -> i32 {
        let count: i32 = shape.iter().product();
        let data = (0..count).flat_map(|i| half::f16::from_f32(i as f32 * 0.25).to_le_bytes()).collect();
        self.constant_of(name, shape, element::FLOAT16, data)
    }

    pub(super) fn constant_of(&mut self, name: &str, shape: &[i32], element_type: i8, data: Vec<u8>) -> i32 {
        self.buffers.push(BufferSpec { data: Some(data), outside: None });
        let tensor = self.map(name, shape);
        self.tensors[tensor as usize].buffer = self.buffers.len() as u32 - 1;
        self.tensors[tensor as usize].element_type = element_type;
        tensor
    }

    /// Adds an operator.
    pub(super) fn op(&mut self, code: i32, inputs: &[i32], outputs: &[i32], options: OptionsSpec) {
        self.ops.push(OpSpec {
            code,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            options,
            ..Default::default()
        });
    }

    /// `image` 1x8x8x3 -> `stem`, 3x3, stride 2, SAME, biased -> 1x4x4x4, the output.
    pub(super) fn stem() -> Self {
        let mut file = Self::with_input("image", &[1, 8, 8, 3]);
        let weights = file.constant("weights", &[4, 3, 3, 3]);
        let bias = file.constant("bias", &[4]);
        let output = file.map("stem", &[1, 4, 4, 4]);
        let window = Window { stride: [2, 2], ..Default::default() };
        file.op(code("CONV_2D"), &[0, weights, bias], &[output], OptionsSpec::Conv2d(window));
        file.outputs.push(output);
        file
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut fbb = FlatBufferBuilder::new();
        let called = self.called.iter().flat_map(|network| &network.ops);
        let codes: Vec<Written> =
            self.ops.iter().chain(called).map(|op| operator_code(&mut fbb, op)).collect();
        let codes = fbb.create_vector(&codes);
        let buffers: Vec<Written> = self.buffers.iter().map(|spec| buffer(&mut fbb, spec)).collect();
        let buffers = fbb.create_vector(&buffers);
        let main = NetworkSpec {
            tensors: self.tensors.clone(),
            ops: self.ops.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        };
        let mut networks: Vec<Written> = (0..self.networks).map(|_| main.written(&mut fbb, 0)).collect();
        let mut first = self.ops.len();
        for network in &self.called {
            networks.push(network.written(&mut fbb, first));
            first += network.ops.len();
        }
        let networks = fbb.create_vector(&networks);
        let description = self.description.map(|text| fbb.create_string(text));
        let first = self.signature.iter().map(|names| ("", 0, names.clone()));
        let mut signatures: Vec<Written> = Vec::new();
        for (key, network, signature) in first.chain(self.signatures.clone()) {
            let lists = signature.each_ref().map(|names| {
                let names: Vec<Written> =
                    names.iter().map(|&(name, tensor)| tensor_name(&mut fbb, name, tensor)).collect();
                fbb.create_vector(&names)
            });
            let key = fbb.create_string(key);
            let table = fbb.start_table();
            fbb.push_slot_always(slot(0), lists[0]);
            fbb.push_slot_always(slot(1), lists[1]);
            fbb.push_slot_always(slot(2), key);
            fbb.push_slot(slot(4), network, 0);
            signatures.push(fbb.end_table(table));
        }
        let signature = (!signatures.is_empty()).then(|| fbb.create_vector(&signatures));
        let metadata = self.metadata.map(|(name, buffer)| {
            let entry = tensor_name(&mut fbb, name, buffer);
            fbb.create_vector(&[entry])
        });
        let model = fbb.start_table();
        if let Some(metadata) = metadata {
            fbb.push_slot_always(slot(6), metadata);
        }
        if let Some(description) = description {
            fbb.push_slot_always(slot(3), description);
        }
        if let Some(signature) = signature {
            fbb.push_slot_always(slot(7), signature);
        }
        fbb.push_slot_always(slot(0), self.version);
        fbb.push_slot_always(slot(1), codes);
        fbb.push_slot_always(slot(2), networks);
        fbb.push_slot_always(slot(4), buffers);
        let model = fbb.end_table(model);
        fbb.finish(model, Some(self.identifier));
        let mut bytes = fbb.finished_data().to_vec();
        for Scales(_, zeros, _) in
            self.tensors.iter().filter(|tensor| tensor.loose).filter_map(|tensor| tensor.quantised.as_ref())
        {
            // They were written as bytes: their number is the vector's length.
            let data: Vec<u8> = zeros.iter().flat_map(|zero| zero.to_le_bytes()).collect();
            let written = [&(data.len() as u32).to_le_bytes()[..], &data].concat();
            let at = bytes.windows(written.len()).position(|part| part == written).expect("the zero points");
            bytes[at..at + 4].copy_from_slice(&(zeros.len() as u32).to_le_bytes());
        }
        crate::model::corpus::kept("tflite", bytes)
    }
}

impl NetworkSpec {
    /// The network, whose operators' codes begin with `first`.
    fn written(&self, fbb: &mut FlatBufferBuilder<'_>, first: usize) -> Written {
        let tensors: Vec<Written> = self.tensors.iter().map(|spec| tensor(fbb, spec)).collect();
        let tensors = fbb.create_vector(&tensors);
        let ops: Vec<Written> =
            self.ops.iter().zip(first..).map(|(spec, code)| operator(fbb, code as u32, spec)).collect();
        let ops = fbb.create_vector(&ops);
        let inputs = fbb.create_vector(&self.inputs);
        let outputs = fbb.create_vector(&self.outputs);
        let network = fbb.start_table();
        fbb.push_slot_always(slot(0), tensors);
        fbb.push_slot_always(slot(1), inputs);
        fbb.push_slot_always(slot(2), outputs);
        fbb.push_slot_always(slot(3), ops);
        fbb.end_table(network)
    }
}

/// A name with the number of a tensor or a buffer.
fn tensor_name(fbb: &mut FlatBufferBuilder<'_>, name: &str, tensor: u32) -> Written {
    let name = fbb.create_string(name);
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), name);
    fbb.push_slot_always(slot(1), tensor);
    fbb.end_table(table)
}

fn operator_code(fbb: &mut FlatBufferBuilder<'_>, op: &OpSpec) -> Written {
    let custom = op.custom.as_ref().map(|custom| fbb.create_string(custom));
    let table = fbb.start_table();
    fbb.push_slot(slot(0), op.code.min(127) as i8, 0);
    if let Some(custom) = custom {
        fbb.push_slot_always(slot(1), custom);
    }
    // The first version of this one was never released.
    if op.code == code("BROADCAST_TO") {
        fbb.push_slot(slot(2), 2i32, 1);
    }
    if !op.old_writer {
        fbb.push_slot(slot(3), op.code, 0);
    }
    fbb.end_table(table)
}

fn buffer(fbb: &mut FlatBufferBuilder<'_>, spec: &BufferSpec) -> Written {
    let data = spec.data.as_ref().map(|data| fbb.create_vector(data));
    let table = fbb.start_table();
    if let Some(data) = data {
        fbb.push_slot_always(slot(0), data);
    }
    if let Some([offset, size]) = spec.outside {
        fbb.push_slot(slot(1), offset, 0);
        fbb.push_slot(slot(2), size, 0);
    }
    fbb.end_table(table)
}

fn tensor(fbb: &mut FlatBufferBuilder<'_>, spec: &TensorSpec) -> Written {
    let name = spec.name.as_ref().map(|name| fbb.create_string(name));
    let shape = fbb.create_vector(&spec.shape);
    let signature = spec.signature.as_ref().map(|signature| fbb.create_vector(signature));
    let quantization = spec.quantised.as_ref().map(|Scales(scales, zeros, axis)| {
        let bytes: Vec<u8> = zeros.iter().flat_map(|zero| zero.to_le_bytes()).collect();
        let scales = fbb.create_vector(scales);
        let zeros = match spec.loose {
            true => fbb.create_vector(&bytes).value(),
            false => fbb.create_vector(zeros).value(),
        };
        let zeros = WIPOffset::<u8>::new(zeros);
        let table = fbb.start_table();
        fbb.push_slot_always(slot(2), scales);
        fbb.push_slot_always(slot(3), zeros);
        fbb.push_slot(slot(6), *axis, 0);
        fbb.end_table(table)
    });
    let sparsity = spec.sparse.as_ref().map(|sparse| {
        let levels: Vec<Written> = sparse.levels.iter().map(|spec| level(fbb, spec)).collect();
        let levels = fbb.create_vector(&levels);
        let (order, blocks) = (fbb.create_vector(&sparse.order), fbb.create_vector(&sparse.blocks));
        let table = fbb.start_table();
        fbb.push_slot_always(slot(0), order);
        fbb.push_slot_always(slot(1), blocks);
        fbb.push_slot_always(slot(2), levels);
        fbb.end_table(table)
    });
    let table = fbb.start_table();
    fbb.push_slot_always(slot(0), shape);
    fbb.push_slot(slot(1), spec.element_type, 0);
    fbb.push_slot(slot(2), spec.buffer, 0);
    if let Some(name) = name {
        fbb.push_slot_always(slot(3), name);
    }
    if let Some(quantization) = quantization {
        fbb.push_slot_always(slot(4), quantization);
    }
    fbb.push_slot(slot(5), spec.variable, false);
    if let Some(sparsity) = sparsity {
        fbb.push_slot_always(slot(6), sparsity);
    }
    if let Some(signature) = signature {
        fbb.push_slot_always(slot(7), signature);
    }
    fbb.end_table(table)
}

fn level(fbb: &mut FlatBufferBuilder<'_>, spec: &Level) -> Written {
    match spec {
        Level::Dense(size) => {
            let table = fbb.start_table();
            fbb.push_slot_always(slot(1), *size);
            fbb.end_table(table)
        }
        Level::Listed(bytes, segments, indices) => {
            let tag: u8 = [3, 2, 1][usize::from(*bytes / 2)];
            let [segments, indices] = [segments, indices].map(|values| {
                let values = match bytes {
                    1 => fbb.create_vector(&values.iter().map(|&v| v as u8).collect::<Vec<_>>()).value(),
                    2 => fbb.create_vector(&values.iter().map(|&v| v as u16).collect::<Vec<_>>()).value(),
                    _ => fbb.create_vector(values).value(),
                };
                let table = fbb.start_table();
                fbb.push_slot_always(slot(0), WIPOffset::<u8>::new(values));
                fbb.end_table(table)
            });
            let table = fbb.start_table();
            fbb.push_slot_always(slot(0), 1i8);
            fbb.push_slot_always(slot(2), tag);
            fbb.push_slot_always(slot(3), segments);
            fbb.push_slot_always(slot(4), tag);
            fbb.push_slot_always(slot(5), indices);
            fbb.end_table(table)
        }
    }
}

fn operator(fbb: &mut FlatBufferBuilder<'_>, code: u32, spec: &OpSpec) -> Written {
    let inputs = fbb.create_vector(&spec.inputs);
    let outputs = fbb.create_vector(&spec.outputs);
    let custom = spec.custom_options.as_ref().map(|options| fbb.create_vector(options));
    let options = match &spec.options {
        OptionsSpec::None => None,
        OptionsSpec::Conv2d(window) => {
            let table = fbb.start_table();
            push_window(fbb, *window, 3);
            Some((Conv2dOptions::TAG, fbb.end_table(table)))
        }
        OptionsSpec::Depthwise(window, multiplier) => {
            let table = fbb.start_table();
            push_window(fbb, *window, 4);
            fbb.push_slot(slot(3), *multiplier, 0);
            Some((DepthwiseOptions::TAG, fbb.end_table(table)))
        }
        OptionsSpec::LeakyRelu(alpha) => {
            let table = fbb.start_table();
            fbb.push_slot(slot(0), *alpha, 0.0);
            Some((LeakyReluOptions::TAG, fbb.end_table(table)))
        }
        OptionsSpec::Fields(tag, fields) => Some((*tag, options_table(fbb, fields))),
    };
    let table = fbb.start_table();
    fbb.push_slot(slot(0), code, 0);
    fbb.push_slot_always(slot(1), inputs);
    fbb.push_slot_always(slot(2), outputs);
    if let Some((tag, options)) = options {
        fbb.push_slot_always(slot(3), tag);
        fbb.push_slot_always(slot(OPTIONS), options);
    }
    if let Some(custom) = custom {
        fbb.push_slot_always(slot(5), custom);
    }
    fbb.end_table(table)
}

/// A table of these fields; what lies outside it is written first.
fn options_table(fbb: &mut FlatBufferBuilder<'_>, fields: &[(u16, Field)]) -> Written {
    let outside: Vec<Option<u32>> = fields
        .iter()
        .map(|(_, field)| match field {
            Field::Ints(values) => Some(fbb.create_vector(values).value()),
            Field::Floats(values) => Some(fbb.create_vector(values).value()),
            Field::Text(text) => Some(fbb.create_string(text).value()),
            _ => None,
        })
        .collect();
    let table = fbb.start_table();
    for ((id, field), outside) in fields.iter().zip(outside) {
        match field {
            Field::Byte(value) => fbb.push_slot_always(slot(*id), *value),
            Field::Bool(value) => fbb.push_slot_always(slot(*id), *value),
            Field::Int(value) => fbb.push_slot_always(slot(*id), *value),
            Field::Long(value) => fbb.push_slot_always(slot(*id), *value),
            Field::Float(value) => fbb.push_slot_always(slot(*id), *value),
            Field::Ints(_) | Field::Floats(_) | Field::Text(_) => {
                fbb.push_slot_always(slot(*id), WIPOffset::<u8>::new(outside.expect("written")));
            }
        }
    }
    fbb.end_table(table)
}

/// The fields of a window, the activation's id being `activation` and the dilations' the next.
fn push_window(fbb: &mut FlatBufferBuilder<'_>, window: Window, activation: u16) {
    fbb.push_slot(slot(0), window.padding, 0);
    fbb.push_slot(slot(1), window.stride[1], 0);
    fbb.push_slot(slot(2), window.stride[0], 0);
    fbb.push_slot(slot(activation), window.activation, 0);
    fbb.push_slot(slot(activation + 1), window.dilation[1], 1);
    fbb.push_slot(slot(activation + 2), window.dilation[0], 1);
}
