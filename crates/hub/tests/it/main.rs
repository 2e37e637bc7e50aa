//! Models of a hub on this machine.

mod downloads;
mod models;
mod server;
