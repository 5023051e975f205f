//! The picture of the predictive display: as it came while it comes; moved and marked while it does not.

use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, State, Verdict},
    ids::FlowId,
    time::MS,
};

const WIDTH: usize = 320;
const HEIGHT: usize = 160;
const MARK: [u8; 3] = [255, 128, 0];
/// Rows of the code in a picture so wide.
const CODE_ROWS: usize = 16;

/// A picture whose pixels hold their place.
fn picture(width: usize) -> Vec<u8> {
    (0..HEIGHT).flat_map(|y| (0..width).flat_map(move |x| [(x / 2) as u8, y as u8, 7])).collect()
}

fn pixel(picture: &[u8], width: usize, x: usize, y: usize) -> [u8; 3] {
    [0, 1, 2].map(|c| picture[3 * (y * width + x) + c])
}

fn make(more: Value) -> Box<dyn Hook> {
    let mut params = json!({"width": WIDTH, "height": HEIGHT, "stale_ms": 50});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook("preview", &params).unwrap_or_else(|error| panic!("{error}"))
}

/// A tick at `ms` with a picture that was taken just now or without: what is shown, if anything.
fn tick(hook: &mut dyn Hook, ms: i64, came: Option<&[u8]>, other: &[f64]) -> Option<Vec<u8>> {
    taken(hook, ms, ms, came, other)
}

/// A tick at `ms` with a picture that was taken at `taken_ms` or without: what is shown, if anything.
fn taken(hook: &mut dyn Hook, ms: i64, taken_ms: i64, came: Option<&[u8]>, other: &[f64]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 2 * 3 * WIDTH * HEIGHT];
    let mut input = HookIn::tick(ms * MS, taken_ms * MS, 0, FlowId(0)).with_other(other);
    if let Some(picture) = came {
        input = input.with_sample(&[], picture);
    }
    let mut output = HookOut::new(&mut [], &mut bytes);
    let verdict = hook.call(&input, &mut output);
    let (_, n) = output.written();
    (verdict == Verdict::Emit).then(|| bytes[..n].to_vec())
}

fn lit(picture: &[u8], rows: std::ops::Range<usize>) -> usize {
    let row = |y: usize| (4..WIDTH - 4).filter(|x| pixel(picture, WIDTH, *x, y) == MARK).count();
    rows.map(row).sum()
}

/// [Bejczy et al. 1990] Live pictures pass untouched. Once the last one is stale it is shown moved by what the operator has
/// moved since, in a frame that says so; the code of time and number stays, so that its age is read of it.
#[test]
fn a_stale_picture_moves_with_the_operator_and_says_so() {
    let mut hook = make(json!({"position": [0, 1], "pixels": [[1000, 0], [0, -500]]}));
    let came = picture(WIDTH);
    assert!(tick(hook.as_mut(), 0, None, &[0.0, 0.0]).is_none(), "nothing before the first picture");
    assert_eq!(tick(hook.as_mut(), 10, Some(&came), &[0.01, 0.02]).as_deref(), Some(&came[..]));
    assert!(tick(hook.as_mut(), 40, None, &[0.02, 0.02]).is_none(), "not stale yet");
    assert_eq!(hook.told().unwrap().state, State::Live);
    let shown = tick(hook.as_mut(), 80, None, &[0.03, 0.04]).unwrap();
    let told = hook.told().unwrap();
    assert_eq!((told.state, told.age_ns), (State::Predicted, 70 * MS));
    assert_eq!(shown[..3 * WIDTH * CODE_ROWS], came[..3 * WIDTH * CODE_ROWS], "the code");
    // 20 mm to the right are 20 pixels, 20 mm up 10.
    for (x, y) in [(100, 60), (250, 90), (30, 100)] {
        assert_eq!(pixel(&shown, WIDTH, x, y), pixel(&came, WIDTH, x - 20, y + 10), "{x}, {y}");
    }
    assert_eq!(pixel(&shown, WIDTH, 10, 60), [48; 3], "nothing is known there");
    for (x, y) in [(0, 80), (WIDTH - 1, 80), (160, CODE_ROWS), (160, HEIGHT - 1)] {
        assert_eq!(pixel(&shown, WIDTH, x, y), MARK, "a frame around it");
    }
    let words = lit(&shown, HEIGHT - 12..HEIGHT - 3);
    assert!(words > 150, "PICTURE PREDICTED 70 MS: {words} pixels");
    let later = tick(hook.as_mut(), 90, None, &[0.03, 0.04]).unwrap();
    assert!(later != shown, "the age has changed");
    assert_eq!(tick(hook.as_mut(), 100, Some(&came), &[0.5, 0.5]).as_deref(), Some(&came[..]), "live again");
    assert_eq!(hook.told().unwrap().state, State::Live);
}

/// With the place of the tool in it the picture stands, and the tool is drawn where it must be by now.
#[test]
fn the_tool_is_drawn_where_it_must_be() {
    let mut hook = make(json!({"position": [0], "pixels": [[1000, 0]], "tool": [60, 80]}));
    let came = picture(WIDTH);
    tick(hook.as_mut(), 10, Some(&came), &[0.02]);
    let shown = tick(hook.as_mut(), 100, None, &[0.14]).unwrap();
    let (seen, now) = (80, 200);
    assert_eq!(pixel(&shown, WIDTH, now - 6, 80), MARK, "the ring about it");
    assert_eq!(pixel(&shown, WIDTH, seen - 6, 80), [160; 3], "where it was seen");
    assert_eq!(pixel(&shown, WIDTH, 140, 80), [160; 3], "the way between");
    assert_eq!(pixel(&shown, WIDTH, 140, 60), pixel(&came, WIDTH, 140, 60), "the picture stands");
}

/// A picture that was in flight for 100 ms shows the tool where it was 100 ms before it came: what a tool of 1 mm/ms has moved
/// since counts, also between two periods, and after its clock was put back.
#[test]
fn a_tool_that_moves_was_where_the_picture_was_taken() {
    for (back_ms, delay_ms) in [(0, 100), (0, 110), (0, 0), (0, -20), (5_000, 100)] {
        let mut hook = make(json!({"position": [0], "pixels": [[1000, 0]], "tool": [20, 80]}));
        let came = picture(WIDTH);
        let at = |ms: i64| [ms as f64 * 1e-3 - 0.9];
        (900..1_000).step_by(20).for_each(|ms| _ = tick(hook.as_mut(), ms, None, &at(ms)));
        (980..1_100).step_by(20).for_each(|ms| _ = tick(hook.as_mut(), ms - back_ms, None, &at(ms)));
        taken(hook.as_mut(), 1_100 - back_ms, 1_100 - back_ms - delay_ms, Some(&came), &at(1_100));
        let shown = tick(hook.as_mut(), 1_160 - back_ms, None, &at(1_160)).unwrap();
        let (seen, now) = ((20 + 200 - delay_ms.max(0)) as usize, 280);
        assert_eq!(pixel(&shown, WIDTH, now - 6, 80), MARK, "now, {delay_ms}");
        assert_eq!(pixel(&shown, WIDTH, seen - 6, 80), [160; 3], "when it was taken, {delay_ms}");
        assert_eq!(pixel(&shown, WIDTH, seen - 9, 80), pixel(&came, WIDTH, seen - 9, 80), "not before");
    }
}

/// The force stands below, and says so where it is predicted, also under a picture that is live.
#[test]
fn a_predicted_force_is_told_as_such() {
    let mut hook = make(json!({"force": [0, 1], "mark": 2}));
    let came = picture(WIDTH);
    assert_eq!(tick(hook.as_mut(), 10, Some(&came), &[3.0, 4.0, 0.0]).as_deref(), Some(&came[..]));
    let told = tick(hook.as_mut(), 20, Some(&came), &[3.0, 4.0, 1.0]).unwrap();
    assert!(lit(&told, HEIGHT - 12..HEIGHT - 3) > 150, "FORCE PREDICTED 5.00 N");
    assert_eq!(
        lit(&told, 0..HEIGHT - 10) + lit(&told, HEIGHT - 3..HEIGHT),
        0,
        "seven rows of letters, on their band"
    );
    assert_eq!(pixel(&told, WIDTH, 0, 80), pixel(&came, WIDTH, 0, 80), "no frame: the picture is live");
    let both = tick(hook.as_mut(), 100, None, &[3.0, 4.0, 1.0]).unwrap();
    let (picture, force) = (lit(&both, HEIGHT - 22..HEIGHT - 13), lit(&both, HEIGHT - 12..HEIGHT - 3));
    assert!(picture > 150 && force > 150, "{picture}, {force}: a line each");
    let quiet = tick(hook.as_mut(), 110, None, &[3.0, 4.0, 0.0]).unwrap();
    assert!(lit(&quiet, HEIGHT - 12..HEIGHT - 3) < force, "FORCE 5.00 N is shorter");
    for nothing in [&[][..], &[f64::NAN, 0.0, 0.0]] {
        assert!(tick(hook.as_mut(), 120, None, nothing).is_some(), "a picture without a force");
    }
}

/// Each of two eyes is moved and marked by itself.
#[test]
fn each_eye_is_moved_by_itself() {
    let mut hook = make(json!({"eyes": 2, "position": [0], "pixels": [[10, 0]]}));
    let came = picture(2 * WIDTH);
    tick(hook.as_mut(), 10, Some(&came), &[0.0]);
    let shown = tick(hook.as_mut(), 100, None, &[1.0]).unwrap();
    for (x, y) in [(100, 60), (WIDTH + 100, 60)] {
        assert_eq!(pixel(&shown, 2 * WIDTH, x, y), pixel(&came, 2 * WIDTH, x - 10, y));
    }
    assert_eq!(pixel(&shown, 2 * WIDTH, WIDTH + 5, 60), [48; 3], "nothing comes over from the other eye");
}

/// A clock that is put back does not make a stale picture look live.
#[test]
fn a_clock_step_makes_nothing_live() {
    let mut hook = make(json!({}));
    let came = picture(WIDTH);
    tick(hook.as_mut(), 5_000, Some(&came), &[]);
    (1..100).for_each(|ms| _ = tick(hook.as_mut(), 5_000 + ms, None, &[]));
    assert!(tick(hook.as_mut(), 2_000, None, &[]).is_some());
    assert_eq!(hook.told().unwrap().state, State::Predicted);
}

/// What the operator does far away, or what is no number, is drawn nowhere; wrong sizes and parameters are refused.
#[test]
fn nonsense_does_no_harm() {
    let came = picture(WIDTH);
    for tool in [json!(null), json!([60, 80])] {
        let mut hook = make(json!({"position": [0], "pixels": [[1e9, -1e9]], "tool": tool}));
        tick(hook.as_mut(), 10, Some(&came), &[0.0]);
        for x in [1e300, -1e300, f64::NAN, f64::INFINITY] {
            assert!(tick(hook.as_mut(), 100, None, &[x]).is_some());
        }
    }
    let mut hook = make(json!({}));
    let mut bytes = vec![0; 3 * WIDTH * HEIGHT];
    let short = HookIn::tick(0, 0, 0, FlowId(0)).with_sample(&[], &came[1..]);
    let verdict = hook.call(&short, &mut HookOut::new(&mut [], &mut bytes));
    assert!(matches!(verdict, Verdict::Failed(ref why) if why.contains("320 x 160")), "{verdict:?}");
    let whole = HookIn::tick(0, 0, 0, FlowId(0)).with_sample(&[], &came);
    let verdict = hook.call(&whole, &mut HookOut::new(&mut [], &mut bytes[..100]));
    assert!(matches!(verdict, Verdict::Failed(_)), "no room");
    for params in [
        json!({"eyes": 3}),
        json!({"width": 0}),
        json!({"stale_ms": 0}),
        json!({"position": [0]}),
        json!({"position": [0], "pixels": [[1]]}),
    ] {
        assert!(tcps_control::hook("preview", &params).is_err(), "{params}");
    }
}
