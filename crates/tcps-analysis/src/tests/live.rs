//! A run that is watched while it goes on.

use super::*;
use crate::live::{Live, COUNTED, FIRST, PAID, RENEWING};

/// Three seconds of a flow at 1 kHz, of which every fourth sample is lost, as rows in the order of time.
fn three_seconds() -> Tape {
    let mut tape = Tape::default();
    for i in 0..3000 {
        tape.sent(i);
        if i % 4 != 1 {
            tape.delivered(i, 2 * MS);
        }
    }
    tape.0.sort_by_key(|row| row.time_ns);
    tape
}

#[test]
fn totals_are_those_of_a_run_that_ended_now() {
    let plan = plan(10 * SECOND, json!({}));
    let mut live = Live::new(&plan, Options::default());
    live.add(&three_seconds().0);
    assert_eq!(live.last_ns, 2999 * MS + 2 * MS);
    let totals = live.totals(2500 * MS).next().unwrap();
    assert_eq!((totals.sent, totals.delivered), (3000, 2250));
    // Of the samples that were sent until one second (the grace time) before.
    assert_eq!((totals.lost, totals.loss), (375, 375.0 / 1501.0));
    assert_eq!(totals.delay_ns, Some(2e6));
    assert_eq!(live.counts().collect::<Vec<_>>(), [(3000, 2250)]);
}

#[test]
fn losses_are_those_of_a_span_and_none_where_nothing_was_sent() {
    let plan = plan(10 * SECOND, json!({}));
    let mut live = Live::new(&plan, Options::default());
    live.add(&three_seconds().0);
    let loss = |from_ms: Time, to_ms: Time| live.losses(from_ms * MS, to_ms * MS).next().unwrap();
    assert_eq!(loss(2500, 2520), Some(0.25));
    assert_eq!(loss(2501, 2502), Some(1.0));
    assert_eq!(loss(2502, 2505), Some(0.0));
    assert_eq!(loss(4000, 5000), None);
}

#[test]
fn rows_say_of_what_sort_an_arrival_is() {
    let plan = plan(10 * SECOND, json!({}));
    let mut live = Live::new(&plan, Options { warmup_ns: MS, ..Options::default() });
    let mut tape = Tape::default();
    for index in [0, 1] {
        tape.sent(index);
        tape.delivered(index, 5 * MS);
    }
    tape.delivered(1, 6 * MS);
    tape.row(6 * MS, Kind::Delivered, 2, 9 * SECOND).point = entry(2);
    tape.row(7 * MS, Kind::Hop, 1, 0);
    let first = FIRST | RENEWING | PAID;
    // What was sent before the warm-up does not count; a copy is no arrival; an absurd origin leaves the bytes.
    assert_eq!(live.add(&tape.0), [0, first, 0, first | COUNTED, 0, PAID | COUNTED, 0]);
}

#[test]
fn what_a_periodic_stage_repeats_renews_and_is_not_lost() {
    let (plan, mut tape) = flow::repeating(MS);
    tape.0.sort_by_key(|row| row.time_ns);
    let mut live = Live::new(&plan, Options { warmup_ns: 5 * SECOND, ..Options::default() });
    let sorts = live.add(&tape.0);
    let number = |sort: u8| sorts.iter().filter(|found| **found == sort).count();
    // Those made of a new sample count as that does, the other nine of ten by their own time.
    assert_eq!([number(FIRST | RENEWING | PAID), number(FIRST | RENEWING | PAID | COUNTED)], [500, 500]);
    assert_eq!([number(RENEWING | PAID), number(RENEWING | PAID | COUNTED)], [4499, 4501]);
    let totals = live.totals(Time::MAX).next().unwrap();
    assert_eq!((totals.sent, totals.delivered, totals.lost, totals.loss), (500, 500, 0, 0.0));
}

#[test]
fn samples_in_flight_when_rows_are_missing_are_not_lost() {
    let plan = plan(10 * SECOND, json!({}));
    let mut live = Live::new(&plan, Options::default());
    let rows = three_seconds().0;
    let (before, after) = rows.split_at(rows.len() / 2);
    live.add(before);
    live.forget();
    live.add(after);
    let totals = live.totals(Time::MAX).next().unwrap();
    assert_eq!((totals.sent, totals.delivered), (3000, 2250));
    assert!(totals.lost < 150, "{} of the half that was looked for", totals.lost);
}
