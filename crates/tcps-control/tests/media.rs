//! Sound and pictures: missing frames are concealed, and a step is heard and seen.

mod common;

use common::Given;
use serde_json::{json, Value};
use tcps_control::hook;
use tcps_core::{
    hook::{Hook, HookIn, HookOut, Verdict},
    ids::FlowId,
};

/// A call with room for a whole frame.
fn call(hook: &mut dyn Hook, given: Given<'_>) -> (Verdict, Vec<f64>, Vec<u8>) {
    let (mut y, mut bytes) = (vec![0.0; 16], vec![0u8; 65_536]);
    let mut input = HookIn::tick(given.now_ns, given.origin_ns, given.index, FlowId(0));
    if given.x.is_some() || !given.bytes.is_empty() {
        input = input.with_sample(given.x.unwrap_or(&[]), given.bytes);
    }
    let mut output = HookOut::new(&mut y, &mut bytes);
    let verdict = hook.call(&input, &mut output);
    let (n, n_bytes) = output.written();
    (verdict, y[..n].to_vec(), bytes[..n_bytes].to_vec())
}

fn make(name: &str, params: Value) -> Box<dyn Hook> {
    hook(name, &params).unwrap_or_else(|error| panic!("{error}"))
}

/// 20 ms of a tone of 200 Hz at 8 kHz, from a sample on.
fn tone(from: usize) -> Vec<u8> {
    (from..from + 160)
        .flat_map(|n| {
            let turn = 2.0 * std::f64::consts::PI * 200.0 * n as f64 / 8000.0;
            ((8000.0 * libm::sin(turn)) as i16).to_le_bytes()
        })
        .collect()
}

fn samples(frame: &[u8]) -> Vec<f64> {
    frame.chunks_exact(2).map(|s| f64::from(i16::from_le_bytes([s[0], s[1]]))).collect()
}

/// A tone goes on through two lost frames in its own phase while it fades, better than by silence or by the last frame as it is.
#[test]
fn lost_sound_goes_on_at_its_pitch_and_fades() {
    let mut conceal = make("conceal", json!({"medium": "sound", "fade_ms": 400}));
    // 37 samples off the pitch, so that the last frame again would be out of phase.
    let frames: Vec<Vec<u8>> = (0..8).map(|n| tone(n * 160 + 37 * (n / 6))).collect();
    for frame in &frames[..6] {
        let (verdict, _, given) = call(conceal.as_mut(), Given { bytes: frame, ..Given::default() });
        assert!(verdict == Verdict::Emit && &given == frame, "what comes goes on as it is");
    }
    let truth = samples(&tone(6 * 160));
    let (verdict, _, concealed) = call(conceal.as_mut(), Given::default());
    assert!(verdict == Verdict::Emit && concealed.len() == 320);
    let error = |of: &[f64]| of.iter().zip(&truth).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    assert!(
        error(&samples(&concealed)) < 0.02 * error(&vec![0.0; 160]),
        "a fiftieth of the power of silence"
    );
    let loudest = |frame: &[u8]| samples(frame).iter().fold(0.0f64, |most, s| most.max(s.abs()));
    let later = (0..8).map(|_| loudest(&call(conceal.as_mut(), Given::default()).2)).collect::<Vec<_>>();
    // Each frame of 20 ms begins 5 % of 8000 below the one before it, and is loudest within its first period, of 5 ms.
    for (expected, found) in (1..).map(|n| 8000.0 * (1.0 - 0.05 * f64::from(n))).zip(&later) {
        assert!((expected - 100.0..=expected).contains(found), "{expected}: {later:?}");
    }
}

/// The pitch is that of the newest sound, also where the sound before it was far louder.
#[test]
fn the_pitch_is_that_of_the_newest_sound() {
    let mut conceal = make("conceal", json!({"medium": "sound", "fade_ms": 400}));
    let loud: Vec<u8> = (0..400)
        .map(|n| libm::sin(2.0 * std::f64::consts::PI * 130.0 * f64::from(n) / 8000.0))
        .flat_map(|s| ((30_000.0 * s) as i16).to_le_bytes())
        .collect();
    let quiet: Vec<u8> = samples(&tone(0))
        .iter()
        .chain(&samples(&tone(160))[..20])
        .flat_map(|s| ((s / 8.0) as i16).to_le_bytes())
        .collect();
    for frame in [&loud, &quiet] {
        call(conceal.as_mut(), Given { bytes: frame, ..Given::default() });
    }
    let concealed = samples(&call(conceal.as_mut(), Given::default()).2);
    let truth = samples(&tone(180)); // of a period of 40 samples
    for (n, (found, expected)) in concealed.iter().zip(&truth).enumerate() {
        assert!((found - expected / 8.0).abs() < 60.0, "{n}: {found} {expected}");
    }
}

/// A picture freezes for as many frames as are allowed, and then there is none.
#[test]
fn a_lost_picture_stands_still() {
    let mut conceal = make("conceal", json!({"most": 2}));
    assert_eq!(call(conceal.as_mut(), Given::default()).0, Verdict::Nothing, "nothing before the first");
    let picture = vec![7u8; 20_000];
    assert_eq!(call(conceal.as_mut(), Given { bytes: &picture, ..Given::default() }).2, picture);
    for _ in 0..2 {
        assert_eq!(call(conceal.as_mut(), Given::default()).2, picture);
    }
    assert_eq!(call(conceal.as_mut(), Given::default()).0, Verdict::Nothing);
    let (verdict, ..) = call(conceal.as_mut(), Given { x: Some(&[1.0]), ..Given::default() });
    assert!(matches!(verdict, Verdict::Failed(_)), "values are no frame");
}

/// Sound of any length, odd and empty frames, frames shorter than a pitch: never a stop.
#[test]
fn any_frames_do_no_harm() {
    let mut conceal = make("conceal", json!({"medium": "sound"}));
    for n in [1, 2, 3, 319, 0, 5, 4_000, 1] {
        let frame = vec![0x80u8; n];
        call(conceal.as_mut(), Given { bytes: &frame, ..Given::default() });
        call(conceal.as_mut(), Given::default());
    }
    assert!(
        hook("conceal", &json!({"medium": "sound", "pitch_hz": [1, 400]})).is_err(),
        "longer than what is kept"
    );
    assert!(hook("conceal", &json!({"pitch_hz": [400, 66]})).is_err());
}

/// [Polachan 2022] A value is heard and seen again, within rounding, over the range of a step response.
#[test]
fn a_value_is_heard_and_seen_again() {
    for (code, decode, off) in [("tone", "loudness", 1e-3), ("grey", "brightness", 1e-5)] {
        let (mut code, mut decode) = (make(code, Value::Null), make(decode, Value::Null));
        for h in [0.0, 0.25, 0.5, 0.951, 1.0, 1.37, 2.0] {
            let (verdict, _, frame) = call(code.as_mut(), Given { x: Some(&[h]), ..Given::default() });
            assert_eq!(verdict, Verdict::Emit);
            let (_, found, _) = call(decode.as_mut(), Given { bytes: &frame, ..Given::default() });
            assert!((found[0] - h).abs() < off, "{h}: {found:?}");
        }
        let (verdict, ..) = call(code.as_mut(), Given { x: Some(&[f64::NAN]), ..Given::default() });
        assert!(matches!(verdict, Verdict::Failed(_)));
        let (verdict, ..) = call(decode.as_mut(), Given { x: Some(&[1.0]), ..Given::default() });
        assert!(matches!(verdict, Verdict::Failed(_)));
    }
}
