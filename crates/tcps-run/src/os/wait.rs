//! Ways of waiting for sockets or a deadline, and the privileges that make them exact.

#![expect(unsafe_code, reason = "waiting and scheduling are calls of the kernel")]

use super::clock::monotonic_ns;
use hdrhistogram::Histogram;
use libc::{pollfd, timespec, POLLHUP, POLLIN};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::fd::RawFd,
};
use tcps_core::time::{Time, MS, SECOND};
use tcps_plan::Waiting;

/// A pause that marks the run as disturbed.
pub const GAP_NS: Time = MS;
/// The longest sleep, so that a stop request is seen.
pub const LONGEST: Time = 20 * MS;
/// What scheduling class and memory lock need.
const LIMITS: &str = "root or CAP_SYS_NICE, CAP_IPC_LOCK";

/// Lets other threads have the interpreter while a loop waits; nothing to let go without Python.
pub trait Detach {
    /// Runs `wait` with the interpreter let go.
    fn detached(&mut self, wait: &mut dyn FnMut());
    /// Everything is built and the loop is about to start.
    fn at_barrier(&mut self) {}
    /// How long it took to get the interpreter back, in nanoseconds.
    fn interpreter_waits(&self) -> Option<&Histogram<u64>> {
        None
    }
}

/// A loop without Python.
#[derive(Debug, Default)]
pub struct NothingToDetach;

impl Detach for NothingToDetach {
    fn detached(&mut self, wait: &mut dyn FnMut()) {
        wait();
    }
}

/// Waits for some descriptors in one of the ways.
#[derive(Debug)]
pub struct Waiter {
    polls: Vec<pollfd>,
    waiting: Waiting,
    spin_ns: Time,
}

impl Waiter {
    /// Waits for any of `fds`.
    pub fn new(fds: &[RawFd], waiting: Waiting, spin_ns: Time) -> Self {
        let polls = fds.iter().map(|&fd| pollfd { fd, events: POLLIN, revents: 0 }).collect();
        Self { polls, waiting, spin_ns }
    }

    /// Returns when a descriptor can be read or CLOCK_MONOTONIC has reached `deadline`.
    pub fn wait(&mut self, deadline: Time) {
        let now = monotonic_ns();
        let end = deadline.min(now + LONGEST);
        match self.waiting {
            Waiting::Blocking => {
                let ms = ((end - now).max(0) + MS - 1) / MS;
                self.poll(Some(ms * MS));
            }
            Waiting::Timer => {
                self.poll(Some((end - now).max(0)));
            }
            Waiting::Hybrid => {
                // Sockets are looked at even when the deadline has passed: a late loop must not starve them.
                if self.poll(Some(0)) || now >= deadline {
                    return;
                }
                // Only a deadline is worth spinning for, not the end of the longest sleep.
                let spin_ns = if end == deadline { self.spin_ns } else { 0 };
                let rest = end - now - spin_ns;
                if rest > 0 && self.poll(Some(rest)) {
                    return;
                }
                while end == deadline && monotonic_ns() < end {
                    if self.poll(Some(0)) {
                        return;
                    }
                }
            }
        }
    }

    /// Descriptors that can be read or are closed, by their place in the list.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.polls.iter().enumerate().filter(|(_, p)| p.revents & (POLLIN | POLLHUP) != 0).map(|(i, _)| i)
    }

    /// Waits for this one no more; the places of the others stay.
    pub fn forget(&mut self, place: usize) {
        self.polls[place].fd = -1;
        self.polls[place].revents = 0;
    }

    fn poll(&mut self, time_out: Option<Time>) -> bool {
        let limit = time_out.map(|t| timespec { tv_sec: t / SECOND, tv_nsec: t % SECOND });
        let p = limit.as_ref().map_or(std::ptr::null(), |t| t as *const timespec);
        // SAFETY: the array and the time-out outlive the call.
        let n = unsafe { libc::ppoll(self.polls.as_mut_ptr(), self.polls.len() as u64, p, std::ptr::null()) };
        if n < 0 {
            self.polls.iter_mut().for_each(|p| p.revents = 0);
        }
        n > 0
    }
}

/// Asks for what makes a loop exact; tells what it got and what it was refused.
pub fn privileges(realtime: bool) -> Vec<String> {
    // SAFETY: plain system calls on this thread and process.
    let slack = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) == 0 };
    let mut list = vec![said("timer slack 1 ns", slack, LIMITS)];
    if realtime {
        let priority = libc::sched_param { sched_priority: 10 };
        // SAFETY: as above; the parameter outlives the call.
        let (fifo, locked) = unsafe {
            (
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0,
                libc::mlockall(libc::MCL_CURRENT) == 0,
            )
        };
        list.push(said("SCHED_FIFO", fifo, LIMITS));
        list.push(said("memory lock", locked, LIMITS));
    }
    list
}

/// Keeps idle processors out of sleep while what it returns is held: from sleep, a core takes tens of microseconds to
/// see a timer. The kernel heeds the lowest wake-up latency that any open file asks for
/// [Linux, PM Quality Of Service Interface]. The answer joins `privileges`, if `realtime` is wanted at all.
pub fn awake(realtime: bool, privileges: &mut Vec<String>) -> Option<File> {
    const REQUESTS: &str = "/dev/cpu_dma_latency";
    let ask = |mut file: File| file.write_all(&0_i32.to_ne_bytes()).map(|()| file);
    let held = realtime.then(|| OpenOptions::new().write(true).open(REQUESTS).and_then(ask).ok())?;
    privileges.push(said("processors kept awake", held.is_some(), "write access to /dev/cpu_dma_latency"));
    held
}

fn said(what: &str, granted: bool, needs: &str) -> String {
    if granted {
        format!("{what}: yes")
    } else {
        format!("{what}: refused (needs {needs})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::UdpSocket, os::fd::AsRawFd};

    #[test]
    fn a_late_loop_still_sees_its_sockets() {
        let (socket, peer) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for waiting in [Waiting::Blocking, Waiting::Timer, Waiting::Hybrid] {
            let mut waiter = Waiter::new(&[socket.as_raw_fd()], waiting, MS);
            peer.send_to(b"hand", socket.local_addr().unwrap()).unwrap();
            waiter.wait(monotonic_ns() - MS);
            assert_eq!(waiter.ready().collect::<Vec<_>>(), [0]);
            socket.recv(&mut [0; 8]).unwrap();
            waiter.wait(monotonic_ns() - MS);
            assert_eq!(waiter.ready().count(), 0, "nothing is left of the last wait");
        }
    }

    #[test]
    fn wakefulness_is_asked_for_only_where_it_is_wanted_and_the_answer_is_told() {
        let mut told = Vec::new();
        assert!(awake(false, &mut told).is_none() && told.is_empty());
        let held = awake(true, &mut told);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0] == "processors kept awake: yes", held.is_some(), "{told:?}");
        assert!(held.is_some() || told[0].contains("/dev/cpu_dma_latency"), "{told:?}");
    }
}
