//! `matrix` and `matrix_ptx`: products of pixels and output channels by instructions that multiply small matrices
//! of halves (`ops/matrix.rs`), on a grid of channels x pixels of all images x layers.

use super::arguments::OF_PRODUCTS;
use crate::ops::matrix::Matrix;

pub(super) const MATRIX: Matrix =
    Matrix::cooperative(crate::emit::text!("../../../shaders/conv2d/matrix.wgsl"), OF_PRODUCTS);

pub(super) const MATRIX_PTX: Matrix =
    Matrix::ptx(include_str!("../../../cl/conv2d/matrix_ptx.cl"), OF_PRODUCTS);
