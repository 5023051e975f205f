//! What this machine's clock and sockets are worth, measured: how late a loop wakes up, how old a receive stamp is.

use crate::{
    os::{
        clock::{monotonic_ns, RunClock},
        socket::Socket,
        wait::{privileges, Waiter},
    },
    threads,
};
use serde::Serialize;
use std::{net::Ipv4Addr, os::fd::RawFd};
use tcps_core::{
    report::histogram,
    time::{Time, MS},
};
use tcps_plan::{report::Spread, Waiting};

/// Time between two wake-ups, as of a loop at 1 kHz.
const PERIOD: Time = MS;
const SPIN: Time = 50_000;

/// How late a loop woke up.
#[derive(Debug, Clone, Serialize)]
pub struct WakeUps {
    /// How it waited.
    pub waiting: &'static str,
    /// Wake-ups.
    pub ticks: u64,
    /// Behind the moment that was asked for.
    pub late_ns: Spread,
    /// Wake-ups over a millisecond late.
    pub gaps_over_1ms: u64,
}

/// Receive stamps of the kernel on loopback.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stamps {
    /// Datagrams that came with one.
    pub stamped: u64,
    /// Datagrams that came.
    pub received: u64,
    /// From before the send call to the stamp.
    pub send_to_stamp_ns: Spread,
    /// From the stamp to the loop.
    pub stamp_to_loop_ns: Spread,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Quality {
    /// Each way of waiting, without and with what may be had of privileges.
    pub wake_ups: Vec<WakeUps>,
    /// Receive stamps; absent without sockets.
    pub stamps: Option<Stamps>,
    /// What was asked for, and whether it was granted.
    pub privileges: Vec<String>,
}

/// Measures for `seconds` in all, in a thread of its own so that nobody else keeps the privileges.
pub fn measure(seconds: f64) -> Quality {
    let part = (seconds / 3.0 * 1e9) as Time;
    let run = move || {
        let plain = wake_ups("timer, as it is", Waiting::Timer, part);
        let privileges = privileges(true);
        let timer = wake_ups("timer, with privileges", Waiting::Timer, part);
        let (hybrid, stamps) =
            (wake_ups("hybrid, last 50 us spun", Waiting::Hybrid, part / 2), stamps(part / 2));
        Quality { wake_ups: vec![plain, timer, hybrid], stamps, privileges }
    };
    let nothing = Quality { wake_ups: Vec::new(), stamps: None, privileges: Vec::new() };
    threads::start(run).ok().and_then(|thread| thread.join().ok()).unwrap_or(nothing)
}

fn wake_ups(name: &'static str, waiting: Waiting, span: Time) -> WakeUps {
    let no_sockets: [RawFd; 0] = [];
    let mut waiter = Waiter::new(&no_sockets, waiting, SPIN);
    let (mut late, mut gaps) = (histogram(), 0);
    let begun = monotonic_ns();
    let mut due = begun + PERIOD;
    while due < begun + span {
        waiter.wait(due);
        let now = monotonic_ns();
        let _ = late.record((now - due).max(0) as u64);
        gaps += u64::from(now - due > MS);
        due += PERIOD * (1 + (now - due).max(0) / PERIOD);
    }
    WakeUps { waiting: name, ticks: late.len(), late_ns: Spread::of(&late), gaps_over_1ms: gaps }
}

fn stamps(span: Time) -> Option<Stamps> {
    let (mut sender, mut receiver) =
        (Socket::bind(Ipv4Addr::LOCALHOST.into()).ok()?, Socket::bind(Ipv4Addr::LOCALHOST.into()).ok()?);
    let to = receiver.address().ok()?;
    let begun = monotonic_ns();
    let mut clock = RunClock::new(begun);
    let mut waiter = Waiter::new(&[receiver.fd()], Waiting::Timer, 0);
    let (mut there, mut inside, mut found, mut buffer) =
        (histogram(), histogram(), Stamps::default(), [0; 64]);
    while clock.now() < span {
        let sent = clock.now();
        sender.send(b"stamp", to, 0);
        waiter.wait(monotonic_ns() + 10 * MS);
        let now = clock.now();
        while let Some(got) = receiver.receive(&mut buffer) {
            found.received += 1;
            let Some(stamp) = got.stamp_ns else { continue };
            let at = clock.of_stamp(stamp, now);
            found.stamped += 1;
            let _ = there.record((at - sent).max(0) as u64);
            let _ = inside.record((now - at).max(0) as u64);
        }
        waiter.wait(monotonic_ns() + PERIOD);
    }
    Some(Stamps { send_to_stamp_ns: Spread::of(&there), stamp_to_loop_ns: Spread::of(&inside), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_and_stamps_are_counted() {
        let found = measure(0.3);
        assert_eq!(found.wake_ups.len(), 3);
        // A loaded machine leaves ticks out; it never adds any.
        assert!(found.wake_ups.iter().all(|w| (1..=100).contains(&w.ticks)));
        let stamps = found.stamps.unwrap();
        assert!(stamps.stamped > 0 && stamps.stamped <= stamps.received);
        assert!(found.privileges[0].starts_with("timer slack"));
    }
}
