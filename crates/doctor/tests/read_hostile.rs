//! No input makes a reader panic, exceeds its limits, or is dropped silently.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use ogive_doctor::evidence::Evidence;
use ogive_doctor::read;
use proptest::prelude::*;

fn evidence_of(bytes: &[u8]) -> Evidence {
    let mut evidence = Evidence::default();
    read::read_bytes(&mut evidence, "input", bytes);
    read::finish(&mut evidence);
    assert_eq!(evidence.inputs.len(), 1);
    evidence
}

fn samples() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_samples");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

#[derive(Debug, Clone)]
enum Damage {
    Cut(usize),
    Set(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>();
    prop_oneof![
        at.prop_map(Damage::Cut),
        (at, any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at, 0..200_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at, 0..200_usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (at, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match damage {
        Damage::Cut(at) => bytes.truncate(at % length),
        Damage::Set(at, byte) => bytes[at % length] = *byte,
        Damage::Remove(at, count) => {
            drop(bytes.drain(at % length..(at % length + count).min(length)))
        }
        Damage::Repeat(at, count) => {
            let part = bytes[at % length..(at % length + count).min(length)].to_vec();
            bytes.extend(part);
        }
        Damage::Insert(at, inserted) => {
            let at = at % length;
            bytes.splice(at..at, inserted.iter().copied());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        evidence_of(&bytes);
    }

    #[test]
    fn any_text_is_survived(text in "(?s)[ -~\n\t%|@\\[\\]0-9.:;]{0,800}") {
        evidence_of(text.as_bytes());
    }

    #[test]
    fn damaged_samples_are_survived(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let samples = samples();
        let mut bytes = which.get(&samples).clone();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        evidence_of(&bytes);
    }

    #[test]
    fn samples_are_the_same_with_carriage_returns_and_quoting(which in any::<prop::sample::Index>()) {
        let samples = samples();
        let bytes = which.get(&samples);
        let plain = evidence_of(bytes);
        let text = String::from_utf8_lossy(bytes);
        let windows = evidence_of(text.replace('\n', "\r\n").as_bytes());
        prop_assert_eq!(&plain, &windows);
        let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
        let quoted = evidence_of(quoted.as_bytes());
        prop_assert_eq!(&plain.tables, &quoted.tables);
        prop_assert_eq!(&plain.threads, &quoted.threads);
        prop_assert_eq!(&plain.profiles, &quoted.profiles);
    }
}

#[test]
fn binary_input_is_reported_as_not_text() {
    for (bytes, expected) in [
        (&b""[..], "empty"),
        (b"  \n \r\n", "empty"),
        (&[0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8], "gunzip"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4, 1, 2, 3, 4, 5], "xz -d"),
        (&[0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 1, 2, 3], "picture"),
    ] {
        let evidence = evidence_of(bytes);
        let trouble = evidence.inputs[0].trouble.clone().unwrap_or_default();
        assert!(trouble.contains(expected), "{trouble}");
        assert_eq!(evidence.inputs[0].facts, 0);
    }
}

#[test]
fn a_huge_text_is_read_up_to_the_limit_and_reported() {
    let mut bytes = b"arc_prune                       4    7\n".to_vec();
    // Few long lines, because the test is about the limit, not about speed.
    let filler = [vec![b'x'; 60_000], vec![b'\n']].concat();
    while bytes.len() <= read::MAX_TEXT_BYTES + 100 {
        bytes.extend_from_slice(&filler);
    }
    let evidence = evidence_of(&bytes);
    assert!(evidence.inputs[0].trouble.as_deref().is_some_and(|trouble| trouble.contains("MiB")));
    assert!(evidence.tables.iter().any(|table| table.name == "arcstats"));
    assert!(evidence.not_understood.len() <= 200);
}

#[test]
fn unknown_lines_are_listed_with_their_place() {
    let evidence = evidence_of(
        b"hits                            4    7\n%%% 1-2-3 $$$ 4/5\nevict_skip  4 9\n",
    );
    let listed: Vec<_> =
        evidence.not_understood.iter().map(|line| line.source.to_string()).collect();
    assert_eq!(listed, ["input:2"]);
}

#[test]
fn a_line_of_a_million_characters_is_cut_at_its_limit() {
    let mut bytes = vec![b'a'; 1_000_000];
    bytes.extend(b"\nMemTotal:        8388608 kB\n");
    let evidence = evidence_of(&bytes);
    assert_eq!(evidence.host.ram_bytes.as_ref().map(|ram| ram.value), Some(8_589_934_592));
}
