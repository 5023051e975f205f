#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tcps_fuzz::tls_record(data));
