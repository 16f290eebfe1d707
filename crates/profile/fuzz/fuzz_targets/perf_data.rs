//! Any bytes as perf.data, as a file and as a stream: no panic, bounded memory, and sums that hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_profile::read::{Options, bytes};

fuzz_target!(|data: &[u8]| {
    if let Ok(profile) = bytes("fuzz", data, &Options::default()) {
        let weights = profile.samples().iter().map(|sample| sample.weight);
        let sum = weights.fold(0u64, u64::saturating_add);
        assert_eq!(sum, profile.view().weight());
        let _ = profile.busy().self_by_symbol();
    }
});
