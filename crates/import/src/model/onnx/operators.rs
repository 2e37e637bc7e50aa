//! The operators that the loader reads: one line each, the function that adds it to the graph.

use super::import::{Handler, Handlers};
use super::recurrent::Form;
use super::reductions::{Around, PLAIN};
use super::{
    attention, bits, columns, contributed, control, convolution, einsum, elementwise, functions,
    fused_attention, grids, grouped_attention, hosted, indexing, integer_matrices, moves, norms, packed,
    pooling, products, quantised, random, recurrent, reductions, regions, resize, rotary, sequences, shapes,
    spectra, states, suppression, transposed, unpool,
};
use crate::model::build::{arc_cosine, arc_sine, arc_tangent};
use crate::ops::elementwise::Function;
use crate::ops::integer::IntegerFunction;
use crate::ops::reduce::Reduction;

/// The operators beside the standard ones that exporters write.
const MICROSOFT: &str = "com.microsoft";

/// What operators are read by.
pub(super) const HANDLERS: Handlers = Handlers { find: handler, keep: integer_matrices::kept };

/// Domain and name of each operator.
pub(in crate::model) fn names() -> Vec<(&'static str, &'static str)> {
    let lists = [("", STANDARD), (MICROSOFT, OTHERS)].into_iter();
    lists.flat_map(|(domain, list)| list.iter().map(move |(name, _)| (domain, *name))).collect()
}

/// The function of an operator, by its domain and name.
fn handler(domain: &str, name: &str) -> Option<Handler> {
    let list = match domain {
        "" => STANDARD,
        MICROSOFT => OTHERS,
        _ => return None,
    };
    list.iter().find(|(known, _)| *known == name).map(|&(_, handler)| handler)
}

#[rustfmt::skip]
const STANDARD: &[(&str, Handler)] = &[
    ("Conv", convolution::conv),
    ("ConvTranspose", transposed::transposed),
    ("MaxPool", pooling::max),
    ("AveragePool", pooling::average),
    ("LpPool", pooling::lp),
    ("GlobalAveragePool", |i, op| pooling::global(i, op, Reduction::Mean)),
    ("GlobalMaxPool", |i, op| pooling::global(i, op, Reduction::Max)),
    ("GlobalLpPool", pooling::global_lp),
    ("MatMul", products::matmul),
    ("Gemm", products::gemm),
    ("MatMulInteger", products::integer),
    ("ConvInteger", quantised::conv_integer),
    ("QLinearConv", quantised::conv),
    ("Einsum", einsum::einsum),
    ("DFT", spectra::transform),
    ("STFT", spectra::short_time),
    ("HannWindow", |i, op| spectra::window(i, op, [0.5, 0.5, 0.0])),
    ("HammingWindow", |i, op| spectra::window(i, op, [25.0 / 46.0, 21.0 / 46.0, 0.0])),
    ("BlackmanWindow", |i, op| spectra::window(i, op, [0.42, 0.5, 0.08])),
    ("MelWeightMatrix", spectra::mel),
    ("Det", products::determinant),
    ("MaxUnpool", unpool::unpool),
    ("Col2Im", columns::image),
    ("RoiAlign", regions::align),
    ("DeformConv", regions::deform),
    ("NonMaxSuppression", suppression::suppress),
    ("GridSample", grids::sample),
    ("AffineGrid", grids::affine),
    ("BitShift", bits::shift),
    ("BitwiseAnd", |i, op| bits::of(i, op, IntegerFunction::BitAnd)),
    ("BitwiseOr", |i, op| bits::of(i, op, IntegerFunction::BitOr)),
    ("BitwiseXor", |i, op| bits::of(i, op, IntegerFunction::BitXor)),
    ("BitwiseNot", |i, op| bits::of(i, op, IntegerFunction::BitNot)),
    ("BitCast", bits::cast),
    ("Attention", attention::attention),
    ("LinearAttention", states::linear),
    ("CausalConvWithState", states::causal),
    ("TensorScatter", states::write_into),
    ("RotaryEmbedding", rotary::embedding),
    ("LSTM", |i, op| recurrent::sequence(i, op, Form::Lstm)),
    ("GRU", |i, op| recurrent::sequence(i, op, Form::Gru)),
    ("RNN", |i, op| recurrent::sequence(i, op, Form::Rnn)),
    ("If", control::branch),
    ("Loop", control::repeat),
    ("Scan", control::scan),
    ("SequenceEmpty", sequences::empty),
    ("SequenceConstruct", sequences::construct),
    ("SequenceInsert", sequences::insert),
    ("SequenceErase", sequences::erase),
    ("SequenceAt", sequences::at),
    ("SequenceLength", sequences::length),
    ("SplitToSequence", sequences::split),
    ("ConcatFromSequence", sequences::concat),
    ("Optional", sequences::optional),
    ("OptionalHasElement", sequences::has_element),
    ("OptionalGetElement", sequences::element),

    ("Identity", shapes::identity),
    ("Constant", shapes::constant),
    ("Shape", shapes::shape),
    ("Size", shapes::size),
    ("ConstantOfShape", shapes::constant_of_shape),
    ("Range", shapes::range),
    ("EyeLike", shapes::eye_like),
    ("Reshape", shapes::reshape),
    ("Flatten", shapes::flatten),
    ("Squeeze", shapes::squeeze),
    ("Unsqueeze", shapes::unsqueeze),
    ("Expand", shapes::expand),
    ("DepthToSpace", shapes::depth_to_space),
    ("SpaceToDepth", shapes::space_to_depth),
    ("Trilu", shapes::trilu),

    ("Transpose", moves::transpose),
    ("Concat", moves::concat),
    ("Slice", moves::slice),
    ("Split", moves::split),
    ("Pad", moves::pad),
    ("Tile", moves::tile),
    ("Gather", indexing::gather),
    ("GatherND", indexing::gather_nd),
    ("GatherElements", indexing::gather_elements),
    ("ScatterElements", indexing::scatter_elements),
    ("Scatter", indexing::scatter_elements),
    ("ScatterND", indexing::scatter_nd),
    ("Compress", indexing::compress),
    ("NonZero", hosted::non_zero),
    ("Unique", hosted::unique),
    ("ReverseSequence", indexing::reverse_sequence),
    ("NegativeLogLikelihoodLoss", |i, op| indexing::loss(i, op, false)),
    ("SoftmaxCrossEntropyLoss", |i, op| indexing::loss(i, op, true)),
    ("CenterCropPad", moves::center),

    ("Add", |i, op| elementwise::of(i, op, Function::Add)),
    ("Sub", |i, op| elementwise::of(i, op, Function::Sub)),
    ("Mul", |i, op| elementwise::of(i, op, Function::Mul)),
    ("Div", |i, op| elementwise::of(i, op, Function::Div)),
    ("Pow", |i, op| elementwise::of(i, op, Function::Pow)),
    ("Mod", functions::modulo),
    ("Max", |i, op| elementwise::several(i, op, Function::Maximum)),
    ("Min", |i, op| elementwise::several(i, op, Function::Minimum)),
    ("Sum", |i, op| elementwise::several(i, op, Function::Add)),
    ("Mean", elementwise::mean),
    ("Equal", |i, op| elementwise::of(i, op, Function::Equal)),
    ("Less", |i, op| elementwise::of(i, op, Function::Less)),
    ("LessOrEqual", |i, op| elementwise::of(i, op, Function::LessEqual)),
    ("Greater", |i, op| elementwise::of(i, op, Function::Greater)),
    ("GreaterOrEqual", |i, op| elementwise::of(i, op, Function::GreaterEqual)),
    ("And", |i, op| elementwise::of(i, op, Function::LogicalAnd)),
    ("Or", |i, op| elementwise::of(i, op, Function::LogicalOr)),
    ("Not", |i, op| elementwise::of(i, op, Function::LogicalNot)),
    ("Xor", functions::xor),
    ("Where", |i, op| elementwise::of(i, op, Function::Select)),
    ("Clip", elementwise::clip),
    ("Cast", elementwise::cast),
    ("CastLike", elementwise::cast_like),
    ("Dropout", random::dropout),
    ("RandomNormal", |i, op| random::of_shape(i, op, true)),
    ("RandomNormalLike", |i, op| random::like(i, op, true)),
    ("RandomUniform", |i, op| random::of_shape(i, op, false)),
    ("RandomUniformLike", |i, op| random::like(i, op, false)),
    ("Bernoulli", random::bernoulli),
    ("Multinomial", random::multinomial),

    ("Relu", |i, op| elementwise::of(i, op, Function::Relu)),
    ("Sigmoid", |i, op| elementwise::of(i, op, Function::Sigmoid)),
    ("Tanh", |i, op| elementwise::of(i, op, Function::Tanh)),
    ("Exp", |i, op| elementwise::of(i, op, Function::Exp)),
    ("Log", |i, op| elementwise::of(i, op, Function::Log)),
    ("Sqrt", |i, op| elementwise::of(i, op, Function::Sqrt)),
    ("Neg", |i, op| elementwise::of(i, op, Function::Neg)),
    ("Abs", |i, op| elementwise::of(i, op, Function::Abs)),
    ("Reciprocal", |i, op| elementwise::of(i, op, Function::Reciprocal)),
    ("Sin", |i, op| elementwise::of(i, op, Function::Sin)),
    ("Cos", |i, op| elementwise::of(i, op, Function::Cos)),
    ("Tan", functions::tan),
    ("Asin", |i, op| functions::arc(i, op, arc_sine)),
    ("Acos", |i, op| functions::arc(i, op, arc_cosine)),
    ("Atan", |i, op| functions::arc(i, op, arc_tangent)),
    ("Sinh", |i, op| elementwise::of(i, op, Function::Sinh)),
    ("Cosh", |i, op| elementwise::of(i, op, Function::Cosh)),
    ("Asinh", |i, op| elementwise::of(i, op, Function::Asinh)),
    ("Acosh", |i, op| elementwise::of(i, op, Function::Acosh)),
    ("Atanh", |i, op| elementwise::of(i, op, Function::Atanh)),
    ("Erf", functions::erf),
    ("Floor", |i, op| elementwise::of(i, op, Function::Floor)),
    ("Ceil", |i, op| elementwise::of(i, op, Function::Ceil)),
    ("Round", |i, op| elementwise::of(i, op, Function::Round)),
    ("Sign", |i, op| elementwise::of(i, op, Function::Sign)),
    ("Softplus", |i, op| elementwise::of(i, op, Function::Softplus)),
    ("IsNaN", |i, op| elementwise::of(i, op, Function::IsNan)),
    ("IsInf", functions::is_inf),
    ("LeakyRelu", functions::leaky_relu),
    ("PRelu", functions::prelu),
    ("HardSigmoid", functions::hard_sigmoid),
    ("HardSwish", functions::hard_swish),
    ("Elu", functions::elu),
    ("Selu", functions::selu),
    ("Celu", functions::celu),
    ("ThresholdedRelu", functions::thresholded),
    ("Shrink", functions::shrink),
    ("Softsign", functions::softsign),
    ("Mish", functions::mish),
    ("Swish", functions::swish),
    ("SwiGLU", functions::swiglu),
    ("Gelu", functions::gelu),

    ("ReduceMean", |i, op| reductions::reduce(i, op, Reduction::Mean, PLAIN)),
    ("ReduceSum", |i, op| reductions::reduce(i, op, Reduction::Sum, PLAIN)),
    ("ReduceMax", |i, op| reductions::reduce(i, op, Reduction::Max, PLAIN)),
    ("ReduceMin", |i, op| reductions::reduce(i, op, Reduction::Min, PLAIN)),
    ("ReduceProd", |i, op| reductions::reduce(i, op, Reduction::Product, PLAIN)),
    ("ReduceL1", |i, op| reductions::reduce(i, op, Reduction::Sum, Around { before: Some(Function::Abs), after: None })),
    ("ReduceL2", |i, op| reductions::reduce(i, op, Reduction::Sum, Around { before: Some(Function::Square), after: Some(Function::Sqrt) })),
    ("ReduceSumSquare", |i, op| reductions::reduce(i, op, Reduction::Sum, Around { before: Some(Function::Square), after: None })),
    ("ReduceLogSum", |i, op| reductions::reduce(i, op, Reduction::Sum, Around { before: None, after: Some(Function::Log) })),
    ("ReduceLogSumExp", reductions::log_sum_exp),
    ("ArgMax", |i, op| reductions::arg(i, op, true)),
    ("ArgMin", |i, op| reductions::arg(i, op, false)),
    ("Softmax", |i, op| reductions::softmax(i, op, false)),
    ("LogSoftmax", |i, op| reductions::softmax(i, op, true)),
    ("Hardmax", reductions::hardmax),
    ("CumSum", reductions::cumsum),
    ("CumProd", reductions::cumprod),
    ("OneHot", reductions::one_hot),
    ("TopK", reductions::top_k),

    ("BatchNormalization", norms::batch),
    ("InstanceNormalization", norms::instance),
    ("GroupNormalization", norms::group),
    ("LayerNormalization", norms::layer),
    ("SimplifiedLayerNormalization", norms::root_mean_square),
    ("RMSNormalization", norms::root_mean_square),
    ("MeanVarianceNormalization", norms::mean_variance),
    ("LpNormalization", norms::lp),
    ("LRN", norms::local_response),
    ("Resize", resize::resize),
    ("Upsample", resize::resize),

    ("DequantizeLinear", quantised::dequantize),
    ("QuantizeLinear", quantised::quantize),
    ("QLinearMatMul", quantised::matmul),
    ("DynamicQuantizeLinear", quantised::dynamic),
];

#[rustfmt::skip]
const OTHERS: &[(&str, Handler)] = &[
    ("Gelu", functions::gelu),
    ("BiasGelu", |i, op| functions::biased_gelu(i, op, Function::Gelu)),
    ("FastGelu", |i, op| functions::biased_gelu(i, op, Function::GeluTanh)),
    ("QuickGelu", functions::swish),
    ("FusedConv", convolution::fused),
    ("Attention", fused_attention::fused),
    ("MultiHeadAttention", fused_attention::multi_head),
    ("GroupQueryAttention", grouped_attention::grouped),
    ("RotaryEmbedding", rotary::embedding),
    ("QLinearAdd", |i, op| quantised::binary(i, op, Function::Add)),
    ("QLinearMul", |i, op| quantised::binary(i, op, Function::Mul)),
    ("QLinearSigmoid", |i, op| quantised::unary(i, op, Function::Sigmoid)),
    ("QLinearLeakyRelu", |i, op| quantised::unary(i, op, Function::LeakyRelu)),
    ("QLinearGlobalAveragePool", quantised::global_average),
    ("QLinearSoftmax", quantised::softmax),
    ("QLinearConcat", quantised::concat),
    ("QLinearAveragePool", contributed::quantised_average),
    ("QGemm", contributed::quantised_gemm),
    ("DynamicQuantizeMatMul", contributed::dynamic_product),
    ("MatMulIntegerToFloat", contributed::integer_product),
    ("DynamicQuantizeLSTM", |i, op| recurrent::sequence(i, op, Form::Lstm)),
    ("MatMulNBits", packed::product_by_packed),
    ("FusedGemm", contributed::fused_gemm),
    ("EmbedLayerNormalization", contributed::embed),
    ("SkipSimplifiedLayerNormalization", contributed::skip_root),
    ("GridSample", grids::sample),
    ("Trilu", shapes::trilu),
    ("FusedMatMul", products::fused),
    ("TransposeMatMul", products::fused),
    ("LayerNormalization", norms::layer),
    ("SimplifiedLayerNormalization", norms::root_mean_square),
    ("SkipLayerNormalization", norms::skip_layer),
    ("DequantizeLinear", quantised::dequantize),
    ("QuantizeLinear", quantised::quantize),
];

/// Numbers that options are where a file does not say, by domain and operator. Operators of com.microsoft that are not
/// listed have those of the standard one of their name.
///
/// Source: the schemas of onnx 1.23, and those that ONNX Runtime 1.32 registers.
#[rustfmt::skip]
const DEFAULTS: &[(&str, &str, &str, f32)] = &[
    ("", "LeakyRelu", "alpha", 0.01),
    ("", "HardSigmoid", "alpha", 0.2),
    ("", "HardSigmoid", "beta", 0.5),
    ("", "Elu", "alpha", 1.0),
    ("", "Selu", "alpha", 1.673_263_2),
    ("", "Selu", "gamma", 1.050_701),
    ("", "Celu", "alpha", 1.0),
    ("", "ThresholdedRelu", "alpha", 1.0),
    ("", "Shrink", "bias", 0.0),
    ("", "Shrink", "lambd", 0.5),
    ("", "Swish", "alpha", 1.0),
    ("", "SwiGLU", "alpha", 1.0),
    ("", "Gemm", "alpha", 1.0),
    ("", "Gemm", "beta", 1.0),
    ("", "BatchNormalization", "epsilon", 1e-5),
    ("", "InstanceNormalization", "epsilon", 1e-5),
    ("", "GroupNormalization", "epsilon", 1e-5),
    ("", "LayerNormalization", "epsilon", 1e-5),
    ("", "SimplifiedLayerNormalization", "epsilon", 1e-5),
    ("", "RMSNormalization", "epsilon", 1e-5),
    ("", "LRN", "alpha", 1e-4),
    ("", "LRN", "beta", 0.75),
    ("", "LRN", "bias", 1.0),
    ("", "RoiAlign", "spatial_scale", 1.0),
    ("", "Resize", "cubic_coeff_a", -0.75),
    ("", "Resize", "extrapolation_value", 0.0),
    ("", "Upsample", "cubic_coeff_a", -0.75),
    ("", "Upsample", "extrapolation_value", 0.0),
    ("", "RandomNormal", "mean", 0.0),
    ("", "RandomNormal", "scale", 1.0),
    ("", "RandomNormalLike", "mean", 0.0),
    ("", "RandomNormalLike", "scale", 1.0),
    ("", "RandomUniform", "low", 0.0),
    ("", "RandomUniform", "high", 1.0),
    ("", "RandomUniformLike", "low", 0.0),
    ("", "RandomUniformLike", "high", 1.0),
    (MICROSOFT, "QuickGelu", "alpha", 1.702),
    (MICROSOFT, "QLinearLeakyRelu", "alpha", 0.01),
    (MICROSOFT, "QGemm", "alpha", 1.0),
    (MICROSOFT, "FusedGemm", "alpha", 1.0),
    (MICROSOFT, "FusedGemm", "beta", 1.0),
    (MICROSOFT, "FusedMatMul", "alpha", 1.0),
    (MICROSOFT, "TransposeMatMul", "alpha", 1.0),
    (MICROSOFT, "SkipLayerNormalization", "epsilon", 1e-12),
    (MICROSOFT, "SkipSimplifiedLayerNormalization", "epsilon", 1e-12),
    (MICROSOFT, "EmbedLayerNormalization", "epsilon", 1e-12),
    (MICROSOFT, "Attention", "mask_filter_value", -10_000.0),
    (MICROSOFT, "MultiHeadAttention", "mask_filter_value", -10_000.0),
];

/// What an option is where a file does not say.
pub(super) fn default(domain: &str, name: &str, option: &str) -> Option<f32> {
    let of = |wanted: &str| {
        let own = |(domain, of, known, _): &&(&str, &str, &str, f32)| {
            (*domain, *of, *known) == (wanted, name, option)
        };
        DEFAULTS.iter().find(own).map(|(.., number)| *number)
    };
    of(domain).or_else(|| of(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_there_once() {
        for list in [STANDARD, OTHERS] {
            for (index, (name, _)) in list.iter().enumerate() {
                assert!(list[..index].iter().all(|(earlier, _)| earlier != name), "{name} twice");
            }
        }
    }

    #[test]
    fn every_default_is_that_of_an_operator() {
        for (index, &(domain, name, option, _)) in DEFAULTS.iter().enumerate() {
            assert!(handler(domain, name).is_some(), "{domain} {name}");
            let same = |earlier: &&(&str, &str, &str, f32)| {
                (earlier.0, earlier.1, earlier.2) == (domain, name, option)
            };
            assert!(DEFAULTS[..index].iter().find(same).is_none(), "{name}: {option} twice");
        }
        assert_eq!(default(MICROSOFT, "LayerNormalization", "epsilon"), Some(1e-5));
        assert_eq!(default(MICROSOFT, "SkipLayerNormalization", "epsilon"), Some(1e-12));
        assert_eq!(default("", "SkipLayerNormalization", "epsilon"), None);
    }
}
