//! Any bytes are kstats, in one of the four texts, or an error; and what was read can be written as
//! a Linux kstat and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_kstat::named;

fuzz_target!(|bytes: &[u8]| {
    for kstat in ogive_kstat::parse(bytes).unwrap_or_default() {
        // A name that the Linux text cannot hold may make another table or an error of it, no more.
        let _ = named::parse(&kstat.module, &kstat.name, named::write(&kstat).as_bytes());
    }
});
