//! Sums of products of bytes over windows, each channel by itself.

#[cfg(target_arch = "x86_64")]
use super::avx512_channels as avx512;
#[cfg(target_arch = "aarch64")]
use super::neon_channels as neon;
use super::{Finish, GROUP, Vectors, bytes};
use crate::cpu::aligned::Aligned;

/// Bytes of a vector's part, within which bytes change places.
const PART: usize = 16;

/// Channels that are summed at a time in loops.
const CHUNK: usize = 64;

/// The weights of windows over channels of bytes, laid out.
#[derive(Debug)]
pub(crate) struct Channels {
    /// Channels of a row of weights.
    width: usize,
    /// Channels of a block: as many as a vector has bytes.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "for vectors of x86-64 and ARM")
    )]
    block: usize,
    /// For each block of channels and each group of taps, the weights of its channels: four taps of a channel side by side,
    /// and channels in the order in which vectors have them.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        expect(dead_code, reason = "for vectors of x86-64 and ARM")
    )]
    weights: Aligned,
    /// The weights in their own order, for loops.
    rows: Vec<i8>,
    /// A number for each channel of each block, in the order of the vectors or of the channels.
    bias: Vec<i32>,
    scale: Vec<f32>,
    bounds: [i32; 2],
    zero: u8,
    vectors: Vectors,
}

/// The channels of a block in the order in which its vectors have them: bytes of four taps are interleaved within parts of 16
/// bytes, so that the first vector has the first four channels of each part.
fn order(block: usize) -> impl Iterator<Item = usize> {
    (0..GROUP).flat_map(move |vector| {
        (0..block / PART).flat_map(move |part| (0..GROUP).map(move |at| PART * part + GROUP * vector + at))
    })
}

impl Channels {
    /// `weights` is `taps channels` of signed bytes, in words. The sums are those of unsigned bytes as they are.
    pub(crate) fn new(taps: usize, channels: usize, weights: &[f32], finish: Finish<'_>) -> Self {
        Self::with_vectors([taps, channels], weights, finish, Vectors::new())
    }

    pub(in crate::cpu) fn with_vectors(
        [taps, channels]: [usize; 2],
        weights: &[f32],
        finish: Finish<'_>,
        vectors: Vectors,
    ) -> Self {
        let rows = bytes(weights);
        let block = match channels {
            _ if cfg!(target_arch = "aarch64") => PART,
            0..=16 => 16,
            17..=32 => 32,
            _ => 64,
        };
        let (groups, blocks) = (taps.div_ceil(GROUP), channels.div_ceil(block));
        let weight = |tap: usize, channel: usize| match channel < channels {
            true => rows.get(tap * channels + channel).copied().unwrap_or(0),
            false => 0,
        };
        let in_order = |block_at: usize| order(block).map(move |at| block_at * block + at);
        let mut laid = Aligned::zeros(blocks * groups * block);
        let places = (0..blocks).flat_map(|at| (0..groups).map(move |group| (at, group)));
        let words = places.flat_map(|(at, group)| in_order(at).map(move |channel| (group, channel)));
        for (place, (group, channel)) in laid.iter_mut().zip(words) {
            let taps: [u8; GROUP] = std::array::from_fn(|tap| weight(GROUP * group + tap, channel));
            *place = f32::from_bits(u32::from_le_bytes(taps));
        }
        let is_vector = vectors.has_groups();
        let place =
            |at: usize| if is_vector { in_order(at / block).nth(at % block).unwrap_or(at) } else { at };
        let of_all = 0..blocks * block;
        let bias = |channel: usize| {
            let sum = (0..taps).map(|tap| i32::from(weight(tap, channel).cast_signed())).sum();
            let bias = finish.bias.get(channel).copied().unwrap_or(0);
            bias.wrapping_add(vectors.lacking_of_channels(sum))
        };
        Channels {
            width: channels,
            block,
            weights: laid,
            rows: rows.iter().map(|byte| byte.cast_signed()).collect(),
            bias: of_all.clone().map(|at| bias(place(at))).collect(),
            scale: of_all.map(|at| finish.scale.get(place(at)).copied().unwrap_or(0.0)).collect(),
            bounds: finish.bounds,
            zero: finish.zero,
            vectors,
        }
    }

    /// The bytes of one pixel, or of the first of its channels, from those of its taps; taps that fill the last group of four may be any.
    pub(crate) fn pixel(&self, taps: &[&[u8]], dst: &mut [u8]) {
        match self.vectors {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => {
                let (channels, finish) = (dst.len(), self.finish());
                let of_weights = channels.div_ceil(self.block) * taps.len() / GROUP * self.block;
                let of_all = channels.next_multiple_of(self.block);
                let is_there = taps.iter().all(|tap| tap.len() >= channels)
                    && self.weights.len() >= of_weights
                    && self.bias.len().min(self.scale.len()) >= of_all;
                if is_there {
                    // SAFETY: the machine has these vectors (`Vectors::new`). `is_there` holds: each tap has a byte for each of
                    // `dst`, and weights, bias and scale have all values of the blocks that `dst` needs.
                    unsafe { avx512::pixel(taps, &self.weights, self.block, finish, dst) }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => {
                // SAFETY: the machine has these vectors (`Vectors::new`); the function has no other demands.
                unsafe { self.pixel_avx2(taps, dst) }
            }
            #[cfg(target_arch = "aarch64")]
            Vectors::I8mm | Vectors::Dot => {
                let (channels, finish) = (dst.len(), self.finish());
                let of_weights = channels.div_ceil(self.block) * taps.len() / GROUP * self.block;
                let of_all = channels.next_multiple_of(self.block);
                let is_there = taps.iter().all(|tap| tap.len() >= channels)
                    && self.weights.len() >= of_weights
                    && self.bias.len().min(self.scale.len()) >= of_all;
                match self.vectors {
                    _ if !is_there => {}
                    // SAFETY: the machine has these vectors (`Vectors::new`). `is_there` holds: each tap has a byte for each of
                    // `dst`, and weights, bias and scale have all values of the blocks that `dst` needs.
                    Vectors::Dot => unsafe { neon::signed(taps, &self.weights, finish, dst) },
                    // SAFETY: as above.
                    _ => unsafe { neon::mixed(taps, &self.weights, finish, dst) },
                }
            }
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => {
                let channels = dst.len();
                let of_all = channels.next_multiple_of(self.block);
                let is_there = taps.iter().all(|tap| tap.len() >= channels)
                    && channels <= self.width
                    && self.bias.len().min(self.scale.len()) >= of_all;
                if is_there {
                    // SAFETY: every 64-bit ARM has NEON. `is_there` holds: each tap and each row of weights have a byte for each of
                    // `dst`, and bias and scale have a value for each channel of its blocks.
                    unsafe { neon::pixel(taps, &self.rows, self.width, self.finish(), dst) }
                }
            }
            Vectors::Plain => self.pixel_plain(taps, dst),
        }
    }

    fn finish(&self) -> Finish<'_> {
        Finish { bias: &self.bias, scale: &self.scale, bounds: self.bounds, zero: self.zero }
    }

    /// [`Channels::pixel`] in loops.
    #[inline(always)]
    fn pixel_plain(&self, taps: &[&[u8]], dst: &mut [u8]) {
        let finish = self.finish();
        for (chunk, dst) in dst.chunks_mut(CHUNK).enumerate() {
            let first = chunk * CHUNK;
            let mut sums = [0; CHUNK];
            for (tap, weights) in taps.iter().zip(self.rows.chunks(self.width)) {
                let pairs = tap.iter().zip(weights).skip(first);
                for (sum, (x, w)) in sums.iter_mut().zip(pairs) {
                    *sum += i32::from(*x) * i32::from(*w);
                }
            }
            for (at, (byte, sum)) in dst.iter_mut().zip(sums).enumerate() {
                *byte = finish.byte(first + at, sum);
            }
        }
    }

    /// [`Channels::pixel_plain`] compiled for AVX2: the compiler uses vectors of AVX2 in its loops.
    ///
    /// # Safety
    /// The machine has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn pixel_avx2(&self, taps: &[&[u8]], dst: &mut [u8]) {
        self.pixel_plain(taps, dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::word;
    use std::collections::HashSet;

    #[test]
    fn every_machine_has_the_same_bytes() {
        let mut state = 5u32;
        let mut words = |count: usize| {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                i64::from(state.rotate_left(9))
            };
            word::of_integers(DType::U32, (0..count).map(|_| next()))
        };
        for (channels, taps) in [(4, 9), (16, 2), (20, 9), (32, 25), (52, 6), (140, 9), (64, 4)] {
            let (src, weights) = (words(taps * channels / 4), words(taps * channels / 4));
            let bias: Vec<i32> = (0..channels as i32).map(|at| 100 * at - 3000).collect();
            let scale: Vec<f32> = (0..channels).map(|at| 1.0 / (300 + at) as f32).collect();
            let finish = Finish { bias: &bias, scale: &scale, bounds: [-90, 130], zero: 100 };
            let mut rows: Vec<&[u8]> = bytes(&src).chunks(channels).collect();
            rows.resize(taps.next_multiple_of(GROUP), rows[0]);
            let of = |vectors| {
                let mut dst = vec![0; channels];
                Channels::with_vectors([taps, channels], &weights, finish, vectors).pixel(&rows, &mut dst);
                dst
            };
            let wanted = of(Vectors::Plain);
            assert!(wanted.iter().collect::<HashSet<_>>().len() > 3, "{wanted:?}");
            for vectors in Vectors::all() {
                assert_eq!(of(vectors), wanted, "{vectors:?} {channels} {taps}");
                let own = Channels::with_vectors([taps, channels], &weights, finish, vectors);
                let mut some = vec![0; channels.div_ceil(3)];
                own.pixel(&rows, &mut some);
                assert_eq!(some, wanted[..some.len()], "{vectors:?} {channels} {taps}, some");
            }
        }
    }
}
