//! Workloads: keys that are drawn beforehand, so that drawing them is not measured.

use crate::caches::{Candidate, candidates};

/// A sequence of keys and what is done with what is found.
pub struct Workload {
    /// Its name in tables.
    pub name: &'static str,
    /// Room in the cache.
    pub entries: usize,
    /// Bytes of a value.
    pub page_bytes: usize,
    /// Whether the value is copied.
    pub copies: bool,
    /// Keys below are put in beforehand.
    pub filled: usize,
    /// Keys below are the hot set, of which hits are counted by themselves.
    pub hot: u64,
    /// The keys of a thread.
    pub draw: fn(&mut Random, &Zipf) -> u64,
    /// The distribution of zipf.
    pub zipf: Zipf,
}

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Zipf by the inverse of its distribution, summed up once.
pub struct Zipf(Vec<f64>);

impl Zipf {
    pub fn new(keys: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let sums: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        Self(sums.into_iter().map(|part| part / sum).collect())
    }
    fn keys(&self) -> u64 {
        self.0.len() as u64
    }
    /// A key; ranks are scattered over the keys.
    fn draw(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let rank = self.0.partition_point(|&sum| sum < unit).min(self.0.len() - 1);
        (rank as u64).wrapping_mul(2_654_435_761) % self.keys()
    }
}

fn uniform(random: &mut Random, zipf: &Zipf) -> u64 {
    random.next() % zipf.keys()
}

fn zipf(random: &mut Random, zipf: &Zipf) -> u64 {
    zipf.draw(random)
}

/// Nine in ten from the entries there are, by zipf; one in ten is new.
fn ninety(random: &mut Random, zipf: &Zipf) -> u64 {
    if random.next().is_multiple_of(10) { 1 << 40 | random.next() >> 24 } else { zipf.draw(random) }
}

/// Half from a hot set, by zipf, half a scan that never comes back.
fn scan(random: &mut Random, zipf: &Zipf) -> u64 {
    if random.next().is_multiple_of(2) { 1 << 40 | random.next() >> 24 } else { zipf.draw(random) }
}

fn workload(name: &'static str, entries: usize, draw: fn(&mut Random, &Zipf) -> u64) -> Workload {
    let keys = if entries > 1 << 18 { entries } else { entries.min(1 << 18) };
    let zipf = Zipf::new(keys, 0.99);
    Workload { name, entries, page_bytes: 64, copies: false, filled: keys, hot: 0, draw, zipf }
}

/// All of them.
pub fn all(full: bool) -> Vec<Workload> {
    let mut all = vec![
        workload("read only, zipf 0.99", 1 << 16, zipf),
        workload("read only, zipf 0.99, small", 1 << 10, zipf),
        workload("read only, uniform", 1 << 16, uniform),
        Workload {
            filled: (1 << 16) * 8 / 10,
            zipf: Zipf::new((1 << 16) * 8 / 10, 0.99),
            ..workload("90% hits with inserts", 1 << 16, ninety)
        },
        Workload {
            filled: 2_000 * 8 / 10,
            zipf: Zipf::new(2_000 * 8 / 10, 0.99),
            ..workload("90% hits with inserts, small", 2_000, ninety)
        },
        Workload {
            filled: (1 << 16) * 3 / 4,
            hot: (1 << 16) * 3 / 4,
            zipf: Zipf::new((1 << 16) * 3 / 4, 0.99),
            ..workload("scan and zipf", 1 << 16, scan)
        },
        Workload {
            page_bytes: 8 << 10,
            copies: true,
            ..workload("8 KiB copied, zipf 0.99", 1 << 14, zipf)
        },
    ];
    if full {
        all.push(Workload {
            page_bytes: 8 << 10,
            ..workload("8 KiB held, not copied, zipf 0.99", 1 << 14, zipf)
        });
        all.push(workload("read only, zipf 0.99, large", 1 << 20, zipf));
        all.push(workload("read only, uniform, large", 1 << 20, uniform));
    }
    all
}

impl Workload {
    /// As a server fills its cache: by what it is asked for. First every key once and in no order,
    /// as after a start. Then twice as many requests of the workload's own kind.
    fn fill(&self, candidate: &dyn Candidate) {
        if !candidate.evicts() {
            return;
        }
        let mut random = Random(0x5EED);
        let mut keys: Vec<u64> = (0..self.filled as u64).collect();
        for at in (1..keys.len()).rev() {
            keys.swap(at, (random.next() % (at as u64 + 1)) as usize);
        }
        let warm = (0..2 * self.filled).map(|_| (self.draw)(&mut random, &self.zipf));
        keys.extend(warm);
        for key in keys {
            if !candidate.get(key, &mut |_| {}) {
                candidate.insert(key);
            }
        }
    }

    /// Every candidate of these names, or of any if there are none, that can do this, with its
    /// entries in.
    pub fn filled(&self, only: &[&str]) -> Vec<Box<dyn Candidate>> {
        let mut all = match only {
            [] => candidates(None, self.entries, self.page_bytes),
            only => only
                .iter()
                .flat_map(|name| candidates(Some(name), self.entries, self.page_bytes))
                .collect(),
        };
        all.retain(|candidate| candidate.evicts() || self.filled == self.entries);
        all.iter().for_each(|candidate| self.fill(&**candidate));
        all
    }

    /// The keys of every thread in a round.
    pub fn round(&self, threads: usize, round: usize, count: usize) -> Vec<Vec<u64>> {
        (0..threads).map(|thread| self.keys(thread, round, count / threads)).collect()
    }

    fn keys(&self, thread: usize, round: usize, count: usize) -> Vec<u64> {
        let mut random = Random((thread * 1000 + round + 1) as u64 * 0x9E37_79B9_7F4A_7C15);
        (0..count).map(|_| (self.draw)(&mut random, &self.zipf)).collect()
    }
}

/// Runs one candidate in one thread, `operations` times, for an instrument that counts
/// instructions. With 0 it counts everything else. The difference of two counts is the cost of the
/// operations between them, with the cache as full as the first left it.
pub fn once(name: &str, candidate: &str, operations: usize) {
    let workload = all(true).into_iter().find(|w| w.name == name).expect("a workload's name");
    let candidates = candidates(Some(candidate), workload.entries, workload.page_bytes);
    let candidate = candidates.first().expect("a candidate's name");
    workload.fill(&**candidate);
    let keys = workload.keys(0, 0, 1_000_000);
    for &key in &keys[..operations.min(keys.len())] {
        if !candidate.get(key, &mut |value| _ = std::hint::black_box(value[0])) {
            candidate.insert(key);
        }
    }
}
