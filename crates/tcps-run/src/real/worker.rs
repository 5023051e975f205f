//! Workers: stages that take long (cameras, codecs, displays) in threads of their own. [design: run to completion]
//!
//! ```text
//! loop ──► bounded queue ──► worker: the stage's hook ──► bounded queue ──► loop, woken by a byte
//! ```
//! So many samples wait for a worker as its plan says, and one is in its hands; the loop never waits for it. It is made before its loop asks for privileges, and has none of them.

use crate::os::clock::thread_cpu_ns;
use std::{
    io::{Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    panic::{catch_unwind, AssertUnwindSafe},
    sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};
use tcps_node::host::{Outcome, Task};
use tcps_plan::{RunError, WorkerPlan};

/// Most values that a stage may write.
const MOST_VALUES: usize = 256;
/// How long the end of a run waits for what workers have begun, and for the ends of their hooks, which may be processes
/// (`watched.py`).
const LAST: Duration = Duration::from_secs(6);

/// The workers of a loop, by number.
pub struct Crew {
    workers: Vec<Worker>,
    /// A byte for every outcome, and the end that bytes come from, so that it never reads as closed; `None` without workers.
    bell: Option<(UnixStream, UnixStream)>,
    /// What became of tasks whose worker has ended.
    lost: Vec<Outcome>,
}

/// A worker as its loop sees it.
struct Worker {
    tasks: SyncSender<Task>,
    outcomes: Receiver<Outcome>,
    thread: JoinHandle<Vec<String>>,
}

impl Crew {
    /// A thread for each hook.
    pub fn new(hired: Vec<(Box<dyn Hook>, WorkerPlan)>) -> Result<Self, RunError> {
        let fail = |e| RunError::system("no worker threads", e);
        let (woken, wakes) = UnixStream::pair().map_err(fail)?;
        woken.set_nonblocking(true).map_err(fail)?;
        wakes.set_nonblocking(true).map_err(fail)?;
        let mut workers = Vec::new();
        for (hook, plan) in hired {
            let room = usize::from(plan.queue.max(1));
            let (tasks, given) = sync_channel(room);
            let (done, outcomes) = sync_channel(room);
            let wakes = wakes.try_clone().map_err(fail)?;
            let bench =
                Bench { hook, values: vec![0.0; MOST_VALUES], bytes: vec![0; plan.most_bytes as usize] };
            let body = move || bench.work(&given, &done, &wakes);
            let thread = thread::Builder::new().name("worker".into()).spawn(body).map_err(fail)?;
            workers.push(Worker { tasks, outcomes, thread });
        }
        let bell = (!workers.is_empty()).then_some((woken, wakes));
        Ok(Self { workers, bell, lost: Vec::new() })
    }

    /// What becomes readable when there are outcomes; `None` without workers.
    pub fn fd(&self) -> Option<RawFd> {
        self.bell.as_ref().map(|(woken, _)| woken.as_raw_fd())
    }

    /// Gives a task to a worker; gives it back if its queue is full. One whose worker has ended comes back as its death.
    pub fn give(&mut self, worker: u16, task: Task) -> Result<(), Task> {
        let Some(w) = self.workers.get(usize::from(worker)) else { return Err(task) };
        match w.tasks.try_send(task) {
            Ok(()) => {}
            Err(TrySendError::Full(task)) => return Err(task),
            Err(TrySendError::Disconnected(task)) => self.mourn(task),
        }
        Ok(())
    }

    fn mourn(&mut self, task: Task) {
        let Task { job, bytes, cost_ns, .. } = task;
        let verdict = Verdict::Dead("the worker thread of the stage ended".into());
        self.lost.push(Outcome { job, verdict, values: Vec::new(), bytes, used_ns: 0, cost_ns });
        // A full socket wakes the loop as well.
        self.bell.iter_mut().for_each(|(_, wakes)| _ = wakes.write(&[1]));
    }

    /// Puts what has been done since the last call into `found`.
    pub fn collect(&mut self, found: &mut Vec<Outcome>) {
        let mut bytes = [0; 64];
        if let Some((woken, _)) = &mut self.bell {
            while woken.read(&mut bytes).is_ok_and(|n| n == bytes.len()) {}
        }
        found.append(&mut self.lost);
        for w in &self.workers {
            found.extend(w.outcomes.try_iter());
        }
    }

    /// Ends the workers, and says what was wrong with the ends of their hooks, by number; also of one that does not come to
    /// its end in time, and is left behind.
    pub fn end(&mut self) -> Vec<(u16, Vec<String>)> {
        let threads: Vec<_> = self.workers.drain(..).map(|w| w.thread).collect();
        let limit = Instant::now() + LAST;
        while threads.iter().any(|t| !t.is_finished()) && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        let late = || vec![format!("did not come to its end within {} s of the run's", LAST.as_secs())];
        let end =
            |thread: JoinHandle<_>| if thread.is_finished() { thread.join().ok() } else { Some(late()) };
        (0..).zip(threads).filter_map(|(number, thread)| Some((number, end(thread)?))).collect()
    }
}

/// A worker's own side.
struct Bench {
    hook: Box<dyn Hook>,
    values: Vec<f64>,
    bytes: Vec<u8>,
}

impl Bench {
    /// Works until nobody has tasks any more; what was wrong with the end of its hook.
    fn work(
        mut self,
        tasks: &Receiver<Task>,
        done: &SyncSender<Outcome>,
        mut wakes: &UnixStream,
    ) -> Vec<String> {
        while let Ok(task) = tasks.recv() {
            if done.send(self.call(task)).is_err() {
                break;
            }
            // A full socket wakes the loop as well.
            let _ = wakes.write(&[1]);
        }
        self.hook.end()
    }

    fn call(&mut self, task: Task) -> Outcome {
        let begun = thread_cpu_ns();
        let mut input = HookIn::tick(task.now_ns, task.origin_ns, task.index, task.flow)
            .with_sample(&[], &task.bytes)
            .with_other(&task.other);
        input.allowed_bps = task.allowed_bps;
        let mut output = HookOut::new(&mut self.values, &mut self.bytes);
        // A worker that dies would look like one that is always busy: what it did is told as a failure instead.
        let called = catch_unwind(AssertUnwindSafe(|| self.hook.call(&input, &mut output)));
        let verdict = called.unwrap_or_else(|_| Verdict::Failed("it panicked".into()));
        let (n, n_bytes) = output.written();
        let mut bytes = task.bytes;
        bytes.clear();
        if verdict == Verdict::Emit {
            bytes.extend_from_slice(&self.bytes[..n_bytes]);
        }
        let used_ns = thread_cpu_ns() - begun;
        while thread_cpu_ns() - begun < task.cost_ns.unwrap_or(0) {
            std::hint::spin_loop();
        }
        let values = self.values[..n].to_vec();
        Outcome { job: task.job, verdict, values, bytes, used_ns, cost_ns: task.cost_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{os::clock::monotonic_ns, os::wait::Waiter};
    use std::sync::mpsc::{channel, Sender};
    use tcps_core::{ids::FlowId, time::SECOND};
    use tcps_plan::Waiting;

    /// Gives back what it is given, once it is allowed to.
    struct Gated(Receiver<()>);

    impl Hook for Gated {
        fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
            if self.0.recv().is_err() {
                return Verdict::Failed("no gate".into());
            }
            output.set_bytes(input.bytes());
            output.set(&[input.now_ns as f64, input.other().iter().sum::<f64>() + input.allowed_bps]);
            Verdict::Emit
        }
    }

    fn crew(queue: u16) -> (Crew, Sender<()>) {
        let (gate, gated) = channel();
        let plan = WorkerPlan { queue, most_bytes: 8 };
        (Crew::new(vec![(Box::new(Gated(gated)) as Box<dyn Hook>, plan)]).unwrap(), gate)
    }

    fn task(job: u32) -> Task {
        let (bytes, other, allowed_bps) = (vec![job as u8; 3], vec![1.0], 2.0);
        Task {
            job,
            now_ns: 7,
            origin_ns: 5,
            index: 0,
            flow: FlowId(0),
            bytes,
            other,
            allowed_bps,
            cost_ns: None,
        }
    }

    #[test]
    fn outcomes_come_in_order_and_wake_the_loop() {
        let (mut crew, gate) = crew(4);
        for job in 0..4 {
            crew.give(0, task(job)).unwrap();
            gate.send(()).unwrap();
        }
        let mut waiter = Waiter::new(&[crew.fd().unwrap()], Waiting::Timer, 0);
        let (mut found, limit) = (Vec::new(), monotonic_ns() + 10 * SECOND);
        while found.len() < 4 && monotonic_ns() < limit {
            waiter.wait(limit);
            crew.collect(&mut found);
        }
        let seen: Vec<_> = found.iter().map(|o| (o.job, o.bytes.clone(), o.values.clone())).collect();
        let want: Vec<_> = (0..4).map(|j| (j, vec![j as u8; 3], vec![7.0, 3.0])).collect();
        assert_eq!(seen, want);
        waiter.wait(0);
        assert_eq!(waiter.ready().count(), 0, "every byte has been read");
        crew.end();
    }

    #[test]
    fn a_hook_that_panics_has_failed_and_its_worker_goes_on() {
        struct Clumsy;
        impl Hook for Clumsy {
            fn call(&mut self, input: &HookIn, _: &mut HookOut) -> Verdict {
                assert!(!input.bytes().starts_with(&[0]), "dropped it");
                Verdict::Emit
            }
            fn end(&mut self) -> Vec<String> {
                vec!["left something behind".into()]
            }
        }
        let plan = WorkerPlan { queue: 2, most_bytes: 8 };
        let mut crew = Crew::new(vec![(Box::new(Clumsy) as Box<dyn Hook>, plan)]).unwrap();
        (0..2).for_each(|job| crew.give(0, Task { cost_ns: Some(1), ..task(job) }).unwrap());
        let mut found = Vec::new();
        let limit = Instant::now() + Duration::from_secs(20);
        while found.len() < 2 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
            crew.collect(&mut found);
        }
        assert_eq!(found[0].verdict, Verdict::Failed("it panicked".into()));
        assert_eq!((&found[1].verdict, found[1].cost_ns), (&Verdict::Emit, Some(1)));
        assert_eq!(crew.end(), [(0, vec!["left something behind".to_string()])]);
    }

    #[test]
    fn a_worker_that_has_ended_is_told_with_the_next_task() {
        let (mut crew, _gate) = crew(2);
        let (tasks, given) = sync_channel(1);
        crew.workers[0].tasks = tasks;
        drop(given);
        crew.give(0, task(7)).unwrap();
        let mut found = Vec::new();
        crew.collect(&mut found);
        assert_eq!((found.len(), found[0].job), (1, 7));
        assert!(matches!(&found[0].verdict, Verdict::Dead(why) if why.contains("worker thread")));
    }

    #[test]
    fn a_loop_without_workers_is_never_woken() {
        assert_eq!(Crew::new(Vec::new()).unwrap().fd(), None);
    }

    #[test]
    fn a_full_queue_gives_the_sample_back_at_once() {
        let (mut crew, gate) = crew(2);
        // One may be in the worker's hands already, so that there is room for a third.
        let taken = (0..4).filter(|&j| crew.give(0, task(j)).is_ok()).count();
        assert!((2..=3).contains(&taken), "{taken}");
        assert_eq!(crew.give(0, task(9)).unwrap_err().bytes, [9; 3], "whole");
        assert!(crew.give(1, task(0)).is_err(), "there is no such worker");
        drop(gate);
        crew.end();
    }
}
