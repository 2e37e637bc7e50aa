//! Anchors and prior boxes: the places that detectors measure their boxes from.

/// Where a box is measured from: a centre and a size, in pixels of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// The centre, rightwards.
    pub x: f32,
    /// The centre, downwards.
    pub y: f32,
    /// Width and height.
    pub size: f32,
}

/// The anchors of MediaPipe's detectors, for a square input of `size` pixels.
///
/// A layer has a cell for every `stride` pixels, with `per_layer` anchors in the middle of each; layers of one
/// stride that follow each other share their cells. An anchor is as large as the input
/// (`fixed_anchor_size`), and so no scale is needed.
///
/// `per_layer` is 2, for the aspect ratio 1 and the interpolated one, or 1 where
/// `interpolated_scale_aspect_ratio` is 0.
///
/// Source: `SsdAnchorsCalculator` of MediaPipe, with the options in its graphs.
pub fn ssd(size: usize, strides: &[usize], per_layer: usize) -> Vec<Anchor> {
    let mut anchors = Vec::new();
    for layers in strides.chunk_by(|a, b| a == b) {
        let cells = size.div_ceil(layers[0]);
        let middle = |cell: usize| (cell as f32 + 0.5) / cells as f32 * size as f32;
        for (y, x) in (0..cells).flat_map(|y| (0..cells).map(move |x| (y, x))) {
            let anchor = Anchor { x: middle(x), y: middle(y), size: size as f32 };
            anchors.extend(std::iter::repeat_n(anchor, per_layer * layers.len()));
        }
    }
    anchors
}

/// YuNet's prior boxes for an input of height and width.
///
/// The first map has a quarter of the pixels each way, and each that follows half of the one before, rounded
/// down; the boxes are in the maps after the first.
///
/// Source: `PriorBox` of libfacedetection.train, 2021, as OpenCV's `FaceDetectorYN` 4.5.4 has it.
pub fn yunet([height, width]: [usize; 2]) -> Vec<Anchor> {
    const MAPS: [(usize, &[f32]); 4] =
        [(8, &[10.0, 16.0, 24.0]), (16, &[32.0, 48.0]), (32, &[64.0, 96.0]), (64, &[128.0, 192.0, 256.0])];
    let mut anchors = Vec::new();
    let [mut h, mut w] = [height.div_ceil(2) / 2, width.div_ceil(2) / 2];
    for (stride, sizes) in MAPS {
        (h, w) = (h / 2, w / 2);
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let middle = |cell: usize| (cell as f32 + 0.5) * stride as f32;
            anchors.extend(sizes.iter().map(|&size| Anchor { x: middle(x), y: middle(y), size }));
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_published_graphs() {
        for (size, strides, per_layer, count) in [
            (128, &[8, 16, 16, 16][..], 2, 896),
            (192, &[4], 1, 2304),
            (224, &[8, 16, 32, 32, 32], 2, 2254),
            (192, &[8, 16, 16, 16], 2, 2016),
        ] {
            assert_eq!(ssd(size, strides, per_layer).len(), count, "{size} {strides:?}");
        }
    }

    #[test]
    fn anchors_are_in_the_middle_of_their_cells() {
        let anchors = ssd(128, &[8, 16, 16, 16], 2);
        let at = |index: usize| [anchors[index].x, anchors[index].y];
        // Two in each cell of 8 pixels, row by row; then six in each of 16.
        assert_eq!([at(0), at(1), at(2), at(32)], [[4.0, 4.0], [4.0, 4.0], [12.0, 4.0], [4.0, 12.0]]);
        assert_eq!(
            [at(511), at(512), at(517), at(518)],
            [[124.0, 124.0], [8.0, 8.0], [8.0, 8.0], [24.0, 8.0]]
        );
        assert_eq!(at(895), [120.0, 120.0]);
        assert!(anchors.iter().all(|anchor| anchor.size == 128.0));
    }

    #[test]
    fn yunets_boxes_begin_with_three_sizes_in_cells_of_eight() {
        let anchors = yunet([120, 160]);
        assert_eq!(anchors.len(), 1076);
        let of = |index: usize| (anchors[index].x, anchors[index].y, anchors[index].size);
        assert_eq!([of(0), of(2), of(3)], [(4.0, 4.0, 10.0), (4.0, 4.0, 24.0), (12.0, 4.0, 10.0)]);
        assert_eq!([of(900), of(901)], [(8.0, 8.0, 32.0), (8.0, 8.0, 48.0)]);
        assert_eq!([of(1070), of(1075)], [(32.0, 32.0, 128.0), (96.0, 32.0, 256.0)]);
        assert_eq!(yunet([320, 320]).len(), 3 * 1600 + 2 * 400 + 2 * 100 + 3 * 25);
    }
}
