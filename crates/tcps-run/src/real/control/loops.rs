use super::{attach::Attach, words::say};
use crate::{
    events::{asked, Steered},
    real::{
        secrets::PreShared,
        session::{Addresses, Files, SessionLoop},
    },
};
use serde_json::{json, Value};
use std::{
    collections::BTreeMap,
    io::Write,
    panic::{catch_unwind, AssertUnwindSafe},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender},
    },
};
use tcps_core::ids::{NodeId, SessionId};
use tcps_plan::{report::Report, Plan, RunError};

/// What a loop says, with its number.
enum FromLoop {
    Ready(Value),
    /// It could not be built, or it died: then the others end as well.
    Failed(RunError),
    Done(Box<Report>),
    /// No loop, but who steers the run: an event.
    Asked(Value),
}

/// The loops of a node as the control sees them.
pub(super) struct Loops {
    to_loops: Vec<Sender<(Addresses, i64)>>,
    steering: Vec<Sender<Steered>>,
    to_control: Sender<(usize, FromLoop)>,
    from_loops: Receiver<(usize, FromLoop)>,
    stop: &'static AtomicBool,
    count: usize,
}

impl Loops {
    /// None yet; `stop` ends all.
    pub fn new(stop: &'static AtomicBool) -> Self {
        let (to_control, from_loops) = channel();
        Self { to_loops: Vec::new(), steering: Vec::new(), to_control, from_loops, stop, count: 0 }
    }

    /// Ways for one more loop.
    pub fn ways(&mut self) -> Ways {
        let (to_loop, from_control) = channel();
        let (steers, steering) = channel();
        let (to_control, number) = (self.to_control.clone(), self.count);
        self.to_loops.push(to_loop);
        self.steering.push(steers);
        self.count += 1;
        Ways { from_control, steering, to_control, number, stop: self.stop }
    }

    /// Lets all loops start at a moment, with their peers.
    pub fn start(&mut self, peers: &Addresses, at_ns: i64) {
        for to_loop in self.to_loops.drain(..) {
            let _ = to_loop.send((peers.clone(), at_ns));
        }
    }

    /// The next word of any loop. The control holds a sender itself, so that the channel never closes; a loop always
    /// says something before it ends, see `guarded`.
    fn next(&self) -> Result<(usize, FromLoop), RunError> {
        self.from_loops.recv().map_err(|_| RunError::bug("all loops ended without a message"))
    }

    /// What each loop says once its sockets are bound.
    pub fn ready(&self) -> Result<Vec<Value>, RunError> {
        let mut ready = vec![Value::Null; self.count];
        for _ in 0..self.count {
            match self.next()? {
                (number, FromLoop::Ready(value)) => ready[number] = value,
                (_, FromLoop::Failed(e)) => return Err(e),
                (_, FromLoop::Done(_)) => return Err(RunError::bug("a loop ended before it was ready")),
                (_, FromLoop::Asked(_)) => unreachable!("nobody steers before the start"),
            }
        }
        Ok(ready)
    }

    /// Takes what is asked for while the loops run.
    pub fn asks(&self) -> impl Fn(Value) + Send + 'static {
        let (to_control, nobody) = (self.to_control.clone(), self.count);
        move |line| {
            let _ = to_control.send((nobody, FromLoop::Asked(line)));
        }
    }

    /// Hands an event to all loops, of which the first notes it; what is answered.
    fn steer(&self, plan: &Plan, node: NodeId, line: &Value) -> Value {
        match asked(plan, Some(node), line) {
            Err(e) => json!({"op": "refused", "number": line["number"], "error": e.to_string()}),
            Ok((number, event)) => {
                for (steers, place) in self.steering.iter().zip(0..) {
                    let _ = steers.send(Steered { number, event: event.clone(), noted: place == 0 });
                }
                json!({"op": "event", "number": number})
            }
        }
    }

    /// The reports of all loops; answers meanwhile what is asked for. As soon as one dies, the others are stopped; what they
    /// report is kept.
    pub fn reports(&self, plan: &Plan, node: NodeId, output: &mut dyn Write) -> Vec<Report> {
        let mut reports = BTreeMap::new();
        while reports.len() < self.count {
            let (number, report) = match self.next() {
                Ok((number, FromLoop::Done(report))) => (number, *report),
                Ok((number, FromLoop::Failed(e))) => (number, self.died(&e)),
                Ok((_, FromLoop::Ready(_))) => continue,
                Ok((_, FromLoop::Asked(line))) => {
                    say(output, &self.steer(plan, node, &line));
                    continue;
                }
                Err(_) => break,
            };
            reports.insert(number, report);
        }
        reports.into_values().collect()
    }

    fn died(&self, error: &RunError) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        Report { interrupted: true, errors: vec![error.to_string()], ..Report::default() }
    }
}

/// How a loop and the control talk.
pub(super) struct Ways {
    from_control: Receiver<(Addresses, i64)>,
    steering: Receiver<Steered>,
    to_control: Sender<(usize, FromLoop)>,
    number: usize,
    stop: &'static AtomicBool,
}

impl Ways {
    fn say(&self, what: FromLoop) {
        let _ = self.to_control.send((self.number, what));
    }
}

/// Runs a loop; if it panics, the control learns of it at once and not when the other loops have ended.
pub(super) fn guarded(
    plan: &Plan,
    node: NodeId,
    sessions: &[SessionId],
    files: &Files,
    secrets: &PreShared,
    attach: &dyn Attach,
    ways: &Ways,
) {
    let run = AssertUnwindSafe(|| run_loop(plan, node, sessions, files, secrets, attach, ways));
    if let Err(panic) = catch_unwind(run) {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let words = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no word");
        let names: Vec<&str> = sessions.iter().map(|&s| plan.sessions[usize::from(s)].as_str()).collect();
        ways.say(FromLoop::Failed(RunError::bug(format!(
            "the loop of session {} at node {} died: {words}",
            names.join(", "),
            plan.nodes[node].name
        ))));
    }
}

fn run_loop(
    plan: &Plan,
    node: NodeId,
    sessions: &[SessionId],
    files: &Files,
    secrets: &PreShared,
    attach: &dyn Attach,
    ways: &Ways,
) {
    attach.attached(plan.needs_python(node, sessions), &mut |python, detach| {
        let prepared = SessionLoop::prepare(plan, node, sessions, files, python, &mut secrets.clone())
            .and_then(|l| Ok((l.reached_at()?, l)));
        let session = match prepared {
            Ok(((channels, aside), l)) => {
                ways.say(FromLoop::Ready(json!({"channels": channels, "aside": aside})));
                l
            }
            Err(e) => return ways.say(FromLoop::Failed(e)),
        };
        let mut start = None;
        detach.detached(&mut || start = ways.from_control.recv().ok());
        if let Some((peers, at_ns)) = start {
            let report = session.run(plan, peers, at_ns, ways.stop, &ways.steering, detach);
            ways.say(FromLoop::Done(Box::new(report)));
        }
    });
}
