//! Which work-group a kernel gets.

pub mod tables;
pub mod work_group;
