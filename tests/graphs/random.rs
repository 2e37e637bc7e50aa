//! Numbers from a seed: the same on every machine.

/// A generator (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() >> 11) as usize % count.max(1)
    }

    /// One of a range with both ends.
    pub(crate) fn within(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A permutation of `0..count`.
    pub(crate) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            all.swap(last, self.below(last + 1));
        }
        all
    }

    /// Multiples of 1/512 in [-1, 1): exact in halves.
    fn noise(&mut self) -> f32 {
        (self.next() >> 54) as f32 / 512.0 - 1.0
    }

    /// Elements of one kind.
    pub(crate) fn values(&mut self, kind: Kind, count: usize) -> Vec<f32> {
        let mut one = || match kind {
            Kind::Noise => 2.0 * self.noise(),
            Kind::Small => self.noise() / 2.0,
            Kind::Fine => self.noise() + self.noise() / 1024.0,
            Kind::Whole(most) => (self.below(2 * most + 1) as f32) - most as f32,
            Kind::Index(extent) => self.below(extent) as f32,
            Kind::Positive => 1.25 + self.noise(),
            Kind::Wide => 24.0 * self.noise(),
        };
        (0..count).map(|_| one()).collect()
    }
}

/// What the elements of a tensor are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In [-2, 2), exact in halves.
    Noise,
    /// In [-0.5, 0.5), exact in halves.
    Small,
    /// In [-1, 1], not exact in halves.
    Fine,
    /// Whole numbers from `-most` to `most`.
    Whole(usize),
    /// Indices of an axis.
    Index(usize),
    /// In [0.25, 2.25).
    Positive,
    /// In [-24, 24).
    Wide,
}
