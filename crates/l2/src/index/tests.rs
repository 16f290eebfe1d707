//! The index against a map, and its bounds.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn key(number: u64) -> [u8; 16] {
    twox_hash::XxHash3_128::oneshot(&number.to_le_bytes()).to_le_bytes()
}

#[test]
fn nine_tenths_full_loses_next_to_nothing_and_costs_nine_bytes() {
    const RECORDS: u64 = 200_000;
    let index = Index::new(RECORDS, u64::MAX);
    let mut lost = 0;
    for number in 0..RECORDS {
        let place = Place::of(&key(number));
        lost += u64::from(index.insert(place, 3, number + 1) != Inserted::Added);
    }
    // Two keys with the same buckets and tag cannot both be there: about 16 in a million.
    assert!(lost * 10_000 <= RECORDS, "{lost} of {RECORDS} lost");
    let per_record = index.size_bytes() as f64 / index.records() as f64;
    assert!(per_record < 9.0, "{per_record} bytes a record");
    let found = (0..RECORDS)
        .filter(|n| index.find(Place::of(&key(*n))).is_some_and(|s| s.address() == n + 1));
    assert!(found.count() as u64 >= RECORDS - lost);
    let strangers = (RECORDS..2 * RECORDS).filter(|n| index.find(Place::of(&key(*n))).is_some());
    assert!(strangers.count() < 20, "a false positive is one in 65,000");
}

#[test]
fn growing_loses_nothing_and_stops_at_its_bound() {
    const RECORDS: u64 = 50_000;
    let index = Index::new(1000, 1 << 20);
    for number in 0..RECORDS {
        index.insert(Place::of(&key(number)), 1, number + 1);
    }
    let found = (0..RECORDS)
        .filter(|n| index.find(Place::of(&key(*n))).is_some_and(|s| s.address() == n + 1))
        .count();
    assert!(found as u64 >= RECORDS - RECORDS / 1000, "{found} of {RECORDS} after growing");
    assert!(index.size_bytes() <= 1 << 20);

    let small = Index::new(1000, 16 << 10);
    for number in 0..5000 {
        small.insert(Place::of(&key(number)), 1, number + 1);
    }
    assert!(small.size_bytes() <= 16 << 10);
    assert!(small.records() >= 1000 && small.records() <= 2048, "{}", small.records());
}

#[test]
fn the_least_referenced_give_way() {
    let index = Index::new(1, 64);
    let places: Vec<Place> = (0..40).map(|number| Place::of(&key(number))).collect();
    index.insert(places[0], 1, 1);
    index.touch(places[0]);
    for (address, place) in (2..).zip(&places[1..]) {
        index.insert(*place, 1, address);
    }
    assert!(index.find(places[0]).is_some_and(|slot| slot.references() == 1));
}

#[test]
fn shrinking_gives_memory_back_and_keeps_slots_with_hits_and_the_young() {
    const RECORDS: u64 = 200_000;
    const MORE: u64 = 40_000;
    let index = Index::new(RECORDS, u64::MAX);
    for number in 0..RECORDS {
        index.insert(Place::of(&key(number)), 3, number + 1);
    }
    // Some of the oldest were of use.
    (0..RECORDS / 10).for_each(|number| index.touch(Place::of(&key(number))));
    let full_bytes = index.size_bytes();
    let there = |number: &u64| {
        index.find(Place::of(&key(*number))).is_some_and(|slot| slot.address() == number + 1)
    };
    let given = index.shrink(full_bytes / 3, RECORDS);
    assert_eq!(index.size_bytes(), full_bytes - given.bytes);
    assert!(given.bytes >= full_bytes / 3 && given.bytes < full_bytes / 2, "{given:?}");
    assert_eq!((0..RECORDS).filter(there).count() as u64, index.records());
    let half = index.shrink(full_bytes / 4, RECORDS);
    assert!(given.records + half.records > RECORDS / 3, "{given:?}, {half:?}");
    let used = (0..RECORDS / 10).filter(there).count() as u64;
    assert!(used > RECORDS / 10 * 99 / 100, "{used} of the used records");
    let old = (RECORDS / 10..RECORDS / 2).filter(there).count();
    let young = (RECORDS / 2..RECORDS).filter(there).count();
    assert!(young > old * 2, "{young} young ones and {old} old ones");
    // It stays small while it must, remains useful, and grows again afterwards.
    let small_bytes = index.size_bytes();
    for number in RECORDS..RECORDS + MORE {
        index.insert(Place::of(&key(number)), 3, number + 1);
    }
    assert_eq!(index.size_bytes(), small_bytes);
    let all = (RECORDS..RECORDS + MORE).filter(there).count() as u64;
    assert!(all > MORE * 9 / 10, "{all} of {MORE}: the oldest give way, not the young");
    index.allow_growth(u64::MAX);
    for number in RECORDS + MORE..RECORDS * 2 {
        index.insert(Place::of(&key(number)), 3, number + 1);
    }
    assert!(index.size_bytes() > small_bytes && index.records() > RECORDS);
    // As small as can be is a sixteenth, and there it ends.
    index.shrink(u64::MAX, 0);
    assert!(index.size_bytes() <= full_bytes / 12, "{} of {full_bytes}", index.size_bytes());
    assert_eq!(index.shrink(u64::MAX, 0), Shrunk::default());
}

#[test]
fn readers_go_on_while_it_shrinks_and_grows() {
    const RECORDS: u64 = 50_000;
    let index = Index::new(RECORDS, u64::MAX);
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..4 {
                for number in 0..RECORDS {
                    index.insert(Place::of(&key(number)), 1, number + 1);
                }
                index.shrink(index.size_bytes() / 4, round);
                index.allow_growth(u64::MAX);
            }
            ended.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut number = 0;
                while !ended.load(Ordering::Acquire) {
                    number = (number + 7) % RECORDS;
                    let place = Place::of(&key(number));
                    if let Some(slot) = index.find(place) {
                        assert!((1..=RECORDS).contains(&slot.address()), "a slot of no record");
                        index.touch(place);
                    }
                }
            });
        }
    });
    assert!(index.records() > RECORDS / 2);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u64),
    Remove(u8, u64),
    Touch(u8),
    Range(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<u8>(), 1..1000u64).prop_map(|(key, at)| Step::Insert(key, at)),
        1 => (any::<u8>(), 1..1000u64).prop_map(|(key, at)| Step::Remove(key, at)),
        1 => any::<u8>().prop_map(Step::Touch),
        1 => (1..1000u64, 1..50u64).prop_map(|(from, length)| Step::Range(from, from + length)),
    ]
}

proptest! {
    /// With room for all, the index is a map.
    #[test]
    fn index_model(steps in prop::collection::vec(step(), 1..400)) {
        let index = Index::new(64, u64::MAX);
        let mut model = HashMap::<u8, u64>::new();
        for step in steps {
            match step {
                Step::Insert(number, address) => {
                    index.insert(Place::of(&key(number.into())), 1, address);
                    model.insert(number, address);
                }
                Step::Remove(number, address) => {
                    let removed = index.remove(Place::of(&key(number.into())), address).is_some();
                    prop_assert_eq!(removed, model.get(&number) == Some(&address));
                    if removed {
                        model.remove(&number);
                    }
                }
                Step::Touch(number) => index.touch(Place::of(&key(number.into()))),
                Step::Range(from, to) => {
                    index.remove_range(from..to);
                    model.retain(|_, address| !(from..to).contains(address));
                }
            }
            prop_assert_eq!(index.records(), model.len() as u64);
        }
        for number in 0..=u8::MAX {
            let found = index.find(Place::of(&key(number.into()))).map(Slot::address);
            prop_assert_eq!(found, model.get(&number).copied());
        }
    }
}
