//! Any bytes are the sampled reads of a mount, or an error. Decoded reads are encoded to the same
//! bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_kstat::sampled_reads::{ENTRY_BYTES, Entry, HEADER_BYTES, Header};

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return };
    if let Ok(header) = Header::decode(head) {
        let place = header.place_of(header.first);
        assert_eq!(place, Some(HEADER_BYTES as u64));
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
    for bytes in rest.as_chunks::<ENTRY_BYTES>().0 {
        if let Ok(entry) = Entry::decode(bytes) {
            assert_eq!(entry.encode(), *bytes);
        }
    }
});
