//! What operators' devices send (glove, inertial sensors, mouse, hand, force) in the hooks that read it: any bytes, at any
//! moments, lead to finite values, to nothing, or to a failure that is told.

use serde_json::Value;
use tcps_core::{
    hook::{HookIn, HookOut, Verdict},
    ids::FlowId,
};
use tcps_node::sample_codec;
use tcps_plan::Codec;

/// Hooks that read values of a device, or of a sensor on a board.
const HOOKS: [&str; 14] = [
    "aim",
    "arm3",
    "arm5",
    "arm5_pose",
    "force",
    "glove",
    "grip",
    "hand",
    "imu_wrist",
    "mouse",
    "mouse_xy",
    "pose",
    "vibration",
    "zoh",
];
/// Those of them that pass values on which they have nothing to say about.
const PASS: [&str; 3] = ["force", "pose", "zoh"];
/// Room for what a hook gives out.
const MOST: usize = 64;

/// Samples of a device to its hook.
pub fn hooks(data: &[u8]) {
    let Some((&which, mut rest)) = data.split_first() else { return };
    let name = HOOKS[usize::from(which) % HOOKS.len()];
    let Ok(mut hook) = tcps_control::hook(name, &Value::Null) else { panic!("{name} needs no parameters") };
    let (mut now, mut values) = (0i64, Vec::new());
    let (mut y, mut bytes) = ([0.0; MOST], [0; MOST]);
    for index in 0.. {
        let [form, pause, after @ ..] = rest else { return };
        now += i64::from(*pause) * i64::from(*pause) * 100_000;
        let (codec, size) = if form & 0x80 == 0 { (Codec::F32, 4) } else { (Codec::F64, 8) };
        let (sample, after) = after.split_at(after.len().min(usize::from(form & 0x1f) * size));
        rest = after;
        sample_codec::decode(codec, sample, &mut values);
        let tick = HookIn::tick(now, now, index, FlowId(0)).with_other(&[1.0, f64::NAN]);
        let input = if form & 0x40 == 0 { tick.with_sample(&values, sample) } else { tick };
        let mut output = HookOut::new(&mut y, &mut bytes);
        let verdict = hook.call(&input, &mut output);
        let (n, _) = output.written();
        assert!(!output.overrun());
        if verdict == Verdict::Emit {
            assert!(
                PASS.contains(&name) || y[..n].iter().all(|v| v.is_finite()),
                "{name}: {values:?} led to {:?}",
                &y[..n]
            );
        }
    }
}
