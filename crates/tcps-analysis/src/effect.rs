//! What changes of links and attacks did: how many datagrams were sent and accepted, what they added to the delay of genuine
//! samples, and when a supervisor held.
//!
//! ```text
//!  event ─ from ─────────────── until ─►        until: the attack's end; of a link, the next event that changes it
//!           │ during: delays by flow │  outside of all of them: delays by flow
//! ```
//! A datagram of an attacker was accepted if its sample enters the component that it is for after it was sent. A replay whose
//! number cannot be read was accepted if a sample enters there again; a lie in a sealed answer if an exchange that lay within
//! the attack was understood.

use super::tally::Tally;
use serde::Serialize;
use std::collections::BTreeMap;
use tcps_core::{
    hook::State,
    ids::{FlowId, NodeId, NONE},
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::{is_forged, net::LinkChange, Action, Plan};

/// Effects that are told at most, of the first events.
const MOST: usize = 64;
/// Datagrams of attackers whose fate is open, at most.
const MOST_OPEN: usize = 1 << 17;

/// Numbers that are remembered of what entered a component.
const NEWEST: usize = 1 << 16;

/// Delays of a flow's genuine samples.
#[derive(Debug, Serialize)]
pub struct DelayReport {
    /// The flow.
    pub flow: String,
    /// Samples that arrived meanwhile.
    pub n: u64,
    /// Their median and 99th percentile, ns.
    pub p50_ns: f64,
    /// See `p50_ns`.
    pub p99_ns: f64,
    /// What that is more than outside of all effects; none where nothing arrived there.
    pub added_p50_ns: Option<f64>,
    /// See `added_p50_ns`.
    pub added_p99_ns: Option<f64>,
}

/// What an event did.
#[derive(Debug, Serialize)]
pub struct EffectReport {
    /// Name of the event.
    pub name: String,
    /// `link`, or the kind of the attack.
    pub kind: &'static str,
    /// The flow that is attacked.
    pub flow: Option<String>,
    /// When it began, seconds.
    pub from_s: f64,
    /// When it ended.
    pub until_s: f64,
    /// Datagrams that the attacker sent or changed.
    pub sent: u64,
    /// Those that were accepted; none where rows cannot tell.
    pub accepted: Option<u64>,
    /// From its beginning until a supervisor held.
    pub hold_ms: Option<f64>,
    /// From its beginning until a supervisor stopped safely.
    pub safe_stop_ms: Option<f64>,
    /// Delays meanwhile, by flow.
    pub delays: Vec<DelayReport>,
}

#[derive(Debug)]
struct Effect {
    number: usize,
    name: String,
    kind: &'static str,
    flow: Option<FlowId>,
    from: Time,
    until: Time,
    /// When the next one begins.
    next: Time,
    sent: u64,
    accepted: u64,
    /// Some of what was sent does not say of which sample it is.
    unknown: bool,
    /// Where its samples would enter, and those that entered there again.
    point: PointId,
    again: u64,
    states: [Option<Time>; 2],
    during: BTreeMap<FlowId, Tally>,
}

/// Those of a run.
#[derive(Debug, Default)]
pub struct Effects {
    all: Vec<Effect>,
    outside: BTreeMap<FlowId, Tally>,
    /// What may still be accepted: flow, sample and where it would enter; which effect it is of.
    open: BTreeMap<(FlowId, u32, PointId), usize>,
    /// Answers about clocks that were changed, by client and number.
    lied: BTreeMap<(NodeId, u32), usize>,
    /// Samples that entered a component since a replay began, by flow and point: numbers of the newest, plus 1.
    entered: BTreeMap<(FlowId, PointId), Vec<u32>>,
}

impl Effects {
    /// Those of a plan's events.
    pub fn new(plan: &Plan) -> Self {
        let mut all = Vec::new();
        for (number, event) in plan.events.iter().enumerate() {
            let from = event.at_ns;
            let (kind, flow, until) = match &event.action {
                Action::Attack(a) => {
                    (a.what.name(), a.what.flow(), from.saturating_add(a.duration_ns))
                }
                Action::Link(change) => ("link", None, changed_again(plan, number, change)),
                _ => continue,
            };
            let (name, until) = (event.name.clone(), until.min(plan.duration_ns));
            all.push(Effect {
                number,
                name,
                kind,
                flow,
                from,
                until,
                next: plan.duration_ns,
                sent: 0,
                accepted: 0,
                unknown: false,
                point: NONE,
                again: 0,
                states: [None; 2],
                during: BTreeMap::new(),
            });
        }
        all.truncate(MOST);
        for i in 0..all.len() {
            let later = all.iter().map(|e| e.from).filter(|from| *from > all[i].from).min();
            all[i].next = later.unwrap_or(plan.duration_ns);
        }
        Self { all, ..Self::default() }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A row of a sample; whether it is one that an attacker made, which is no sample of the flow.
    pub fn sample(&mut self, row: &Record) -> bool {
        if matches!(row.kind, Kind::Enter | Kind::Delivered) {
            if let Some(at) = self.open.remove(&(row.flow, row.index, row.point)) {
                self.all[at].accepted += 1;
            }
            let replay = self.all.iter_mut().rfind(|e| {
                e.kind == "replay" && e.flow == Some(row.flow) && e.from <= row.time_ns
            });
            if let Some(replay) = replay {
                let newest = self.entered.entry((row.flow, row.point)).or_insert_with(|| vec![0; NEWEST]);
                let place = &mut newest[row.index as usize % NEWEST];
                replay.again += u64::from(*place == row.index.wrapping_add(1) && row.point == replay.point);
                *place = row.index.wrapping_add(1);
            }
        }
        is_forged(row.index)
    }

    /// A genuine sample came to its sink for the first time.
    pub fn arrived(&mut self, row: &Record) {
        let mut outside = true;
        for effect in self.all.iter_mut().filter(|e| (e.from..e.until).contains(&row.time_ns)) {
            outside = false;
            effect.during.entry(row.flow).or_default().add(row.value);
        }
        if outside {
            self.outside.entry(row.flow).or_default().add(row.value);
        }
    }

    /// A row that is no sample's.
    pub fn take(&mut self, row: &Record) {
        match row.kind {
            Kind::Attack => self.attacked(row),
            Kind::Sync => {
                if let Some(at) = self.lied.remove(&(row.node, row.index)) {
                    self.all[at].accepted += 1;
                }
                let trip_ns = 2 * Time::from(row.size);
                let within = |e: &&mut Effect| e.from <= row.time_ns - trip_ns && row.time_ns < e.until;
                let lies = self.all.iter_mut().filter(|e| e.kind == "clock-lie" && e.unknown);
                lies.filter(within).for_each(|e| e.accepted += 1);
            }
            Kind::State => {
                let state = match State::from_u8(row.detail) {
                    Some(State::Hold) => 0,
                    Some(State::SafeStop) => 1,
                    _ => return,
                };
                let now = row.time_ns;
                for e in self.all.iter_mut().filter(|e| row.size != u32::from(row.detail) && (e.from..e.next).contains(&now)) {
                    e.states[state].get_or_insert(now - e.from);
                }
            }
            _ => {}
        }
    }

    fn attacked(&mut self, row: &Record) {
        let found = self.all.iter().position(|e| e.number as i64 == row.value);
        let Some(at) = found else { return };
        let effect = &mut self.all[at];
        effect.sent += 1;
        effect.point = row.point;
        match effect.kind {
            "flood" => {}
            _ if row.index == u32::MAX => effect.unknown = true,
            "clock-lie" => _ = self.lied.insert((row.node, row.index), at),
            _ => {
                self.open.insert((row.flow, row.index, row.point), at);
                if self.open.len() > MOST_OPEN {
                    self.open.pop_first();
                }
            }
        }
    }

    /// What they did.
    pub fn report(self, plan: &Plan) -> Vec<EffectReport> {
        let Self { all, outside, .. } = self;
        let name = |flow: FlowId| plan.flows.get(flow.index()).map(|f| f.name.clone());
        let ms = |ns: Time| ns as f64 / 1e6;
        let delay = |(flow, during): (&FlowId, &Tally)| {
            let [p50_ns, p99_ns] = during.quantiles([0.5, 0.99]);
            let before = outside.get(flow).map(|t| t.quantiles([0.5, 0.99]));
            let (added_p50_ns, added_p99_ns) = (before.map(|b| p50_ns - b[0]), before.map(|b| p99_ns - b[1]));
            let flow = name(*flow).unwrap_or_default();
            DelayReport { flow, n: during.n(), p50_ns, p99_ns, added_p50_ns, added_p99_ns }
        };
        let report = |e: &Effect| EffectReport {
            name: e.name.clone(),
            kind: e.kind,
            flow: e.flow.and_then(name),
            from_s: e.from as f64 / 1e9,
            until_s: e.until as f64 / 1e9,
            sent: e.sent,
            accepted: match e.kind {
                "link" => None,
                "replay" if e.unknown => Some(e.again),
                "tamper" if e.unknown => None,
                _ => Some(e.accepted),
            },
            hold_ms: e.states[0].map(ms),
            safe_stop_ms: e.states[1].map(ms),
            delays: e.during.iter().map(delay).collect(),
        };
        all.iter().map(report).collect()
    }
}

/// When a later event changes one of the same links.
fn changed_again(plan: &Plan, number: usize, change: &LinkChange) -> Time {
    let later = plan.events[number + 1..].iter().find(|e| match &e.action {
        Action::Link(other) => other.links.iter().any(|l| change.links.contains(l)),
        _ => false,
    });
    later.map_or(plan.duration_ns, |e| e.at_ns)
}
