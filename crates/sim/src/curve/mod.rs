//! Miss-ratio curves of LRU in one pass: exact, or from a sample of bounded size.
//!
//! The exact curve keeps every key (Mattson's stack with a tree, O(log n) per access). The sampled
//! one is SHARDS with a fixed size (Waldspurger et al., "Efficient MRC Construction with SHARDS",
//! FAST '15, sections 3.2 and 3.3). It keeps a bounded number of keys, those with the smallest
//! hashes. Distances are divided by the sampling rate, and counts are weighted with its inverse.
//! Requests missing from the sample are added to the hits (SHARDS-adj).
//!
//! # The error
//! The sample's keys fall into 16 groups by hash. Each group gives a hit ratio of its own at each
//! size. Their variance gives the standard error of the mean. The reported 95% bound is 2.131 times
//! that (Student's t, 15 degrees of freedom).
//!
//! # What is exact
//! For keys of one weight the exact curve equals LRU, request for request. For unequal weights it
//! is the curve of an LRU that always holds as much of its stack as fits.

mod histogram;
mod stack_distances;

use std::collections::BinaryHeap;

use serde::Serialize;

use self::histogram::Histogram;
use self::stack_distances::Distances;
use crate::policy::Request;
use crate::sampling::{rate, sample_hash};

/// Default number of keys in the sample.
pub const SAMPLE_KEYS_DEFAULT: usize = 64 << 10;
/// Groups of the sample.
const GROUPS: usize = 16;
/// Student's t for 95%, two-sided, with one degree of freedom less than groups.
const STUDENT_T: f64 = 2.131;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Size of the cache, in bytes.
    pub size_bytes: u64,
    /// Share of the requests that hit.
    pub hit_ratio: f64,
    /// Share of the bytes that hit.
    pub byte_hit_ratio: f64,
    /// The 95% confidence bound of `hit_ratio`; 0 if it is exact.
    pub error: f64,
}

/// A request from an external sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The hash of its key, with uniformly random bits.
    pub hash: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The keys of the sample are those whose hash begins with this many zero bits.
    pub shift: u32,
}

/// A curve under construction.
#[derive(Debug)]
pub struct Curve {
    distances: Distances,
    groups: Vec<Group>,
    sample: Option<Sample>,
    requests: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Group {
    histogram: Histogram,
    requests: f64,
    bytes: f64,
}

/// The sample of SHARDS.
#[derive(Debug)]
struct Sample {
    keys_max: usize,
    /// Keys with larger hashes are not in the sample.
    threshold: u64,
    /// Hash and key, the largest hash on top.
    heap: BinaryHeap<(u64, u64)>,
}

impl Curve {
    /// A curve that keeps every key.
    #[must_use]
    pub fn exact() -> Self {
        Self {
            distances: Distances::new(),
            groups: vec![Group::default()],
            sample: None,
            requests: 0,
            bytes: 0,
        }
    }

    /// A curve that keeps at most this many keys.
    #[must_use]
    pub fn sampled(keys_max: usize) -> Self {
        let keys_max = keys_max.max(GROUPS);
        let heap = BinaryHeap::with_capacity(keys_max + 1);
        Self {
            groups: vec![Group::default(); GROUPS],
            sample: Some(Sample { keys_max, threshold: u64::MAX, heap }),
            ..Self::exact()
        }
    }

    /// Adds requests.
    pub fn add(&mut self, requests: &[Request]) {
        self.requests += requests.len() as u64;
        for request in requests {
            self.bytes += request.bytes;
            if self.sample.is_some() {
                self.add_sampled(request);
            } else {
                let distance = self.distances.access(request.key, request.bytes);
                self.groups[0].count(request, distance, 1.0);
            }
        }
    }

    /// Adds requests of an external sample out of `all` requests. A key was sampled if its hash
    /// begins with `shift` zero bits; the hash represents the key. So the rate of this curve is at
    /// most that of the sample. A curve that keeps every key knows only the sampled ones.
    pub fn add_chosen(&mut self, chosen: &[Chosen], all: u64) {
        self.requests += all;
        let mut bytes = 0_u128;
        for one in chosen {
            bytes += u128::from(one.bytes);
            let request = Request::new(one.hash, one.bytes.max(1));
            if self.sample.is_some() {
                // The threshold must stay above 0.
                self.lower(u64::MAX >> one.shift.min(63));
                self.add_hashed(one.hash, &request);
            } else {
                let distance = self.distances.access(request.key, request.bytes);
                self.groups[0].count(&request, distance, 1.0);
            }
        }
        // Requests outside the sample count with the same mean length.
        let all_bytes = bytes * u128::from(all) / (chosen.len() as u128).max(1);
        self.bytes = self.bytes.saturating_add(u64::try_from(all_bytes).unwrap_or(u64::MAX));
    }

    /// Drops the keys with larger hashes.
    fn lower(&mut self, threshold: u64) {
        let Some(sample) = &mut self.sample else { return };
        if threshold >= sample.threshold {
            return;
        }
        sample.threshold = threshold;
        while sample.heap.peek().is_some_and(|(hash, _)| *hash > threshold) {
            let Some((_, key)) = sample.heap.pop() else { return };
            self.distances.remove(key);
        }
    }

    fn add_sampled(&mut self, request: &Request) {
        self.add_hashed(sample_hash(request.key), request);
    }

    fn add_hashed(&mut self, hash: u64, request: &Request) {
        let Some(sample) = &mut self.sample else { return };
        if hash > sample.threshold {
            return;
        }
        let rate = rate(sample.threshold);
        let distance = self.distances.access(request.key, request.bytes);
        let scaled = distance.map(|distance| (distance as f64 / rate) as u64);
        // The threshold uses the upper bits, groups the lower ones.
        self.groups[hash as usize % GROUPS].count(request, scaled, 1.0 / rate);
        if distance.is_none() {
            sample.heap.push((hash, request.key));
        }
        while sample.heap.len() > sample.keys_max {
            let Some((largest, key)) = sample.heap.pop() else { return };
            self.distances.remove(key);
            sample.threshold = largest.saturating_sub(1);
        }
    }

    /// The share of all keys in the sample; 1 while it has all.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.sample.as_ref().map_or(1.0, |sample| rate(sample.threshold))
    }

    /// The number of requests.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// The curve at these sizes, which must rise.
    #[must_use]
    pub fn points(&self, sizes_bytes: &[u64]) -> Vec<Point> {
        let groups: Vec<Vec<(f64, f64)>> =
            self.groups.iter().map(|group| group.histogram.up_to(sizes_bytes)).collect();
        let is_exact = self.rate() >= 1.0;
        let count = groups.len() as f64;
        let (requests, bytes) = (self.requests as f64 / count, self.bytes as f64 / count);
        let at = |point: usize| {
            let ratios: Vec<f64> = groups
                .iter()
                .zip(&self.groups)
                .map(|(hits, group)| adjusted(hits[point].0, group.requests, requests))
                .collect();
            let byte_hits: f64 = groups.iter().map(|hits| hits[point].1).sum();
            let counted: f64 = self.groups.iter().map(|group| group.bytes).sum();
            let mean = ratios.iter().sum::<f64>() / count;
            let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>()
                / (count - 1.0).max(1.0);
            Point {
                size_bytes: sizes_bytes[point],
                hit_ratio: mean.clamp(0.0, 1.0),
                byte_hit_ratio: adjusted(byte_hits, counted, bytes * count).clamp(0.0, 1.0),
                error: if is_exact { 0.0 } else { STUDENT_T * (variance / count).sqrt() },
            }
        };
        (0..sizes_bytes.len()).map(at).collect()
    }
}

impl Group {
    fn count(&mut self, request: &Request, distance: Option<u64>, weight: f64) {
        let bytes = request.bytes as f64 * weight;
        self.requests += weight;
        self.bytes += bytes;
        if let Some(distance) = distance {
            self.histogram.add(distance, weight, bytes);
        }
    }
}

/// Hits as a share of the expected requests of a group. Missing requests count as hits of the
/// smallest distance, because a sample has too few or too many of the most popular keys.
fn adjusted(hits: f64, counted: f64, expected: f64) -> f64 {
    if expected > 0.0 { (hits + expected - counted) / expected } else { 0.0 }
}

/// Sizes for a curve: `count` of them from 1/1000 of `footprint_bytes` to all of it, in a geometric
/// series.
#[must_use]
pub fn curve_sizes(footprint_bytes: u64, count: usize) -> Vec<u64> {
    let (last, steps) = (footprint_bytes.max(1) as f64, count.max(2) - 1);
    let mut sizes: Vec<u64> = (0..=steps)
        .map(|step| {
            (last / 1000_f64.powf(1.0 - step as f64 / steps as f64)).round().max(1.0) as u64
        })
        .collect();
    sizes.dedup();
    sizes
}
