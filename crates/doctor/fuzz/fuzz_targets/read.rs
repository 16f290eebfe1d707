//! Passes any bytes through all readers: no input panics, and each line is read or reported.
//!
//! `cargo +nightly fuzz run read fuzz/corpus/read tests/read_samples`
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_doctor::evidence::Evidence;
use ogive_doctor::read;

fuzz_target!(|bytes: &[u8]| {
    let mut evidence = Evidence::default();
    read::read_bytes(&mut evidence, "start/input", bytes);
    read::read_bytes(&mut evidence, "end/input", bytes);
    read::finish(&mut evidence);
    assert_eq!(evidence.inputs.len(), 2);
});
