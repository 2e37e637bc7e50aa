//! Sums of products of bytes in 32 bits, and bytes made of them.
//!
//! | module | what |
//! |---|---|
//! | `tile`, `sums` | the sums of some pixels and some channels, from lines of words of four bytes |
//! | `channels` | sums over windows of each channel by itself |
//! | `lookup` | bytes of a table |
//! | `rounded`, `packed` | rows that are rounded to bytes, and their products with packed weights of 4 or 8 bits |
//! | `avx512`, `avx512_channels`, `avx2` | the sums in the vectors of x86-64 |
//! | `avx512_packed`, `avx2_packed` | products of packed weights there |
//! | `neon`, `neon_dot`, `neon_i8mm`, `neon_channels` | those of 64-bit ARM |
//! | `plain` | those of any machine |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_packed;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_channels;
#[cfg(target_arch = "x86_64")]
mod avx512_packed;
pub(crate) mod channels;
pub(crate) mod lookup;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
mod neon_channels;
#[cfg(target_arch = "aarch64")]
mod neon_dot;
#[cfg(target_arch = "aarch64")]
mod neon_i8mm;
pub(crate) mod packed;
mod plain;
pub(crate) mod rounded;
mod sums;
pub(crate) mod tile;

/// Bytes of a word.
pub const LANES: usize = 4;

/// Taps whose products are added at once.
pub(crate) const GROUP: usize = 4;

/// The bytes that words hold.
pub fn bytes(words: &[f32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

/// The bytes of words that are written.
pub fn bytes_mut(words: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// The integer that is nearest to a number of at most 2^22, and of two the even one: what is added leaves no bits for less
/// than one, and a processor rounds so.
#[inline(always)]
pub fn nearest(number: f32) -> i32 {
    const ADDED: f32 = 12_582_912.0;
    (number + ADDED).to_bits().wrapping_sub(ADDED.to_bits()).cast_signed()
}

/// The vectors that a machine has for products of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// 64 products of bytes at a time (AVX-512 VNNI).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 16 products of 16 bits at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 32 products of bytes at a time, those of two pixels and two channels (FEAT_I8MM).
    #[cfg(target_arch = "aarch64")]
    I8mm,
    /// 16 products of signed bytes at a time (FEAT_DotProd).
    #[cfg(target_arch = "aarch64")]
    Dot,
    /// 8 products of signed bytes at a time (NEON).
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// What the compiler makes of loops.
    Plain,
}

impl Vectors {
    /// The fastest that the machine has.
    pub(crate) fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512vnni")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vl")
            {
                return Vectors::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                return Vectors::Avx2;
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if std::arch::is_aarch64_feature_detected!("i8mm") {
                return Vectors::I8mm;
            }
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                return Vectors::Dot;
            }
            if std::arch::is_aarch64_feature_detected!("neon") {
                return Vectors::Neon;
            }
        }
        Vectors::Plain
    }

    /// Whether the taps of windows are added in groups.
    const fn has_groups(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => true,
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => false,
            #[cfg(target_arch = "aarch64")]
            Vectors::I8mm | Vectors::Dot => true,
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => false,
            Vectors::Plain => false,
        }
    }

    /// What a tile's kernel lacks in the sum of a channel whose weights have the sum `weights`, to be added to its bias: some
    /// multiply signed bytes only, and take those of the input less 128.
    pub(crate) const fn lacking(self, weights: i32) -> i32 {
        match self {
            #[cfg(target_arch = "aarch64")]
            Vectors::Dot | Vectors::Neon => weights.wrapping_mul(128),
            _ => {
                let _ = weights;
                0
            }
        }
    }

    /// What [`channels::Channels`] lacks in the sum of a channel whose weights have the sum `weights`, to be added to its bias:
    /// 128 times that sum where it multiplies signed bytes only, else 0.
    const fn lacking_of_channels(self, weights: i32) -> i32 {
        match self {
            #[cfg(target_arch = "aarch64")]
            Vectors::Dot => weights.wrapping_mul(128),
            _ => {
                let _ = weights;
                0
            }
        }
    }

    /// All that the machine has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Vectors::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                all.push(Vectors::Avx2);
            }
            if Self::new() == Vectors::Avx512 {
                all.push(Vectors::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            all.push(Vectors::Neon);
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                all.push(Vectors::Dot);
            }
            if std::arch::is_aarch64_feature_detected!("i8mm") {
                all.push(Vectors::I8mm);
            }
        }
        all
    }
}

/// What is made of the sums of some channels: `clamp(round((sum + bias) * scale), low, high) + zero`, halves to even
/// numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finish<'a> {
    /// A summand for each channel, zeros behind the last one.
    pub(crate) bias: &'a [i32],
    /// A factor for each channel, zeros behind the last one.
    pub(crate) scale: &'a [f32],
    /// The ends of the range, less `zero`.
    pub(crate) bounds: [i32; 2],
    pub(crate) zero: u8,
}

impl Finish<'_> {
    /// The byte of a channel's sum.
    #[inline(always)]
    fn byte(&self, channel: usize, sum: i32) -> u8 {
        let bias = self.bias.get(channel).copied().unwrap_or(0);
        let scale = self.scale.get(channel).copied().unwrap_or(0.0);
        let [low, high] = self.bounds;
        let steps = (sum.wrapping_add(bias) as f32 * scale).max(low as f32).min(high as f32);
        (nearest(steps) + i32::from(self.zero)) as u8
    }

    /// Computes the bytes of panel number `at` of a tile with `panels` panels for each pixel, and writes them to `bytes[at]`.
    fn put(&self, panels: usize, at: usize, sums: &[i32; tile::PANEL], bytes: &mut tile::Bytes) {
        let first = at % panels.max(1) * tile::PANEL;
        for ((channel, sum), byte) in sums.iter().enumerate().zip(bytes.get_mut(at).into_iter().flatten()) {
            *byte = self.byte(first + channel, *sum);
        }
    }
}

/// What is made of the sums of some channels and pixels whose zero points are known at the run alone: `sum - zero * sums`, or that
/// times both scales with the bias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled<'a> {
    /// The sum of its weights for each channel.
    pub(crate) sums: &'a [i32],
    pub(crate) scale: &'a [f32],
    pub(crate) bias: &'a [f32],
    /// Scale and zero point of each pixel of a tile.
    pub(crate) pixels: [[f32; 2]; tile::PIXELS],
    /// Whether the results are integers.
    pub(crate) whole: bool,
}

impl Scaled<'_> {
    /// Computes the words of panel number `at` of a tile with `panels` panels for each pixel, and writes them to `words[at]`.
    fn put(&self, panels: usize, at: usize, sums: &[i32; tile::PANEL], words: &mut tile::Words) {
        let first = at % panels.max(1) * tile::PANEL;
        let [factor, zero] = self.pixels.get(at / panels.max(1)).copied().unwrap_or_default();
        for ((lane, sum), word) in sums.iter().enumerate().zip(words.get_mut(at).into_iter().flatten()) {
            let of = |values: &[f32]| values.get(first + lane).copied().unwrap_or(0.0);
            let of_weights = self.sums.get(first + lane).copied().unwrap_or(0);
            let sum = sum.wrapping_sub((zero as i32).wrapping_mul(of_weights));
            *word = match self.whole {
                true => f32::from_bits(sum.cast_unsigned()),
                false => sum as f32 * factor * of(self.scale) + of(self.bias),
            };
        }
    }
}
