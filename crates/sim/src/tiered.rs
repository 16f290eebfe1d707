//! The engine with a second level below it: how many of its misses an SSD would have served.
//!
//! The second level behaves like a log on a device: a FIFO of the entries that the engine evicts,
//! in bytes. A hit there is a read of the SSD. The entry comes into memory, and its copy stays on
//! the device.

use std::sync::{Arc, Mutex, PoisonError};

use ogive_arc::{Access, Cache, Eviction, Kind, Source};
use std::convert::Infallible;

use crate::policy::{Lists, Request};

/// Entries evicted since the last access.
type Evicted = Arc<Mutex<Vec<(u64, u64)>>>;

/// Memory and an SSD.
#[derive(Debug)]
pub(crate) struct Tiered {
    memory: Cache<u64, u64>,
    evicted: Evicted,
    device: Lists<1>,
    device_bytes: u64,
    /// Requests.
    pub(crate) requests: u64,
    /// The requests that memory served.
    pub(crate) hits: u64,
    /// The other requests that the device served.
    pub(crate) device_hits: u64,
}

impl Tiered {
    pub(crate) fn new(memory_bytes: u64, device_bytes: u64, entry_bytes: u64) -> Self {
        let evicted = Evicted::default();
        let queue = Arc::clone(&evicted);
        let on_evict = move |entry: Eviction<u64, u64>| {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push((entry.key, entry.weight_bytes));
        };
        let builder = Cache::builder(memory_bytes).rings(2).expected_weight_bytes(entry_bytes);
        Self {
            memory: builder.on_evict(on_evict).build(),
            evicted,
            device: Lists::new(),
            device_bytes,
            requests: 0,
            hits: 0,
            device_hits: 0,
        }
    }

    pub(crate) fn access(&mut self, request: &Request) {
        let on_device = self.device.find(request.key).is_some();
        let load = || Ok::<_, Infallible>((request.bytes, request.bytes));
        let loaded = self.memory.get_or_load(&request.key, Kind::Data, Access::Demand, load);
        let hit = loaded.is_ok_and(|(_, source)| source == Source::Hit);
        self.requests += 1;
        self.hits += u64::from(hit);
        self.device_hits += u64::from(!hit && on_device);
        let mut evicted = self.evicted.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, bytes) in evicted.drain(..) {
            if bytes > self.device_bytes || self.device.find(key).is_some() {
                continue;
            }
            while self.device.list_bytes(0) + bytes > self.device_bytes {
                let Some(oldest) = self.device.back(0) else { break };
                self.device.remove(oldest);
            }
            self.device.push_front(0, key, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_larger_than_memory_is_read_from_the_device() {
        let mut tiered = Tiered::new(100, 2000, 1);
        for round in 0..3 {
            (0..1000).for_each(|key| tiered.access(&Request::new(key, 1)));
            assert!(round > 0 || tiered.device_hits == 0);
        }
        assert!(tiered.device_hits + tiered.hits > 1800, "{tiered:?}");
        let mut small = Tiered::new(100, 100, 1);
        (0..3000).for_each(|number| small.access(&Request::new(number % 1000, 1)));
        assert_eq!(small.device_hits, 0);
    }
}
