//! The operators that the loader reads: one line each, the function that adds it to the graph.

use super::import::Handler;
use super::{
    control, convolution, deconvolution, detection, elementwise, joins, landmarks, lists, moves, norms,
    pooling, products, random, recurrent, reductions, rounding, scatter, shapes, slices, spectra, svdf,
};
use crate::model::build::Combine;
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;
use crate::ops::pool::Pooling;
use crate::ops::random::Random;
use crate::ops::reduce::Reduction;

/// The name of each operator, of custom ones as the file has it.
pub(in crate::model) fn names() -> Vec<&'static str> {
    let custom = |name: &'static str| name.strip_prefix("CUSTOM \"").and_then(|own| own.strip_suffix('"'));
    HANDLERS.iter().map(|&(name, _)| custom(name).unwrap_or(name)).collect()
}

/// The function of an operator, by its name.
pub(super) fn handler(name: &str) -> Option<Handler> {
    // Operators of lists of tensors have the same names with and without `Flex`.
    let flex = name
        .replace("\"TensorList", "\"FlexTensorList")
        .replace("\"EmptyTensorList", "\"FlexEmptyTensorList");
    HANDLERS.iter().find(|(known, _)| *known == flex).map(|&(_, handler)| handler)
}

#[rustfmt::skip]
const HANDLERS: &[(&str, Handler)] = &[
    ("CONV_2D", convolution::conv2d),
    ("DEPTHWISE_CONV_2D", convolution::depthwise),
    ("TRANSPOSE_CONV", deconvolution::transposed),
    ("CUSTOM \"Convolution2DTransposeBias\"", deconvolution::biased),
    ("CONV_3D", convolution::conv3d),
    ("CONV_3D_TRANSPOSE", deconvolution::volumes),
    ("MAX_POOL_2D", |i, op| pooling::pool(i, op, Pooling::Max)),
    ("AVERAGE_POOL_2D", |i, op| pooling::pool(i, op, Pooling::Average)),
    ("L2_POOL_2D", pooling::l2_pool),
    ("FULLY_CONNECTED", products::fully_connected),
    ("BATCH_MATMUL", products::batch_matmul),

    ("UNIDIRECTIONAL_SEQUENCE_LSTM", recurrent::sequence_lstm),
    ("BIDIRECTIONAL_SEQUENCE_LSTM", recurrent::bidirectional_lstm),
    ("LSTM", recurrent::lstm),
    ("RNN", recurrent::rnn),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", recurrent::sequence_rnn),
    ("BIDIRECTIONAL_SEQUENCE_RNN", recurrent::bidirectional_rnn),
    ("SVDF", svdf::svdf),

    ("WHILE", control::repeat),
    ("IF", control::branch),
    ("STABLEHLO_COMPOSITE", control::composite),
    ("CALL_ONCE", control::call_once),
    ("VAR_HANDLE", control::var_handle),
    ("READ_VARIABLE", control::read_variable),
    ("ASSIGN_VARIABLE", control::assign_variable),

    ("RESHAPE", shapes::reshape),
    ("SQUEEZE", shapes::squeeze),
    ("EXPAND_DIMS", shapes::expand_dims),
    ("SHAPE", shapes::shape),
    ("RANK", shapes::rank),
    ("BROADCAST_ARGS", shapes::broadcast_args),
    ("FILL", shapes::fill),
    ("RANGE", shapes::range),
    ("DEQUANTIZE", shapes::dequantise),
    ("QUANTIZE", rounding::quantise),
    ("DENSIFY", shapes::dequantise),

    ("ADD", |i, op| elementwise::of(i, op, Function::Add)),
    ("SUB", |i, op| elementwise::of(i, op, Function::Sub)),
    ("MUL", |i, op| elementwise::of(i, op, Function::Mul)),
    ("DIV", |i, op| elementwise::of(i, op, Function::Div)),
    ("MAXIMUM", |i, op| elementwise::of(i, op, Function::Maximum)),
    ("MINIMUM", |i, op| elementwise::of(i, op, Function::Minimum)),
    ("POW", |i, op| elementwise::of(i, op, Function::Pow)),
    ("SQUARED_DIFFERENCE", |i, op| elementwise::of(i, op, Function::SquaredDifference)),
    ("FLOOR_DIV", |i, op| elementwise::of(i, op, Function::FloorDiv)),
    ("FLOOR_MOD", |i, op| elementwise::of(i, op, Function::FloorMod)),
    ("ATAN2", elementwise::angle),
    ("RELU", |i, op| elementwise::of(i, op, Function::Relu)),
    ("RELU6", |i, op| elementwise::of(i, op, Function::Relu6)),
    ("RELU_N1_TO_1", |i, op| elementwise::of(i, op, Function::ReluN1To1)),
    ("LOGISTIC", |i, op| elementwise::of(i, op, Function::Sigmoid)),
    ("TANH", |i, op| elementwise::of(i, op, Function::Tanh)),
    ("HARD_SWISH", |i, op| elementwise::of(i, op, Function::HardSwish)),
    ("ELU", |i, op| elementwise::of(i, op, Function::Elu)),
    ("EXP", |i, op| elementwise::of(i, op, Function::Exp)),
    ("LOG", |i, op| elementwise::of(i, op, Function::Log)),
    ("SQRT", |i, op| elementwise::of(i, op, Function::Sqrt)),
    ("RSQRT", |i, op| elementwise::of(i, op, Function::Rsqrt)),
    ("NEG", |i, op| elementwise::of(i, op, Function::Neg)),
    ("ABS", |i, op| elementwise::of(i, op, Function::Abs)),
    ("SQUARE", |i, op| elementwise::of(i, op, Function::Square)),
    ("SIN", |i, op| elementwise::of(i, op, Function::Sin)),
    ("COS", |i, op| elementwise::of(i, op, Function::Cos)),
    ("FLOOR", |i, op| elementwise::of(i, op, Function::Floor)),
    ("CEIL", |i, op| elementwise::of(i, op, Function::Ceil)),
    ("ROUND", |i, op| elementwise::of(i, op, Function::Round)),
    ("SIGN", |i, op| elementwise::of(i, op, Function::Sign)),
    ("PRELU", |i, op| elementwise::of(i, op, Function::PRelu)),
    ("EQUAL", |i, op| elementwise::of(i, op, Function::Equal)),
    ("NOT_EQUAL", |i, op| elementwise::of(i, op, Function::NotEqual)),
    ("LESS", |i, op| elementwise::of(i, op, Function::Less)),
    ("LESS_EQUAL", |i, op| elementwise::of(i, op, Function::LessEqual)),
    ("GREATER", |i, op| elementwise::of(i, op, Function::Greater)),
    ("GREATER_EQUAL", |i, op| elementwise::of(i, op, Function::GreaterEqual)),
    ("LOGICAL_AND", |i, op| elementwise::of(i, op, Function::LogicalAnd)),
    ("LOGICAL_OR", |i, op| elementwise::of(i, op, Function::LogicalOr)),
    ("LOGICAL_NOT", |i, op| elementwise::of(i, op, Function::LogicalNot)),
    ("BITWISE_XOR", |i, op| elementwise::integers(i, op, IntegerFunction::BitXor)),
    ("RIGHT_SHIFT", |i, op| elementwise::integers(i, op, IntegerFunction::ShiftRight)),
    ("CUSTOM \"FlexErf\"", |i, op| elementwise::of(i, op, Function::Erf)),
    ("SELECT", elementwise::select),
    ("SELECT_V2", |i, op| elementwise::of(i, op, Function::Select)),
    ("RELU_0_TO_1", elementwise::relu_0_to_1),
    ("LEAKY_RELU", elementwise::leaky_relu),
    ("GELU", elementwise::gelu),
    ("ADD_N", elementwise::add_n),
    ("ZEROS_LIKE", elementwise::zeros_like),
    ("CAST", elementwise::cast),

    ("CUSTOM \"FlexTensorListReserve\"", lists::reserve),
    ("CUSTOM \"FlexEmptyTensorList\"", lists::empty),
    ("CUSTOM \"FlexTensorListFromTensor\"", lists::from_tensor),
    ("CUSTOM \"FlexTensorListSetItem\"", lists::set_item),
    ("CUSTOM \"FlexTensorListGetItem\"", lists::get_item),
    ("CUSTOM \"FlexTensorListStack\"", lists::stack),
    ("CUSTOM \"FlexTensorListLength\"", lists::length),
    ("CUSTOM \"FlexTensorListPushBack\"", lists::push_back),
    ("CUSTOM \"FlexTensorListPopBack\"", lists::pop_back),
    ("CUSTOM \"FlexTensorListResize\"", lists::resize),

    ("TRANSPOSE", moves::transpose),
    ("STRIDED_SLICE", slices::strided_slice),
    ("SLICE", slices::slice),
    ("SPLIT", slices::split),
    ("SPLIT_V", slices::split_v),
    ("UNPACK", slices::unpack),
    ("PACK", joins::pack),
    ("CONCATENATION", joins::concatenation),
    ("PAD", moves::pad),
    ("PADV2", moves::pad),
    ("MIRROR_PAD", moves::mirror_pad),
    ("TILE", moves::tile),
    ("BROADCAST_TO", moves::broadcast_to),
    ("REVERSE_V2", moves::reverse),
    ("DEPTH_TO_SPACE", moves::depth_to_space),
    ("SPACE_TO_DEPTH", moves::space_to_depth),
    ("SPACE_TO_BATCH_ND", moves::space_to_batch),
    ("BATCH_TO_SPACE_ND", moves::batch_to_space),
    ("GATHER", moves::gather),
    ("GATHER_ND", moves::gather_nd),
    ("EMBEDDING_LOOKUP", moves::embedding_lookup),

    ("SCATTER_ND", scatter::scatter_nd),
    ("SPARSE_TO_DENSE", scatter::sparse_to_dense),
    ("SEGMENT_SUM", |i, op| scatter::segments(i, op, Combine::Add, true)),
    ("UNSORTED_SEGMENT_SUM", |i, op| scatter::segments(i, op, Combine::Add, false)),
    ("UNSORTED_SEGMENT_PROD", |i, op| scatter::segments(i, op, Combine::Mul, false)),
    ("UNSORTED_SEGMENT_MAX", |i, op| scatter::segments(i, op, Combine::Max, false)),
    ("UNSORTED_SEGMENT_MIN", |i, op| scatter::segments(i, op, Combine::Min, false)),
    ("REVERSE_SEQUENCE", scatter::reverse_sequence),
    ("MATRIX_DIAG", scatter::matrix_diag),
    ("MATRIX_SET_DIAG", scatter::matrix_set_diag),
    ("DYNAMIC_UPDATE_SLICE", scatter::update_slice),

    ("CUSTOM \"TFLite_Detection_PostProcess\"", detection::post_process),
    ("NON_MAX_SUPPRESSION_V4", |i, op| detection::suppress(i, op, false)),
    ("NON_MAX_SUPPRESSION_V5", |i, op| detection::suppress(i, op, true)),
    ("CUSTOM \"Landmarks2TransformMatrix\"", landmarks::matrix),
    ("CUSTOM \"TransformTensorBilinear\"", landmarks::bilinear),
    ("CUSTOM \"TransformLandmarks\"", landmarks::landmarks),
    ("CUSTOM \"MaxPoolingWithArgmax2D\"", landmarks::pool_with_places),
    ("CUSTOM \"MaxUnpooling2D\"", landmarks::unpool),

    ("RFFT2D", spectra::rfft2d),
    ("COMPLEX_ABS", spectra::magnitude),
    ("REAL", |i, op| spectra::part(i, op, false)),
    ("IMAG", |i, op| spectra::part(i, op, true)),
    ("FAKE_QUANT", rounding::fake_quant),
    ("BUCKETIZE", rounding::bucketize),

    ("STABLEHLO_ADD", |i, op| elementwise::of(i, op, Function::Add)),
    ("STABLEHLO_SUBTRACT", |i, op| elementwise::of(i, op, Function::Sub)),
    ("STABLEHLO_MULTIPLY", |i, op| elementwise::of(i, op, Function::Mul)),
    ("STABLEHLO_DIVIDE", |i, op| elementwise::of(i, op, Function::Div)),
    ("STABLEHLO_MAXIMUM", |i, op| elementwise::of(i, op, Function::Maximum)),
    ("STABLEHLO_MINIMUM", |i, op| elementwise::of(i, op, Function::Minimum)),
    ("STABLEHLO_POWER", |i, op| elementwise::of(i, op, Function::Pow)),
    ("STABLEHLO_ABS", |i, op| elementwise::of(i, op, Function::Abs)),
    ("STABLEHLO_COSINE", |i, op| elementwise::of(i, op, Function::Cos)),
    ("STABLEHLO_EXPONENTIAL", |i, op| elementwise::of(i, op, Function::Exp)),
    ("STABLEHLO_FLOOR", |i, op| elementwise::of(i, op, Function::Floor)),
    ("STABLEHLO_LOG", |i, op| elementwise::of(i, op, Function::Log)),
    ("STABLEHLO_LOGISTIC", |i, op| elementwise::of(i, op, Function::Sigmoid)),
    ("STABLEHLO_NEGATE", |i, op| elementwise::of(i, op, Function::Neg)),
    ("STABLEHLO_RSQRT", |i, op| elementwise::of(i, op, Function::Rsqrt)),
    ("STABLEHLO_TANH", |i, op| elementwise::of(i, op, Function::Tanh)),
    ("STABLEHLO_SELECT", |i, op| elementwise::of(i, op, Function::Select)),
    ("STABLEHLO_AND", |i, op| elementwise::of(i, op, Function::LogicalAnd)),
    ("STABLEHLO_OR", |i, op| elementwise::of(i, op, Function::LogicalOr)),

    ("RANDOM_UNIFORM", |i, op| random::of_shape(i, op, Random::uniform(0.0, 1.0))),
    ("RANDOM_STANDARD_NORMAL", |i, op| random::of_shape(i, op, Random::normal(0.0, 1.0))),
    ("MULTINOMIAL", random::multinomial),

    ("WHERE", scatter::places_where),

    ("MEAN", |i, op| reductions::reduce(i, op, Reduction::Mean)),
    ("SUM", |i, op| reductions::reduce(i, op, Reduction::Sum)),
    ("REDUCE_MAX", |i, op| reductions::reduce(i, op, Reduction::Max)),
    ("REDUCE_MIN", |i, op| reductions::reduce(i, op, Reduction::Min)),
    ("REDUCE_PROD", |i, op| reductions::reduce(i, op, Reduction::Product)),
    ("REDUCE_ANY", |i, op| reductions::reduce(i, op, Reduction::Any)),
    ("REDUCE_ALL", |i, op| reductions::reduce(i, op, Reduction::All)),
    ("ARG_MAX", |i, op| reductions::arg(i, op, true)),
    ("ARG_MIN", |i, op| reductions::arg(i, op, false)),
    ("SOFTMAX", reductions::softmax),
    ("LOG_SOFTMAX", reductions::log_softmax),
    ("L2_NORMALIZATION", norms::l2_normalization),
    ("LOCAL_RESPONSE_NORMALIZATION", norms::local_response),
    ("CUMSUM", norms::cumsum),
    ("ONE_HOT", norms::one_hot),
    ("TOPK_V2", norms::top_k),
    ("RESIZE_BILINEAR", reductions::resize_bilinear),
    ("RESIZE_NEAREST_NEIGHBOR", reductions::resize_nearest),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tflite::names;

    #[test]
    fn every_operator_is_one_of_the_schema_and_there_once() {
        for (index, (name, _)) in HANDLERS.iter().enumerate() {
            assert!(names::OPERATORS.contains(name) || name.starts_with("CUSTOM "), "{name}");
            assert!(HANDLERS[..index].iter().all(|(earlier, _)| earlier != name), "{name} twice");
        }
    }
}
