//! The sums of products of bytes over the windows of a feature map, on the CPU.

use crate::cpu::aligned::Aligned;
use crate::cpu::blocks::{independent_rows, products, with_scratch};
use crate::cpu::bytes::tile::{PANEL, PANELS, PIXELS, Tile, panels_for};
use crate::cpu::bytes::{LANES, Vectors, bytes};
use crate::cpu::workers::each;
use crate::ops::convolution::Convolution;

/// Products of bytes that take as long as one multiply-add of f32.
const PER_MULTIPLY: usize = 4;

/// What is made of the sums of a tile.
pub(crate) trait Ending: Sync {
    /// A channel of a result.
    type Item: Copy + Default + Send;

    /// Channels of a pixel of the result.
    fn channels(&self) -> usize;

    /// The byte that lies outside an image.
    fn outside(&self, image: usize) -> u8;

    /// The channels of a tile's panels from one on; `pixel` is the first one of the result, counted through all images.
    fn finish(
        &self,
        tile: &Tile<'_>,
        vectors: Vectors,
        first: [usize; 2],
        found: &mut [[Self::Item; PANEL]; PIXELS * 2],
    );

    /// What is left to be done to some channels from one on of pixels that are complete, from one on.
    fn done(&self, _first: [usize; 2], _dst: &mut [Self::Item]) {}
}

/// A convolution of bytes, with its weights laid out. Channels are counted in words of four.
#[derive(Debug)]
pub(crate) struct Windows {
    conv: Convolution,
    /// The columns that the windows of a row span, and whether some lie outside the input.
    span: usize,
    padded: bool,
    /// Where each line of words of a window begins, after its first word.
    lines: Vec<usize>,
    /// Words of a line.
    len: usize,
    /// Panels of weights, by the words of a window.
    weights: Aligned,
    panels: usize,
    vectors: Vectors,
}

impl Windows {
    /// `conv` counts channels in words; its weights are `oc kh kw c` words of signed bytes for each of so many channels. The sums
    /// are those of unsigned bytes as they are.
    pub(crate) fn new(conv: Convolution, weights: &[f32], channels: usize) -> Self {
        let mut conv = conv;
        let Convolution { kernel, stride, dilation, before, .. } = conv;
        let spans = |axis: usize, outputs: usize| {
            (outputs - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        };
        let [high, wide] = [spans(0, conv.output.h), spans(1, conv.output.w)];
        let padded = before != [0, 0] || high > conv.input.h || wide > conv.input.w;
        if [kernel, stride] == [[1, 1]; 2] && !padded {
            // All pixels are one row.
            for map in [&mut conv.input, &mut conv.output] {
                *map = crate::shape::Shape::nhwc(1, 1, map.n * map.h * map.w, map.c);
            }
        }
        let words = conv.input.c;
        let (row, down) = if padded { (wide * words, 1) } else { (conv.input.w * words, dilation[0]) };
        let together = dilation[1] == 1;
        let runs = if together { 1 } else { kernel[1] };
        let line = |a, b| a * down * row + b * dilation[1] * words;
        let lines = (0..kernel[0]).flat_map(|a| (0..runs).map(move |b| line(a, b))).collect();
        let len = if together { kernel[1] * words } else { words };
        Windows {
            conv,
            span: wide,
            padded,
            lines,
            len,
            weights: packed(weights, kernel[0] * kernel[1] * words, channels),
            panels: channels.div_ceil(PANEL),
            vectors: Vectors::new(),
        }
    }

    /// The kernels that it runs.
    pub(crate) fn vectors(&self) -> Vectors {
        self.vectors
    }

    /// The panels' channels: those of the result, and those that fill the last one.
    pub(crate) fn channels(&self) -> usize {
        self.panels * PANEL
    }

    /// Writes the channels of each pixel; lengths were checked.
    pub(crate) fn run<E: Ending>(&self, ending: &E, src: &[f32], dst: &mut [E::Item]) {
        let channels = ending.channels();
        let pixels = dst.len() / channels.max(1);
        let depth = self.lines.len() * self.len;
        if pixels == 1 && !self.padded {
            let group = PANELS * PANEL;
            let groups = channels.div_ceil(group);
            let part = independent_rows(groups, products([depth, PANELS, PANEL]) / PER_MULTIPLY);
            return each(dst.chunks_mut(part * group).enumerate(), |(index, dst)| {
                self.row(ending, src, &[0], [index * part * PANELS, 0], dst);
                ending.done([index * part * group, 0], dst);
            });
        }
        let work = products([depth, channels, LANES]) / PER_MULTIPLY;
        let part = independent_rows(pixels, work);
        each(dst.chunks_mut(part * channels).enumerate(), |(index, dst)| {
            self.pixels(ending, src, index * part, dst);
        });
    }

    /// Pixels from one on, as many as `dst` has.
    fn pixels<E: Ending>(&self, ending: &E, src: &[f32], first: usize, dst: &mut [E::Item]) {
        let Convolution { input, output, stride, kernel, dilation, before, .. } = self.conv;
        let (channels, row_words) = (ending.channels(), input.w * input.c);
        let mut rest = dst;
        let mut pixel = first;
        while !rest.is_empty() {
            let (row, column) = (pixel / output.w, pixel % output.w);
            let count = (output.w - column).min(rest.len() / channels);
            let (own, behind) = rest.split_at_mut(count * channels);
            let (image, top) = (row / output.h, row % output.h * stride[0]);
            if self.padded {
                let span = self.span * input.c;
                with_scratch(kernel[0] * span, |scratch| {
                    for (a, scratch) in scratch.chunks_mut(span).enumerate() {
                        let y = (top + a * dilation[0]).checked_sub(before[0]).filter(|&y| y < input.h);
                        let src = y.and_then(|y| {
                            let first = (image * input.h + y) * row_words;
                            src.get(first..first + row_words)
                        });
                        self.pad(src.unwrap_or_default(), ending.outside(image), scratch);
                    }
                    self.columns(ending, (scratch, 0), [column, count, pixel], own);
                });
            } else {
                let base = (image * input.h + top) * row_words;
                self.columns(ending, (src, base), [column, count, pixel], own);
            }
            rest = behind;
            pixel += count;
        }
    }

    /// A row of the input between what lies outside of it.
    fn pad(&self, src: &[f32], outside: u8, row: &mut [f32]) {
        let outside = f32::from_bits(u32::from_le_bytes([outside; LANES]));
        let before = (self.conv.before[1] * self.conv.input.c).min(row.len());
        let (before, rest) = row.split_at_mut(before);
        let (own, after) = rest.split_at_mut(src.len().min(rest.len()));
        before.fill(outside);
        own.copy_from_slice(src.get(..own.len()).unwrap_or_default());
        after.fill(outside);
    }

    /// Some pixels of a row whose windows begin at a word; the first one is `pixel` among those of all images.
    fn columns<E: Ending>(
        &self,
        ending: &E,
        (src, base): (&[f32], usize),
        [column, count, pixel]: [usize; 3],
        dst: &mut [E::Item],
    ) {
        let step = self.conv.stride[1] * self.conv.input.c;
        let channels = ending.channels();
        for (tile, dst) in dst.chunks_mut(PIXELS * channels).enumerate() {
            let first = column + tile * PIXELS;
            let count = count.saturating_sub(tile * PIXELS).min(PIXELS);
            let mut firsts = [0; PIXELS];
            for (at, place) in firsts.iter_mut().take(count).enumerate() {
                *place = base + (first + at) * step;
            }
            let pixel = pixel + tile * PIXELS;
            self.row(ending, src, firsts.get(..count).unwrap_or_default(), [0, pixel], dst);
            ending.done([0, pixel], dst);
        }
    }

    /// A tile of pixels whose windows begin at these words: the channels from panel `first` on that `dst` has.
    fn row<E: Ending>(
        &self,
        ending: &E,
        src: &[f32],
        firsts: &[usize],
        [first, pixel]: [usize; 2],
        dst: &mut [E::Item],
    ) {
        let depth = self.lines.len() * self.len;
        let pixels = firsts.len();
        let own = dst.len() / pixels.max(1);
        let mut places = [0; PIXELS];
        places.iter_mut().zip(firsts).for_each(|(place, first)| *place = *first);
        let step = panels_for(pixels);
        let most = (first + own.div_ceil(PANEL)).min(self.panels);
        for panel in (first..most).step_by(step) {
            let panels = step.min(most - panel);
            let weights = self.weights.get(panel * PANEL * depth..).unwrap_or_default();
            let tile =
                Tile { src, first: places, pixels, lines: &self.lines, len: self.len, weights, panels };
            let mut found = [[E::Item::default(); PANEL]; PIXELS * 2];
            ending.finish(&tile, self.vectors, [panel * PANEL, pixel], &mut found);
            for (pixel, found) in found.chunks(panels).take(pixels).enumerate() {
                let begin = (panel - first) * PANEL;
                let end = (begin + panels * PANEL).min(own);
                let dst = dst.get_mut(pixel * own + begin..pixel * own + end).unwrap_or_default();
                for (dst, found) in dst.chunks_mut(PANEL).zip(found) {
                    match dst.first_chunk_mut::<PANEL>() {
                        Some(whole) => *whole = *found,
                        None => dst.iter_mut().zip(found).for_each(|(item, found)| *item = *found),
                    }
                }
            }
        }
    }
}

/// The sums of the weights of each channel, of rows of words.
pub(crate) fn sums(weights: &[f32], channels: usize) -> Vec<i32> {
    let row = (weights.len() / channels.max(1)).max(1);
    let sum = |row: &[f32]| bytes(row).iter().map(|byte| i32::from(byte.cast_signed())).sum();
    weights.chunks(row).map(sum).collect()
}

/// Weights of `channels` rows of `depth` words as panels: sixteen channels of each word side by side.
fn packed(weights: &[f32], depth: usize, channels: usize) -> Aligned {
    let mut panels = Aligned::zeros(channels.next_multiple_of(PANEL) * depth);
    for (channel, row) in weights.chunks_exact(depth.max(1)).take(channels).enumerate() {
        let (panel, lane) = (channel / PANEL, channel % PANEL);
        let own = panels.iter_mut().skip(panel * PANEL * depth + lane).step_by(PANEL);
        own.zip(row).for_each(|(place, word)| *place = *word);
    }
    panels
}

/// Values with others behind them, so many in all.
pub(crate) fn extended<T: Copy>(values: &[T], len: usize, rest: T) -> Vec<T> {
    let mut all = values.to_vec();
    all.resize(len, rest);
    all
}
