//! Which work-group a kernel gets.

pub mod generators;
pub mod tables;
pub mod work_group;
