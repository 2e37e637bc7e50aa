//! The printed text of small kernels.
