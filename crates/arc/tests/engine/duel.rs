//! Promise: the cache under the duel is the pure duel, access by access, with one sublist and every
//! hit noted. As it ships it is nearly so.

use crate::common::{golden, keys};
use ogive_arc::policy::duel::Duel;
use ogive_arc::{Access, Cache, Kind, Policy, Source};
use std::convert::Infallible;

/// The longest trace to take.
const REQUESTS_MAX: u64 = if cfg!(debug_assertions) { 40_000 } else { 1_300_000 };

fn ask(cache: &Cache<u64, ()>, key: u64, weight_bytes: u64) -> bool {
    let load = || Ok::<_, Infallible>(((), weight_bytes));
    let (_, source) = cache.get_or_load(&key, Kind::Data, Access::Demand, load).unwrap();
    source == Source::Hit
}

#[test]
fn the_exact_cache_with_one_sublist_is_the_pure_duel_access_by_access() {
    let mut rows = 0;
    for (trace, of_trace) in golden(REQUESTS_MAX) {
        let keys = keys(&trace);
        for row in of_trace {
            let cache = Cache::builder(row.entries).policy(Policy::Duel).sublists(1).exact(true);
            let (cache, mut duel) = (cache.build(), Duel::new(row.entries));
            for (at, &key) in keys.iter().enumerate() {
                let expected = duel.access(key, 1).is_hit();
                assert_eq!(ask(&cache, key, 1), expected, "{row:?}, request {at}");
            }
            cache.validate().unwrap();
            rows += 1;
        }
    }
    eprintln!("{rows} rows");
    assert!(rows >= 35);
}
