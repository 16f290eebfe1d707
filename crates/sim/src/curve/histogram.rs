//! Counts by distance, in buckets of 1/1024 of their distance. So the histogram is as small for
//! terabytes as for kilobytes, and exact below 2048.

/// Significant bits of a distance.
const BITS: u32 = 10;

/// Bucket of a distance.
fn bucket(distance: u64) -> usize {
    let shift = (63 - distance.max(1).leading_zeros()).saturating_sub(BITS);
    ((shift as usize) << BITS) + (distance >> shift) as usize
}

/// Largest distance of a bucket.
fn largest(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let mantissa = (bucket - ((shift as usize) << BITS)) as u64;
    ((mantissa + 1) << shift).wrapping_sub(1)
}

/// Weighted counts of requests and bytes by distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<(f64, f64)>,
}

impl Histogram {
    /// Adds `requests` and `bytes` at a distance.
    pub(crate) fn add(&mut self, distance: u64, requests: f64, bytes: f64) {
        let bucket = bucket(distance);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, (0.0, 0.0));
        }
        self.counts[bucket].0 += requests;
        self.counts[bucket].1 += bytes;
    }

    /// The counts up to each of these distances, which must rise.
    pub(crate) fn up_to(&self, distances: &[u64]) -> Vec<(f64, f64)> {
        let mut sum = (0.0, 0.0);
        let mut at = 0;
        distances
            .iter()
            .map(|&distance| {
                while at < self.counts.len() && largest(at) <= distance {
                    sum.0 += self.counts[at].0;
                    sum.1 += self.counts[at].1;
                    at += 1;
                }
                sum
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_distances(distance: u64) {
            let at = bucket(distance);
            prop_assert!(distance <= largest(at));
            prop_assert!(at == 0 || largest(at - 1) < distance);
            prop_assert!(largest(at) - distance <= distance / 1024);
        }
    }

    #[test]
    fn small_distances_are_exact() {
        let mut histogram = Histogram::default();
        (0..2048).for_each(|distance| histogram.add(distance, 1.0, 2.0));
        let sizes: Vec<u64> = (0..2048).collect();
        for (size, counts) in sizes.iter().zip(histogram.up_to(&sizes)) {
            assert_eq!(counts, ((size + 1) as f64, 2.0 * (size + 1) as f64));
        }
    }
}
