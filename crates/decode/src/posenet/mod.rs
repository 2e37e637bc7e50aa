//! PoseNet: heatmaps of seventeen parts with offsets and displacements, decoded to one pose or to several.
//!
//! | file | does |
//! |---|---|
//! | `heads` | which output is which, and the geometry they share |
//! | `single` | one person: each part where its heatmap is highest |
//! | `multi` | several people: the greedy decoding published with PoseNet |
//! | `model` | a network as a PoseNet, by its input and outputs |

mod heads;
mod model;
mod multi;
mod single;

pub use heads::{Heads, Roles, output_stride};
pub use model::{PictureInput, PoseNet, position_in_picture};
pub use multi::{Settings, multi};
pub use single::single;
