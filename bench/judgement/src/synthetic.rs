//! Synthetic traces of kinds that no recorded trace has, and that a policy must handle. The policy
//! was not tuned on them.

/// A pseudo-random sequence that is the same everywhere (splitmix64).
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About Zipf with exponent 0.9 over `keys` keys: the inverse of the continuous law.
    fn zipf(&mut self, keys: u64) -> u64 {
        let exponent = 0.1;
        let most = (keys as f64).powf(exponent);
        (1.0 + self.unit() * (most - 1.0)).powf(1.0 / exponent) as u64 % keys
    }
}

/// Names of all traces.
pub const NAMES: [&str; 8] = [
    "synth-zipf",
    "synth-zipf-drift",
    "synth-loop-1.2",
    "synth-loop-and-zipf",
    "synth-scan-over-zipf",
    "synth-phases",
    "synth-correlated",
    "synth-stack",
];

/// Entries of the caches the traces are run with.
pub const ENTRIES: [usize; 3] = [200, 2000, 10_000];

/// The keys of a trace for caches of about `entries`.
pub fn keys(name: &str, entries: u64) -> Vec<u64> {
    let mut random = Sequence(entries);
    let requests = 60 * entries + 20_000;
    let (universe, far) = (10 * entries, 1 << 40);
    let mut fresh = 2 * far;
    let mut keys = Vec::with_capacity(requests as usize);
    for at in 0..requests {
        let key = match name {
            "synth-zipf" => random.zipf(universe),
            // The popular keys move by a cache's size every ten cachefuls.
            "synth-zipf-drift" => random.zipf(universe) + at / 10,
            "synth-loop-1.2" => at % (entries * 6 / 5),
            "synth-loop-and-zipf" if at % 2 == 0 => far + at / 2 % (entries * 6 / 5),
            "synth-scan-over-zipf" if at / entries % 4 == 3 => {
                fresh += 1;
                fresh
            }
            "synth-phases" => match at / (8 * entries) % 3 {
                0 => random.zipf(universe),
                1 => far + at % (entries * 3 / 2),
                _ => far + random.next() % (entries * 2),
            },
            // Every key twice in a row, then hardly again.
            "synth-correlated" if at % 3 == 0 => {
                fresh += 1;
                fresh
            }
            "synth-correlated" if at % 3 == 1 => fresh,
            // Reuse of recent keys: only recency helps.
            "synth-stack" => (at + universe) - random.zipf(3 * entries),
            _ => random.zipf(universe),
        };
        keys.push(key);
    }
    keys
}
