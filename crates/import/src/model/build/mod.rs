//! One builder for all formats: operators made of nodes, for operands that are values or constants.
//!
//! A loader decodes a file's names and attributes and calls these functions with options. This module has what operators of
//! both formats do, and operators of one format that need several nodes; those that are one node, or that depend on how a
//! format stores its tensors, are in the format's folder. Constants are folded where all operands are known, elements keep
//! their type, and a value carries the order in which its axes are stored.

mod after;
mod arcs;
mod attention;
mod axes;
mod bitwise;
mod branches;
mod builder;
mod caches;
mod casts;
mod cells;
mod chunks;
mod constants;
mod convolution;
mod dynamic;
mod each;
mod filter;
mod hosted;
mod indexing;
mod kind;
mod masks;
mod moves;
mod norms;
mod once;
mod operand;
mod operands;
mod orders;
mod packed;
mod pads;
mod pooling;
mod products;
mod quantised;
mod quantised_matrix;
mod random;
mod recurrent;
mod reductions;
mod rotary;
mod rows;
mod scatter;
mod spectra;
mod steps;
mod suppression;
#[cfg(test)]
mod tests;
mod transposed;
mod unfolded;
mod values;
mod windows;

pub(super) use arcs::{angle_of, arc_cosine, arc_sine, arc_tangent};
pub(super) use attention::{Attended, Heads, Rule, attend, attend_openly, merged, split, with_bias};
pub(super) use axes::{Count, MOST_LISTED, axes, axis, reshaped_to, sizes};
pub(super) use bitwise::of_integers;
pub(super) use branches::Condition;
pub(super) use builder::{Builder, Cache, Ranged, Wanted};
pub(super) use caches::{Lengths, appended, appended_each, index_of_each, is_kept, kept_places, kept_with};
pub(super) use casts::{changes, computed, converted};
pub(super) use cells::{Cell, Clips, Coupled, Gru, Lstm, Norms, Plain, Projection, State};
pub(super) use constants::{floats, integers, joined, range};
pub(super) use convolution::convolution;
pub(super) use dynamic::{RunWeights, convolution_at_run, product_at_run};
pub(super) use each::Arg;
pub(super) use filter::{Arranged, Filter, Groups, INPUTS, OUTPUTS, Weights};
pub(super) use indexing::{elements_at, gathered_rows, rows_at, scattered_elements, sequences_reversed};
pub(super) use kind::Kind;
pub(super) use masks::{MASKED, Past, Reach, bias_of};
pub(super) use moves::{columns, cut, gathered, one_of, padded, part_of, spread, stacked, tiled};
pub(super) use norms::{LocalResponse, of_size_one, root_mean_square};
pub(super) use operand::{Mapped, Operand, channels_last, without};
pub(super) use packed::packed_product;
pub(super) use pads::{Around, surrounded};
pub(super) use pooling::{Counted, Pools, pooled, powers_pooled, root_of_powers};
pub(super) use products::{Factor, axis_added, dense, factor, fully_connected, product, swapped};
pub(super) use quantised::{by_range, centred, on_grid, quantised};
pub(super) use quantised_matrix::{Packed, Quantised, Shared};
pub(super) use random::{chosen, drawn, drawn_like};
pub(super) use recurrent::{Layer, MOST_UNROLLED};
pub(super) use reductions::{log_sum_exp, reduced};
pub(super) use rotary::{Angles, known_places, places_from, turned};
pub(super) use rows::{Extreme, Hot, arg, cumsum, from_start, one_hot, softmax, top_k};
pub(super) use scatter::{Combine, Data, scattered, scattered_rows};
pub(super) use spectra::{MAX_LENGTH, Transform, waves};
pub(super) use steps::Steps;
pub(super) use suppression::{Boxes, above, is_kept_box, kept_boxes, suppressed};
pub(super) use transposed::transposed_convolution;
pub(super) use windows::Windows;
