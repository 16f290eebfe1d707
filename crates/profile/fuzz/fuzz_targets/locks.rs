//! Any text as a lock table.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(table) = ogive_profile::locks::read(&String::from_utf8_lossy(data)) {
        assert_eq!(table.ranked().len(), table.rows.len());
    }
});
