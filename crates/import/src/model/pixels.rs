//! `float = (byte - mean) / deviation`: how a picture's bytes become an input's numbers.

use crate::alloc;
use crate::dims::Dims;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostTensor;

/// How the bytes of a picture become an input's floats: `(byte - mean) / deviation`, with one mean and deviation for all
/// channels or one for each. A file may say it of its inputs ([`ModelFile::pixels`](struct.ModelFile.html#method.pixels)).
///
/// ```
/// use diptych::{Dims, HostTensor, Pixels};
///
/// let picture = HostTensor::of(Dims::new(&[1, 1, 2, 1])?, vec![0u8, 255])?;
/// assert_eq!(*Pixels::range(-1.0, 1.0)?.floats(&picture)?.to_f32(), [-1.0, 1.0]);
/// # Ok::<(), diptych::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pixels {
    /// A mean and a deviation for all channels or for each.
    pairs: Vec<(f64, f64)>,
}

impl Pixels {
    /// `(byte - mean) / deviation`, both in the units of bytes, 0 to 255: one pair for all channels or one for each.
    ///
    /// ```
    /// use diptych::Pixels;
    ///
    /// // As networks trained on ImageNet want them.
    /// let pixels = Pixels::normalized(&[(123.675, 58.395), (116.28, 57.12), (103.53, 57.375)])?;
    /// assert!(Pixels::normalized(&[(127.5, 0.0)]).is_err());
    /// # let _ = pixels;
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no pair, a number is not finite, or a deviation is 0.
    pub fn normalized<N: Copy + Into<f64>>(pairs: &[(N, N)]) -> Result<Self> {
        let pairs: Vec<(f64, f64)> =
            pairs.iter().map(|&(mean, deviation)| (mean.into(), deviation.into())).collect();
        let good =
            |(mean, deviation): &(f64, f64)| mean.is_finite() && deviation.is_finite() && *deviation != 0.0;
        if pairs.is_empty() || !pairs.iter().all(good) {
            let found = format!("means and deviations {pairs:?}");
            return Err(Error::input("pixels", found, "finite numbers, deviations that are not 0"));
        }
        Ok(Pixels { pairs })
    }

    /// Bytes from 0 to 255 as `low` to `high`.
    ///
    /// ```
    /// use diptych::Pixels;
    ///
    /// assert_eq!(Pixels::range(-1.0, 1.0)?, Pixels::normalized(&[(127.5, 127.5)])?);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a number is not finite, or both are equal.
    pub fn range(low: f32, high: f32) -> Result<Self> {
        let (low, high) = (f64::from(low), f64::from(high));
        if !low.is_finite() || !high.is_finite() || low == high {
            let found = format!("{low} to {high}");
            return Err(Error::input("pixels", found, "two finite numbers that differ"));
        }
        let deviation = 255.0 / (high - low);
        Ok(Pixels { pairs: vec![(-low * deviation, deviation)] })
    }

    /// Whether bytes that such an input is given are a picture's, whose scale has to be known: whether it is one of floats
    /// and has three axes or more.
    ///
    /// ```
    /// use diptych::{DType, Dims, Pixels};
    ///
    /// assert!(Pixels::are_for(DType::F32, Dims::new(&[1, 257, 257, 3])?));
    /// assert!(!Pixels::are_for(DType::U8, Dims::new(&[1, 257, 257, 3])?)); // it takes bytes as they are
    /// assert!(!Pixels::are_for(DType::F32, Dims::new(&[1, 10])?)); // numbers
    /// # Ok::<(), diptych::Error>(())
    /// ```
    pub fn are_for(dtype: DType, dims: Dims) -> bool {
        dtype.is_float() && dims.rank() >= 3
    }

    /// A tensor of bytes as one of floats. Where there is a pair for each channel, the channels are the last axis, or the
    /// third last one as in N x C x H x W: the one that has as many.
    ///
    /// ```
    /// use diptych::{Dims, HostTensor, Pixels};
    ///
    /// let picture = HostTensor::of(Dims::new(&[1, 1, 1, 3])?, vec![10u8, 20, 30])?;
    /// let pixels = Pixels::normalized(&[(10.0, 1.0), (0.0, 2.0), (0.0, 3.0)])?;
    /// assert_eq!(*pixels.floats(&picture)?.to_f32(), [0.0, 10.0, 10.0]);
    /// # Ok::<(), diptych::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tensor is of another type, or no axis has as many channels as there are pairs.
    pub fn floats(&self, bytes: &HostTensor) -> Result<HostTensor> {
        let dims = bytes.dims();
        let elements = bytes
            .elements::<u8>()
            .ok_or_else(|| Error::input("pixels", format!("a tensor of {}", bytes.dtype()), "one of u8"))?;
        let extents = dims.extents();
        let count = self.pairs.len();
        // How many elements lie between two channels.
        let inner = match extents {
            _ if count == 1 => elements.len().max(1),
            [.., last] if *last == count => 1,
            [.., channels, h, w] if *channels == count => (h * w).max(1),
            _ => {
                let wanted = format!("{count} channels, for which there are means and deviations");
                return Err(Error::input("pixels", format!("a picture of {dims}"), wanted));
            }
        };
        let table = |&(mean, deviation): &(f64, f64)| {
            std::array::from_fn(|byte| ((byte as f64 - mean) / deviation) as f32)
        };
        let tables: Vec<[f32; 256]> = self.pairs.iter().map(table).collect();
        let mut floats = alloc::reserved(elements.len(), "a picture")?;
        for (part, elements) in elements.chunks(inner).enumerate() {
            let Some(table) = tables.get(part % count) else { continue };
            floats.extend(elements.iter().map(|&byte| table[usize::from(byte)]));
        }
        HostTensor::new(dims, floats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(extents: &[usize]) -> HostTensor {
        let dims = Dims::new(extents).expect("small");
        HostTensor::of(dims, (0..dims.elements()).map(|byte| (byte * 7 % 256) as u8).collect::<Vec<u8>>())
            .expect("as many")
    }

    #[test]
    fn each_byte_is_what_its_channels_mean_and_deviation_make_of_it() {
        let pairs = [(10.0, 2.0), (100.5, 50.25), (0.0, -3.0)];
        for (extents, channel) in [
            (vec![2, 5, 7, 3], (|place| place % 3) as fn(usize) -> usize),
            (vec![2, 3, 5, 7], |place| place / 35 % 3),
            (vec![5, 7, 3], |place| place % 3),
        ] {
            let given = bytes(&extents);
            let found = Pixels::normalized(&pairs).expect("good").floats(&given).expect("a picture");
            assert_eq!(found.dims(), given.dims());
            let elements = given.elements::<u8>().expect("bytes");
            for (place, (&byte, &float)) in elements.iter().zip(&*found.to_f32()).enumerate() {
                let (mean, deviation) = pairs[channel(place)];
                assert_eq!(float, ((f64::from(byte) - mean) / deviation) as f32, "{place}");
            }
        }
        for extents in [[1, 2, 2, 1], [0, 2, 2, 1], [1, 64, 64, 1]] {
            let given = bytes(&extents);
            let same = Pixels::range(0.0, 255.0).expect("good").floats(&given).expect("a picture");
            let wanted = given.elements::<u8>().expect("bytes").iter().map(|&byte| f32::from(byte));
            assert_eq!(*same.to_f32(), wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let three = Pixels::normalized(&[(0.0, 1.0); 3]).expect("good");
        let error = three.floats(&bytes(&[1, 4, 4, 4])).expect_err("four channels").to_string();
        assert_eq!(
            error,
            "pixels: found a picture of 1x4x4x4, wanted 3 channels, for which there are means and deviations"
        );
        let floats = HostTensor::new(Dims::new(&[1]).expect("small"), vec![1.0]).expect("one");
        assert!(three.floats(&floats).expect_err("floats").to_string().contains("wanted one of u8"));
        for wrong in [(f32::NAN, 1.0), (0.0, f32::INFINITY), (0.0, 0.0)] {
            assert!(Pixels::normalized(&[wrong]).is_err());
        }
        assert!(Pixels::normalized::<f32>(&[]).is_err() && Pixels::range(1.0, 1.0).is_err());
    }
}
