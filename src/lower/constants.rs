//! The constants of a program, packed for their kernels: several at a time, into one buffer.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::emit::Operand;
use crate::error::Result;
use crate::host::HostTensor;
use crate::layout::Layout;
use crate::ops::{Choice, Op};
use crate::parallel;
use crate::task::Turns;
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::sync::Arc;

/// A constant operand of a node, as the graph has it, and the kernel that it is packed for.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(super) node: String,
    pub(super) op: Arc<dyn Op>,
    pub(super) choice: Choice,
    pub(super) operand: Operand,
    pub(super) tensor: HostTensor,
    /// What the kernel stores.
    pub(super) dtype: DType,
}

/// Elements of a tensor, as long as it is held, and how a kernel reads them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PackedAs {
    op: &'static str,
    /// What the op says of its packing.
    words: String,
    choice: Choice,
    operand: Operand,
    dtype: DType,
    place: (usize, Layout),
    dims: Dims,
}

impl Constant {
    /// What it is packed from, and how, which for other extents may be the same; none where nothing is worth sharing.
    pub(crate) fn key(&self) -> Option<PackedAs> {
        let Constant { op, choice, operand, tensor, dtype, .. } = self;
        if tensor.dims().elements() < MIN_SHARED {
            return None;
        }
        Some(PackedAs {
            op: op.name(),
            words: op.packing()?,
            // Packing depends on no work-group.
            choice: Choice { work_group: [0; 3], ..*choice },
            operand: *operand,
            dtype: *dtype,
            place: tensor.place(),
            dims: tensor.dims(),
        })
    }

    pub(crate) fn tensor(&self) -> &HostTensor {
        &self.tensor
    }

    /// Its elements in the order in which the kernel reads them.
    fn packed(&self) -> Result<Vec<f32>> {
        let kernel = self.op.kernel(self.choice.variant);
        let words = self.tensor.words();
        let packed = kernel.and_then(|own| own.pack(&self.choice, self.operand, &words?));
        packed.map_err(|error| error.at_node(&self.node))
    }

    /// Its bytes as the kernel stores them, in whole vec4s, so that a kernel may bind them as such.
    fn stored(&self) -> Result<Vec<u8>> {
        let elements = self.packed()?;
        let length = (elements.len() * self.dtype.bytes()).next_multiple_of(VEC4);
        let mut bytes = alloc::zeros(length, "a packed constant")?;
        self.store(&elements, &mut bytes);
        Ok(bytes)
    }

    /// Writes `elements` to the beginning of `bytes` as the kernel stores them.
    fn store(&self, elements: &[f32], bytes: &mut [u8]) {
        let own = bytes.get_mut(..elements.len() * self.dtype.bytes()).unwrap_or_default();
        if self.dtype != DType::F16 {
            own.copy_from_slice(bytemuck::cast_slice(elements).get(..own.len()).unwrap_or_default());
            return;
        }
        match bytemuck::try_cast_slice_mut::<u8, f16>(own) {
            Ok(halves) if halves.len() == elements.len() => halves.convert_from_f32_slice(elements),
            // They do not lie where halves may.
            _ => own.as_chunks_mut().0.iter_mut().zip(elements).for_each(|(bytes, element)| {
                *bytes = f16::from_f32(*element).to_ne_bytes();
            }),
        }
    }
}

/// Constants of fewer elements are not worth looking for others that are alike.
pub(crate) const MIN_SHARED: usize = 1024;

/// Bytes of a vec4 of f32.
const VEC4: usize = 16;

/// Constants that go into one buffer.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// The bytes of each.
    pub(crate) parts: Vec<Vec<u8>>,
    /// Where each begins in the buffer.
    pub(crate) offsets: Vec<u64>,
    /// Bytes of the buffer.
    pub(crate) bytes: u64,
}

/// Constants packed side by side before the thread's other tasks have their turn.
const AT_ONCE: usize = if cfg!(target_family = "wasm") { 1 } else { usize::MAX };

/// Where each of some constants of so many bytes begins, and where the last one ends.
fn places(lengths: impl Iterator<Item = usize>, alignment: u64) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let place = |length: usize| {
        let offset = end.next_multiple_of(alignment);
        end = offset + length as u64;
        offset
    };
    let offsets = lengths.map(place).collect();
    (offsets, end)
}

/// The bytes of the buffer that [`pack`] plans. Each constant is packed and let go of before the next one.
pub(crate) fn packed_bytes(constants: &[Constant], alignment: u64) -> Result<u64> {
    let length =
        |constant: &Constant| Ok((constant.packed()?.len() * constant.dtype.bytes()).next_multiple_of(VEC4));
    let lengths = constants.iter().map(length).collect::<Result<Vec<usize>>>()?;
    Ok(places(lengths.into_iter(), alignment).1)
}

/// Packs all of `constants`, each to begin at a multiple of `alignment`.
pub(crate) async fn pack(constants: &[&Constant], alignment: u64, turns: &mut Turns) -> Result<Packed> {
    let mut parts = Vec::with_capacity(constants.len());
    for some in constants.chunks(AT_ONCE) {
        for part in parallel::map(some, |constant: &&Constant| constant.stored()) {
            parts.push(part?);
        }
        turns.pass().await;
    }
    let (offsets, bytes) = places(parts.iter().map(Vec::len), alignment);
    Ok(Packed { parts, offsets, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Precision;
    use crate::limits::Limits;
    use crate::ops::pointwise::{Pointwise, PointwiseOp};
    use crate::shape::Shape;
    use crate::tune::work_group::{WorkGroup, untuned};

    fn constant(dtype: DType, operand: Operand, tensor: HostTensor) -> Constant {
        let (input, weights) = (Shape::nhwc(1, 2, 2, 4), Shape::nhwc(5, 1, 1, 4));
        let options = Pointwise::default();
        let op = PointwiseOp::new(input, weights, &options, true, false, Precision::F32).expect("shapes");
        let choice = untuned(&op, WorkGroup::Table, &Limits::webgpu()).expect("a kernel");
        Constant { node: "node".to_owned(), op: Arc::new(op), choice, operand, tensor, dtype }
    }

    fn pack(constants: &[Constant], alignment: u64) -> Result<Packed> {
        let constants: Vec<&Constant> = constants.iter().collect();
        crate::task::block_on(super::pack(&constants, alignment, &mut Turns::begin()))
    }

    #[test]
    fn constants_lie_apart_padded_and_in_their_own_type() {
        let bias: Vec<f32> = (1..=5).map(|channel| channel as f32).collect();
        let vector = || HostTensor::vector(bias.clone()).expect("five values");
        let both = [DType::F32, DType::F16].map(|dtype| constant(dtype, Operand::Bias, vector()));
        let packed = pack(&both, 256).expect("both");
        // Eight lanes: five channels and the rest of the last vec4.
        let [wide, narrow] = &packed.parts[..] else { panic!("{} parts", packed.parts.len()) };
        assert_eq!((&packed.offsets[..], packed.bytes), (&[0, 256][..], 272));
        assert_eq!((wide.len(), narrow.len()), (32, 16));
        assert_eq!(packed_bytes(&both, 256).expect("both"), 272);
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&wide[..20]), bias);
        let halves: Vec<f16> = bytemuck::pod_collect_to_vec(&narrow[..10]);
        assert_eq!(halves.iter().map(|value| value.to_f32()).collect::<Vec<_>>(), bias);
        assert!(wide[20..].iter().chain(&narrow[10..]).all(|&byte| byte == 0));
    }

    #[test]
    fn no_constants_are_no_bytes() {
        let packed = pack(&[], 256).expect("nothing");
        assert!(packed.bytes == 0 && packed.parts.is_empty());
    }

    #[test]
    fn what_does_not_fit_names_its_node() {
        let short = HostTensor::vector(vec![1.0; 3]).expect("three values");
        let error = pack(&[constant(DType::F32, Operand::Bias, short)], 256).expect_err("three of five");
        assert!(error.to_string().contains("node"), "{error}");
    }
}
