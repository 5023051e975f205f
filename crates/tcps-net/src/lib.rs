//! Network elements of tcpsbed: a graph of links with queues, loss, jitter, outages and background traffic.
//!
//! ```text
//!            queue          line                     pipes (in flight)
//! send --> [ discipline ]--[ rate, loss, jitter ]--[ propagation ]--> next vertex ... --> Arrived
//!   ^         |  Full, Managed   |  Loss, Outage
//! traffic     v                  v
//! ```
//!
//! Sans-IO: `Network` is driven by `send`, `handle_timeout` and `poll_event`; the virtual driver and the emulator
//! use the same object. A link takes the cheapest of three ways that gives exact times:
//!
//! * *pure*: infinitely fast and undisturbed; only a delay, folded into the link before it;
//! * *ahead*: first in, first out, constant rate, undisturbed; departures are computed on arrival;
//! * *served*: everything else; packets leave a queue discipline one by one when the line is free.
//!
//! The first change of a pure or ahead link makes it a served one, with all packets where they are.

#![forbid(unsafe_code)]

mod access;
mod ahead;
mod change;
mod check;
pub mod error;
mod flight;
pub mod jitter;
mod line;
mod link;
pub mod loss;
mod medium;
pub mod network;
pub mod opportunity;
pub mod own;
pub mod packet;
pub mod pages;
mod passage;
mod pipe;
pub mod queue;
mod serve;
pub mod topology;
pub mod traffic;
pub mod turns;
mod windows;

pub use check::{settings as check_link, users as check_users, MOST_USERS};
pub use error::NetError;
pub use network::Network;
pub use own::ForeignCode;
pub use packet::{NetEvent, Packet, Spent, BACKGROUND};
pub use passage::Passage;
