//! Promise: when pinned metadata stand in the way of reclaim, their owners are asked for the
//! missing bytes. The work is in proportion to the bytes that are freed. An owner that frees
//! nothing is left alone.

use ogive_arc::{Access, Cache, Hold, Kind, Prune, PruneResult};
use std::sync::{Arc, Mutex};

/// An inode table: it holds one entry an inode. Those in use cannot be let go; they are on no
/// list of what can.
#[derive(Default)]
struct Inodes {
    idle: Mutex<Vec<Hold<u64, ()>>>,
    in_use: Mutex<Vec<Hold<u64, ()>>>,
}

impl Prune for Inodes {
    fn prune(&self, want_bytes: u64) -> PruneResult {
        let mut result = PruneResult::default();
        let mut gone = Vec::new();
        {
            let mut idle = self.idle.lock().unwrap();
            while result.freed_bytes < want_bytes
                && let Some(hold) = idle.pop()
            {
                result.examined += 1;
                result.freed_objects += 1;
                result.freed_bytes += 10;
                gone.push(hold);
            }
        }
        result
    }
}

fn pinned(idle: u64, in_use: u64) -> (Cache<u64, ()>, Arc<Inodes>) {
    let cache = Cache::builder(1000).sublists(2).build();
    let put = |key| cache.insert(key, (), 10, Kind::Metadata, Access::Demand);
    let inodes = Arc::new(Inodes::default());
    *inodes.idle.lock().unwrap() = (0..idle).map(put).collect();
    *inodes.in_use.lock().unwrap() = (idle..idle + in_use).map(put).collect();
    (cache, inodes)
}

#[test]
fn reclaim_asks_for_the_bytes_that_pinned_metadata_keep() {
    let (cache, inodes) = pinned(60, 20);
    let registration = cache.register_prune("inodes", Arc::clone(&inodes) as _);
    for key in 1000..1020 {
        drop(cache.insert(key, (), 10, Kind::Data, Access::Demand));
    }
    // 200 can be evicted, 300 have to be let go.
    assert_eq!(cache.reclaim(500), 500);
    let stats = cache.stats();
    assert_eq!((stats.arc_prune, stats.prune_freed_bytes, stats.prune_examined), (1, 300, 30));
    assert_eq!((stats.prune_freed_objects, stats.arc_need_free), (30, 0));
    assert_eq!(cache.size_bytes(), 500);
    drop(registration);
    assert_eq!(cache.reclaim(100), 0);
    assert_eq!((cache.stats().arc_prune, cache.stats().arc_need_free), (1, 100));
    cache.validate().unwrap();
}

#[test]
fn truly_pinned_metadata_are_asked_for_only_a_few_times() {
    let (cache, inodes) = pinned(0, 100);
    let _registration = cache.register_prune("inodes", Arc::clone(&inodes) as _);
    for _ in 0..10_000 {
        assert_eq!(cache.reclaim(10), 0);
    }
    let stats = cache.stats();
    // The pause doubles with each futile request, from 10 ms.
    assert!(stats.arc_prune < 100, "{} requests", stats.arc_prune);
    assert_eq!(stats.arc_prune + stats.prune_backed_off, 10_000);
    assert_eq!(stats.prune_examined, 0);
}

#[test]
fn without_pinned_entries_no_owner_is_asked() {
    let (cache, inodes) = pinned(0, 0);
    let _registration = cache.register_prune("inodes", inodes);
    let held = cache.insert(1, (), 1000, Kind::Data, Access::Demand);
    assert_eq!(cache.reclaim(100), 0);
    assert_eq!(cache.stats().arc_prune, 0);
    drop(held);
}

#[test]
fn prune_can_be_asked_for_directly() {
    let (cache, inodes) = pinned(60, 20);
    let _registration = cache.register_prune("inodes", Arc::clone(&inodes) as _);
    let result = cache.prune(95);
    assert_eq!((result.freed_bytes, result.examined, result.held), (100, 10, 0));
    assert_eq!(cache.stats().metadata_size, 800, "let go of, not evicted");
}
