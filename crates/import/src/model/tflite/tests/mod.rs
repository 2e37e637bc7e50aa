//! Models are built here byte by byte; real files are read where they are present.

mod accepts;
mod at_run;
mod at_run_expected;
mod customs;
mod ends;
mod exact;
mod exact_expected;
mod expected;
mod files;
mod hostile;
mod integers;
mod layers;
mod layers_expected;
mod metadata;
mod open;
mod operators;
mod packed;
mod quantised;
mod quantised_expected;
mod random;
mod refuses;
mod without_elements;
mod writer;
