//! Random changes, syncs and lost answers: the object always equals a plain vector of bytes.

use super::{Place, pattern};
use ogive_bucket::journal::Base;
use ogive_bucket::staged::Durable;
use ogive_bucket::{BucketError, Fault, Operation};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Change {
    Write(u64, usize, u8),
    Append(usize, u8),
    Resize(u64),
    Sync,
    /// The next request of a kind fails, or its answer is lost.
    Fault(Operation, bool),
    /// The mount is killed, and another one continues.
    Kill,
}

const BYTES: u64 = 12_000;

fn change() -> impl Strategy<Value = Change> {
    let kinds = [Operation::Put, Operation::Complete, Operation::Part, Operation::CopyPart];
    let kinds = prop::sample::select([&kinds[..], &[Operation::Begin, Operation::Head]].concat());
    prop_oneof![
        6 => (0..BYTES, 1..900_usize, any::<u8>()).prop_map(|(at, n, s)| Change::Write(at, n, s)),
        4 => (1..1500_usize, any::<u8>()).prop_map(|(bytes, seed)| Change::Append(bytes, seed)),
        2 => (0..BYTES).prop_map(Change::Resize),
        3 => Just(Change::Sync),
        1 => (kinds, any::<bool>()).prop_map(|(kind, lost)| Change::Fault(kind, lost)),
        1 => Just(Change::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn an_upload_equals_the_file_after_any_writes(
        size in prop_oneof![1 => Just(None), 3 => (0..BYTES as usize).prop_map(Some)],
        changes in prop::collection::vec(change(), 1..40),
    ) {
        let mut place = Place::new();
        let mut model = size.map_or_else(Vec::new, |size| pattern(size, 3));
        let mut file = match size {
            Some(_) => place.change("k", model.clone()),
            None => place.begin("k", Base::New),
        };
        let mut uploaded = size.map(|_| model.clone());
        let mut doomed = 0;
        for change in changes.iter().chain([&Change::Sync]) {
            match change {
                Change::Write(offset, bytes, seed) => {
                    let (bytes, start) = (pattern(*bytes, *seed), *offset as usize);
                    file.write(*offset, &bytes).unwrap();
                    model.resize(model.len().max(start + bytes.len()), 0);
                    model[start..start + bytes.len()].copy_from_slice(&bytes);
                }
                Change::Append(bytes, seed) => {
                    let bytes = pattern(*bytes, *seed);
                    prop_assert_eq!(file.append(&bytes).unwrap(), model.len() as u64);
                    model.extend_from_slice(&bytes);
                }
                Change::Resize(size) => {
                    file.resize(*size).unwrap();
                    model.resize(*size as usize, 0);
                }
                Change::Sync => {
                    // Each fault applies to one request, and a failed sync may be repeated.
                    while let Err(error) = file.sync() {
                        prop_assert!(doomed > 0, "{}", error);
                        doomed -= 1;
                        let is = place.bytes("k");
                        prop_assert!(is == uploaded || is.as_ref() == Some(&model));
                    }
                    uploaded = Some(model.clone());
                    prop_assert!(place.bytes("k").as_ref() == Some(&model));
                }
                Change::Fault(kind, is_lost) => {
                    let error = BucketError::TimedOut { key: "k".to_owned(), seconds: 1 };
                    let fault = match is_lost {
                        true => Fault::AnswerLost(error),
                        false => Fault::Fails(error),
                    };
                    place.bucket.doom(*kind, fault);
                    doomed += 1;
                }
                Change::Kill => {
                    let (directory, mut opened) = place.killed();
                    let resumed = place.resume(&mut opened);
                    (place.directory, place.opened, file) = (directory, opened, resumed);
                }
            }
            prop_assert!(file.read(0..u64::MAX).unwrap() == model, "after {:?}", change);
            let is = place.bytes("k");
            prop_assert!(is == uploaded, "unsynced changes are not visible");
        }
        prop_assert!(file.close(Durable::Store).unwrap().is_none());
        prop_assert_eq!(place.bucket.open_uploads(), 0);
        prop_assert!(place.killed().1.staged.is_empty(), "an uploaded file has no log");
    }
}
