//! Any bytes are a minute of the week's file or are refused, and a written minute is read back equal.
#![no_main]

#[path = "../../src/week/row.rs"]
mod row;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(minute) = row::decode(bytes) else { return };
    // Of a hostile one the mean may be outside of its bounds, which is not written.
    let again = |minute: &row::Row| row::decode(&row::encode(minute).expect("memory takes all"));
    let written = again(&minute).expect("it was written here");
    assert_eq!(written.len(), minute.len());
    assert_eq!(again(&written), Some(written));
});
