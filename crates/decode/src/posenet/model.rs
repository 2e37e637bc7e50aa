//! A network as a PoseNet: the picture that it takes, its heads, and the poses in a picture.

use super::{Heads, Roles, Settings, multi, output_stride, single};
use crate::error::{Error, Result};
use crate::output::{Output, Port, nhwc, product};
use crate::pose::Pose;

/// The one picture that a network takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureInput {
    /// The input's name.
    pub name: String,
    /// Whether channels come before height and width, as in ONNX files.
    pub planar: bool,
    /// Height and width.
    pub size: [usize; 2],
}

impl PictureInput {
    /// Finds the input.
    ///
    /// # Errors
    /// If the network takes no picture of three channels, or something else besides; with what was found.
    pub fn find(inputs: &[Port]) -> Result<Self> {
        let [Port { name, extents }] = inputs else {
            return Err(Error::new(format!("found {} inputs, wanted one picture", inputs.len())));
        };
        let planar = matches!(**extents, [.., 3, _, last] if last != 3);
        match nhwc(extents, planar) {
            Some([1, h, w, 3]) => Ok(PictureInput { name: name.clone(), planar, size: [h, w] }),
            _ => {
                let found = product(extents);
                Err(Error::new(format!("input {name:?} is {found}, wanted 1xHxWx3 or 1x3xHxW")))
            }
        }
    }

    /// Pixels of three numbers each in the order in which the input has them.
    pub fn arrange(&self, pixels: Vec<f32>) -> Vec<f32> {
        if !self.planar {
            return pixels;
        }
        (0..3).flat_map(|channel| pixels.iter().skip(channel).step_by(3).copied()).collect()
    }
}

/// How a network is used as a PoseNet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoseNet {
    input: PictureInput,
    roles: Roles,
}

impl PoseNet {
    /// Finds the heads among the outputs of a network that takes this picture.
    ///
    /// # Errors
    /// If the network is no PoseNet; with what was found.
    pub fn new(input: PictureInput, outputs: &[Port]) -> Result<Self> {
        let roles = Roles::find(outputs, input.planar)?;
        let heatmap = outputs.get(roles.heatmap).and_then(|output| nhwc(&output.extents, input.planar));
        if let Some([_, h, w, _]) = heatmap {
            output_stride(input.size, [h, w])?;
        }
        Ok(PoseNet { input, roles })
    }

    /// The picture that the network takes.
    pub fn input(&self) -> &PictureInput {
        &self.input
    }

    /// The heads among the outputs of a run, which are in the order of the network's outputs.
    ///
    /// # Errors
    /// If they do not fit each other; with what was found.
    pub fn heads<'a>(&self, outputs: &[Output<'a>]) -> Result<Heads<'a>> {
        let map = |head: &str, index: usize| {
            let missing = || Error::new(format!("the run returned no {head}"));
            let output = outputs.get(index).ok_or_else(missing)?;
            output.clone().feature_map(self.input.planar)
        };
        let displacements = match self.roles.displacements {
            Some([forward, backward]) => {
                Some([map("displacement_fwd", forward)?, map("displacement_bwd", backward)?])
            }
            None => None,
        };
        let (heatmap, offset) = (map("heatmap", self.roles.heatmap)?, map("offset", self.roles.offset)?);
        Heads::new(self.input.size, heatmap, offset, displacements)
    }

    /// The people that the heads show, in pixels of a picture of this size (width, height) that was stretched to the network's
    /// input: several by these settings, or one.
    ///
    /// # Errors
    /// If several are wanted, and the network has no displacements.
    pub fn poses(
        &self,
        heads: &Heads<'_>,
        size: (u32, u32),
        several: Option<&Settings>,
    ) -> Result<Vec<Pose>> {
        let poses = match several {
            Some(settings) => multi(heads, settings)?,
            None => vec![single(heads)],
        };
        let to_picture = |at| position_in_picture(size, self.input.size, at);
        Ok(poses.iter().map(|pose| pose.map(to_picture)).collect())
    }
}

/// Where a position of the network's input (height, width) lies in a picture of `size` (width, height) that was stretched to it.
/// Positions count from pixel centres, so the edges of both pictures meet at -0.5.
pub fn position_in_picture(size: (u32, u32), [height, width]: [usize; 2], (x, y): (f32, f32)) -> (f32, f32) {
    let scale = |v: f32, from: usize, to: u32| (v + 0.5) * to as f32 / from as f32 - 0.5;
    (scale(x, width, size.0), scale(y, height, size.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeleton::PARTS;

    fn port(name: &str, extents: &[usize]) -> Port {
        Port { name: name.to_owned(), extents: extents.to_vec() }
    }

    #[test]
    fn a_picture_has_three_channels_in_either_order() {
        let found = |extents: &[usize]| PictureInput::find(&[port("in", extents)]);
        let input = found(&[1, 33, 17, 3]).expect("a picture");
        assert_eq!((input.planar, input.size), (false, [33, 17]));
        assert_eq!(input.arrange(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let input = found(&[1, 3, 33, 17]).expect("a picture");
        assert_eq!((input.planar, input.size), (true, [33, 17]));
        assert_eq!(input.arrange(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        for extents in [&[1, 33, 17, 4][..], &[2, 33, 17, 3], &[1, 1001], &[]] {
            let error = found(extents).expect_err("no picture").to_string();
            assert!(error.contains("input \"in\" is") && error.contains("wanted 1xHxWx3"), "{error}");
        }
        let error = PictureInput::find(&[]).expect_err("no input").to_string();
        assert_eq!(error, "found 0 inputs, wanted one picture");
    }

    #[test]
    fn positions_scale_about_the_edges() {
        assert_eq!(position_in_picture((514, 1028), [257, 257], (-0.5, -0.5)), (-0.5, -0.5));
        assert_eq!(position_in_picture((514, 1028), [257, 257], (256.5, 256.5)), (513.5, 1027.5));
        assert_eq!(position_in_picture((514, 1028), [257, 257], (0.0, 0.0)), (0.5, 1.5));
    }

    #[test]
    fn planes_and_pixels_give_the_same_pose() {
        let (h, w) = (2, 3);
        let pose = |planar: bool| {
            let planes = |values: Vec<f32>| {
                let channels = values.len() / (h * w);
                let place = |channel: usize| (0..h * w).map(move |cell| cell * channels + channel);
                let places: Vec<usize> = (0..channels).flat_map(place).collect();
                if planar { places.iter().map(|&place| values[place]).collect() } else { values }
            };
            let extents = |c: usize| if planar { [1, c, h, w] } else { [1, h, w, c] };
            let heatmap: Vec<f32> =
                (0..h * w * PARTS).map(|index| (index * 37 % 101) as f32 / 10.0).collect();
            let offset: Vec<f32> = (0..2 * h * w * PARTS).map(|index| (index * 53 % 97) as f32).collect();
            let outputs = [
                Output::new("offset", &extents(2 * PARTS), planes(offset)),
                Output::new("heatmap", &extents(PARTS), planes(heatmap)),
            ];
            let input = PictureInput { name: String::new(), planar, size: [17, 33] };
            let ports: Vec<Port> = outputs.iter().map(Output::port).collect();
            let posenet = PoseNet::new(input, &ports).expect("a PoseNet");
            let heads = posenet.heads(&outputs).expect("heads");
            posenet.poses(&heads, (66, 34), None).expect("one person")
        };
        assert_eq!(pose(false), pose(true));
    }
}
