//! Outputs of a network as names, extents and numbers.

use crate::error::{Error, Result};
use std::borrow::Cow;

/// An input or output of a network, before it runs: its name and its extents, the batch among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name in the model's file.
    pub name: String,
    /// The extents of its axes, the outermost first.
    pub extents: Vec<usize>,
}

/// An output of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Output<'a> {
    /// Its name in the model's file.
    pub name: &'a str,
    /// The extents of its axes, the outermost first.
    pub extents: Vec<usize>,
    /// Its elements as floats, the last axis contiguous.
    pub values: Cow<'a, [f32]>,
    /// Its elements as integers, where they are integers: a map of classes is read from these.
    pub integers: Option<Cow<'a, [i64]>>,
}

impl<'a> Output<'a> {
    /// An output of floats.
    pub fn new(name: &'a str, extents: &[usize], values: impl Into<Cow<'a, [f32]>>) -> Self {
        Output { name, extents: extents.to_vec(), values: values.into(), integers: None }
    }

    /// The name and the extents.
    pub fn port(&self) -> Port {
        Port { name: self.name.to_owned(), extents: self.extents.clone() }
    }

    /// The extents without a leading 1, the batch.
    pub(crate) fn of_one(&self) -> &[usize] {
        match self.extents.as_slice() {
            [1, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        }
    }

    /// An error that says what was wanted.
    pub(crate) fn refused(&self, wanted: &str) -> Error {
        let found = product(&self.extents);
        Error::new(format!("output {:?}: found {found}, wanted {wanted}", self.name))
    }

    /// The output as a map of rows, columns and channels. If it is `planar`, its channels come before height and width in
    /// memory; they are put last.
    ///
    /// # Errors
    /// If it has another number of axes, more than one sample, or no elements; with what was found.
    pub fn feature_map(self, planar: bool) -> Result<FeatureMap<'a>> {
        let Some(extents) = nhwc(&self.extents, planar) else {
            return Err(self.refused("a map of height, width and channels"));
        };
        let map = FeatureMap::new(self.name, extents, self.values)?;
        if !planar {
            return Ok(map);
        }
        let FeatureMap { h, w, c, values } = map;
        let places = (0..h * w).flat_map(|pixel| (0..c).map(move |channel| channel * h * w + pixel));
        let values = places.map(|place| values[place]).collect::<Vec<_>>().into();
        Ok(FeatureMap { h, w, c, values })
    }
}

/// Batch, height, width and channels of a map, whose batch may be left out.
pub(crate) fn nhwc(extents: &[usize], planar: bool) -> Option<[usize; 4]> {
    let [n, a, b, c] = match *extents {
        [a, b, c] => [1, a, b, c],
        [n, a, b, c] => [n, a, b, c],
        _ => return None,
    };
    Some(if planar { [n, b, c, a] } else { [n, a, b, c] })
}

/// Extents in words, such as `1x9x9x17`.
pub(crate) fn product(extents: &[usize]) -> String {
    let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
    extents.join("x")
}

/// Names and extents in words.
pub(crate) fn list<'p>(ports: impl IntoIterator<Item = (&'p str, &'p [usize])>) -> String {
    let rows = ports.into_iter().map(|(name, extents)| format!("{name:?} {}", product(extents)));
    rows.collect::<Vec<_>>().join(", ")
}

/// A map of `h` rows of `w` cells with `c` channels, the channels contiguous.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureMap<'a> {
    h: usize,
    w: usize,
    c: usize,
    values: Cow<'a, [f32]>,
}

impl<'a> FeatureMap<'a> {
    /// The map of one sample; `name` is what errors call it.
    ///
    /// # Errors
    /// If there are several samples, no elements, or another number of elements than the extents say.
    pub fn new(name: &str, [n, h, w, c]: [usize; 4], values: impl Into<Cow<'a, [f32]>>) -> Result<Self> {
        let values = values.into();
        if n != 1 {
            return Err(Error::new(format!("{name}: found a batch of {n}, wanted 1")));
        }
        let count = h.checked_mul(w).and_then(|cells| cells.checked_mul(c));
        if values.is_empty() || count != Some(values.len()) {
            return Err(Error::new(format!("{name}: found {} values for {h}x{w}x{c}", values.len())));
        }
        Ok(FeatureMap { h, w, c, values })
    }

    /// The map, if all its values are finite; `name` is what errors call it.
    ///
    /// # Errors
    /// If a value is infinite or not a number; with the value.
    pub fn finite(self, name: &str) -> Result<Self> {
        match self.values.iter().position(|value| !value.is_finite()) {
            Some(index) => {
                let value = self.values[index];
                Err(Error::new(format!("{name}: value {index} is {value}, wanted finite numbers")))
            }
            None => Ok(self),
        }
    }

    /// The map with values of its own.
    pub fn into_owned(self) -> FeatureMap<'static> {
        FeatureMap { values: Cow::Owned(self.values.into_owned()), ..self }
    }

    /// How many rows there are.
    pub fn height(&self) -> usize {
        self.h
    }

    /// How many cells a row has.
    pub fn width(&self) -> usize {
        self.w
    }

    /// How many numbers a cell has.
    pub fn channels(&self) -> usize {
        self.c
    }

    /// All values: row by row, cell by cell, channel by channel.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The value of channel `k` in row `y` and column `x`; NaN outside the map.
    pub fn at(&self, y: usize, x: usize, k: usize) -> f32 {
        let is_inside = y < self.h && x < self.w && k < self.c;
        if is_inside { self.values[(y * self.w + x) * self.c + k] } else { f32::NAN }
    }

    /// The vector (x, y) whose y lies in channel `k` and whose x lies in the second half of the channels.
    pub fn vector(&self, y: usize, x: usize, k: usize) -> (f32, f32) {
        (self.at(y, x, self.c / 2 + k), self.at(y, x, k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_in_planes_are_put_last() {
        let output = Output::new("map", &[1, 2, 1, 3], vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
        let map = output.feature_map(true).expect("three axes");
        assert_eq!((map.height(), map.width(), map.channels()), (1, 3, 2));
        assert_eq!(map.values(), [0.0, 10.0, 1.0, 11.0, 2.0, 12.0]);
        assert_eq!((map.at(0, 2, 1), map.vector(0, 1, 0)), (12.0, (11.0, 1.0)));
        assert!(map.at(0, 3, 0).is_nan() && map.at(1, 0, 0).is_nan() && map.at(0, 0, 2).is_nan());
    }

    #[test]
    fn maps_of_other_extents_are_refused() {
        let refused = |extents: &[usize], count: usize| {
            let output = Output::new("map", extents, vec![0.0; count]);
            [false, true].map(|planar| output.clone().feature_map(planar).expect_err("not a map").to_string())
        };
        assert!(refused(&[2, 3], 6).iter().all(|text| text.contains("\"map\": found 2x3, wanted a map")));
        assert!(refused(&[2, 1, 1, 3], 6).iter().all(|text| text.contains("a batch of 2, wanted 1")));
        assert!(refused(&[1, 1, 1, 3], 2).iter().all(|text| text.contains("found 2 values")));
        assert!(refused(&[1, 0, 1, 3], 0).iter().all(|text| text.contains("found 0 values")));
        assert!(refused(&[1, usize::MAX, 2, 2], 2).iter().all(|text| text.contains("found 2 values")));
    }

    #[test]
    fn a_map_with_nan_is_refused() {
        let map = FeatureMap::new("heatmap", [1, 1, 2, 1], vec![0.0, f32::NAN]).expect("two values");
        let error = map.finite("heatmap").expect_err("NaN").to_string();
        assert!(error.contains("value 1 is NaN"), "{error}");
    }
}
