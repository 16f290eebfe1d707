//! Answers that are no last word: each is given at each step of what is asked, before and after the
//! store has done it. All of it is done once the store works, and a program is told nothing else.

use super::bucket;
use super::store::{Answer, Fault, Step, Store};
use ogive_bucket::journal::{Base, Journal, OpenOptions};
use ogive_bucket::staged::{Limits, Options, StagedFile};
use ogive_bucket::{Bucket, Condition, Listing, Promises, RemoteBucket, WriteMetadata};
use ogive_l2::MasterKey;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: usize = 1 << 20;

/// What a store, or what stands before it, says of a request that is to be made again.
const ANSWERS: [Answer; 14] = [
    Answer::Error(400, "RequestTimeout"),
    Answer::Error(408, ""),
    Answer::Error(409, "ConditionalRequestConflict"),
    Answer::Error(409, "OperationAborted"),
    Answer::Error(425, ""),
    Answer::Error(429, "TooManyRequests"),
    Answer::Error(429, ""),
    Answer::Error(500, "InternalError"),
    Answer::Error(502, ""),
    Answer::Error(503, "ServiceUnavailable"),
    Answer::Error(503, "SlowDown"),
    Answer::Error(504, ""),
    Answer::Error(520, ""),
    Answer::Reset,
];
/// The same with a status that was sent before it was known.
const IN_200: [Answer; 3] = [
    Answer::Error(200, "InternalError"),
    Answer::Error(200, "SlowDown"),
    Answer::Error(200, "ConditionalRequestConflict"),
];
/// What is said of an upload that has ended, by us or by others, and of a condition that our own
/// request has ended.
const GONE: Answer = Answer::Error(404, "NoSuchUpload");
const CHANGED: Answer = Answer::Error(412, "PreconditionFailed");

/// What is done to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// A file of so many bytes is made.
    Make(usize),
    /// One byte of a file of so many is changed.
    Change(usize),
    Copy,
    Delete,
    DeleteIf,
    List,
    Head,
}

fn content(bytes: usize) -> Vec<u8> {
    vec![7; bytes]
}

fn staged(
    bucket: Arc<RemoteBucket>,
    base: Base,
    change: impl FnOnce(&StagedFile),
) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let master = MasterKey::from_material(&[7; 32]).unwrap();
    let opened =
        Journal::open(directory.path(), "source", &master, OpenOptions::default()).unwrap();
    let part_bytes = 5 * MIB as u64;
    let limits = Limits { part_bytes, put_max_bytes: MIB as u64, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let file = StagedFile::begin(bucket, &opened.journal, "k", base, options).unwrap();
    change(&file);
    file.sync().map_err(|error| format!("{}: {error}", error.errno()))
}

impl Work {
    fn bytes(self) -> usize {
        match self {
            Self::Make(bytes) | Self::Change(bytes) => bytes,
            _ => 6 * MIB,
        }
    }

    /// Does it while the store answers one request so. What went wrong, if anything did.
    fn fails(
        self,
        (store, bucket): (&Store, &Arc<RemoteBucket>),
        (step, fault): (Step, Fault),
    ) -> Result<(), String> {
        let before = content(self.bytes());
        store.forget_all();
        if !matches!(self, Self::Make(_)) {
            store.put("k", &before);
        }
        let object = bucket.head("k");
        store.doom(step, fault);
        let said = |error: ogive_bucket::BucketError| format!("{}: {error}", error.errno());
        let mut expected = Some(before.clone());
        let (key, none) = ("k", WriteMetadata::marked("m"));
        let found = match self {
            Self::Make(_) => {
                staged(Arc::clone(bucket), Base::New, |file| file.write(0, &before).unwrap())?;
                store.body(key)
            }
            Self::Change(bytes) => {
                let etag = object.map_err(said)?.etag.unwrap().as_str().to_owned();
                let base = Base::Object { etag, size: bytes as u64 };
                staged(Arc::clone(bucket), base, |file| file.write(0, &[255]).unwrap())?;
                expected.as_mut().unwrap()[0] = 255;
                store.body(key)
            }
            Self::Copy => {
                bucket.copy(&object.unwrap(), "to", &Condition::Absent, none).map_err(said)?;
                store.body("to")
            }
            Self::Delete | Self::DeleteIf => {
                let etag = object.unwrap().etag.filter(|_| self == Self::DeleteIf);
                bucket.delete(key, etag.as_ref()).map_err(said)?;
                expected = None;
                store.body(key)
            }
            Self::List => {
                let listing = Listing { prefix: "", delimited: false, page: 10 };
                let mut found = None;
                let visit = &mut |entry: ogive_bucket::Entry| {
                    found = store.body(entry.key());
                    ControlFlow::Continue(())
                };
                bucket.list(&listing, visit).map_err(said)?;
                found
            }
            Self::Head => store.body(&bucket.head(key).map_err(said)?.key),
        };
        if store.asked(step) < 1 {
            return Err("it was never asked".to_owned());
        }
        if found == expected { Ok(()) } else { Err("the store has something else".to_owned()) }
    }
}

/// Each answer at each step, before and after it was done.
fn cases() -> Vec<(Work, Step, Fault)> {
    let (small, large, larger) = (100, 6 * MIB, 11 * MIB);
    let steps = [
        (Work::Make(small), &[Step::Put][..]),
        (Work::Change(small), &[Step::Put]),
        (Work::Make(large), &[Step::Begin, Step::Part, Step::Complete]),
        (Work::Change(larger), &[Step::Begin, Step::Part, Step::CopyPart, Step::Complete]),
        (Work::Copy, &[Step::Begin, Step::CopyPart, Step::Complete]),
        (Work::Delete, &[Step::Delete]),
        (Work::DeleteIf, &[Step::Delete]),
        (Work::List, &[Step::List]),
        (Work::Head, &[Step::Head]),
    ];
    let steps = steps.iter().flat_map(|(work, steps)| steps.iter().map(|step| (*work, *step)));
    let mut cases = Vec::new();
    for (work, step) in steps {
        let mut add = |answers: &[Answer], is_done: &[bool]| {
            let faults = answers.iter().flat_map(|answer| {
                is_done.iter().map(|is_done| Fault { answer: *answer, is_done: *is_done })
            });
            cases.extend(faults.map(|fault| (work, step, fault)));
        };
        // The answer to a HEAD has no body, and 400 alone is said of what is never going to be right.
        let answers = if step == Step::Head { &ANSWERS[1..] } else { &ANSWERS[..] };
        add(answers, &[false, true]);
        match step {
            Step::Complete => {
                add(&IN_200, &[false, true]);
                add(&[GONE, CHANGED], &[false, true]);
            }
            Step::CopyPart => {
                add(&IN_200, &[false, true]);
                add(&[GONE], &[false]);
            }
            Step::Part => add(&[GONE], &[false]),
            Step::Put => add(&[CHANGED], &[false, true]),
            Step::Delete if work == Work::DeleteIf => add(&[CHANGED], &[true]),
            _ => {}
        }
    }
    cases
}

#[test]
fn an_answer_that_is_no_last_word_is_not_taken_for_one_at_any_step() {
    let (cases, next) = (cases(), AtomicUsize::new(0));
    let failed = parking_lot::Mutex::new(Vec::new());
    // Most of the time is spent in pauses.
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let store = Store::new();
                let bucket = Arc::new(bucket(&store));
                bucket.believe(Promises::ALL);
                while let Some((work, step, fault)) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Err(error) = work.fails((&store, &bucket), (*step, *fault)) {
                        failed.lock().push(format!("{work:?}, {step:?}, {fault:?}: {error}"));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner();
    failed.sort();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
