//! Operators and the tables of their options that the loader reads, as in the published schema.

use super::tables::{Offset, slot};
use flatbuffers::{Follow, InvalidFlatbuffer, Table, TableVerifier, Vector, Verifiable, Verifier};

/// The field id of the union `builtin_options` of an operator.
pub(super) const OPTIONS: u16 = 4;

table! {
    /// One operator.
    Operator and options, more_options {
        opcode_index: 0 => u32 = 0,
        inputs: 1 => Offset<Vector<'a, i32>>,
        outputs: 2 => Offset<Vector<'a, i32>>,
        /// Which table `builtin_options` (id 4) is.
        options_type: 3 => u8 = 0,
        custom_options: 5 => Offset<Vector<'a, u8>>,
        /// Which table `builtin_options_2` (id 12) is.
        more_options_type: 11 => u8 = 0,
    }
}

union! {
    /// The options of an operator of which there are too many for the other union.
    more_options: 12 by more_options_type of Operator => {
        composite: 21 => CompositeOptions,
    }
}

table! {
    /// Options of `STABLEHLO_COMPOSITE`.
    CompositeOptions {
        decomposition: 1 => i32 = 0,
    }
}
options! {
    /// Options of `CONV_2D`.
    conv2d: 1 => Conv2dOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        activation: 3 => i8 = 0,
        dilation_w: 4 => i32 = 1,
        dilation_h: 5 => i32 = 1,
    }

    /// Options of `DEPTHWISE_CONV_2D`.
    depthwise: 2 => DepthwiseOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        multiplier: 3 => i32 = 0,
        activation: 4 => i8 = 0,
        dilation_w: 5 => i32 = 1,
        dilation_h: 6 => i32 = 1,
    }

    /// Options of `MAX_POOL_2D` and `AVERAGE_POOL_2D`.
    pool: 5 => PoolOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        window_w: 3 => i32 = 0,
        window_h: 4 => i32 = 0,
        activation: 5 => i8 = 0,
    }

    /// Options of `SVDF`.
    svdf: 6 => SvdfOptions {
        rank: 0 => i32 = 0,
        activation: 1 => i8 = 0,
    }

    /// Options of `RNN`.
    rnn: 7 => RnnOptions {
        activation: 0 => i8 = 0,
    }

    /// Options of `FULLY_CONNECTED`.
    fully_connected: 8 => FullyConnectedOptions {
        activation: 0 => i8 = 0,
        format: 1 => i8 = 0,
        keep_dims: 2 => bool = false,
    }

    /// Options of `SOFTMAX`.
    softmax: 9 => SoftmaxOptions {
        beta: 0 => f32 = 0.0,
    }

    /// Options of `CONCATENATION`.
    concatenation: 10 => ConcatenationOptions {
        axis: 0 => i32 = 0,
        activation: 1 => i8 = 0,
    }

    /// Options of `ADD`.
    add: 11 => AddOptions {
        activation: 0 => i8 = 0,
    }

    /// Options of `LOCAL_RESPONSE_NORMALIZATION`.
    local_response: 13 => LocalResponseOptions {
        radius: 0 => i32 = 0,
        bias: 1 => f32 = 0.0,
        alpha: 2 => f32 = 0.0,
        beta: 3 => f32 = 0.0,
    }

    /// Options of `LSTM`.
    lstm: 14 => LstmOptions {
        activation: 0 => i8 = 0,
        cell_clip: 1 => f32 = 0.0,
        projection_clip: 2 => f32 = 0.0,
        kernel: 3 => i8 = 0,
    }

    /// Options of `RESIZE_BILINEAR`.
    resize_bilinear: 15 => ResizeBilinearOptions {
        align_corners: 2 => bool = false,
        half_pixel_centers: 3 => bool = false,
    }

    /// Options of `RESHAPE`.
    reshape: 17 => ReshapeOptions {
        shape: 0 => Offset<Vector<'a, i32>>,
    }

    /// Options of `SPACE_TO_DEPTH`.
    space_to_depth: 19 => SpaceToDepthOptions {
        block: 0 => i32 = 0,
    }

    /// Options of `MUL`.
    mul: 21 => MulOptions {
        activation: 0 => i8 = 0,
    }

    /// Options of `GATHER`.
    gather: 23 => GatherOptions {
        axis: 0 => i32 = 0,
        batch_dims: 1 => i32 = 0,
    }

    /// Options of `MEAN`, `SUM` and the other reductions.
    reducer: 27 => ReducerOptions {
        keep_dims: 0 => bool = false,
    }

    /// Options of `SUB`.
    sub: 28 => SubOptions {
        activation: 0 => i8 = 0,
    }

    /// Options of `DIV`.
    div: 29 => DivOptions {
        activation: 0 => i8 = 0,
    }

    /// Options of `SQUEEZE`.
    squeeze: 30 => SqueezeOptions {
        axes: 0 => Offset<Vector<'a, i32>>,
    }

    /// Options of `UNIDIRECTIONAL_SEQUENCE_RNN`.
    sequence_rnn: 31 => SequenceRnnOptions {
        time_major: 0 => bool = false,
        activation: 1 => i8 = 0,
    }

    /// Options of `STRIDED_SLICE`; bit `i` of a mask is for entry `i`.
    strided_slice: 32 => StridedSliceOptions {
        begin_mask: 0 => i32 = 0,
        end_mask: 1 => i32 = 0,
        ellipsis_mask: 2 => i32 = 0,
        new_axis_mask: 3 => i32 = 0,
        shrink_axis_mask: 4 => i32 = 0,
        offset: 5 => bool = false,
    }

    /// Options of `TRANSPOSE_CONV`.
    transposed_conv: 49 => TransposedConvOptions {
        padding: 0 => i8 = 0,
        stride_w: 1 => i32 = 0,
        stride_h: 2 => i32 = 0,
        activation: 3 => i8 = 0,
    }

    /// Options of `FAKE_QUANT`.
    fake_quant: 58 => FakeQuantOptions {
        min: 0 => f32 = 0.0,
        max: 1 => f32 = 0.0,
        bits: 2 => i32 = 0,
        narrow: 3 => bool = false,
    }

    /// Options of `PACK`.
    pack: 59 => PackOptions {
        axis: 1 => i32 = 0,
    }

    /// Options of `ONE_HOT`.
    one_hot: 61 => OneHotOptions {
        axis: 0 => i32 = 0,
    }

    /// Options of `UNPACK`.
    unpack: 64 => UnpackOptions {
        axis: 1 => i32 = 0,
    }

    /// Options of `BIDIRECTIONAL_SEQUENCE_LSTM`.
    bidirectional_lstm: 69 => BidirectionalLstmOptions {
        activation: 0 => i8 = 0,
        cell_clip: 1 => f32 = 0.0,
        projection_clip: 2 => f32 = 0.0,
        merge_outputs: 3 => bool = false,
        time_major: 4 => bool = true,
    }

    /// Options of `BIDIRECTIONAL_SEQUENCE_RNN`.
    bidirectional_rnn: 70 => BidirectionalRnnOptions {
        time_major: 0 => bool = false,
        activation: 1 => i8 = 0,
        merge_outputs: 2 => bool = false,
    }

    /// Options of `UNIDIRECTIONAL_SEQUENCE_LSTM`.
    sequence_lstm: 71 => SequenceLstmOptions {
        activation: 0 => i8 = 0,
        cell_clip: 1 => f32 = 0.0,
        projection_clip: 2 => f32 = 0.0,
        time_major: 3 => bool = false,
    }

    /// Options of `RESIZE_NEAREST_NEIGHBOR`.
    resize_nearest: 74 => ResizeNearestOptions {
        align_corners: 0 => bool = false,
        half_pixel_centers: 1 => bool = false,
    }

    /// Options of `LEAKY_RELU`.
    leaky_relu: 75 => LeakyReluOptions {
        alpha: 0 => f32 = 0.0,
    }

    /// Options of `MIRROR_PAD`.
    mirror_pad: 77 => MirrorPadOptions {
        mode: 0 => i8 = 0,
    }

    /// Options of `REVERSE_SEQUENCE`.
    reverse_sequence: 87 => ReverseSequenceOptions {
        time: 0 => i32 = 0,
        batch: 1 => i32 = 0,
    }

    /// Options of `IF`.
    branch: 92 => IfOptions {
        then: 0 => i32 = 0,
        otherwise: 1 => i32 = 0,
    }

    /// Options of `WHILE`.
    while_loop: 93 => WhileOptions {
        condition: 0 => i32 = 0,
        body: 1 => i32 = 0,
    }

    /// Options of `DEPTH_TO_SPACE`.
    depth_to_space: 94 => DepthToSpaceOptions {
        block: 0 => i32 = 0,
    }

    /// Options of `BATCH_MATMUL`.
    batch_matmul: 101 => BatchMatmulOptions {
        transpose_a: 0 => bool = false,
        transpose_b: 1 => bool = false,
    }

    /// Options of `CUMSUM`.
    cumsum: 102 => CumsumOptions {
        exclusive: 0 => bool = false,
        reverse: 1 => bool = false,
    }

    /// Options of `CALL_ONCE`.
    call_once: 103 => CallOnceOptions {
        network: 0 => i32 = 0,
    }

    /// Options of `CONV_3D` and `CONV_3D_TRANSPOSE`.
    volume: 106 => VolumeOptions {
        padding: 0 => i8 = 0,
        stride_d: 1 => i32 = 0,
        stride_w: 2 => i32 = 0,
        stride_h: 3 => i32 = 0,
        activation: 4 => i8 = 0,
        dilation_d: 5 => i32 = 1,
        dilation_w: 6 => i32 = 1,
        dilation_h: 7 => i32 = 1,
    }

    /// Options of `VAR_HANDLE`.
    var_handle: 111 => VarHandleOptions {
        container: 0 => Offset<&'a str>,
        name: 1 => Offset<&'a str>,
    }

    /// Options of `RANDOM_UNIFORM`, `RANDOM_STANDARD_NORMAL` and `MULTINOMIAL`.
    random: 114 => RandomOptions {
        seed: 0 => i64 = 0,
        other_seed: 1 => i64 = 0,
    }

    /// Options of `BUCKETIZE`.
    bucketize: 115 => BucketizeOptions {
        bounds: 0 => Offset<Vector<'a, f32>>,
    }

    /// Options of `GELU`.
    gelu: 116 => GeluOptions {
        approximate: 0 => bool = false,
    }
}

impl VarHandleOptions<'_> {
    /// The name of the variable.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.container().unwrap_or(""), self.name().unwrap_or(""))
    }
}
