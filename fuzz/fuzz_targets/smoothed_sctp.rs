#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tcps_fuzz::smoothed_sctp(data));
