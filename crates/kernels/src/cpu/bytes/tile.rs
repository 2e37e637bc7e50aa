//! Some pixels and some channels of products of bytes.

/// Channels of a panel of weights, each of which has a word of four weights.
pub(crate) const PANEL: usize = 16;

/// The most pixels of a tile.
pub(crate) const PIXELS: usize = 8;

/// The most panels of a tile.
pub(crate) const PANELS: usize = 4;

/// The bytes of a panel's channels, for each panel of each pixel.
pub(crate) type Bytes = [[u8; PANEL]; PIXELS * 2];

/// The words of a panel's channels, for each panel of each pixel: f32, or integers as their bits.
pub(crate) type Words = [[f32; PANEL]; PIXELS * 2];

/// Panels of so many that a tile of so many pixels has at most: as many sums as there are registers for.
pub(crate) const fn panels_for(pixels: usize) -> usize {
    if pixels == 1 { PANELS } else { 2 }
}

/// Where the words of a tile of pixels lie, and the weights that they meet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tile<'a> {
    /// Words of four unsigned bytes.
    pub(crate) src: &'a [f32],
    /// The first word of each pixel; places beyond `pixels` say nothing.
    pub(crate) first: [usize; PIXELS],
    /// How many pixels there are.
    pub(crate) pixels: usize,
    /// Where each line of words of a window begins, after the pixel's first word.
    pub(crate) lines: &'a [usize],
    /// Words of a line.
    pub(crate) len: usize,
    /// Words of four signed weights: panels of [`PANEL`] for each word of a window.
    pub(crate) weights: &'a [f32],
    /// How many panels there are.
    pub(crate) panels: usize,
}

impl Tile<'_> {
    /// Words of a window.
    pub(super) fn depth(&self) -> usize {
        self.lines.len() * self.len
    }

    /// Whether all that it reads is there.
    pub(super) fn is_within(&self) -> bool {
        let last = self.lines.iter().max().copied().unwrap_or(0) + self.len;
        let pixels = self.first.get(..self.pixels);
        let most = pixels.and_then(|first| first.iter().max().copied());
        most.is_some_and(|most| most + last <= self.src.len())
            && (1..=panels_for(self.pixels)).contains(&self.panels)
            && self.weights.len() >= self.panels * PANEL * self.depth()
    }
}
