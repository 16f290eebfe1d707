//! Any bytes as requests of the kernel, by the device and through a ring: no panic, and each is
//! answered once or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ogive_fs::carry_out_any_requests(bytes));
