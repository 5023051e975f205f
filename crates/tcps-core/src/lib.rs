//! The vocabulary of tcpsbed, without I/O.
//!
//! ```text
//! time    i64 nanoseconds, node clocks          record  32-byte rows, the one truth a run leaves
//! sample  what a flow carries, echo commands    hook    user code in the path of a sample
//! report  counts and costs that a run reports beside its rows
//! endpoint  the sans-IO transport contract      robot   what answers at the far side
//! dist    costs and delays, law: sizes and pauses  seed    one random stream per named object
//! split   where the time of samples went
//! model   loss, delay, queue, predictor: the traits that rooms implement; rate: the rate controller
//! agenda  what is due next
//! param   what a scenario can name: entries with their tables of parameters
//! size    headers that count on the wire         fit     a line through points
//! ids     numbers of things in a plan
//! ```
//!
//! Time comes in as an argument and randomness as a seed; nothing here (nor in the rooms `wire`, `transport`,
//! `net`, `control`) reads a clock, opens a socket, sleeps or iterates in hash order.

pub mod agenda;
pub mod dist;
pub mod endpoint;
pub mod fit;
pub mod hook;
pub mod ids;
pub mod law;
pub mod model;
pub mod param;
pub mod rate;
pub mod record;
pub mod report;
pub mod robot;
pub mod sample;
pub mod seed;
pub mod size;
pub mod split;
pub mod time;
