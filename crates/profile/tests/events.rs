//! Recordings by perf 6.1 with several events, counts in the samples, several streams or copied
//! stacks (`tests/data/*.xz`). The expected samples and weights are from `perf script -F
//! comm,event,period`.

#![allow(clippy::unwrap_used, reason = "the recordings are part of the tree")]

use std::collections::BTreeMap;

use ogive_profile::Profile;
use ogive_profile::read::{self, Options};
use ogive_profile::symbols::SymbolOptions;

const GROUP: &[u8] = include_bytes!("data/group.perf.data.xz");
const COUNTED: &[u8] = include_bytes!("data/counted.perf.data.xz");
const FIRST_EMPTY: &[u8] = include_bytes!("data/first-empty.perf.data.xz");
const BUILD_ID: &[u8] = include_bytes!("data/buildid.perf.data.xz");
const MODES: &[u8] = include_bytes!("data/modes.perf.data.xz");
const COPIES: &[u8] = include_bytes!("data/dwarf.perf.data.xz");
const TYPES: &[u8] = include_bytes!("data/types.perf.data.xz");
const THREADS: [(&str, &[u8]); 3] = [
    ("data", include_bytes!("data/threads.data.xz")),
    ("data.0", include_bytes!("data/threads.data.0.xz")),
    ("data.1", include_bytes!("data/threads.data.1.xz")),
];

fn read(bytes: &[u8]) -> Profile {
    read::bytes("recording", bytes, &Options::default()).unwrap()
}

fn by_name(profile: &Profile) -> BTreeMap<&str, (u64, u64)> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples() {
        let of = found.entry(profile.thread(sample.thread).name).or_default();
        *of = (of.0 + u64::from(sample.count), of.1 + sample.weight);
    }
    found
}

fn deepest(profile: &Profile) -> usize {
    profile.samples().iter().map(|sample| profile.stack(sample.stack).count()).max().unwrap()
}

#[test]
fn samples_of_a_group_weigh_the_counts_of_its_events() {
    let profile = read(GROUP);
    assert_eq!(by_name(&profile), [("sh", (11, 5_516_376))].into());
    assert_eq!(profile.meta.event, "cpu-clock");
    assert!(deepest(&profile) > 3);
    assert_eq!(
        profile.meta.notes,
        ["left out: 11 samples (50.0% of all) of the event task-clock; those of cpu-clock are \
          shown"]
    );
}

/// Each thread has a count of its own here, which perf 6.1 takes for a shared one. So perf's
/// weights are useless, and its numbers of samples are correct.
#[test]
fn an_event_with_counts_keeps_its_chains_and_each_thread_its_count() {
    let profile = read(COUNTED);
    let found = by_name(&profile);
    let counts: BTreeMap<&str, u64> = found.iter().map(|(name, of)| (*name, of.0)).collect();
    assert_eq!(counts, [("head", 6), ("sh", 11), ("sha256sum", 20)].into());
    for (name, (count, weight)) in found {
        // 1,999 samples per second, taken a little late.
        let each = weight / count;
        assert!((495_000..560_000).contains(&each), "{name}: {each}");
    }
    assert!(deepest(&profile) > 3);
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
}

#[test]
fn the_first_event_with_samples_is_shown() {
    let profile = read(FIRST_EMPTY);
    let expected =
        [("head", (4, 2_001_000)), ("sh", (12, 6_003_000)), ("sha256sum", (20, 10_005_000))];
    assert_eq!(by_name(&profile), expected.into());
    assert_eq!(profile.meta.event, "cpu-clock");
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);
}

#[test]
fn both_modes_of_an_event_are_one_and_other_events_are_left_out_by_name() {
    let profile = read(MODES);
    let expected =
        [("head", (3, 1_500_750)), ("sh", (12, 6_003_000)), ("sha256sum", (26, 13_006_500))];
    assert_eq!(by_name(&profile), expected.into());
    assert_eq!(
        profile.meta.notes,
        [
            "these events measure the same and are one: 32 samples (65.3% of all) of the event \
             cpu-clock:u, 9 samples (18.4% of all) of the event cpu-clock:k",
            "left out: 8 samples (16.3% of all) of the event page-faults; those of cpu-clock are \
             shown",
        ]
    );
}

#[test]
fn events_with_different_fields_are_distinguished() {
    let profile = read(TYPES);
    let expected =
        [("head", (4, 2_001_000)), ("sh", (11, 5_502_750)), ("sha256sum", (22, 11_005_500))];
    assert_eq!(by_name(&profile), expected.into());
    let left_out = profile.meta.notes.iter().filter(|note| note.starts_with("left out: "));
    assert_eq!(left_out.count(), 2, "{:?}", profile.meta.notes);
    assert!(profile.meta.notes.iter().any(|note| note.contains("26 samples")));
}

#[test]
fn the_kernel_is_recognised_if_mappings_have_build_ids() {
    let kallsyms = "ffffffff81000000 T _text\nffffffff81d7f480 t read_zero\n\
                    ffffffff81d7f600 t write_null\n";
    let symbols =
        SymbolOptions { kallsyms: Some(kallsyms.as_bytes().to_vec()), ..SymbolOptions::default() };
    let profile = read::bytes("recording", BUILD_ID, &Options { symbols }).unwrap();
    assert_eq!(by_name(&profile), [("dd", (15, 7_503_750))].into());
    let shares = profile.view().self_by_symbol();
    let named = shares.iter().find(|share| share.symbol == "read_zero").unwrap();
    assert_eq!((named.module, named.weight), ("[kernel.kallsyms]", 8 * 500_250));
}

#[test]
fn copied_stacks_are_noted_with_their_share() {
    let profile = read(COPIES);
    let expected =
        [("head", (1, 2_004_008)), ("sh", (3, 6_012_024)), ("sha256sum", (5, 10_020_040))];
    assert_eq!(by_name(&profile), expected.into());
    let note = profile.meta.notes.iter().find(|note| note.contains("--call-graph dwarf")).unwrap();
    assert!(note.starts_with("8 samples (88.9% of all)"), "{note}");
}

#[test]
fn a_directory_of_several_streams_is_one_recording() {
    let place = tempfile::tempdir().unwrap();
    for (name, packed) in THREADS {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut xz2::read::XzDecoder::new(packed), &mut bytes).unwrap();
        std::fs::write(place.path().join(name), bytes).unwrap();
    }
    assert!(read::is_recording_directory(place.path()));
    let profile = read::open(place.path(), &Options::default(), &mut |_| {}).unwrap();
    let expected = [
        (":19168", (1, 5_025_125)),
        (":19951", (24, 120_603_000)),
        (":20191", (29, 145_728_625)),
        (":71", (1, 5_025_125)),
        ("as", (1, 5_025_125)),
        ("cc1", (25, 125_628_125)),
        ("swapper", (1, 5_025_125)),
    ];
    assert_eq!(by_name(&profile), expected.into());
    assert!(profile.meta.notes.is_empty(), "{:?}", profile.meta.notes);

    std::fs::remove_file(place.path().join("data")).unwrap();
    assert!(!read::is_recording_directory(place.path()));
    let error = read::open(place.path(), &Options::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("without a recording of perf"), "{error}");
}
