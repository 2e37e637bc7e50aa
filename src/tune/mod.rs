//! Which work-group a kernel gets.

pub mod db;
pub mod generators;
pub mod journal;
pub mod key;
pub mod tables;
pub mod work_group;
