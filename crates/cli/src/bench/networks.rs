//! Networks of usual kinds with random weights: what the suites `networks` and `growth` measure.
//!
//! Their shapes are those of MobileNet v1 (Howard et al., 2017), ViT-S/16 (Dosovitskiy et al., 2021), the encoder of Whisper tiny
//! (Radford et al., 2022), a sentence encoder of six layers (MiniLM; Wang et al., 2020), and one token of a decoder of 512
//! features. Weights are such that values keep their size from layer to layer.

use super::cpu::noise;
use anyhow::Result;
use diptych::nn::{Attention, ByteRange, QuantizedConv2d, QuantizedDepthwise, QuantizedGemm, QuantizedPool};
use diptych::nn::{Normalize, QuantizedPooling};
use diptych::{
    Activation, AttentionInputs, Bits, Conv2d, Depthwise, Dim, Dims, Extras, Gemm, Graph, HostTensor,
    Padding, Pointwise, QuantizedMatrix, QuantizedWeights, Reduction, Right, Value,
};

/// Extents of an encoder or a decoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoder {
    pub(super) layers: usize,
    pub(super) tokens: usize,
    pub(super) width: usize,
    /// Features of a head.
    pub(super) head: usize,
}

/// A network to be measured.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) graph: Graph,
    /// Whether it computes on bytes, which have no precision.
    pub(super) bytes: bool,
}

/// Numbers for constants: each tensor has its own.
struct Builder {
    graph: Graph,
    seed: u32,
}

impl Builder {
    fn new() -> Self {
        Builder { graph: Graph::new(), seed: 0 }
    }

    fn name(&mut self, what: &str) -> String {
        self.seed += 1;
        format!("{what} {}", self.seed)
    }

    /// Numbers whose variance is one over `terms`.
    fn weights(&mut self, extents: &[usize], terms: usize) -> Result<HostTensor> {
        self.seed += 1;
        let dims = Dims::new(extents)?;
        let size = (3.0 / terms as f32).sqrt();
        let values: Vec<f32> =
            noise(self.seed, dims.elements()).into_iter().map(|value| size * value).collect();
        Ok(HostTensor::new(dims, values)?)
    }

    fn bias(&mut self, count: usize) -> Result<HostTensor> {
        self.seed += 1;
        let values: Vec<f32> = noise(self.seed, count).into_iter().map(|value| 0.1 * value).collect();
        Ok(HostTensor::vector(values)?)
    }

    fn product(
        &mut self,
        x: Value,
        [k, n]: [usize; 2],
        residual: Option<Value>,
        gemm: Gemm,
    ) -> Result<Value> {
        let (name, weights, bias) = (self.name("product"), self.weights(&[k, n], k)?, self.bias(n)?);
        let extras = Extras { residual, ..Extras::bias(bias) };
        Ok(self.graph.gemm(&name, x, Right::Constant(weights), extras, gemm)?)
    }

    fn norm(&mut self, x: Value, width: usize) -> Result<Value> {
        let (name, scale, bias) = (self.name("norm"), self.bias(width)?, self.bias(width)?);
        let scale: Vec<f32> = scale.to_f32().iter().map(|value| 1.0 + value).collect();
        let scale = Some(HostTensor::vector(scale)?);
        Ok(self.graph.normalize(&name, x, Normalize::default(), scale, Some(bias))?)
    }

    fn attention(&mut self, [q, k, v]: [Value; 3]) -> Result<Value> {
        let (name, options) =
            (self.name("attention"), Attention { places_first: true, ..Attention::default() });
        Ok(self.graph.attention(&name, [q, k, v], AttentionInputs::default(), options)?)
    }

    fn view(&mut self, x: Value, extents: &[usize]) -> Result<Value> {
        let extents: Vec<Dim> = extents.iter().map(|&extent| extent.into()).collect();
        let name = self.name("view");
        Ok(self.graph.reshape(&name, x, &extents)?)
    }

    /// The two products behind an attention, with a norm before them.
    fn perceptron(&mut self, x: Value, width: usize) -> Result<Value> {
        let norm = self.norm(x, width)?;
        let wide = Gemm { activation: Activation::Gelu, ..Gemm::default() };
        let hidden = self.product(norm, [width, 4 * width], None, wide)?;
        self.product(hidden, [4 * width, width], Some(x), Gemm::default())
    }
}

/// Layers of attention and two products each, with norms before them.
///
/// # Errors
/// If `width` is no multiple of `head`, or tensors are too large.
pub(super) fn encoder(of: Encoder) -> Result<Graph> {
    let Encoder { layers, tokens, width, head } = of;
    let mut builder = Builder::new();
    let mut x = builder.graph.input("tokens", Dims::new(&[tokens, width])?)?;
    for _ in 0..layers {
        let norm = builder.norm(x, width)?;
        let mut parts = [norm; 3];
        for part in &mut parts {
            *part = builder.product(norm, [width, width], None, Gemm::default())?;
            *part = builder.view(*part, &[1, tokens, width / head, head])?;
        }
        let mixed = builder.attention(parts)?;
        let mixed = builder.view(mixed, &[tokens, width])?;
        x = builder.product(mixed, [width, width], Some(x), Gemm::default())?;
        x = builder.perceptron(x, width)?;
    }
    builder.graph.output(x)?;
    Ok(builder.graph)
}

/// One token of a decoder that attends `of.tokens` tokens, whose keys and values are there. With `bits`, weights are packed.
///
/// # Errors
/// As those of [`encoder`].
pub(super) fn decoder_token(of: Encoder, bits: Option<usize>) -> Result<Graph> {
    let Encoder { layers, tokens, width, head } = of;
    let mut builder = Builder::new();
    let mut x = builder.graph.input("token", Dims::new(&[1, width])?)?;
    let (none, gelu) = (Activation::None, Activation::Gelu);
    let product =
        |builder: &mut Builder, x: Value, [k, n]: [usize; 2], activation, residual: Option<Value>| {
            let Some(bits) = bits else {
                return builder.product(x, [k, n], residual, Gemm { activation, ..Gemm::default() });
            };
            let name = builder.name("packed product");
            let integers: Vec<u8> =
                noise(builder.seed, n * k).iter().map(|value| ((value + 1.0) * 8.0) as u8).collect();
            let size = 1.0 / (8.0 * (k as f32 / 3.0).sqrt());
            let matrix = QuantizedMatrix::pack(bits, [n, k], &integers, vec![size; n * k / 32])?;
            let extras = Extras { residual, ..Extras::default() };
            let options = QuantizedGemm { block: Some(32), activation, ..QuantizedGemm::new(bits) };
            Ok(builder.graph.quantized_gemm(&name, x, matrix, extras, options)?)
        };
    for _ in 0..layers {
        let norm = builder.norm(x, width)?;
        let query = product(&mut builder, norm, [width, width], none, None)?;
        let query = builder.view(query, &[1, 1, width / head, head])?;
        let past = [1, tokens, width / head, head];
        let mut parts = [query; 3];
        for part in parts.iter_mut().skip(1) {
            let (name, values) = (builder.name("past"), builder.weights(&past, 1)?);
            *part = builder.graph.constant(&name, values);
        }
        let mixed = builder.attention(parts)?;
        let mixed = builder.view(mixed, &[1, width])?;
        x = product(&mut builder, mixed, [width, width], none, Some(x))?;
        let norm = builder.norm(x, width)?;
        let hidden = product(&mut builder, norm, [width, 4 * width], gelu, None)?;
        x = product(&mut builder, hidden, [4 * width, width], none, Some(x))?;
    }
    builder.graph.output(x)?;
    Ok(builder.graph)
}

/// Output channels and strides of MobileNet's thirteen blocks.
const BLOCKS: [(usize, usize); 13] = [
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
];

/// MobileNet v1 of a width of 1 and 1000 classes.
///
/// # Errors
/// If tensors are too large.
pub(super) fn mobilenet(batch: usize, resolution: usize) -> Result<Graph> {
    let mut builder = Builder::new();
    let x = builder.graph.input("picture", Dims::new(&[batch, resolution, resolution, 3])?)?;
    let stem =
        Conv2d { stride: [2, 2], padding: Padding::Same, activation: Activation::Relu6, ..Conv2d::default() };
    let (weights, bias) = (builder.weights(&[32, 3, 3, 3], 14)?, builder.bias(32)?);
    let mut x = builder.graph.conv2d("stem", x, weights, Extras::bias(bias), stem)?;
    let mut channels = 32;
    for (wide, stride) in BLOCKS {
        let options = Depthwise {
            stride: [stride; 2],
            padding: Padding::Same,
            activation: Activation::Relu6,
            ..Depthwise::default()
        };
        let (name, weights) = (builder.name("depthwise"), builder.weights(&[1, 3, 3, channels], 5)?);
        let bias = builder.bias(channels)?;
        x = builder.graph.depthwise(&name, x, weights, Extras::bias(bias), options)?;
        let options = Pointwise { activation: Activation::Relu6 };
        let (name, weights) =
            (builder.name("pointwise"), builder.weights(&[wide, 1, 1, channels], channels / 2)?);
        let bias = builder.bias(wide)?;
        x = builder.graph.pointwise(&name, x, weights, Extras::bias(bias), options)?;
        channels = wide;
    }
    let mean = builder.graph.reduce("mean", x, Reduction::Mean, &[1, 2], false)?;
    let classes = builder.product(mean, [channels, 1000], None, Gemm::default())?;
    builder.graph.output(classes)?;
    Ok(builder.graph)
}

/// MobileNet v1 of a width of 1 and 1000 classes whose activations and weights are bytes.
///
/// # Errors
/// If tensors are too large.
pub(super) fn mobilenet_of_bytes(batch: usize, resolution: usize) -> Result<Graph> {
    let mut builder = Builder::new();
    let x = builder.graph.input("picture", Dims::new(&[batch, resolution, resolution, 3])?)?;
    let range = ByteRange::all(128);
    // Bytes of activations lie about a third of their range from the middle, and so do those of weights.
    let mut x = builder.graph.quantize("bytes", x, 1.0 / 127.0, range)?;
    let weights = |builder: &mut Builder, [o, kh, kw, c]: [usize; 4], outputs: usize, terms: usize| {
        let name = builder.name("weights");
        let words: Vec<u32> = noise(builder.seed, 4 * o * kh * kw * c)
            .chunks_exact(4)
            .map(|bytes| {
                let bytes = [0, 1, 2, 3].map(|lane| (100.0 * bytes[lane]) as i8 as u8);
                u32::from_le_bytes(bytes)
            })
            .collect();
        let words = HostTensor::of::<u32>(Dims::new(&[o, kh, kw, c])?, words)?;
        let bias: Vec<i32> =
            noise(builder.seed + 1, outputs).iter().map(|value| (1000.0 * value) as i32).collect();
        let bias = HostTensor::of::<i32>(Dims::new(&[outputs])?, bias)?;
        let scale = HostTensor::vector(vec![1.0 / (58.0 * (terms as f32).sqrt()); outputs])?;
        Ok::<_, anyhow::Error>(QuantizedWeights {
            weights: builder.graph.constant(&name, words),
            bias: builder.graph.constant(&format!("{name} bias"), bias),
            scale: builder.graph.constant(&format!("{name} scale"), scale),
        })
    };
    let padded = |stride| QuantizedConv2d {
        stride: [stride; 2],
        padding: Padding::Same,
        ..QuantizedConv2d::new(128, range)
    };
    let stem = weights(&mut builder, [32, 3, 3, 1], 32, 27)?;
    x = builder.graph.quantized_conv2d("stem", x, stem, padded(2))?;
    let mut channels = 32;
    for (wide, stride) in BLOCKS {
        let options = QuantizedDepthwise {
            stride: [stride; 2],
            padding: Padding::Same,
            ..QuantizedDepthwise::new(128, range)
        };
        let (own, name) =
            (weights(&mut builder, [1, 3, 3, channels / 4], channels, 9)?, builder.name("depthwise"));
        x = builder.graph.quantized_depthwise(&name, x, own, options)?;
        let (own, name) =
            (weights(&mut builder, [wide, 1, 1, channels / 4], wide, channels)?, builder.name("pointwise"));
        x = builder.graph.quantized_conv2d(&name, x, own, padded(1))?;
        channels = wide;
    }
    let extent = resolution.div_ceil(32);
    // The mean of many bytes is near the middle: four times it is as far from there as a byte of another layer.
    let factor = Bits(4.0 / (extent * extent) as f32);
    let pool = QuantizedPool {
        pooling: QuantizedPooling::Scaled { zero: 128, factor },
        window: [extent; 2],
        stride: [1; 2],
        padding: Padding::Valid,
        range,
    };
    x = builder.graph.quantized_pool("mean", x, pool)?;
    let classes = weights(&mut builder, [1000, 1, 1, channels / 4], 1000, channels)?;
    x = builder.graph.quantized_conv2d("classes", x, classes, padded(1))?;
    x = builder.graph.dequantize("scores", x, 0.1, 128, 1000)?;
    builder.graph.output(x)?;
    Ok(builder.graph)
}

/// What the suite `networks` measures.
///
/// # Errors
/// Those of the networks.
pub(super) fn usual() -> Result<Vec<Named>> {
    let vision = Encoder { layers: 12, tokens: 197, width: 384, head: 64 };
    let speech = Encoder { layers: 4, tokens: 1500, width: 384, head: 64 };
    let sentence = Encoder { layers: 6, tokens: 128, width: 384, head: 32 };
    let token = Encoder { layers: 6, tokens: 1024, width: 512, head: 64 };
    let all = [
        ("MobileNet 224", mobilenet(1, 224)?, false),
        ("MobileNet 224 on bytes", mobilenet_of_bytes(1, 224)?, true),
        ("vision transformer, 12 layers, 197 tokens", encoder(vision)?, false),
        ("speech encoder, 4 layers, 1500 tokens", encoder(speech)?, false),
        ("sentence encoder, 6 layers, 128 tokens", encoder(sentence)?, false),
        ("decoder, 6 layers, a token behind 1024", decoder_token(token, None)?, false),
        ("decoder of 4 bits, 6 layers, a token behind 1024", decoder_token(token, Some(4))?, false),
    ];
    Ok(all.map(|(name, graph, bytes)| Named { name: name.to_owned(), graph, bytes }).into())
}

/// What the suite `growth` measures: each network at several sizes, which its name ends with (`resolution=224`).
///
/// # Errors
/// Those of the networks.
pub(super) fn growing() -> Result<Vec<Named>> {
    let of = Encoder { layers: 2, tokens: 128, width: 384, head: 64 };
    let mut all = Vec::new();
    let mut push = |name: String, graph: Graph, bytes: bool| all.push(Named { name, graph, bytes });
    for batch in [1, 2, 4, 8, 16] {
        push(format!("MobileNet 128, batch={batch}"), mobilenet(batch, 128)?, false);
    }
    for resolution in [64, 128, 192, 256, 384] {
        push(format!("MobileNet, resolution={resolution}"), mobilenet(1, resolution)?, false);
        push(
            format!("MobileNet on bytes, resolution={resolution}"),
            mobilenet_of_bytes(1, resolution)?,
            true,
        );
    }
    for tokens in [32, 64, 128, 256, 512, 1024, 2048] {
        push(
            format!("encoder of 2 layers, 384 features, sequence={tokens}"),
            encoder(Encoder { tokens, ..of })?,
            false,
        );
    }
    for width in [64, 128, 256, 512, 1024] {
        push(
            format!("encoder of 2 layers, 128 tokens, width={width}"),
            encoder(Encoder { width, ..of })?,
            false,
        );
    }
    for tokens in [256, 1024, 4096, 16384] {
        let of = Encoder { width: 512, tokens, ..of };
        push(format!("decoder of 2 layers, 512 features, past={tokens}"), decoder_token(of, None)?, false);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych::{Backend, Context, Session, SessionOptions};

    #[test]
    fn values_neither_vanish_nor_grow() {
        let of = Encoder { layers: 2, tokens: 12, width: 64, head: 32 };
        let networks = [
            ("mobilenet", mobilenet(1, 64).expect("a network")),
            ("bytes", mobilenet_of_bytes(1, 64).expect("a network")),
            ("encoder", encoder(of).expect("a network")),
            ("decoder", decoder_token(of, None).expect("a network")),
            ("packed", decoder_token(of, Some(4)).expect("a network")),
        ];
        let context = Context::new(Backend::Cpu).expect("the CPU");
        for (name, graph) in networks {
            let mut session = Session::new(&context, &graph, SessionOptions::default()).expect("a session");
            let input = graph.inputs()[0];
            let dims = graph.dims(input).expect("an input");
            let x = HostTensor::new(dims, noise(1, dims.elements())).expect("as many");
            let y = session.run(&[(graph.name(input).expect("named"), &x)]).expect("a run");
            let values = y[0].to_f32();
            let size = (values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32).sqrt();
            let distinct: std::collections::BTreeSet<u32> =
                values.iter().map(|value| value.to_bits()).collect();
            assert!(
                (0.05..20.0).contains(&size) && distinct.len() > 16,
                "{name}: {size}, {}",
                distinct.len()
            );
        }
    }
}
