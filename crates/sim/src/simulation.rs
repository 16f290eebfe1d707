//! Runs one policy at one size over requests, and counts its hits and costs.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::policy::{Counts, Policy, PolicyName, Request};

/// A cache under simulation.
#[derive(Debug)]
pub struct Simulation {
    name: PolicyName,
    capacity_bytes: u64,
    policy: Box<dyn Policy>,
    tally: Tally,
}

/// The counts of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// The hits among them.
    pub hits: u64,
    /// Weight of all requests, in bytes.
    pub bytes: u64,
    /// Weight of the hits, in bytes.
    pub hit_bytes: u64,
    /// Requests for keys heavier than the cache: misses, never inserted.
    pub oversize: u64,
    /// The policy's counts.
    pub counts: Counts,
    /// Processor time of the policy, in nanoseconds.
    pub cpu_ns: u64,
}

impl Simulation {
    /// An empty cache. `entry_bytes` is the expected weight of an entry.
    #[must_use]
    pub fn new(name: PolicyName, capacity_bytes: u64, entry_bytes: u64) -> Self {
        let policy = name.build(capacity_bytes, entry_bytes);
        Self { name, capacity_bytes, policy, tally: Tally::default() }
    }

    /// The policy.
    #[must_use]
    pub const fn name(&self) -> PolicyName {
        self.name
    }

    /// The size of the cache, in bytes.
    #[must_use]
    pub const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Weight of all entries in the cache.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.policy.resident_bytes()
    }

    /// Requests one key. Returns whether it was a hit.
    pub fn access(&mut self, request: &Request) -> bool {
        let tally = &mut self.tally;
        tally.requests += 1;
        tally.bytes += request.bytes;
        if request.bytes > self.capacity_bytes {
            tally.oversize += 1;
            return false;
        }
        let hit = self.policy.access(request);
        if hit {
            tally.hits += 1;
            tally.hit_bytes += request.bytes;
        }
        hit
    }

    /// Requests the keys in order, and measures the time.
    pub fn run(&mut self, requests: &[Request]) {
        let before = thread_cpu();
        for request in requests {
            self.access(request);
        }
        self.tally.cpu_ns += thread_cpu().saturating_sub(before).as_nanos() as u64;
    }

    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally { counts: self.policy.counts(), ..self.tally }
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

impl Tally {
    /// Share of the requests that hit.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.requests)
    }

    /// Share of the bytes that hit.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.bytes)
    }

    /// Processor time per request, in nanoseconds.
    #[must_use]
    pub fn ns_a_request(&self) -> f64 {
        ratio(self.cpu_ns, self.requests)
    }
}

/// A quotient; 0 if the divisor is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
