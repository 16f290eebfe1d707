//! Promise: whatever bytes spell, the cache is whole after every step. The same driver as the
//! fuzz target's (`fuzz/fuzz_targets/operations.rs`), over random bytes and over its corpus.
#![allow(missing_docs, unreachable_pub)]

#[path = "../../fuzz/driver.rs"]
mod driver;

use proptest::prelude::*;

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/operations");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        driver::run(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 5);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 400 },
        failure_persistence: None,
        ..crate::seed::seeded()
    })]

    #[test]
    fn any_bytes_leave_the_cache_whole(bytes in prop::collection::vec(any::<u8>(), 2..700)) {
        driver::run(&bytes);
    }
}
