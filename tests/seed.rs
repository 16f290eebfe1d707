//! The random seed of a test, and its length. Included by path into the tests of every crate.
//!
//! The random numbers are the same in every run, on every machine, unless the environment says
//! otherwise. `OGIVE_SEED` is another seed, and `OGIVE_NIGHTLY=1` asks for the full length of
//! random repetitions.

#![allow(dead_code, reason = "each test uses a part of it")]

use proptest::test_runner::{Config, RngSeed};

/// The seed of this run; it is printed, so that a failure can be repeated.
pub(crate) fn seed() -> u64 {
    let named = std::env::var("OGIVE_SEED").ok();
    let seed = named.map_or(1, |text| text.parse().expect("OGIVE_SEED is a number of 64 bits"));
    println!("OGIVE_SEED={seed}");
    seed
}

/// The default configuration of proptest, with that seed.
pub(crate) fn seeded() -> Config {
    Config { rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

/// The number of random repetitions: many at night, otherwise few.
pub(crate) fn rounds(quick: u32, full: u32) -> u32 {
    match std::env::var_os("OGIVE_NIGHTLY").is_some_and(|value| value == "1") {
        true => full,
        false => quick,
    }
}
