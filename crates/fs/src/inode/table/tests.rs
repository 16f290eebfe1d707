//! The table against a plain map, and its promises one by one.

use super::*;
use crate::seed::seeded;
use crate::testing::{FakeNode, FakeOrigin, found};
use ogive_origin::FileKind;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

type Table = InodeTable<FakeOrigin>;

fn remember(table: &Table, number: u64) -> Arc<Inode<FakeOrigin>> {
    table.remember(number, found(number, 0)).0
}

/// Every slot is free, listed, or neither; the list and the index agree with the slots.
fn validate(table: &Table) {
    let mut length = 0;
    for (index, shard) in table.shards.iter().enumerate() {
        let shard = shard.lock();
        for (shown, number) in &shard.later {
            let slot = shard.find(*number).expect("a later id has an inode");
            let known = shard.slots[slot as usize].inode.as_ref().unwrap();
            assert_eq!(known.shown, *shown);
        }
        let used = shard.slots.iter().filter(|slot| slot.inode.is_some()).count();
        assert_eq!(used, shard.index.len());
        length += used;
        let (mut listed, mut previous, mut slot) = (0, NONE, shard.head);
        while slot != NONE {
            let entry = &shard.slots[slot as usize];
            assert!(entry.listed && entry.inode.is_some() && !entry.open);
            assert_eq!(entry.previous, previous);
            (previous, slot) = (slot, entry.next);
            listed += 1;
        }
        assert_eq!(shard.tail, previous);
        assert_eq!(listed, shard.slots.iter().filter(|slot| slot.listed).count());
        for (position, slot) in shard.slots.iter().enumerate() {
            if slot.inode.is_some() {
                assert_eq!(shard.find(slot.number), Some(position as u32));
                assert!(slot.lookups > 0);
                assert_eq!(shard_of(slot.number), index);
            }
        }
    }
    assert_eq!(table.len(), length);
}

#[test]
fn an_inode_stays_until_every_lookup_is_given_back() {
    let table = Table::new();
    remember(&table, 7);
    remember(&table, 7);
    table.forget(7, 1);
    assert!(table.get(7).is_some());
    table.forget(7, 1);
    assert!(table.get(7).is_none());
    assert_eq!((table.len(), table.forgotten()), (0, 1));
    table.forget(7, 5);
    validate(&table);
}

/// The kernel cannot distinguish them: another node with the same generation.
#[test]
fn an_object_that_looks_the_same_takes_the_place_of_the_earlier_and_keeps_the_count() {
    let table = Table::new();
    let old = remember(&table, 7);
    let new = table.remember(7, Found { generation: 0, ..found(7, 1) }).0;
    assert!(!Arc::ptr_eq(&old, &new));
    assert_eq!(table.get(7).unwrap().node, FakeNode { number: 7, life: 1 });
    table.forget(7, 1);
    assert!(table.get(7).is_some());
    table.forget(7, 1);
    assert!(table.get(7).is_none());
    validate(&table);
}

#[test]
fn a_later_object_of_a_number_leaves_the_earlier_its_node_id() {
    let table = Table::new();
    let first = remember(&table, 7);
    let second = table.remember(7, found(7, 1)).0;
    let third = table.remember(7, found(7, 2)).0;
    assert_eq!((first.number, first.shown), (7, 7));
    for (inode, life) in [(&first, 0), (&second, 1), (&third, 2)] {
        assert_eq!(inode.shown, 7);
        let known = table.get(inode.number).unwrap();
        assert_eq!(known.node, FakeNode { number: 7, life }, "each has an id of its own");
    }
    assert!(second.number >= LATER_FIRST && third.number > second.number);
    assert_eq!(table.shown_as(7).unwrap().number, third.number);
    let again = table.remember(7, found(7, 2)).0;
    assert!(Arc::ptr_eq(&again, &third), "the same object has the same id");
    assert_eq!(table.len(), 3);
    validate(&table);
    // In whatever order they are forgotten, the last one keeps the number.
    table.forget(second.number, 1);
    assert_eq!(table.shown_as(7).unwrap().number, third.number);
    table.shards.iter().for_each(|shard| shard.lock().compact());
    assert_eq!(table.shown_as(7).unwrap().number, third.number);
    table.forget(third.number, 2);
    assert_eq!(table.shown_as(7).unwrap().number, 7);
    table.forget(7, 1);
    assert!(table.shown_as(7).is_none() && table.len() == 0);
    let next = table.remember(7, found(7, 3)).0;
    assert_eq!(next.number, 7, "the table has no earlier object");
    validate(&table);
}

#[test]
fn an_object_of_another_kind_is_a_later_one() {
    let table = Table::new();
    remember(&table, 7);
    let mut directory = found(7, 0);
    directory.attributes.kind = FileKind::Directory;
    assert_ne!(table.remember(7, directory).0.number, 7);
    let root = table.remember(ROOT, found(1, 0)).0;
    assert_eq!(
        table.remember(ROOT, found(1, 1)).0.number,
        root.number,
        "the root keeps its number"
    );
    validate(&table);
}

#[test]
fn asking_examines_each_idle_inode_once() {
    let table = Table::new();
    let inodes: Vec<_> = (2..1002).map(|number| remember(&table, number)).collect();
    for inode in &inodes[..100] {
        table.set_open(inode, true);
    }
    let mut asked = Vec::new();
    loop {
        let numbers = table.take_idle(64);
        if numbers.is_empty() {
            break;
        }
        asked.extend(numbers);
    }
    asked.sort_unstable();
    assert_eq!(asked, (102..1002).collect::<Vec<_>>(), "all but the open ones, each once");
    assert!(table.take_idle(1000).is_empty(), "the kernel kept them: they are not asked again");
    remember(&table, 500);
    assert_eq!(table.take_idle(1000), [500], "but they are after another lookup");
    table.set_open(&inodes[3], false);
    assert_eq!(table.take_idle(1000), [inodes[3].number]);
    validate(&table);
}

#[test]
fn a_table_that_empties_gives_its_slots_back_and_keeps_its_order() {
    let table = Table::new();
    for number in 2..100_000 {
        remember(&table, number);
    }
    let slots =
        |table: &Table| table.shards.iter().map(|s| s.lock().slots.capacity()).sum::<usize>();
    let before = slots(&table);
    let compactions = (2..99_000).filter(|number| is_compacted(table.forget(*number, 1))).count();
    assert!(slots(&table) < before / 20, "{} of {before} slots", slots(&table));
    assert!((16..=64).contains(&compactions), "{compactions} compactions");
    validate(&table);
    assert_eq!(table.len(), 1000);
    let mut per_shard: BTreeMap<usize, u64> = BTreeMap::new();
    for number in table.take_idle(1000) {
        let shard = (hash(number) >> 60) as usize % SHARDS;
        assert!(per_shard.insert(shard, number).is_none_or(|earlier| earlier < number));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Remember(u64),
    Forget(u64, u64),
    Open(u64),
    Close(u64),
    TakeIdle(usize),
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 2u64..40;
    prop::collection::vec(
        prop_oneof![
            4 => number.clone().prop_map(Step::Remember),
            3 => (number.clone(), 1u64..3).prop_map(|(number, lookups)| Step::Forget(number, lookups)),
            1 => number.clone().prop_map(Step::Open),
            1 => number.prop_map(Step::Close),
            1 => (1usize..50).prop_map(Step::TakeIdle),
            1 => Just(Step::Compact),
        ],
        1..200,
    )
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn the_table_agrees_with_a_plain_map(steps in steps()) {
        let table = Table::new();
        let mut lookups: BTreeMap<u64, u64> = BTreeMap::new();
        let mut idle: VecDeque<u64> = VecDeque::new();
        let mut open: Vec<u64> = Vec::new();
        for step in steps {
            match step {
                Step::Remember(number) => {
                    remember(&table, number);
                    *lookups.entry(number).or_default() += 1;
                    if !open.contains(&number) {
                        idle.retain(|other| *other != number);
                        idle.push_back(number);
                    }
                }
                Step::Forget(number, count) => {
                    table.forget(number, count);
                    if let Some(left) = lookups.get_mut(&number) {
                        *left = left.saturating_sub(count);
                        if *left == 0 {
                            lookups.remove(&number);
                            idle.retain(|other| *other != number);
                            open.retain(|other| *other != number);
                        }
                    }
                }
                Step::Open(number) | Step::Close(number) => {
                    let opening = matches!(step, Step::Open(_));
                    if let Some(inode) = table.get(number) {
                        table.set_open(&inode, opening);
                        idle.retain(|other| *other != number);
                        open.retain(|other| *other != number);
                        if opening { open.push(number) } else { idle.push_back(number) }
                    }
                }
                Step::TakeIdle(count) => {
                    for number in table.take_idle(count) {
                        prop_assert!(idle.contains(&number));
                        idle.retain(|other| *other != number);
                    }
                }
                Step::Compact => table.shards.iter().for_each(|shard| shard.lock().compact()),
            }
            validate(&table);
            prop_assert_eq!(table.len(), lookups.len());
            for number in 2..40 {
                prop_assert_eq!(table.get(number).is_some(), lookups.contains_key(&number));
            }
        }
    }
}

fn is_compacted(leaves: Option<Leaves<FakeOrigin>>) -> bool {
    leaves.is_some_and(|leaves| leaves.mostly_empty)
}
