//! No ports at all: a program behind the emulator holds the nodes' devices itself, and the datagrams never come here.
//!
//! What is left for the emulator's loop is to start the program, tell it of events, ask it for queues, and hear how it ends.
//! It has no troubles of its own with packets that it never sees: those of the program stand in the program's own row.

use super::{Ports, Taken, Troubles};
use crate::{os::clock::RunClock, plan::Plan};
use std::os::fd::RawFd;

pub(super) struct Beyond;

impl Ports for Beyond {
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn receive(&mut self, _: &Plan, _: usize, _: &mut RunClock, _: &mut [u8]) -> Taken {
        Taken::Empty
    }

    fn deliver(&mut self, _: usize, _: u16, _: u8, _: &[u8]) -> bool {
        false
    }

    fn stamps(&self) -> &'static str {
        "none"
    }

    fn troubles(&self) -> Troubles {
        Troubles::default()
    }
}
