//! Reading the statistics, and recounting everything.

use super::Cache;
use super::core::Core;
use crate::counters::Event;
use crate::policy::{Access, Balance, Census, EMPTY, ENGINE_LISTS, Kind, LISTS, List, list_index};
use crate::stats::Stats;

/// 2^32: fractions are given as whole numbers of this.
const FIXED_POINT: f64 = 4_294_967_296.0;

/// Figures that are read under the sublists' locks, one after the other.
#[derive(Default)]
struct Sums {
    listed_bytes: [u64; LISTS],
    ghosts: u64,
    indexed: u64,
    indexed_max: u64,
    resident: u64,
    overhead_bytes: u64,
}

impl<K, V> Cache<K, V> {
    /// Statistics as of now. Locks one sublist after the other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = self.core();
        let sums = self.sums();
        let mut stats = Stats::default();
        accesses(&mut stats, core);
        core.counters.read(&mut stats);
        let (balance, need_free_bytes) = {
            let ledger = core.ledger();
            (ledger.balance.clone(), ledger.need_free_bytes)
        };
        sizes(&mut stats, &balance, &sums);
        stats.arc_need_free = need_free_bytes;
        stats.sublists = core.sublists().len() as u64;
        stats.handed_size = core.handed.bytes();
        referees(&mut stats, core);
        stats
    }

    fn sums(&self) -> Sums {
        let core = self.core();
        let mut sums = Sums::default();
        for sublist in core.sublists() {
            let guard = core.lock_settled(sublist);
            let listed = guard.listed_bytes();
            sums.listed_bytes.iter_mut().zip(listed).for_each(|(sum, bytes)| *sum += bytes);
            let (known, known_max) = guard.known();
            sums.indexed += known as u64;
            sums.indexed_max += known_max as u64;
            sums.ghosts += guard.ghosts_len() as u64;
            sums.resident += guard.resident() as u64;
            sums.overhead_bytes += guard.overhead_bytes();
        }
        sums
    }
}

fn accesses<K, V>(stats: &mut Stats, core: &Core<K, V>) {
    let counters = &core.counters;
    let place = |access: Access, kind: Kind| access as usize * 2 + kind as usize;
    let hits = |access: Access, kind: Kind, list: List| {
        counters.sum_at(Event::Hit, place(access, kind) * 2 + list as usize)
    };
    let both = |access, kind| hits(access, kind, List::Mru) + hits(access, kind, List::Mfu);
    let joined = |access, kind| counters.sum_at(Event::JoinedHit, place(access, kind));
    let missed = |access, kind| counters.sum_at(Event::Miss, place(access, kind));
    for access in [Access::Demand, Access::Prefetch] {
        for kind in Kind::ALL {
            let (hit, iohit, miss) = match (access, kind) {
                (Access::Demand, Kind::Data) => (
                    &mut stats.demand_data_hits,
                    &mut stats.demand_data_iohits,
                    &mut stats.demand_data_misses,
                ),
                (Access::Demand, Kind::Metadata) => (
                    &mut stats.demand_metadata_hits,
                    &mut stats.demand_metadata_iohits,
                    &mut stats.demand_metadata_misses,
                ),
                (Access::Prefetch, Kind::Data) => (
                    &mut stats.prefetch_data_hits,
                    &mut stats.prefetch_data_iohits,
                    &mut stats.prefetch_data_misses,
                ),
                (Access::Prefetch, Kind::Metadata) => (
                    &mut stats.prefetch_metadata_hits,
                    &mut stats.prefetch_metadata_iohits,
                    &mut stats.prefetch_metadata_misses,
                ),
            };
            *hit = both(access, kind);
            *iohit = joined(access, kind);
            *miss = missed(access, kind);
            stats.hits += *hit;
            stats.iohits += *iohit;
            stats.misses += *miss;
            stats.mru_hits += hits(access, kind, List::Mru);
            stats.mfu_hits += hits(access, kind, List::Mfu);
        }
    }
}

fn referees<K, V>(stats: &mut Stats, core: &Core<K, V>) {
    stats.rule_data = core.rule(Kind::Data) as u64;
    stats.rule_metadata = core.rule(Kind::Metadata) as u64;
    let one_in = [&mut stats.referee_one_in_data, &mut stats.referee_one_in_metadata];
    for (kind, one_in) in Kind::ALL.into_iter().zip(one_in) {
        if let Some(standing) = core.standing(kind) {
            stats.rule_changes += standing.changes;
            stats.referee_bytes += standing.heap_bytes;
            *one_in = standing.sampled_one_in;
        }
    }
}

fn sizes(stats: &mut Stats, balance: &Balance, sums: &Sums) {
    let size = |kind, list, ghost| balance.size_bytes(kind, list, ghost);
    let listed = |kind, list| sums.listed_bytes[list_index(kind, list, false)];
    let anon = |kind| balance.anon_bytes(kind) + balance.oversize_bytes(kind);
    let share = |kind| {
        let capacity = balance.capacity_bytes(kind).max(1.0);
        (balance.mru_target_bytes(kind) / capacity * FIXED_POINT) as u64
    };
    stats.hash_elements = sums.indexed;
    stats.hash_elements_max = sums.indexed_max;
    stats.entries = sums.resident;
    stats.ghosts = sums.ghosts;
    stats.meta = (balance.metadata_fraction() * FIXED_POINT) as u64;
    stats.pd = share(Kind::Data);
    stats.pm = share(Kind::Metadata);
    stats.c = balance.target_bytes();
    stats.c_min = balance.min_bytes();
    stats.c_max = balance.max_bytes();
    stats.arc_no_grow = u64::from(balance.no_grow());
    stats.hdr_size = sums.overhead_bytes;
    stats.anon_data = anon(Kind::Data);
    stats.anon_metadata = anon(Kind::Metadata);
    stats.anon_size = stats.anon_data + stats.anon_metadata;
    stats.oversize_size =
        balance.oversize_bytes(Kind::Data) + balance.oversize_bytes(Kind::Metadata);
    stats.data_size = balance.live_bytes(Kind::Data) + stats.anon_data;
    stats.metadata_size = balance.live_bytes(Kind::Metadata) + stats.anon_metadata;
    stats.size = stats.data_size + stats.metadata_size + stats.hdr_size;
    stats.arc_meta_used = stats.metadata_size + stats.hdr_size;
    stats.mru_data = size(Kind::Data, List::Mru, false);
    stats.mru_metadata = size(Kind::Metadata, List::Mru, false);
    stats.window_size = balance.window_bytes(Kind::Data) + balance.window_bytes(Kind::Metadata);
    stats.mru_size = stats.mru_data + stats.mru_metadata;
    stats.mru_evictable_data = listed(Kind::Data, List::Mru);
    stats.mru_evictable_metadata = listed(Kind::Metadata, List::Mru);
    stats.mfu_data = size(Kind::Data, List::Mfu, false);
    stats.mfu_metadata = size(Kind::Metadata, List::Mfu, false);
    stats.mfu_size = stats.mfu_data + stats.mfu_metadata;
    stats.mfu_evictable_data = listed(Kind::Data, List::Mfu);
    stats.mfu_evictable_metadata = listed(Kind::Metadata, List::Mfu);
    stats.mru_ghost_data = size(Kind::Data, List::Mru, true);
    stats.mru_ghost_metadata = size(Kind::Metadata, List::Mru, true);
    stats.mru_ghost_size = stats.mru_ghost_data + stats.mru_ghost_metadata;
    stats.mru_ghost_evictable_data = stats.mru_ghost_data;
    stats.mru_ghost_evictable_metadata = stats.mru_ghost_metadata;
    stats.mfu_ghost_data = size(Kind::Data, List::Mfu, true);
    stats.mfu_ghost_metadata = size(Kind::Metadata, List::Mfu, true);
    stats.mfu_ghost_size = stats.mfu_ghost_data + stats.mfu_ghost_metadata;
    stats.mfu_ghost_evictable_data = stats.mfu_ghost_data;
    stats.mfu_ghost_evictable_metadata = stats.mfu_ghost_metadata;
}

/// Recounts every sublist and compares the sum with the balance and the published tails.
pub(super) fn validate<K: Eq, V>(core: &Core<K, V>) -> Result<Census, String> {
    // A hit that is applied in one sublist may have to demote in another.
    for sublist in core.sublists() {
        drop(core.lock_settled(sublist));
    }
    let mut total = Census::default();
    let mut oldest = [(); ENGINE_LISTS].map(|()| Vec::new());
    for sublist in core.sublists() {
        let guard = core.lock_settled(sublist);
        total.add(&guard.validate()?);
        for (list, tails) in oldest.iter_mut().enumerate() {
            let stamp = guard.tail_stamp(list);
            if stamp != EMPTY {
                tails.push((stamp, sublist.number()));
            }
        }
    }
    for (list, tails) in oldest.iter().enumerate() {
        let published = core.tails.oldest(list);
        let stamp = tails.iter().map(|&(stamp, _)| stamp).min();
        let picked = published.map(|pick| {
            tails.iter().find(|&&(_, number)| number == pick.sublist).map(|&(stamp, _)| stamp)
        });
        if picked != stamp.map(Some) || core.tails.any(list) == tails.is_empty() {
            return Err(format!("list {list}: {published:?} published, {stamp:?} is oldest"));
        }
    }
    let balance = core.ledger().balance.clone();
    if total.state_bytes != *balance.sizes() {
        return Err(format!("{:?} counted, {balance:?} said", total.state_bytes));
    }
    for kind in Kind::ALL {
        let at = kind as usize;
        let counted = (total.dead_bytes[at], total.oversize_bytes[at]);
        let said = (balance.anon_bytes(kind), balance.oversize_bytes(kind));
        if counted != said {
            return Err(format!("{kind:?}: {counted:?} dead bytes counted, {said:?} said"));
        }
        let (waiting, said) = (total.window_bytes[at], balance.window_bytes(kind));
        if waiting != said {
            return Err(format!("{kind:?}: {waiting} bytes counted in the window, {said} said"));
        }
    }
    let (counted, said) = (total.handed_bytes, core.handed.bytes());
    if counted != said {
        return Err(format!("{counted} bytes counted that were handed over, {said} said"));
    }
    core.validate_referees()?;
    Ok(total)
}
