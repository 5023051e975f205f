//! What stands at the ends of a pipeline.

use super::{board::Boards, playout::Displays, port::Ports, robot::Robots};

/// Where samples go from the pipeline, and come back to it.
pub(super) struct Doors {
    pub(super) ports: Ports,
    pub(super) robots: Robots,
    pub(super) boards: Boards,
    pub(super) displays: Displays,
}
