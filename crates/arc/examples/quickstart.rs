//! A cache of a megabyte in front of something slow, shared by threads.
//!
//! Run it with `cargo run -p ogive-arc --example quickstart`.

use ogive_arc::{Access, Cache, Kind};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Something slow: 4 KiB of "record n".
fn read_record(record: u64) -> io::Result<Vec<u8>> {
    Ok(vec![record as u8; 4096])
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let cache: Cache<u64, Vec<u8>> = Cache::builder(1 << 20).expected_weight_bytes(4096).build();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(|| read_all(&cache))).collect();
        readers.into_iter().try_for_each(|reader| match reader.join() {
            Ok(result) => result,
            Err(_) => Err("a reader panicked".into()),
        })
    })?;

    // The old value is not found any more after a write.
    cache.invalidate(&7);
    assert!(!cache.contains(&7));

    // The system is short of memory: half of it goes back.
    let freed_bytes = cache.reclaim(512 << 10);
    println!("gave back {freed_bytes} bytes");

    for (name, value) in cache.stats().fields().filter(|&(_, value)| value != 0) {
        println!("{name:32} {value}");
    }
    Ok(())
}

fn read_all(cache: &Cache<u64, Vec<u8>>) -> Result<(), Box<dyn Error + Send + Sync>> {
    for record in (0..200).chain(0..200) {
        // One loader a key, however many ask. Errors are shared, so they have to be `Clone`.
        let load = || read_record(record).map(|bytes| (bytes, 4096)).map_err(Arc::new);
        let (hold, _) = cache.get_or_load(&record, Kind::Data, Access::Demand, load)?;
        assert_eq!(hold[0], record as u8);
    }
    Ok(())
}
