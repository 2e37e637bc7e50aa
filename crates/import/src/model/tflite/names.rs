//! The names behind the schema's enumerations.

use crate::model::build::Kind;
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;

/// The code of operators that have a name instead.
pub(super) const CUSTOM: i32 = 32;

/// Codes of the element types that the loader reads.
pub(super) mod element {
    pub(in super::super) const FLOAT32: i8 = 0;
    pub(in super::super) const FLOAT16: i8 = 1;
    pub(in super::super) const INT32: i8 = 2;
    pub(in super::super) const UINT8: i8 = 3;
    pub(in super::super) const INT64: i8 = 4;
    pub(in super::super) const BOOL: i8 = 6;
    pub(in super::super) const INT16: i8 = 7;
    pub(in super::super) const COMPLEX64: i8 = 8;
    pub(in super::super) const INT8: i8 = 9;
    pub(in super::super) const FLOAT64: i8 = 10;
    pub(in super::super) const RESOURCE: i8 = 13;
    pub(in super::super) const VARIANT: i8 = 14;
    pub(in super::super) const UINT32: i8 = 15;
    pub(in super::super) const UINT16: i8 = 16;
    pub(in super::super) const INT4: i8 = 17;
    pub(in super::super) const BFLOAT16: i8 = 18;
}

/// Whether elements of a type are floats.
pub(super) fn is_float(code: i8) -> bool {
    [element::FLOAT32, element::FLOAT16, element::FLOAT64, element::BFLOAT16].contains(&code)
}

/// The name of a builtin operator.
pub(super) fn operator(code: i32) -> String {
    usize::try_from(code)
        .ok()
        .and_then(|code| OPERATORS.get(code))
        .map_or_else(|| format!("builtin operator {code}"), |&name| name.to_owned())
}

/// The name of an element type.
pub(super) fn element_type(code: i8) -> String {
    usize::try_from(code)
        .ok()
        .and_then(|code| ELEMENT_TYPES.get(code))
        .map_or_else(|| format!("element type {code}"), |&name| name.to_owned())
}

/// The type of a tensor's elements, whose code the loader reads.
pub(super) fn kind(code: i8) -> Kind {
    match code {
        element::FLOAT16 => Kind::F16,
        element::INT32 => Kind::I32,
        element::UINT8 => Kind::U8,
        element::INT64 => Kind::I64,
        element::BOOL => Kind::Bool,
        element::INT16 => Kind::I16,
        element::INT8 => Kind::I8,
        element::FLOAT64 => Kind::F64,
        element::UINT32 => Kind::U32,
        element::UINT16 => Kind::U16,
        element::INT4 => Kind::I4,
        element::BFLOAT16 => Kind::Bf16,
        _ => Kind::F32,
    }
}

/// The function of each element that an operator's options add to it.
pub(super) fn fused(code: i8) -> Result<Option<Function>, Reason> {
    match code {
        0 => Ok(None),
        1 => Ok(Some(Function::Relu)),
        2 => Ok(Some(Function::ReluN1To1)),
        3 => Ok(Some(Function::Relu6)),
        4 => Ok(Some(Function::Tanh)),
        other => {
            let name = if other == 5 { "SIGN_BIT".to_owned() } else { format!("number {other}") };
            refused!("found fused activation {name}, wanted NONE, RELU, RELU_N1_TO_1, RELU6 or TANH")
        }
    }
}

#[rustfmt::skip]
const ELEMENT_TYPES: [&str; 19] = [
    "FLOAT32", "FLOAT16", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8",
    "FLOAT64", "COMPLEX128", "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4", "BFLOAT16",
];

/// The names of the operators, in the order of their codes.
#[rustfmt::skip]
pub(super) const OPERATORS: [&str; 209] = [
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE",
    "DEQUANTIZE", "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION",
    "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D",
    "MUL", "RELU", "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX",
    "SPACE_TO_DEPTH", "SVDF", "TANH", "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM",
    "EMBEDDING_LOOKUP_SPARSE", "PAD", "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB", "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2", "SPLIT", "LOG_SOFTMAX", "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM", "ARG_MAX", "MINIMUM", "LESS", "NEG", "PADV2",
    "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN", "TRANSPOSE_CONV", "SPARSE_TO_DENSE",
    "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT", "SHAPE", "POW", "ARG_MIN",
    "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT", "LOGICAL_AND",
    "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE", "FILL",
    "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD",
    "ABS", "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM",
    "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D",
    "CONV_3D", "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE", "REDUCE_ALL", "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE",
    "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL", "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU",
    "DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX",
    "UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN", "BITCAST", "BITWISE_XOR",
    "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD", "STABLEHLO_DIVIDE", "STABLEHLO_MULTIPLY",
    "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP", "STABLEHLO_CONCATENATE",
    "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL",
    "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL",
    "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR",
    "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT", "STABLEHLO_SUBTRACT",
    "STABLEHLO_TANH", "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT",
    "STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA",
    "STABLEHLO_DOT_GENERAL", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE",
    "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE", "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW",
    "STABLEHLO_COMPOSITE", "STABLEHLO_SHIFT_LEFT", "STABLEHLO_CBRT",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_types_have_their_names() {
        for (code, name) in [
            (3, "CONV_2D"),
            (CUSTOM, "CUSTOM"),
            (67, "TRANSPOSE_CONV"),
            (98, "LEAKY_RELU"),
            (126, "BATCH_MATMUL"),
            (144, "ASSIGN_VARIABLE"),
            (150, "GELU"),
        ] {
            assert_eq!(operator(code), name);
        }
        assert_eq!(operator(-1), "builtin operator -1");
        assert_eq!(operator(100_000), "builtin operator 100000");
        assert_eq!(element_type(element::FLOAT16), "FLOAT16");
        assert_eq!(element_type(element::BFLOAT16), "BFLOAT16");
        assert_eq!(element_type(-7), "element type -7");
    }
}
