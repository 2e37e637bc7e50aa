//! The part of TensorFlow Lite's FlatBuffers schema (version 3) that the loader reads.

use super::options::Operator;
use super::tables::{Offset, Tables, Wide, slot, verified};
use flatbuffers::{Follow, InvalidFlatbuffer, Table, TableVerifier, Vector, Verifiable, Verifier};

table! {
    /// The file.
    Model {
        version: 0 => u32 = 0,
        operator_codes: 1 => Offset<Tables<'a, OperatorCode<'a>>>,
        subgraphs: 2 => Offset<Tables<'a, SubGraph<'a>>>,
        description: 3 => Offset<&'a str>,
        buffers: 4 => Offset<Tables<'a, Buffer<'a>>>,
        metadata: 6 => Offset<Tables<'a, Metadata<'a>>>,
        signatures: 7 => Offset<Tables<'a, Signature<'a>>>,
    }
}

table! {
    /// A buffer that is no tensor.
    Metadata {
        name: 0 => Offset<&'a str>,
        buffer: 1 => u32 = 0,
    }
}

table! {
    /// The names by which a network is called.
    Signature {
        inputs: 0 => Offset<Tables<'a, TensorName<'a>>>,
        outputs: 1 => Offset<Tables<'a, TensorName<'a>>>,
        key: 2 => Offset<&'a str>,
        subgraph: 4 => u32 = 0,
    }
}

table! {
    /// The name of a tensor in a signature.
    TensorName {
        name: 0 => Offset<&'a str>,
        tensor: 1 => u32 = 0,
    }
}

table! {
    /// What the operators of one opcode index are.
    OperatorCode {
        /// The code while it fits a byte; 127 where only `builtin_code` has it.
        deprecated_builtin_code: 0 => i8 = 0,
        custom_code: 1 => Offset<&'a str>,
        builtin_code: 3 => i32 = 0,
    }
}

table! {
    /// A network.
    SubGraph {
        tensors: 0 => Offset<Tables<'a, Tensor<'a>>>,
        inputs: 1 => Offset<Vector<'a, i32>>,
        outputs: 2 => Offset<Vector<'a, i32>>,
        operators: 3 => Offset<Tables<'a, Operator<'a>>>,
    }
}

table! {
    /// A constant or a feature map.
    Tensor {
        shape: 0 => Offset<Vector<'a, i32>>,
        element_type: 1 => i8 = 0,
        buffer: 2 => u32 = 0,
        name: 3 => Offset<&'a str>,
        quantization: 4 => Offset<Quantization<'a>>,
        is_variable: 5 => bool = false,
        sparsity: 6 => Offset<Sparsity<'a>>,
        /// The shape with -1 for extents that are not known before a run.
        shape_signature: 7 => Offset<Vector<'a, i32>>,
    }
}

table! {
    /// How integers stand for reals; also written, without scales, in float files.
    Quantization {
        scale: 2 => Offset<Vector<'a, f32>>,
        zero_point: 3 => Offset<Vector<'a, Wide<i64>>>,
        /// The axis with a scale for each index, where there are several.
        axis: 6 => i32 = 0,
    }
}

table! {
    /// How a sparse constant is stored.
    Sparsity {
        /// The axes of the tensor, then those of a block, in the order of the levels.
        traversal_order: 0 => Offset<Vector<'a, i32>>,
        /// The tensor's axis of each axis of a block.
        block_map: 1 => Offset<Vector<'a, i32>>,
        levels: 2 => Offset<Tables<'a, Level<'a>>>,
    }
}

table! {
    /// How one level of a sparse constant is stored.
    Level and level_segments, level_indices {
        /// 0: every index; 1: those that are listed.
        format: 0 => i8 = 0,
        size: 1 => i32 = 0,
        segments_type: 2 => u8 = 0,
        indices_type: 4 => u8 = 0,
    }
}

table! {
    /// Indices of four bytes.
    Indices32 {
        values: 0 => Offset<Vector<'a, i32>>,
    }
}

table! {
    /// Indices of two bytes.
    Indices16 {
        values: 0 => Offset<Vector<'a, u16>>,
    }
}

table! {
    /// Indices of one byte.
    Indices8 {
        values: 0 => Offset<Vector<'a, u8>>,
    }
}

union! {
    /// Where the indices of each element of the level before begin and end.
    level_segments: 3 by segments_type of Level => {
        segments32: 1 => Indices32,
        segments16: 2 => Indices16,
        segments8: 3 => Indices8,
    }
}

union! {
    /// The indices that are stored.
    level_indices: 5 by indices_type of Level => {
        indices32: 1 => Indices32,
        indices16: 2 => Indices16,
        indices8: 3 => Indices8,
    }
}

impl Level<'_> {
    /// Where the indices of each element of the level before begin and end.
    pub(super) fn segments(&self) -> Vec<i64> {
        match self.segments_type() {
            1 => widened(self.segments32().and_then(|table| table.values())),
            2 => widened(self.segments16().and_then(|table| table.values())),
            _ => widened(self.segments8().and_then(|table| table.values())),
        }
    }

    /// The indices that are stored.
    pub(super) fn indices(&self) -> Vec<i64> {
        match self.indices_type() {
            1 => widened(self.indices32().and_then(|table| table.values())),
            2 => widened(self.indices16().and_then(|table| table.values())),
            _ => widened(self.indices8().and_then(|table| table.values())),
        }
    }
}

fn widened<'a, T: Follow<'a> + 'a>(vector: Option<Vector<'a, T>>) -> Vec<i64>
where
    T::Inner: Into<i64>,
{
    vector.map_or_else(Vec::new, |vector| vector.iter().map(Into::into).collect())
}

table! {
    /// The bytes of a constant.
    Buffer {
        data: 0 => Offset<Vector<'a, u8>>,
        /// Where the bytes lie behind the FlatBuffer, in files above 2 GiB.
        offset: 1 => Wide<u64> = 0,
        size: 2 => Wide<u64> = 0,
    }
}

/// Verifies the whole file and gives its root.
pub(super) fn root(bytes: &[u8]) -> Result<Model<'_>, InvalidFlatbuffer> {
    verified(bytes)
}
