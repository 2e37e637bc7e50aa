//! Runs a picture on two backends, and shows the results side by side and where the heatmaps differ.

use crate::model;
use crate::network::Network;
use crate::options::Options;
use crate::tables::{milliseconds, table};
use crate::{canvas, draw};
use anyhow::{Result, ensure};
use diptych::Backend;
use diptych_decode::FeatureMap;
use diptych_decode::picture::Picture;
use diptych_decode::posenet::Heads;
use image::{GenericImage, Rgb, RgbImage};

/// Pixels between the panels.
const GAP: u32 = 4;

/// Three panels: the drawing of either backend, and the map of the difference of their heatmaps, which
/// is stretched so that its largest difference is white. The text says what white stands for.
pub fn compare(options: &Options, picture: &Picture, pair: &mut [(Backend, Network)]) -> Result<String> {
    let (mut panels, mut results, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (backend, network) in pair.iter_mut() {
        let input = network.model.input(picture)?;
        let (heads, first) = network.run(&input)?;
        let (_, second) = network.run(&input)?;
        let poses = model::poses(&heads, &network.model, picture.pixels.dimensions(), options.several())?;
        panels.push(draw::draw(&picture.pixels, &poses, options.min_score)?);
        let ms = |time| format!("{:.3}", milliseconds(time));
        rows.push(vec![
            backend.to_string(),
            network.device.clone(),
            ms(first),
            ms(second),
            poses.len().to_string(),
        ]);
        results.push((heads, poses));
    }
    let [(left, left_poses), (right, right_poses)] = &results[..] else {
        anyhow::bail!("found {} backends to compare, wanted 2", results.len());
    };
    let differences = differences(left, right)?;
    let most = differences.iter().fold(0.0f32, |most, &value| most.max(value));
    let (width, height) = picture.pixels.dimensions();
    panels.push(map(&differences, [left.heatmap().height(), left.heatmap().width()], most, width, height));
    let mut sheet = RgbImage::from_pixel(3 * width + 2 * GAP, height, Rgb([255; 3]));
    for (index, panel) in panels.iter().enumerate() {
        sheet.copy_from(panel, index as u32 * (width + GAP), 0)?;
    }
    let output = options.output();
    canvas::write(&sheet, &output)?;
    let moved = left_poses
        .iter()
        .zip(right_poses)
        .flat_map(|(a, b)| a.keypoints.iter().zip(&b.keypoints).map(|(a, b)| (a.x - b.x).hypot(a.y - b.y)));
    let moved = moved.fold(0.0f32, f32::max);
    let header = ["backend", "device", "first ms", "second ms", "people"];
    Ok(format!(
        "{}\n\nheatmaps differ by {most:.3e} at most (white in the map), keypoints by {moved:.3} pixels\n\
         drawing  {}\n",
        table(&header, &[2, 3, 4], rows.into_iter()),
        output.display()
    ))
}

/// The largest difference of the 17 logits, by cell.
pub fn differences(left: &Heads<'_>, right: &Heads<'_>) -> Result<Vec<f32>> {
    let [a, b] = [left.heatmap(), right.heatmap()];
    let extents = |map: &FeatureMap<'_>| [map.height(), map.width(), map.channels()];
    let [h, w, c] = extents(a);
    ensure!(
        extents(b) == [h, w, c],
        "heatmaps of {:?} and {:?} have nothing to compare",
        [h, w, c],
        extents(b)
    );
    let cells = (0..h).flat_map(|y| (0..w).map(move |x| (y, x)));
    let most = |(y, x)| (0..c).map(|k| (a.at(y, x, k) - b.at(y, x, k)).abs()).fold(0.0, f32::max);
    Ok(cells.map(most).collect())
}

/// The differences as a picture: a cell is a tile, from black through red and yellow to white.
fn map(differences: &[f32], [h, w]: [usize; 2], most: f32, width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        // A cell's centre lies at `cell * stride`: the first and the last are half outside.
        let cell = |v: u32, extent: u32, cells: usize| {
            let at = (v as f32 + 0.5) / extent as f32 * cells.saturating_sub(1) as f32;
            (at.round() as usize).min(cells.saturating_sub(1))
        };
        let index = cell(y, height, h) * w + cell(x, width, w);
        let value = differences.get(index).copied().unwrap_or(0.0);
        heat(if most > 0.0 { value / most } else { 0.0 })
    })
}

fn heat(share: f32) -> Rgb<u8> {
    let channel = |from: f32| ((3.0 * (share - from)).clamp(0.0, 1.0) * 255.0).round() as u8;
    Rgb([channel(0.0), channel(1.0 / 3.0), channel(2.0 / 3.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use diptych_decode::skeleton::PARTS;

    fn heads(h: usize, changed: Option<(usize, f32)>) -> Heads<'static> {
        let mut heatmap = vec![1.0; h * 3 * PARTS];
        if let Some((index, value)) = changed {
            heatmap[index] = value;
        }
        let map = |c: usize, data| FeatureMap::new("planted", [1, h, 3, c], data).expect("a map");
        let offset = map(2 * PARTS, vec![0.0; h * 3 * 2 * PARTS]);
        Heads::new([16 * (h - 1) + 1, 33], map(PARTS, heatmap), offset, None).expect("stride 16")
    }

    #[test]
    fn the_cell_that_differs_is_the_white_one() {
        let changed = heads(2, Some((4 * PARTS + 5, 0.75))); // row 1, column 1
        let differences = differences(&heads(2, None), &changed).expect("same shape");
        assert_eq!(differences, [0.0, 0.0, 0.0, 0.0, 0.25, 0.0]);
        let map = map(&differences, [2, 3], 0.25, 30, 20);
        assert_eq!((map.get_pixel(15, 19), map.get_pixel(1, 1)), (&Rgb([255; 3]), &Rgb([0; 3])));
    }

    #[test]
    fn other_shapes_are_refused() {
        assert!(differences(&heads(2, None), &heads(3, None)).is_err());
    }
}
