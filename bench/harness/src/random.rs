//! Pseudo-random numbers that are the same on every machine, and the Zipf law on top of them.

/// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA '14).
pub struct Random {
    state: u64,
}

impl Random {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0xD134_2543_DE82_EF95) }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of the product: no division, and a bias below bound / 2^64.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Overwrites `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Items drawn by the Zipf law: the item of rank r with a weight of 1 / r^exponent. Ranks are
/// spread over the items at random, so that popular items are no neighbours.
pub struct Zipf {
    /// Running sums of the weights, the last one being 1.
    cumulative: Vec<f64>,
    item_of_rank: Vec<u32>,
}

impl Zipf {
    /// A law over `items` items; `seed` decides which are popular.
    pub fn new(items: usize, exponent: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=items)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|value| *value /= sum);
        let mut item_of_rank: Vec<u32> = (0..items as u32).collect();
        Random::new(seed).shuffle(&mut item_of_rank);
        Self { cumulative, item_of_rank }
    }

    /// One item.
    pub fn draw(&self, random: &mut Random) -> usize {
        let point = random.unit();
        let rank = self.cumulative.partition_point(|&sum| sum <= point);
        self.item_of_rank[rank.min(self.item_of_rank.len() - 1)] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_gives_each_rank_its_share() {
        let zipf = Zipf::new(1000, 0.9, 7);
        let mut random = Random::new(1);
        let mut counts = vec![0_u32; 1000];
        for _ in 0..1_000_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        let weight: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.9)).sum();
        for rank in [1_usize, 2, 10] {
            let expected = 1e6 / (rank as f64).powf(0.9) / weight;
            let drawn = f64::from(counts[zipf.item_of_rank[rank - 1] as usize]);
            assert!((drawn / expected - 1.0).abs() < 0.05, "rank {rank}: {drawn} of {expected}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let draw = |seed| {
            let (zipf, mut random) = (Zipf::new(50, 0.9, 3), Random::new(seed));
            (0..100).map(|_| zipf.draw(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }

    #[test]
    fn shuffle_keeps_all_items() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::new(9).shuffle(&mut items);
        assert!(items.windows(2).any(|pair| pair[0] > pair[1]));
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }
}
