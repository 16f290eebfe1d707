//! Spatial sampling: the keys of a sample are those whose hash is below a threshold. So a sample
//! has all requests of a key or none (Waldspurger et al., "Efficient MRC Construction with SHARDS",
//! FAST '15).

/// The hash that decides about sampling: the finalizer of MurmurHash3 (Appleby), which no hash
/// table here uses.
pub(crate) const fn sample_hash(key: u64) -> u64 {
    let mut bits = key ^ 0x51ed_270b_6c28_a1b5;
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// The share of all keys with a hash up to `threshold`.
pub(crate) fn rate(threshold: u64) -> f64 {
    if threshold == u64::MAX { 1.0 } else { threshold as f64 / 2_f64.powi(64) }
}

/// The threshold for a share of all keys.
pub(crate) fn threshold(rate: f64) -> u64 {
    // A conversion to an integer saturates, so 1 means all.
    (rate.clamp(0.0, 1.0) * 2_f64.powi(64)) as u64
}
