//! A plan is a plan or it is refused: nothing in its text makes reading it panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcps_run::plan::Plan;

fuzz_target!(|bytes: &[u8]| {
    let _ = serde_json::from_slice::<Plan>(bytes);
});
