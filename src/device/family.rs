//! GPU families, from names and ids.
