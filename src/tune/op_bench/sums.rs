//! Checksums of what a kernel has stored, worked out where it lies, and the copy that puts something else there before.
//!
//! Of vectors of four words, lane `l` of `L` takes `l`, `l + L`, and so on. Of their words `w[i]` it works out
//! `sum w[i] (2 i + 1)` and, for each of the four places, `mix = rotate(mix, 5) xor w[i]`, in 32 bits that wrap; the four are
//! rotated against each other and made one by xor. A word that changes changes the sum, because its factor is odd. Many lanes
//! have their results summed up in the same way, by [`LANES`].

use crate::device::{Buffer, Device, Dispatch, Memory, Pipeline, Slice, Wait};
use crate::dtype::DType;
use crate::emit::{
    Access, Binding, Dialect, Element, Interface, KernelSource, Operand, Param, ParamType, Scalar,
};
use crate::error::{Error, Result};
use crate::random::Random;

/// Lanes whose results are read.
const LANES: u32 = 64;
/// Lanes at most, and vectors of each where that is less.
const MAX_LANES: u32 = 1 << 16;
const VECTORS_OF_LANE: u32 = 16;
/// Bytes of one checksum.
pub(super) const BYTES: u64 = 8 * LANES as u64;

const CHECKSUM: &str = "
struct Params { vectors: u32, lanes: u32, at: u32 }
@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
fn turned(word: u32, bits: u32) -> u32 {
    return (word << bits) | (word >> (32u - bits));
}
@compute @workgroup_size(64)
fn checksum(@builtin(global_invocation_id) id: vec3<u32>) {
    let lane: u32 = id.x;
    if (lane >= params.lanes) { return; }
    var sum: vec4<u32> = vec4<u32>(0u);
    var mix: vec4<u32> = vec4<u32>(0u);
    for (var i: u32 = lane; i < params.vectors; i += params.lanes) {
        let words: vec4<u32> = src[i];
        sum += words * (vec4<u32>(8u * i) + vec4<u32>(1u, 3u, 5u, 7u));
        mix = ((mix << vec4<u32>(5u)) | (mix >> vec4<u32>(27u))) ^ words;
    }
    dst[params.at + 2u * lane] = sum.x + sum.y + sum.z + sum.w;
    dst[params.at + 2u * lane + 1u] = mix.x ^ turned(mix.y, 9u) ^ turned(mix.z, 17u) ^ turned(mix.w, 25u);
}
";

const COPY: &str = "
struct Params { vectors: u32, lanes: u32, at: u32 }
@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn restore(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.lanes) { return; }
    for (var i: u32 = id.x; i < params.vectors; i += params.lanes) {
        dst[params.at + i] = src[i];
    }
}
";

/// Words of a vector.
const VECTOR: usize = 4;

/// Lanes for so many vectors.
fn lanes(vectors: u32) -> u32 {
    (vectors / VECTORS_OF_LANE).next_power_of_two().clamp(LANES, MAX_LANES)
}

fn lanes_of(words: &[u32], lanes: u32) -> Vec<u32> {
    let mut found = vec![(0u32, [0u32; VECTOR]); lanes as usize];
    let mut place = 0u32;
    for line in words.chunks(VECTOR * lanes as usize) {
        for (vector, (sum, mix)) in line.chunks(VECTOR).zip(&mut found) {
            for (word, mix) in vector.iter().zip(mix) {
                *sum = sum.wrapping_add(word.wrapping_mul(place.wrapping_mul(2).wrapping_add(1)));
                *mix = mix.rotate_left(5) ^ word;
                place = place.wrapping_add(1);
            }
        }
    }
    let one = |(sum, [x, y, z, w]): (u32, [u32; VECTOR])| {
        [sum, x ^ y.rotate_left(9) ^ z.rotate_left(17) ^ w.rotate_left(25)]
    };
    found.into_iter().flat_map(one).collect()
}

/// The checksum of `bytes`, whole vectors, on the host.
pub(super) fn sums(bytes: &[u8]) -> Vec<u32> {
    let words: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
    let lanes = lanes(u32::try_from(words.len() / VECTOR).unwrap_or(u32::MAX));
    let sums = lanes_of(&words, lanes);
    if lanes > LANES { lanes_of(&sums, LANES) } else { sums }
}

/// The kernels on a device, and room for their results.
#[derive(Debug)]
pub(super) struct Sums {
    checksum: Pipeline,
    copy: Pipeline,
    /// The results of many lanes.
    many: Option<Buffer>,
    results: Buffer,
    /// Checksums that `results` has room for.
    room: u32,
}

fn kernel(label: &str, text: &str, written: Element) -> KernelSource {
    let vectors = Element::Vec4(DType::U32);
    let param = |name| Param { name, ty: ParamType::U32 };
    KernelSource {
        label: format!("tuner_{label}"),
        entry: label.to_owned(),
        dialect: Dialect::Wgsl,
        text: text.to_owned(),
        interface: Interface {
            bindings: vec![
                Binding::new(Operand::Src, vectors, Access::Read),
                Binding::new(Operand::Dst, written, Access::ReadWrite),
            ],
            params: vec![param("vectors"), param("lanes"), param("at")],
        },
        work_group: [64, 1, 1],
    }
}

fn dispatch(pipeline: &Pipeline, from: Slice, to: Slice, vectors: u32, lanes: u32, at: u32) -> Dispatch {
    Dispatch {
        pipeline: pipeline.clone(),
        resources: vec![from.into(), to.into()],
        params: [vectors, lanes, at].map(Scalar::U32).to_vec(),
        groups: [lanes.div_ceil(64), 1, 1],
    }
}

fn vectors_of(slice: &Slice) -> Result<u32> {
    u32::try_from(slice.bytes() / 16).map_err(|_| Error::Internal("an output of 64 GiB".to_owned()))
}

impl Sums {
    /// Compiles both kernels for up to `room` checksums; `None` where the device's are not the host's, which read what is
    /// stored then.
    pub(super) async fn on(wait: Wait, device: &dyn Device, room: u32) -> Result<Option<Self>> {
        let compile = async |label, text, written| device.compile_async(&kernel(label, text, written)).await;
        let sums = Sums {
            checksum: compile("checksum", CHECKSUM, Element::Scalar(DType::U32)).await?,
            copy: compile("restore", COPY, Element::Vec4(DType::U32)).await?,
            many: None,
            results: device.alloc(BYTES * u64::from(room.max(1)), Memory::Device)?,
            room: room.max(1),
        };
        sums.proven(wait, device).await
    }

    /// Itself, if it sums up words that the host knows.
    async fn proven(mut self, wait: Wait, device: &dyn Device) -> Result<Option<Self>> {
        let mut random = Random::new(7);
        for words in [64, 4, 36004] {
            let known: Vec<u32> = (0..words).map(|_| (random.word() >> 32) as u32).collect();
            let bytes = bytemuck::cast_slice::<u32, u8>(&known).to_vec();
            let from = device.alloc(bytes.len() as u64, Memory::Device)?.slice(0, bytes.len() as u64)?;
            let copied = device.alloc(bytes.len() as u64, Memory::Device)?.slice(0, bytes.len() as u64)?;
            let mut dispatches = vec![self.restore(&from, &copied)?];
            dispatches.extend(self.sum(device, &copied, 0)?);
            let recording = device.record(&dispatches)?;
            let read = wait.run(device, &[(&from, &bytes)], &recording, &[&self.result(1)?]).await?;
            if read.first().is_none_or(|read| bytemuck::pod_collect_to_vec::<u8, u32>(read) != sums(&bytes)) {
                return Ok(None);
            }
        }
        Ok(Some(self))
    }

    /// Copies `from` to `to`, which is as long.
    pub(super) fn restore(&self, from: &Slice, to: &Slice) -> Result<Dispatch> {
        let vectors = vectors_of(to)?;
        Ok(dispatch(&self.copy, from.clone(), to.clone(), vectors, lanes(vectors), 0))
    }

    /// Sums up `stored` as result `index`.
    pub(super) fn sum(&mut self, device: &dyn Device, stored: &Slice, index: u32) -> Result<Vec<Dispatch>> {
        if index >= self.room {
            return Err(Error::Internal(format!("checksum {index} of {}", self.room)));
        }
        let (vectors, at) = (vectors_of(stored)?, 2 * LANES * index);
        let lanes = lanes(vectors);
        if lanes <= LANES {
            return Ok(vec![dispatch(
                &self.checksum,
                stored.clone(),
                self.results.whole(),
                vectors,
                lanes,
                at,
            )]);
        }
        let room = 8 * u64::from(lanes);
        let many = match self.many.take().filter(|many| many.bytes() >= room) {
            Some(many) => many,
            None => device.alloc(room, Memory::Device)?,
        };
        let between = self.many.insert(many).whole();
        Ok(vec![
            dispatch(&self.checksum, stored.clone(), between.clone(), vectors, lanes, 0),
            dispatch(&self.checksum, between, self.results.whole(), lanes / 2, LANES, at),
        ])
    }

    /// Where the first `count` results lie.
    pub(super) fn result(&self, count: u32) -> Result<Slice> {
        self.results.slice(0, BYTES * u64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_or_a_place_that_changes_changes_the_checksum() {
        let mut random = Random::new(3);
        for words in [4usize, 64, 68, 4096, 36000] {
            let stored: Vec<u32> = (0..words).map(|_| (random.word() >> 32) as u32).collect();
            let of = |words: &[u32]| sums(bytemuck::cast_slice(words));
            assert_eq!(of(&stored).len(), 2 * LANES as usize);
            for _ in 0..50 {
                let (place, bit) = (random.below(words), random.below(32));
                let mut other = stored.clone();
                other[place] ^= 1 << bit;
                assert_ne!(of(&other), of(&stored), "word {place} of {words}, bit {bit}");
                let (one, two) = (random.below(words), random.below(words));
                let mut other = stored.clone();
                other.swap(one, two);
                assert_eq!(of(&other) == of(&stored), other == stored, "words {one} and {two} of {words}");
            }
        }
    }
}
