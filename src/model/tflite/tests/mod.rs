//! Models are built here byte by byte; real files are read where they are present.

mod accepts;
mod files;
mod hostile;
mod refuses;
mod writer;
