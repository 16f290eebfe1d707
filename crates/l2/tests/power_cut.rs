//! Power cuts at hundreds of moments. Any subset of the unflushed sectors is lost, and the rest
//! written in any order. Then the device is opened again, and every record compared with the
//! origin.
//!
//! The seed decides all of it: the writer is kept in step, and the power goes after so many writes.

mod common;

use common::*;
use ogive_l2::Cipher;
use ogive_l2::device::{FaultyDevice, MemoryDevice};
use std::sync::Arc;

/// Five segments of 1 MiB.
const SMALL_BYTES: u64 = 6 << 20;
/// Cuts of a run; `OGIVE_POWER_CUTS` asks for another number.
const CUTS: u64 = 500;

fn length_of(object: u64) -> usize {
    // From less than a sector to a fifth of a segment.
    [100, 600, 4096, 9000, 30_000, 100_000][(object % 6) as usize]
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().expect(name))
}

/// Cuts the power so many times. How many records were there each time of those that were asked
/// for, and how many were asked for.
fn cut_again_and_again(cuts: u64, seed: u64) -> (Vec<u64>, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut device = Arc::new(FaultyDevice::new(SMALL_BYTES, seed));
    let mut tier = open(&device);
    let (mut object, mut survived, mut asked) = (0_u64, Vec::new(), 0_u64);
    for cut in 0..cuts {
        device.cut_after(random.u64(0..4));
        for _ in 0..random.u64(0..6) {
            put(&tier, object, 1, length_of(object));
            object += 1;
        }
        // Sometimes everything is on its way, sometimes some of it is.
        assert!(if random.bool() { tier.settle() } else { tier.keep_step() });
        let kept = [0, 200, 500, 900, 1000][random.usize(0..5)];
        let image = device.power_cut(kept);
        let after = Arc::new(MemoryDevice::from_bytes(image.clone()));
        let reopened = open(&after);
        let young = object.saturating_sub(40)..object;
        asked += young.end - young.start;
        let there = young.filter(|number| holds(&reopened, *number, 1, length_of(*number)));
        survived.push(there.count() as u64);
        drop(reopened);
        if cut % 50 == 49 {
            // Life goes on from what was left.
            drop(tier);
            device = Arc::new(FaultyDevice::from_bytes(image, random.u64(..)));
            tier = open(&device);
        }
    }
    (survived, asked)
}

#[test]
fn a_power_cut_never_gives_wrong_bytes() {
    let cuts = number("OGIVE_POWER_CUTS").unwrap_or(CUTS);
    let seed = number("OGIVE_SEED").unwrap_or(1);
    println!("OGIVE_SEED={seed} OGIVE_POWER_CUTS={cuts}");
    let (survived, asked) = cut_again_and_again(cuts, seed);
    let survived: u64 = survived.iter().sum();
    assert!(survived * 20 > asked, "{survived} of {asked}: it should hold something, too");
}

#[test]
fn a_seed_cuts_at_the_same_moments_and_leaves_the_same() {
    let seed = number("OGIVE_SEED").unwrap_or(1);
    println!("OGIVE_SEED={seed}");
    assert_eq!(cut_again_and_again(60, seed), cut_again_and_again(60, seed));
}

#[test]
fn a_power_cut_loses_at_most_the_records_not_yet_on_the_device() {
    let device = Arc::new(FaultyDevice::new(DEVICE_BYTES, 9));
    let tier = open(&device);
    fill(&tier, 200, 8 << 10);
    // Everything was written, nothing was flushed, no summary of the open segment exists.
    let image = device.power_cut(1000);
    let reopened = open(&Arc::new(MemoryDevice::from_bytes(image)));
    assert_eq!(found(&reopened, 200, 8 << 10), 200, "the open segment is read through");
}

#[test]
fn a_torn_write_is_a_miss() {
    for cipher in Cipher::ALL {
        for seed in 0..20 {
            let device = Arc::new(FaultyDevice::new(SMALL_BYTES, seed));
            let tier = open_as(&device, how(cipher)).unwrap();
            fill(&tier, 40, 20_000);
            // Half of the sectors, and the formatting, which was flushed.
            let image = device.power_cut(500);
            let reopened = Arc::new(MemoryDevice::from_bytes(image));
            let reopened = open_as(&reopened, how(cipher)).unwrap();
            let left = found(&reopened, 40, 20_000);
            assert!(left < 40, "{cipher}, seed {seed}: {left}");
        }
    }
}
