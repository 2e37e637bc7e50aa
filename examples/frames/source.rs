//! A picture as a camera gives it, and as a texture has it.

use anyhow::{Result, ensure};
use diptych::{FrameLayout, PixelFormat};
use image::imageops::{FilterType, resize};

/// The picture of the other examples.
const PEOPLE: &[u8] = include_bytes!("../posenet/data/people.png");

/// One frame in every form.
#[derive(Clone)]
pub struct Source {
    pub size: [u32; 2],
    pub rgba: Vec<u8>,
    pub nv12: Vec<u8>,
    pub yuyv: Vec<u8>,
}

impl Source {
    pub fn new(size: [u32; 2]) -> Result<Self> {
        let [width, height] = size;
        ensure!(
            width > 0 && height > 0 && width % 2 == 0 && height % 2 == 0,
            "{width}x{height}: wanted even extents"
        );
        let people = image::load_from_memory(PEOPLE)?.to_rgba8();
        let rgba = resize(&people, width, height, FilterType::Triangle).into_raw();
        // BT.601 in video range.
        let coded = |pixel: &[u8]| {
            let [r, g, b] = [0, 1, 2].map(|channel| f32::from(pixel[channel]) / 255.0);
            let y = 0.299 * r + 0.587 * g + 0.114 * b;
            [16.0 + 219.0 * y, 128.0 + 224.0 * (b - y) / 1.772, 128.0 + 224.0 * (r - y) / 1.402]
        };
        let coded: Vec<[f32; 3]> = rgba.chunks_exact(4).map(coded).collect();
        let (width, height) = (width as usize, height as usize);
        let byte = |value: f32| value.round() as u8;
        let mut nv12: Vec<u8> = coded.iter().map(|[y, ..]| byte(*y)).collect();
        for row in 0..height / 2 {
            for column in 0..width / 2 {
                let at = 2 * row * width + 2 * column;
                let mean = |part: usize| {
                    [at, at + 1, at + width, at + width + 1].iter().map(|&at| coded[at][part]).sum::<f32>()
                        / 4.0
                };
                nv12.extend([byte(mean(1)), byte(mean(2))]);
            }
        }
        let pair = |pair: &[[f32; 3]]| {
            let mean = |part: usize| byte((pair[0][part] + pair[1][part]) / 2.0);
            [byte(pair[0][0]), mean(1), byte(pair[1][0]), mean(2)]
        };
        let yuyv = coded.chunks_exact(2).flat_map(pair).collect();
        Ok(Source { size, rgba, nv12, yuyv })
    }

    pub fn layout(&self, format: PixelFormat) -> Result<FrameLayout> {
        Ok(FrameLayout::new(format, self.size)?)
    }
}

/// NV12 to red, green, blue and alpha by one thread in whole numbers, each chroma sample for its four pixels: what an application
/// does that has textures alone.
pub fn converted(nv12: &[u8], [width, height]: [u32; 2], rgba: &mut [u8]) {
    let (width, height) = (width as usize, height as usize);
    let (luma, chroma) = nv12.split_at(width * height);
    for (row, (line, target)) in luma.chunks_exact(width).zip(rgba.chunks_exact_mut(4 * width)).enumerate() {
        let chroma = &chroma[row / 2 * width..][..width];
        for ((pair, chroma), target) in
            line.chunks_exact(2).zip(chroma.chunks_exact(2)).zip(target.chunks_exact_mut(8))
        {
            let (cb, cr) = (i32::from(chroma[0]) - 128, i32::from(chroma[1]) - 128);
            let [r, g, b] = [409 * cr + 128, -100 * cb - 208 * cr + 128, 516 * cb + 128];
            for (y, target) in pair.iter().zip(target.chunks_exact_mut(4)) {
                let y = 298 * (i32::from(*y) - 16);
                let byte = |value: i32| (value >> 8).clamp(0, 255) as u8;
                target.copy_from_slice(&[byte(y + r), byte(y + g), byte(y + b), 255]);
            }
        }
    }
}
