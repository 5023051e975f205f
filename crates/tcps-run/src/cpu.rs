//! The cores of a node in virtual time, and how its stages compete for them.
//!
//! ```text
//! submit ─► ready ─► core 1 … core n ─► done
//!             ▲         │ quantum over, or pre-empted by a higher priority
//!             └─────────┘
//! ```
//! Competition, not typed-in numbers, makes a copy of a stereo frame take 24, 33 or 60 ms (Al-Mouhamed).

use std::collections::VecDeque;
use tcps_core::time::{Time, NEVER};
use tcps_plan::Scheduling;

#[derive(Debug, Clone, Copy)]
struct Task {
    job: u32,
    left: Time,
    priority: i32,
    order: u64,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    task: Task,
    since: Time,
    until: Time,
}

/// The processor of a node.
#[derive(Debug)]
pub struct Cpu {
    cores: usize,
    scheduling: Scheduling,
    ready: VecDeque<Task>,
    running: Vec<Running>,
    order: u64,
    busy_ns: Time,
}

impl Cpu {
    /// A processor with some cores.
    pub fn new(cores: u16, scheduling: Scheduling) -> Self {
        let cores = cores.max(1) as usize;
        Self { cores, scheduling, ready: VecDeque::new(), running: Vec::new(), order: 0, busy_ns: 0 }
    }

    /// A job wants a core for `cost`.
    pub fn submit(&mut self, now: Time, job: u32, cost: Time, priority: i32) {
        self.order += 1;
        self.enqueue(Task { job, left: cost, priority, order: self.order });
        self.preempt(now);
        self.dispatch(now);
    }

    /// When the next job or turn ends.
    pub fn poll_timeout(&self) -> Time {
        self.running.iter().map(|r| r.until).min().unwrap_or(NEVER)
    }

    /// The next job that is done at `now`.
    pub fn poll_done(&mut self, now: Time) -> Option<u32> {
        while let Some(i) = self.next_ending(now) {
            let r = self.running.swap_remove(i);
            self.busy_ns += r.until - r.since;
            let left = r.task.left - (r.until - r.since);
            if left > 0 {
                self.enqueue(Task { left, ..r.task });
            }
            self.dispatch(now);
            if left <= 0 {
                return Some(r.task.job);
            }
        }
        None
    }

    /// Core time used until `now`, by jobs that are still running too.
    pub fn busy_ns(&self, now: Time) -> Time {
        self.busy_ns + self.running.iter().map(|r| now.clamp(r.since, r.until) - r.since).sum::<Time>()
    }

    fn next_ending(&self, now: Time) -> Option<usize> {
        let ending = self.running.iter().enumerate().filter(|(_, r)| r.until <= now);
        ending.min_by_key(|(_, r)| (r.until, r.task.order)).map(|(i, _)| i)
    }

    fn enqueue(&mut self, task: Task) {
        let before =
            |t: &Task| t.priority < task.priority || (t.priority == task.priority && t.order > task.order);
        let at = match self.scheduling {
            Scheduling::Priority => self.ready.iter().position(before).unwrap_or(self.ready.len()),
            _ => self.ready.len(),
        };
        self.ready.insert(at, task);
    }

    fn preempt(&mut self, now: Time) {
        if self.scheduling != Scheduling::Priority || self.running.len() < self.cores {
            return;
        }
        let Some(urgent) = self.ready.front().copied() else { return };
        // A job that ends at this moment has finished, not been pre-empted.
        let least = (0..self.running.len()).filter(|&i| self.running[i].until > now).min_by_key(|&i| {
            let t = self.running[i].task;
            (t.priority, std::cmp::Reverse(t.order))
        });
        if let Some(i) = least.filter(|&i| self.running[i].task.priority < urgent.priority) {
            let r = self.running.swap_remove(i);
            self.busy_ns += now - r.since;
            self.enqueue(Task { left: r.task.left - (now - r.since), ..r.task });
        }
    }

    fn dispatch(&mut self, now: Time) {
        while self.running.len() < self.cores {
            let Some(task) = self.ready.pop_front() else { return };
            let turn = match self.scheduling {
                Scheduling::RoundRobin { quantum_ns } => task.left.min(quantum_ns.max(1)),
                _ => task.left,
            };
            self.running.push(Running { task, since: now, until: now + turn });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(cpu: &mut Cpu) -> Vec<(Time, u32)> {
        let mut done = Vec::new();
        while cpu.poll_timeout() != NEVER {
            let now = cpu.poll_timeout();
            while let Some(job) = cpu.poll_done(now) {
                done.push((now, job));
            }
        }
        done
    }

    #[test]
    fn run_to_completion_serves_in_order() {
        let mut cpu = Cpu::new(1, Scheduling::RunToCompletion);
        cpu.submit(0, 1, 10, 0);
        cpu.submit(2, 2, 3, 9);
        assert_eq!(finish(&mut cpu), [(10, 1), (13, 2)]);
        assert_eq!(cpu.busy_ns(13), 13);
    }

    #[test]
    fn a_job_that_runs_at_the_end_has_used_its_core() {
        let mut cpu = Cpu::new(1, Scheduling::RunToCompletion);
        cpu.submit(0, 1, 10, 0);
        cpu.submit(0, 2, 10, 0);
        assert_eq!([0, 4, 10].map(|now| cpu.busy_ns(now)), [0, 4, 10]);
        assert_eq!(cpu.poll_done(10), Some(1));
        assert_eq!([10, 15, 20].map(|now| cpu.busy_ns(now)), [10, 15, 20]);
    }

    #[test]
    fn two_cores_serve_two_jobs_at_once() {
        let mut cpu = Cpu::new(2, Scheduling::RunToCompletion);
        for job in 1..=3 {
            cpu.submit(0, job, 10, 0);
        }
        assert_eq!(finish(&mut cpu), [(10, 1), (10, 2), (20, 3)]);
    }

    #[test]
    fn round_robin_shares_a_core_by_quanta() {
        let mut cpu = Cpu::new(1, Scheduling::RoundRobin { quantum_ns: 2 });
        cpu.submit(0, 1, 6, 0);
        cpu.submit(0, 2, 2, 0);
        assert_eq!(finish(&mut cpu), [(4, 2), (8, 1)]);
    }

    #[test]
    fn the_urgent_flow_preempts_and_the_rest_goes_on_later() {
        let mut cpu = Cpu::new(1, Scheduling::Priority);
        cpu.submit(0, 1, 10, 0);
        cpu.submit(4, 2, 3, 5);
        assert_eq!(finish(&mut cpu), [(7, 2), (13, 1)]);
        assert_eq!(cpu.busy_ns(13), 13);
    }
}
