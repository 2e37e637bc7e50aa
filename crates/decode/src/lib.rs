//! Decodes the outputs of neural networks on pictures: poses, bounding boxes, masks and labels.
//!
//! It takes numbers and their extents, and needs neither a device nor the library that ran the network.
//!
//! | module | decodes |
//! |---|---|
//! | [`posenet`] | PoseNet: heatmaps, offsets and displacements to one pose or to several |
//! | [`movenet`] | MoveNet: rows of keypoints |
//! | [`yolo`] | YOLO: rows or columns of a bounding box and scores, or keypoints |
//! | [`ssd`] | files that end in `TFLite_Detection_PostProcess` |
//! | [`mediapipe`], [`yunet`] | detectors whose boxes are measured from [`anchors`] or cells |
//! | [`segmentation`] | a score for each class of each pixel, or the class itself |
//! | [`classification`] | a score for each class |
//! | [`format`](mod@format) | recognises networks by their outputs |
//! | `picture` | files of pictures to inputs of networks; with the feature `pictures` |
//!
//! # Coordinates
//!
//! Bounding boxes and their keypoints are in pixels of the network's picture, which are continuous: pixel `(i, j)` covers
//! `i..i + 1` and `j..j + 1`. A [`Pose`] of [`posenet`] counts from the centre of the first pixel, which the authors of
//! PoseNet do: [`Pose::detection`] gives it in the coordinates of all others. Sizes are height and width.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
#![warn(clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented, clippy::unwrap_used)]

pub mod anchors;
pub mod classification;
mod detection;
mod error;
pub mod format;
pub mod mediapipe;
pub mod movenet;
mod output;
#[cfg(feature = "pictures")]
pub mod picture;
mod pose;
pub mod posenet;
pub mod segmentation;
pub mod skeleton;
pub mod ssd;
pub mod yolo;
pub mod yunet;

pub use detection::{
    Detection, Keypoint, Limits, intersection_over_union, non_maximum_suppression,
    weighted_non_maximum_suppression,
};
pub use error::{Error, Result};
pub use format::{Decoded, Format, Outputs, decode};
pub use output::{FeatureMap, Output, Port};
pub use pose::Pose;
pub use segmentation::Mask;

/// The example of the README is tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The probability that a logit stands for: `1 / (1 + exp(-x))`.
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}
