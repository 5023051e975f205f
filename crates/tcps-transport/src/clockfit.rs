//! Offset and drift of a clock out of exchanges with a reference, and how wrong they can be.
//!
//! ```text
//! offset(t) = reference - local                        x  T2 - T1 at T1: too large by the delay there
//!     x   x      x    x  x                             o  T3 - T4 at T4: too small by the delay back
//!   ____x_____x_________x____ line under all x
//!   ......................... estimate, half way       the truth is a line between all x and all o
//!   ‾‾o‾‾‾‾‾‾‾o‾‾‾‾‾‾o‾‾‾‾‾‾‾ line over all o
//!    o   o  o     o      o
//! ```
//! A queue only ever adds delay, so each direction is held by its fastest packets: of all lines under the
//! points of one direction the one that is closest to them on average is an edge of their convex hull. The
//! drift is the mean of both slopes, weighted by how closely the points follow their line. Where the least
//! delay itself changes (a new path, a changed link), that edge leads across the step; so a slope is kept to
//! what most stretches of the window say, each from its fastest packets. Half way between
//! the lines is the truth if the least delays there and back are equal; the bound makes no such assumption,
//! only that the clock is linear within the window. With an exchange of the least round trip just now it is
//! RTTmin / 2.

use std::collections::VecDeque;
use tcps_core::{report::ClockEstimate, time::Time};

/// Exchanges in the window (64 s at 8 a second).
pub const WINDOW: usize = 512;
/// Exchanges before a drift is told.
pub const DRIFT_EXCHANGES: usize = 16;
/// No clock is taken to be further off its rate than this, in parts of one: the limit of NTP (RFC 5905).
const MAX_DRIFT: f64 = 500e-6;
/// Stamps beyond this cannot be of a run: 73 years.
const MAX_NS: i64 = 1 << 61;

/// The four stamps of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    t1_ns: Time,
    t2_ns: Time,
    t3_ns: Time,
    t4_ns: Time,
}

impl Exchange {
    /// The exchange, if its stamps can be true: each side's in order, and no packet back before it left.
    pub fn new(t1_ns: Time, t2_ns: Time, t3_ns: Time, t4_ns: Time) -> Option<Self> {
        let e = Self { t1_ns, t2_ns, t3_ns, t4_ns };
        let sane = [t1_ns, t2_ns, t3_ns, t4_ns].iter().all(|t| t.abs_diff(0) < MAX_NS as u64);
        // Clocks of different rates may disagree about a short round trip by a part of the time at the peer.
        let slack_ns = (t3_ns.saturating_sub(t2_ns) as f64 * 2.0 * MAX_DRIFT) as i64 + 1;
        (sane && t4_ns >= t1_ns && t3_ns >= t2_ns && e.round_trip_ns() >= -slack_ns).then_some(e)
    }

    /// How far the reference is ahead, if both ways took equally long.
    // [RFC 5357]
    pub fn offset_ns(&self) -> i64 {
        ((self.t2_ns - self.t1_ns) + (self.t3_ns - self.t4_ns)).div_euclid(2)
    }

    /// Time on the way, there and back, without the time at the reference.
    // [RFC 5357]
    pub fn round_trip_ns(&self) -> i64 {
        (self.t4_ns - self.t1_ns) - (self.t3_ns - self.t2_ns)
    }
}

/// A window of exchanges and the line through them.
#[derive(Debug, Default)]
pub struct ClockFit {
    window: VecDeque<Exchange>,
    estimate: Option<ClockEstimate>,
}

impl ClockFit {
    /// Adds an exchange. One that contradicts the ones before (a clock was set) empties the window first.
    pub fn add(&mut self, exchange: Exchange) {
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(exchange);
        self.estimate = Points::new(&self.window, &exchange).estimate();
        if self.estimate.is_none() {
            self.window.clear();
            self.window.push_back(exchange);
            self.estimate = Points::new(&self.window, &exchange).estimate();
        }
    }

    /// What is known after the last exchange; `None` before the first.
    pub fn estimate(&self) -> Option<ClockEstimate> {
        self.estimate
    }

    /// What the reference shows when the local clock shows `local_ns`; the same before the first exchange.
    pub fn to_reference(&self, local_ns: Time) -> Time {
        let Some(e) = self.estimate else { return local_ns };
        let grown_ns = e.drift_ppb * 1e-9 * local_ns.saturating_sub(e.at_ns) as f64;
        local_ns.saturating_add(e.offset_ns).saturating_add(grown_ns.round() as i64)
    }
}

/// Limits of the offset relative to the last exchange: (local time, value), values below are those of
/// `-offset`.
struct Points {
    at_ns: Time,
    offset_ns: i64,
    above: Vec<(i64, i64)>,
    below: Vec<(i64, i64)>,
}

/// The line under points that is closest to them on average: value at the middle, slope, mean distance.
struct Support {
    level: f64,
    slope: f64,
    distance: f64,
}

/// An estimated line, `level` at `middle`.
struct ClockLine {
    middle: f64,
    level: f64,
    slope: f64,
}

impl ClockLine {
    fn at(&self, t: i64) -> f64 {
        self.level + self.slope * (t as f64 - self.middle)
    }
}

impl Points {
    fn new(window: &VecDeque<Exchange>, last: &Exchange) -> Self {
        let (at_ns, offset_ns) = (last.t4_ns, last.offset_ns());
        let above = |e: &Exchange| (e.t1_ns - at_ns, (e.t2_ns - e.t1_ns) - offset_ns);
        let below = |e: &Exchange| (e.t4_ns - at_ns, offset_ns - (e.t3_ns - e.t4_ns));
        let mut points = Self {
            at_ns,
            offset_ns,
            above: window.iter().map(above).collect(),
            below: window.iter().map(below).collect(),
        };
        points.above.sort_unstable();
        points.below.sort_unstable();
        points
    }

    /// The estimate; `None` if no straight line satisfies all exchanges.
    fn estimate(&self) -> Option<ClockEstimate> {
        let line = self.line();
        let bound = self.bound(&line)?;
        Some(ClockEstimate {
            at_ns: self.at_ns,
            offset_ns: self.offset_ns.saturating_add(line.at(0).round() as i64),
            drift_ppb: line.slope * 1e9,
            bound_ns: bound.ceil() as i64 + 1,
            exchanges: self.above.len() as u32,
        })
    }

    fn line(&self) -> ClockLine {
        let middle = (mean(&self.above).0 + mean(&self.below).0) / 2.0;
        let told = self.above.len() >= DRIFT_EXCHANGES;
        let (above, below) = (support(&self.above, middle, told), support(&self.below, middle, told));
        let weight = |distance: f64| 1.0 / (1.0 + distance * distance);
        let (a, b) = (weight(above.distance), weight(below.distance));
        let slope = (a * above.slope - b * below.slope) / (a + b);
        ClockLine {
            middle,
            level: (above.level - below.level) / 2.0,
            slope: slope.clamp(-MAX_DRIFT, MAX_DRIFT),
        }
    }

    /// How far the truth can be from the line at the last exchange: every earlier limit holds there too,
    /// widened by what the slope can be wrong times its age.
    fn bound(&self, line: &ClockLine) -> Option<f64> {
        let slack_above: Vec<f64> = self.above.iter().map(|p| p.1 as f64 - line.at(p.0)).collect();
        let slack_below: Vec<f64> = self.below.iter().map(|p| p.1 as f64 + line.at(p.0)).collect();
        let too_high = slope_error(&self.above, &slack_above, &self.below, &slack_below);
        let too_low = slope_error(&self.below, &slack_below, &self.above, &slack_above);
        let worst = MAX_DRIFT + line.slope.abs();
        let up = reach(&self.above, &slack_above, too_high.min(worst));
        let down = reach(&self.below, &slack_below, too_low.min(worst));
        (up + down >= -2.0).then_some(up.max(down).max(0.0))
    }
}

/// Smallest limit at time 0 out of `slack` at earlier moments, if the slope is wrong by at most `error`.
fn reach(points: &[(i64, i64)], slack: &[f64], error: f64) -> f64 {
    points.iter().zip(slack).map(|(p, s)| s - error * p.0 as f64).fold(f64::INFINITY, f64::min)
}

/// How much steeper the truth can be than the line: it passes an early limit on one side and a late one on
/// the other.
fn slope_error(late: &[(i64, i64)], late_slack: &[f64], early: &[(i64, i64)], early_slack: &[f64]) -> f64 {
    let half = late.len() / 2;
    let least = |slack: &[f64], from: usize, to: usize| {
        (from..to).min_by(|i, j| slack[*i].total_cmp(&slack[*j])).filter(|_| from < to)
    };
    match (least(early_slack, 0, half), least(late_slack, half, late.len())) {
        (Some(i), Some(j)) if late[j].0 > early[i].0 => {
            (late_slack[j] + early_slack[i]) / (late[j].0 - early[i].0) as f64
        }
        _ => f64::INFINITY,
    }
}

/// The edge of the lower hull over `middle`, no steeper than most of the points are, or the lowest point's
/// level if no slope is wanted.
// [Moon 1999] [Zhang 2002]
fn support(points: &[(i64, i64)], middle: f64, sloped: bool) -> Support {
    let mean = mean(points);
    let hull = lower_hull(points);
    let edge = hull.windows(2).find(|e| e[1].0 as f64 >= middle).or(hull.windows(2).last());
    let slope = match edge.filter(|_| sloped) {
        Some([a, b]) => {
            let (low, high) = most_slopes(points);
            ((b.1 - a.1) as f64 / (b.0 - a.0) as f64).clamp(low, high)
        }
        _ => 0.0,
    };
    let under = |p: &(i64, i64)| p.1 as f64 - slope * (p.0 as f64 - middle);
    let level = hull.iter().map(under).min_by(f64::total_cmp).unwrap_or(0.0);
    Support { level, slope, distance: mean.1 - level - slope * (mean.0 - middle) }
}

/// Stretches of the window, each of which gives its lowest point.
const STRETCHES: usize = 32;
/// Slopes are taken between stretches that are this part of the window apart, so that a step of the delay
/// spoils few of them: three steps leave the median alone.
const APART: usize = 8;
/// Median absolute deviations from the median slope that are believed: three standard errors of a median of
/// eight independent slopes of normal scatter.
const DEVIATIONS: f64 = 3.0;
/// What the rounding of stamps to nanoseconds may do to a slope.
const ROUNDING: f64 = 1e-8;

/// The slopes that most of the points, sorted by time, can agree on: (lowest, highest).
// [Sen 1968]
fn most_slopes(points: &[(i64, i64)]) -> (f64, f64) {
    let stretches = points.len().min(STRETCHES);
    let part = |i: usize| i * points.len() / stretches;
    let lowest = |i: usize| points[part(i)..part(i + 1)].iter().min_by_key(|p| p.1).copied();
    let low: Vec<(i64, i64)> = (0..stretches).filter_map(lowest).collect();
    let apart = (stretches / APART).max(1);
    let pairs = low.iter().zip(low.iter().skip(apart)).filter(|(a, b)| b.0 > a.0);
    let mut slopes: Vec<f64> = pairs.map(|(a, b)| (b.1 - a.1) as f64 / (b.0 - a.0) as f64).collect();
    let Some(middle) = median(&mut slopes) else { return (-MAX_DRIFT, MAX_DRIFT) };
    let mut deviations: Vec<f64> = slopes.iter().map(|s| (s - middle).abs()).collect();
    let believed = DEVIATIONS * median(&mut deviations).unwrap_or(0.0) + ROUNDING;
    (middle - believed, middle + believed)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Vertices of the lower convex hull of sorted points, at most one for each moment.
fn lower_hull(points: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for &p in points {
        if hull.last().is_some_and(|q| q.0 == p.0) {
            continue; // sorted: the lower one came first
        }
        while let [.., a, b] = hull[..] {
            if turn(a, b, p) > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(p);
    }
    hull
}

/// Positive if the way from `a` over `b` to `p` turns upwards.
fn turn(a: (i64, i64), b: (i64, i64), p: (i64, i64)) -> i128 {
    let d = |x: i64, y: i64| i128::from(x) - i128::from(y);
    d(b.0, a.0) * d(p.1, a.1) - d(b.1, a.1) * d(p.0, a.0)
}

fn mean(points: &[(i64, i64)]) -> (f64, f64) {
    let n = points.len().max(1) as f64;
    let sum = points.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0 as f64, s.1 + p.1 as f64));
    (sum.0 / n, sum.1 / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC 5357]
    #[test]
    fn four_stamps_give_offset_and_round_trip() {
        let e = Exchange::new(100, 1_130, 1_150, 160).unwrap();
        assert_eq!((e.round_trip_ns(), e.offset_ns()), (40, 1_010));
        let late_back = Exchange::new(100, 1_130, 1_150, 200).unwrap();
        assert_eq!(
            (late_back.round_trip_ns(), late_back.offset_ns()),
            (80, 990),
            "wrong by half the difference"
        );
    }

    #[test]
    fn stamps_that_cannot_be_true_are_refused() {
        assert_eq!(Exchange::new(100, 0, 0, 99), None, "back before it left");
        assert_eq!(Exchange::new(0, 20, 10, 100), None, "left before it arrived");
        assert_eq!(Exchange::new(0, 0, 1_000, 100), None, "longer at the peer than away");
        assert_eq!(Exchange::new(0, i64::MIN, i64::MAX, 1), None);
    }

    #[test]
    fn one_exchange_knows_half_its_round_trip_and_500_ppm_while_it_lasted() {
        let mut fit = ClockFit::default();
        assert_eq!(fit.to_reference(7), 7);
        fit.add(Exchange::new(0, 3_000_000, 3_000_000, 2_000_000).unwrap());
        let e = fit.estimate().unwrap();
        assert_eq!((e.offset_ns, e.drift_ppb, e.exchanges), (2_000_000, 0.0, 1));
        assert_eq!(e.bound_ns, 1_000_000 + 1_000 + 1);
        assert_eq!(fit.to_reference(10), 2_000_010);
    }

    // [Moon 1999] [Zhang 2002]
    #[test]
    fn the_hull_edge_under_the_middle_is_the_closest_line_under_all_points() {
        let points = [(0, 5), (1, 1), (2, 4), (3, 3), (4, 2), (6, 9)];
        assert_eq!(lower_hull(&points), [(0, 5), (1, 1), (4, 2), (6, 9)]);
        let s = support(&points, 2.5, true);
        assert_eq!((s.level, s.slope), (1.5, 1.0 / 3.0));
        let flat = support(&points, 2.5, false);
        assert_eq!((flat.level, flat.slope), (1.0, 0.0));
        // The points are 13, 0, 8, 4, 0 and 19 thirds above the one line, and 4, 0, 3, 2, 1 and 8 above the other.
        assert!((s.distance - 44.0 / 18.0).abs() < 1e-12, "{}", s.distance);
        assert_eq!(flat.distance, 3.0);
    }

    // [Sen 1968]
    #[test]
    fn most_slopes_are_those_beside_a_step() {
        let steady: Vec<(i64, i64)> = (0..512).map(|i| (i * 1000, i * 20)).collect();
        let (low, high) = most_slopes(&steady);
        assert!(low <= 0.02 && 0.02 <= high && high - low < 1e-6, "{low} {high}");
        for at in [50, 256, 500] {
            let stepped: Vec<(i64, i64)> =
                steady.iter().map(|p| (p.0, p.1 + if p.0 < at * 1000 { 0 } else { 9_000 })).collect();
            let (low, high) = most_slopes(&stepped);
            assert!(low <= 0.02 && 0.02 <= high && high - low < 1e-6, "{at}: {low} {high}");
        }
    }

    #[test]
    fn a_clock_that_is_set_starts_the_window_anew() {
        let mut fit = ClockFit::default();
        for i in 0..100 {
            let t = i * 125_000_000;
            fit.add(Exchange::new(t, t + 1_000, t + 1_000, t + 2_000).unwrap());
        }
        assert_eq!(fit.estimate().unwrap().exchanges, 100);
        let t = 100 * 125_000_000;
        fit.add(Exchange::new(t, t + 5_001_000, t + 5_001_000, t + 2_000).unwrap());
        let e = fit.estimate().unwrap();
        assert_eq!((e.exchanges, e.offset_ns), (1, 5_000_000));
    }
}
