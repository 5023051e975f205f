//! Round trips, one-way legs and what they differ by.

use super::*;

/// Forward leg to each point of the probe.
const LEGS: [i64; 5] = [3 * MS, 2 * MS, 8 * MS, 8 * MS + 1000, 118 * MS];

fn echo(tape: &mut Tape, sequence: u32, one_way: bool) {
    let turn = sequence as usize % 5;
    // What troubles a whole round: an offset that only pairs cancel.
    let trouble = (sequence / 5 % 7) as i64 * 100_000;
    let forward = LEGS[turn] + trouble;
    let back = [2, 2, 7, 7, 7][turn] * MS;
    let point = [exit(1), entry(1), entry(2), exit(2), held(2)][turn];
    let at = sequence as Time * 10 * MS + forward + back;
    tape.row(at, Kind::Echo, sequence, forward + back).point = point;
    if one_way {
        tape.row(at, Kind::EchoForward, sequence, forward).point = point;
        tape.row(at, Kind::EchoReturn, sequence, back).point = point;
    }
}

// [Polachan 2022: echoes] [Polachan 2022]
#[test]
fn differences_of_round_trips_halve_links_only_and_say_so() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..5000).filter(|s| s % 5 != 2 || s % 50 != 2).for_each(|s| echo(&mut tape, s, false));
    let a = tape.analyse(&plan, &Options::default());
    let e = &a.echo[0];
    let names: Vec<_> = e.points.iter().map(|p| p.point.as_str()).collect();
    assert_eq!(names, ["srv.entry", "srv.exit", "robot.entry", "robot.exit", "robot.held"]);
    let got: Vec<_> = e
        .differences
        .iter()
        .map(|d| (d.what, d.name.as_str(), d.halved, d.latency_ns.as_ref().unwrap().distribution.mean))
        .collect();
    assert_eq!(
        got,
        [
            ("component", "srv", false, 1e6),
            ("link", "srv -> robot", true, 5e6),
            ("component", "robot", false, 1e3),
            ("actuation", "robot", false, 110e6 - 1e3),
        ]
    );
    let link = &e.differences[1];
    assert_eq!(
        (link.source, link.round_trip_difference_ns.as_ref().unwrap().distribution.mean),
        ("round_trip", 10e6)
    );
    // Paired differences cancel what troubled the round: no spread is left.
    assert_eq!(e.differences[0].latency_ns.as_ref().unwrap().distribution.sd, 0.0);
    assert!(e.points[0].round_trip_ns.as_ref().unwrap().ci95.unwrap() > 0.0);
    assert_eq!(e.points[2].n, 900);
    assert_eq!((e.points[0].lost, e.points[4].lost), (0, 0));
    // The last of the 100 unanswered commands was given in the last second and is not judged.
    assert_eq!(e.points[2].lost, 99);
}

// [Polachan 2022: echoes]
#[test]
fn one_way_stamps_are_taken_as_they_are() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..1000).for_each(|s| echo(&mut tape, s, true));
    let e = &tape.analyse(&plan, &Options::default()).echo[0];
    let link = &e.differences[1];
    assert_eq!((link.source, link.halved), ("one_way", false));
    assert_eq!(link.latency_ns.as_ref().unwrap().distribution.mean, 5e6);
    assert_eq!(e.points[2].forward_ns.as_ref().unwrap().distribution.min, 8e6);
    assert_eq!(e.points[2].return_ns.as_ref().unwrap().distribution.mean, 7e6);
}

#[test]
fn commands_of_the_warm_up_are_neither_answered_nor_lost() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..1000).filter(|s| s % 100 != 0).for_each(|s| echo(&mut tape, s, true));
    let options = Options { warmup_ns: 2 * SECOND, ..Options::default() };
    let e = &tape.analyse(&plan, &options).echo[0];
    // Commands 200, 300 .. 900 to the exit of srv stay unanswered; 0 and 100 were given in the warm-up.
    assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [0, 8, 0, 0, 0]);
    // 160 commands to each point, and those to the robot's movement that were given just before and came just after.
    let answered: Vec<_> = e.points.iter().map(|p| p.n).collect();
    assert_eq!(answered, [160, 152, 160, 160, 163]);
    assert_eq!(e.points[1].forward_ns.as_ref().unwrap().distribution.n, e.points[1].n);
}

// [design: echo commands]
#[test]
fn a_superseded_command_is_not_lost() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    for s in 0..5000 {
        match s % 50 {
            2 => tape.row(s as Time * 10 * MS + MS, Kind::EchoSuperseded, s, MS).point = entry(2),
            7 => {}
            _ => echo(&mut tape, s, true),
        }
        if s % 50 == 12 {
            tape.row(s as Time * 10 * MS + 20 * MS, Kind::EchoSuperseded, s, MS).point = entry(2);
            // answered before
        }
    }
    let a = tape.analyse(&plan, &Options::default());
    let fates: Vec<_> = a.echo[0].points.iter().map(|p| (p.n, p.lost, p.superseded)).collect();
    assert_eq!(fates[2].2, 100);
    assert!((98..=100).contains(&fates[2].1) && fates[2].0 + fates[2].1 + fates[2].2 >= 998, "{fates:?}");
    assert!(fates.iter().enumerate().all(|(i, f)| i == 2 || (f.1, f.2) == (0, 0)), "{fates:?}");
}

#[test]
fn copies_of_an_echo_answer_once_and_silence_is_counted_from_the_plan() {
    let plan_ = plan(10 * SECOND, probe());
    let mut tape = Tape::default();
    for _ in 0..2 {
        (0..100).for_each(|s| echo(&mut tape, s, true));
    }
    let e = &tape.analyse(&plan_, &Options::default()).echo[0];
    assert_eq!(e.points.iter().map(|p| p.n).collect::<Vec<_>>(), [20; 5]);
    let mut silent = Tape::default();
    silent.sent(9_999);
    let e = &silent.analyse(&plan_, &Options::default()).echo[0];
    // 10 ms apart up to 8.999 s: 900 commands, 180 for each point.
    assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [180; 5]);
}

#[test]
fn an_answer_from_a_point_that_its_command_never_went_to_is_a_strange_row() {
    let plan = plan(100 * SECOND, probe());
    let mut tape = Tape::default();
    (0..10).for_each(|s| echo(&mut tape, s, false));
    tape.row(SECOND, Kind::Echo, 3, MS).point = entry(1);
    let a = tape.analyse(&plan, &Options::default());
    assert_eq!((a.strange_rows, a.echo[0].points[0].n), (1, 2));
}

// [Polachan 2022: echoes]
#[test]
fn commands_are_those_up_to_the_highest_whose_round_trip_is_known() {
    let plan = plan(10 * SECOND, probe());
    for (one_way, kept, expected) in [(false, 100, 100), (true, 99, 99)] {
        let mut tape = Tape::default();
        (0..100).for_each(|s| echo(&mut tape, s, one_way));
        tape.0.retain(|row| row.kind != Kind::Echo || row.index < kept);
        tape.sent(9_999);
        let e = &tape.analyse(&plan, &Options::default()).echo[0];
        assert_eq!((e.commands, e.points.iter().map(|p| p.lost).sum::<u64>()), (expected, 0));
    }
}

/// A probe whose commands are given at n0 and answered to n2.
fn between_clocks() -> Value {
    let mut extra = probe();
    extra["probes"][0]["reply_to"] = json!(2);
    extra["sync"] = json!({"reference": 0, "period_ns": SECOND});
    extra
}

// [RFC 5905 §8]
#[test]
fn an_answer_from_before_both_clocks_were_known_is_in_no_figure_and_not_lost() {
    let plan = plan(100 * SECOND, between_clocks());
    for known_ns in [3 * SECOND, 9_500 * MS] {
        let mut tape = Tape::default();
        for _ in 0..2 {
            (0..1000).filter(|s| s % 10 != 0).for_each(|s| echo(&mut tape, s, false));
        }
        let early = tape.0.iter().filter(|row| row.time_ns < known_ns).count() as u64;
        // A late copy of an early answer.
        tape.row(10 * SECOND, Kind::Echo, 1, 9_990 * MS).point = entry(1);
        // The clock that the answers come to is 1 ms behind the one that the commands are given by.
        let row = tape.row(known_ns, Kind::Sync, 0, MS);
        (row.node, row.point, row.size) = (NodeId(2), 0, 20_000);
        let e = &tape.analyse(&plan, &Options::default()).echo[0];
        let clocks = e.clocks.as_ref().unwrap();
        assert_eq!((clocks.from.as_str(), clocks.to.as_str()), ("n0", "n2"));
        assert_eq!((clocks.corrected, clocks.unknown, clocks.bound_ns), (true, early, 20_000));
        assert_eq!((early > 0, clocks.correction_ns), (true, 1e6));
        assert_eq!(e.points.iter().map(|p| p.n).sum::<u64>(), 900 - early / 2, "without copies");
        let shortest = e.points[0].round_trip_ns.as_ref().unwrap().distribution.min;
        assert_eq!(shortest, 5e6, "4 ms and the correction");
        // The last answer came after 10.1153 s. Commands 0, 10 .. 910 to the exit of srv stay unanswered.
        assert_eq!(e.commands, 912);
        assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [0, 92, 0, 0, 0]);
    }
}

#[test]
fn a_run_within_the_grace_time_has_no_command_that_can_be_judged() {
    let plan = plan(SECOND, probe());
    let mut tape = Tape::default();
    // One of ten is not answered, nor are those to the robot's movement that were given in the last tenth of a second.
    (0..80).filter(|s| s % 10 != 0).for_each(|s| echo(&mut tape, s, true));
    tape.0.retain(|row| row.time_ns < 800 * MS);
    let e = &tape.analyse(&plan, &Options::default()).echo[0];
    assert!(e.points.iter().all(|p| p.n > 0));
    assert_eq!((e.commands, e.points.iter().map(|p| p.lost).sum::<u64>()), (0, 0));
}

#[test]
fn commands_whose_answers_are_forgotten_are_judged_however_long_the_grace_time_is() {
    // With two clocks of which one never comes to be known, too.
    for extra in [probe(), between_clocks()] {
        let plan = plan(200 * SECOND, extra);
        let mut tape = Tape::default();
        (0..15_000).filter(|s| s % 1000 != 0).for_each(|s| echo(&mut tape, s, false));
        let options = Options { grace_ns: 120 * SECOND, ..Options::default() };
        let e = &tape.analyse(&plan, &options).echo[0];
        // Answers of 2048 rounds of 5 commands are remembered.
        assert_eq!(e.commands, 15_000 - 2048 * 5);
        assert_eq!(e.points.iter().map(|p| p.lost).collect::<Vec<_>>(), [0, 5, 0, 0, 0]);
    }
}
