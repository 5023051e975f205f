//! Built-in robots: one file each.

pub mod arm;
pub mod follower;
pub mod step;
pub mod wall_mass;
