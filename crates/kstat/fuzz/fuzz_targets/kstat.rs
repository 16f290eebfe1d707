//! Any bytes are kstats in one of the four texts, or an error. Parsed kstats can be written as a
//! Linux kstat and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_kstat::named;

fuzz_target!(|bytes: &[u8]| {
    for kstat in ogive_kstat::parse(bytes).unwrap_or_default() {
        // A name that the Linux text cannot hold may change the table or cause an error, but no
        // panic.
        let _ = named::parse(&kstat.module, &kstat.name, named::write(&kstat).as_bytes());
    }
});
