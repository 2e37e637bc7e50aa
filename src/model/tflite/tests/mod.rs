//! Models are built here byte by byte; real files are read where they are present.

mod accepts;
mod expected;
mod files;
mod hostile;
mod layers;
mod layers_expected;
mod metadata;
mod operators;
mod refuses;
mod writer;
