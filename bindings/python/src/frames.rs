//! Frames of cameras as arrays.

use crate::errors::exception;
use diptych::{
    ChromaSiting, ColourMatrix, ColourRange, Colours, Dims, Error, Fit, Frame, FrameLayout, Frames, Framing,
};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

/// The value of a name in any case.
fn named<T: Copy>(what: &str, name: &str, values: &[(&str, T)]) -> Result<T, Error> {
    let found = values.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let names = || values.iter().map(|(own, _)| *own).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| Error::input(what, format!("{name:?}"), format!("one of {}", names())))
}

/// How bytes are a frame: format, size, stride, matrix, range and siting.
type Described = (String, [u32; 2], Option<u32>, String, String, String);

fn layout((format, size, stride, matrix, range, siting): &Described) -> Result<FrameLayout, Error> {
    use ColourMatrix::{Bt601, Bt709, Bt2020};
    let layout = FrameLayout::new(format.parse()?, *size)?;
    let layout = stride.map_or(Ok(layout), |stride| layout.stride(stride))?;
    let matrices = [("bt601", Bt601), ("bt709", Bt709), ("bt2020", Bt2020)];
    let sitings =
        [("centre", ChromaSiting::Centre), ("left", ChromaSiting::Left), ("top-left", ChromaSiting::TopLeft)];
    Ok(layout
        .matrix(named("matrix", matrix, &matrices)?)
        .range(named("range", range, &[("video", ColourRange::Video), ("full", ColourRange::Full)])?)
        .siting(named("siting", siting, &sitings)?))
}

/// A frame's bytes as a network's input of `1 x height x width x 3` floats.
#[pyfunction]
pub(crate) fn frame<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    described: Described,
    target: [u32; 2],
    fit: &str,
    mean: [f32; 3],
    deviation: [f32; 3],
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let bytes = data.as_slice()?;
    let made = || {
        let layout = layout(&described)?;
        let fits = [("stretch", Fit::Stretch), ("letterbox", Fit::Letterbox), ("fill", Fit::Fill)];
        let framing = Framing::new(layout.size(), target)?.fit(named("fit", fit, &fits)?);
        let frames = [(Frame::new(bytes, layout), framing)];
        let dims = Dims::new(&[1, target[1] as usize, target[0] as usize, 3])?;
        Frames::new(&frames, Colours::normalized(mean, deviation)?).to_tensor(dims)
    };
    let tensor = py.detach(made).map_err(exception)?;
    PyArray1::from_slice(py, &tensor.to_f32()).reshape(tensor.dims().extents().to_vec())
}
