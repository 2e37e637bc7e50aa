//! The sums of some pixels and some channels: a micro-kernel of bytes.

use super::plain;
use super::tile::{Bytes, PANEL, Tile, Words};
use super::{Finish, Scaled, Vectors};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
#[cfg(target_arch = "aarch64")]
use super::{neon, neon_dot, neon_i8mm};

impl Tile<'_> {
    /// The bytes of all pixels, those of a pixel's panels one behind the other; `first` is the tile's first channel.
    /// Each channel's bias has [`Vectors::lacking`] of its weights.
    pub(crate) fn finish(&self, vectors: Vectors, finish: Finish<'_>, first: usize, bytes: &mut Bytes) {
        let channels = first..first + self.panels * PANEL;
        let (Some(bias), Some(scale)) = (finish.bias.get(channels.clone()), finish.scale.get(channels))
        else {
            return;
        };
        if !self.is_within() {
            return;
        }
        let finish = Finish { bias, scale, ..finish };
        match vectors {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => {
                // SAFETY: the machine has these vectors (`Vectors::new`), and all places that are read were checked above.
                unsafe { avx512::finish(self, finish, bytes) }
            }
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => {
                // SAFETY: as above.
                unsafe { avx2::sums(self, |at, sums| finish.put(self.panels, at, sums, bytes)) }
            }
            #[cfg(target_arch = "aarch64")]
            Vectors::I8mm => {
                // SAFETY: as above.
                unsafe { neon_i8mm::finish(self, finish, bytes) }
            }
            #[cfg(target_arch = "aarch64")]
            Vectors::Dot => {
                // SAFETY: as above.
                unsafe { neon_dot::signed::finish(self, finish, bytes) }
            }
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => {
                // SAFETY: as above.
                unsafe { neon::finish(self, finish, bytes) }
            }
            Vectors::Plain => plain::sums(self, |at, sums| finish.put(self.panels, at, sums, bytes)),
        }
    }

    /// The words of all pixels, as [`Tile::finish`] has their bytes.
    pub(crate) fn scaled(&self, vectors: Vectors, scaled: Scaled<'_>, first: usize, words: &mut Words) {
        let channels = first..first + self.panels * PANEL;
        let (Some(sums), Some(scale), Some(bias)) = (
            scaled.sums.get(channels.clone()),
            scaled.scale.get(channels.clone()),
            scaled.bias.get(channels),
        ) else {
            return;
        };
        if !self.is_within() {
            return;
        }
        let scaled = Scaled { sums, scale, bias, ..scaled };
        match vectors {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => {
                // SAFETY: as in `finish`.
                unsafe { avx512::scaled(self, scaled, words) }
            }
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => {
                // SAFETY: as in `finish`.
                unsafe { avx2::sums(self, |at, sums| scaled.put(self.panels, at, sums, words)) }
            }
            // Those for ARM make bytes of their sums at once.
            #[cfg(target_arch = "aarch64")]
            Vectors::I8mm | Vectors::Dot | Vectors::Neon => {
                plain::sums(self, |at, sums| scaled.put(self.panels, at, sums, words));
            }
            Vectors::Plain => plain::sums(self, |at, sums| scaled.put(self.panels, at, sums, words)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::bytes::tile::{PANELS, PIXELS, panels_for};
    use crate::dtype::DType;
    use crate::word;

    /// Words of bytes that look random.
    fn words(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from(state.rotate_left(11))
        };
        word::of_integers(DType::U32, (0..count).map(|_| next()))
    }

    #[test]
    fn every_machine_has_the_same_bytes() {
        let lines = [0, 20, 55];
        let (len, src, weights) = (7, words(200, 1), words(4 * PANEL * 21, 2));
        let bias: Vec<i32> = (0..4 * PANEL as i32).map(|at| at * 1000 - 30_000).collect();
        let scale: Vec<f32> = (0..4 * PANEL).map(|at| 1.0 / (1000 + 37 * at) as f32).collect();
        // The weights of each channel.
        let mut sums = [0; 4 * PANEL];
        for (at, word) in weights.iter().enumerate() {
            let own = word.to_bits().to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
            sums[at / (21 * PANEL) * PANEL + at % PANEL] += own.iter().sum::<i32>();
        }
        for pixels in 1..=PIXELS {
            for panels in 1..=panels_for(pixels) {
                let first = std::array::from_fn(|at| 11 * at);
                let tile = Tile { src: &src, first, pixels, lines: &lines, len, weights: &weights, panels };
                let finish = Finish { bias: &bias, scale: &scale, bounds: [-100, 120], zero: 110 };
                let of = |vectors: Vectors| {
                    let own = bias.iter().zip(&sums).map(|(bias, sum)| bias + vectors.lacking(*sum));
                    let own: Vec<i32> = own.collect();
                    let mut bytes = Bytes::default();
                    tile.finish(vectors, Finish { bias: &own, ..finish }, 0, &mut bytes);
                    bytes
                };
                let wanted = of(Vectors::Plain);
                let distinct: std::collections::HashSet<u8> =
                    wanted[..pixels * panels].iter().flatten().copied().collect();
                assert!(distinct.len() > 8, "{distinct:?}");
                for vectors in Vectors::all() {
                    assert_eq!(of(vectors), wanted, "{vectors:?} {pixels} {panels}");
                }
            }
        }
    }

    #[test]
    fn every_machine_has_the_same_words() {
        let lines = [0, 20, 55];
        let (len, src, weights) = (7, words(200, 1), words(4 * PANEL * 21, 2));
        let sums: Vec<i32> = (0..4 * PANEL as i32).map(|at| at * 37 - 900).collect();
        let scale: Vec<f32> = (0..4 * PANEL).map(|at| 1.0 / (1000 + 37 * at) as f32).collect();
        let bias: Vec<f32> = (0..4 * PANEL).map(|at| at as f32 - 20.0).collect();
        let pixels_of = std::array::from_fn(|at| [0.25 + at as f32, (at * 31) as f32]);
        for (pixels, whole) in (1..=PIXELS).flat_map(|pixels| [(pixels, false), (pixels, true)]) {
            for panels in 1..=panels_for(pixels) {
                let first = std::array::from_fn(|at| 11 * at);
                let tile = Tile { src: &src, first, pixels, lines: &lines, len, weights: &weights, panels };
                let scaled = Scaled { sums: &sums, scale: &scale, bias: &bias, pixels: pixels_of, whole };
                let of = |vectors| {
                    let mut found = Words::default();
                    tile.scaled(vectors, scaled, 0, &mut found);
                    found[..pixels * panels].iter().flatten().copied().collect::<Vec<f32>>()
                };
                let wanted = of(Vectors::Plain);
                let distinct: std::collections::HashSet<u32> =
                    wanted.iter().map(|word| word.to_bits()).collect();
                assert!(distinct.len() > 8, "{distinct:?}");
                for vectors in Vectors::all() {
                    for (found, wanted) in of(vectors).into_iter().zip(&wanted) {
                        // One rounding less where a product and a sum are one.
                        let off = if whole { 0.0 } else { 1e-4 };
                        let is_near = found.to_bits() == wanted.to_bits() || (found - wanted).abs() <= off;
                        assert!(is_near, "{vectors:?} {pixels} {panels} {whole}: {found} {wanted}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        let (src, weights) = (words(10, 1), words(PANEL * 4, 2));
        let finish =
            Finish { bias: &[0; PANEL * 8], scale: &[1.0; PANEL * 8], bounds: [-128, 127], zero: 128 };
        let tile = Tile {
            src: &src,
            first: [7; PIXELS],
            pixels: 1,
            lines: &[0],
            len: 4,
            weights: &weights,
            panels: 1,
        };
        let none = Tile { first: [0; PIXELS], panels: 0, ..tile };
        let too_many = Tile { first: [0; PIXELS], panels: PANELS + 1, ..tile };
        for (vectors, tile) in
            Vectors::all().into_iter().flat_map(|own| [(own, tile), (own, none), (own, too_many)])
        {
            let mut bytes = [[9; PANEL]; PIXELS * 2];
            tile.finish(vectors, finish, 0, &mut bytes);
            assert_eq!(bytes, [[9; PANEL]; PIXELS * 2], "{vectors:?} {tile:?}");
        }
    }
}
