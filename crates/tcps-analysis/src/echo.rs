//! Echo points: round trips, one-way legs, lost echoes, and what the differences say of components and links.
//!
//! Commands go to the points of a probe in turn, `A B C A B C ...`; command `s` of `m` points belongs to round
//! `s / m`. Differences are taken between neighbours on the path within one round, so that what troubles both
//! (hosts, kernels, a queue that builds up) cancels (Polachan 2022).

use super::giver::{Giver, GiverReport};
use super::interval::{Estimate, Estimator};
use super::names;
use super::stretch::{Stretch, StretchEstimate};
use serde::Serialize;
use tcps_core::{
    ids::FlowId,
    record::{Kind, Record},
    sample::PointId,
    time::Time,
};
use tcps_plan::{FlowPlan, Plan, ProbePlan};

/// Rounds whose answers wait for their neighbours.
const ROUNDS: u32 = 2048;
const LEGS: usize = 2;

/// What came back from a point.
#[derive(Debug, Serialize)]
pub struct EchoPoint {
    /// The point.
    pub point: String,
    /// Commands answered.
    pub n: u64,
    /// Commands never answered nor superseded, up to a grace time before the end.
    pub lost: u64,
    /// Commands whose sample or hold was replaced by a newer one before they were answered.
    pub superseded: u64,
    /// From giving the command to its echo, ns.
    pub round_trip_ns: Option<Estimate>,
    /// From giving the command to the point, ns, by the clocks of the nodes.
    pub forward_ns: Option<Estimate>,
    /// From the point back, ns, by the clocks of the nodes.
    pub return_ns: Option<Estimate>,
    /// Quantiles of the round trip at `p` of the cumulative curves, ns.
    pub round_trip_curve_ns: Vec<f64>,
}

/// What a probe found.
#[derive(Debug, Serialize)]
pub struct EchoReport {
    /// The flow that carried the commands.
    pub flow: String,
    /// Commands that can be judged.
    pub commands: u64,
    /// Points in the order of the path.
    pub points: Vec<EchoPoint>,
    /// Stretches between points that follow each other.
    pub differences: Vec<StretchEstimate>,
    /// The clocks of the round trips, if they are two.
    pub clocks: Option<GiverReport>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    sequence: u32,
    known: [bool; LEGS],
    superseded: bool,
    /// It came before its round trip could be told.
    early: bool,
    /// Round trip, forward leg.
    value: [i64; LEGS],
    given_ns: Time,
}

impl Answer {
    /// Whether it is known what became of the command.
    fn has_fate(&self) -> bool {
        self.known[0] || self.superseded || self.early
    }
}

#[derive(Debug, Default)]
struct PointState {
    point: PointId,
    /// Its place in the turn.
    turn: u32,
    round_trip: Estimator,
    forward: Estimator,
    back: Estimator,
    /// Commands answered or superseded, without those before `Echoes::first`.
    answered: u64,
    /// Of these, superseded.
    superseded: u64,
}

/// A probe at work.
#[derive(Debug)]
pub struct Echoes {
    flow: FlowId,
    /// In the order of the path.
    points: Vec<PointState>,
    answers: Vec<Answer>,
    /// By place on the path: differences to the next point, by leg.
    differences: Vec<[Estimator; LEGS]>,
    /// Largest sequence number answered.
    highest: Option<u32>,
    /// Commands before this one belong to the warm-up.
    first: u32,
    giver: Option<Giver>,
}

impl Echoes {
    /// State of a probe.
    pub fn new(plan: &Plan, probe: &ProbePlan) -> Self {
        let mut points: Vec<PointState> = (0u32..)
            .zip(&probe.points)
            .map(|(turn, &point)| PointState { point, turn, ..PointState::default() })
            .collect();
        if let Some(flow) = plan.flows.get(probe.flow.index()) {
            points.sort_by_key(|p| place_on_path(flow, p.point));
        }
        let pairs = points.len().saturating_sub(1);
        Self {
            flow: probe.flow,
            answers: vec![Answer::default(); ROUNDS as usize * points.len()],
            points,
            differences: (0..pairs).map(|_| Default::default()).collect(),
            highest: None,
            first: 0,
            giver: Giver::new(plan, probe),
        }
    }

    /// A clock exchange of any node.
    pub fn synchronise(&mut self, row: &Record) {
        self.giver.iter_mut().for_each(|giver| giver.take(row));
    }

    /// Whether an echo belongs to this probe.
    pub fn owns(&self, row: &Record) -> bool {
        row.flow == self.flow && self.place(row).is_some()
    }

    /// The point that an echo is of, if its command went there.
    fn place(&self, row: &Record) -> Option<usize> {
        let turn = row.index % self.points.len().max(1) as u32;
        self.points.iter().position(|p| p.point.0 == row.point && p.turn == turn)
    }

    /// An echo came back in the warm-up: it only says which commands belong there.
    pub fn warm_up(&mut self, row: &Record) {
        self.first = self.first.max(row.index.saturating_add(1));
    }

    /// An echo row.
    pub fn take(&mut self, row: &Record) {
        let m = self.points.len() as u32;
        let Some(place) = self.place(row) else { return };
        let leg = match row.kind {
            Kind::Echo => 0,
            Kind::EchoForward => 1,
            Kind::EchoSuperseded => return self.supersede(place, row),
            _ => return self.points[place].back.add(row.value),
        };
        let value = match self.giver.as_mut().filter(|_| leg == 0) {
            Some(giver) => giver.correct(row.value),
            None => Some(row.value),
        };
        let Some(value) = value else { return self.came_too_early(row, place) };
        let row = &Record { value, ..*row };
        if self.note(row, leg) {
            let point = &mut self.points[place];
            point.answered += u64::from(leg == 0 && row.index >= self.first);
            let estimator = if leg == 0 { &mut point.round_trip } else { &mut point.forward };
            estimator.add(row.value);
            self.pair(place, row.index / m, leg);
        }
    }

    /// An answer whose round trip cannot be told yet.
    fn came_too_early(&mut self, row: &Record, place: usize) {
        let answer = self.answer(row.index);
        if std::mem::replace(&mut answer.early, true) {
            return;
        }
        answer.given_ns = row.time_ns; // at the latest: how long ago is what cannot be told
        self.highest = self.highest.max(Some(row.index));
        self.points[place].answered += u64::from(row.index >= self.first);
    }

    fn cell(&self, round: u32, turn: u32) -> usize {
        (round % ROUNDS) as usize * self.points.len() + turn as usize
    }

    /// Remembers an answer; false for a copy.
    fn note(&mut self, row: &Record, leg: usize) -> bool {
        let answer = self.answer(row.index);
        if std::mem::replace(&mut answer.known[leg], true) || leg == 0 && answer.early {
            return false;
        }
        answer.value[leg] = row.value;
        if leg == 0 {
            answer.given_ns = row.time_ns.saturating_sub(row.value);
            self.highest = self.highest.max(Some(row.index));
        }
        true
    }

    fn answer(&mut self, sequence: u32) -> &mut Answer {
        let m = self.points.len() as u32;
        let cell = self.cell(sequence / m, sequence % m);
        let answer = &mut self.answers[cell];
        if answer.sequence != sequence {
            *answer = Answer { sequence, ..Answer::default() };
        }
        answer
    }

    /// A command will not be answered, and that is no loss.
    fn supersede(&mut self, place: usize, row: &Record) {
        let answer = self.answer(row.index);
        if answer.has_fate() {
            return;
        }
        answer.superseded = true;
        answer.given_ns = row.time_ns.saturating_sub(row.value);
        self.highest = self.highest.max(Some(row.index));
        if row.index >= self.first {
            self.points[place].answered += 1;
            self.points[place].superseded += 1;
        }
    }

    /// Takes the differences to both neighbours, if they have answered.
    fn pair(&mut self, place: usize, round: u32, leg: usize) {
        let value = |echoes: &Self, place: usize| {
            let turn = echoes.points[place].turn;
            let answer = echoes.answers[echoes.cell(round, turn)];
            let sequence = round * echoes.points.len() as u32 + turn;
            (answer.sequence == sequence && answer.known[leg]).then_some(answer.value[leg])
        };
        let Some(here) = value(self, place) else { return };
        if let Some(before) = place.checked_sub(1).and_then(|p| value(self, p)) {
            self.differences[place - 1][leg].add(here.saturating_sub(before));
        }
        if place + 1 < self.points.len() {
            if let Some(after) = value(self, place + 1) {
                self.differences[place][leg].add(after.saturating_sub(here));
            }
        }
    }

    /// What was found by the end of the run.
    pub fn report(
        &self,
        plan: &Plan,
        probe: &ProbePlan,
        end_ns: Time,
        grace_ns: Time,
        p: &[f64],
    ) -> EchoReport {
        let commands = self.commands(plan, probe, end_ns.saturating_sub(grace_ns));
        let name = |point: PointId| names::point(plan, point);
        let m = self.points.len() as u64;
        let points = self.points.iter().map(|point| {
            let up_to = |commands: u64| (commands + m - 1).saturating_sub(point.turn as u64) / m;
            let given = up_to(commands).saturating_sub(up_to(self.first.into()));
            let late = self.answered_from(commands, point.turn);
            EchoPoint {
                point: name(point.point),
                n: point.round_trip.n(),
                lost: given.saturating_sub(point.answered.saturating_sub(late)),
                superseded: point.superseded,
                round_trip_ns: point.round_trip.estimate(1.0),
                forward_ns: point.forward.estimate(1.0),
                return_ns: point.back.estimate(1.0),
                round_trip_curve_ns: point.round_trip.tally().curve(p),
            }
        });
        EchoReport {
            flow: plan.flows.get(self.flow.index()).map_or_else(String::new, |f| f.name.clone()),
            commands: commands.saturating_sub(self.first.into()),
            points: points.collect(),
            differences: self.stretches(plan),
            clocks: self.giver.as_ref().map(|giver| giver.report(plan)),
        }
    }

    fn stretches(&self, plan: &Plan) -> Vec<StretchEstimate> {
        let Some(flow) = plan.flows.get(self.flow.index()) else { return Vec::new() };
        let pairs = self.points.windows(2).zip(&self.differences);
        pairs
            .map(|(ends, [round_trip, one_way])| {
                let stretch = Stretch::between(plan, flow, ends[0].point, ends[1].point);
                let named = (names::point(plan, ends[0].point), names::point(plan, ends[1].point));
                StretchEstimate::of(stretch, named, round_trip, one_way)
            })
            .collect()
    }

    /// Commands given until then: those up to the highest that was answered, or all that the plan gives if none was
    /// answered by then or if the plan says how many there are. Those whose answers are forgotten are among them.
    fn commands(&self, plan: &Plan, probe: &ProbePlan, until_ns: Time) -> u64 {
        let planned = planned(plan, probe, until_ns);
        let known = self.answers.iter().filter(|a| a.has_fate() && a.given_ns <= until_ns);
        let known = known.map(|a| u64::from(a.sequence) + 1).max().unwrap_or(planned);
        let answered = self.highest.map_or(0, |s| u64::from(s) + 1);
        let seen = known.max(answered.saturating_sub(self.answers.len() as u64));
        match probe.count {
            Some(count) if planned >= u64::from(count) => u64::from(count).max(seen),
            _ => seen,
        }
    }

    /// Commands answered among those that cannot be judged yet.
    fn answered_from(&self, commands: u64, turn: u32) -> u64 {
        let m = self.points.len() as u32;
        let late = |a: &&Answer| a.has_fate() && u64::from(a.sequence) >= commands && a.sequence % m == turn;
        self.answers.iter().filter(late).count() as u64
    }
}

/// Commands that the plan gives until then: at most one a sample.
fn planned(plan: &Plan, probe: &ProbePlan, until_ns: Time) -> u64 {
    let Some(flow) = plan.flows.get(probe.flow.index()) else { return 0 };
    let step_ns = probe.period_ns.max(flow.period_ns).max(1);
    let until_ns = flow.stop_ns.map_or(until_ns, |stop_ns| stop_ns.min(until_ns));
    let span_ns = until_ns.saturating_sub(probe.start_ns.max(flow.start_ns));
    let given = if span_ns < 0 { 0 } else { (span_ns / step_ns) as u64 + 1 };
    probe.count.map_or(given, |count| given.min(u64::from(count)))
}

/// Where a point lies on a flow's path; a hold-until-done point after the exit of its component.
fn place_on_path(flow: &FlowPlan, point: PointId) -> usize {
    let component = point.owner();
    let visit = flow.path.iter().position(|v| v.component == component).unwrap_or(flow.path.len());
    visit * 3 + point.side()
}
