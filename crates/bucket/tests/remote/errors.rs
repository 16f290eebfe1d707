//! Answers that are no last word: each is given at each step of what is asked, before and after the
//! store has done it. All of it is done once the store works, and a program is told nothing else.

use super::bucket;
use super::store::{Answer, Fault, Step, Store};
use ogive_bucket::journal::{Base, Journal, OpenOptions};
use ogive_bucket::staged::{Limits, Options, StagedFile};
use ogive_bucket::{
    Bucket, Condition, CopyRequest, Listing, Promises, RemoteBucket, StoreKind, WriteMetadata,
};
use ogive_l2::MasterKey;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: usize = 1 << 20;

/// What stands before a store says of a request that is to be made again, and what the store says.
const PLAIN: [Answer; 8] = [
    Answer::Error(408, ""),
    Answer::Error(425, ""),
    Answer::Error(429, ""),
    Answer::Error(502, ""),
    Answer::Error(503, ""),
    Answer::Error(504, ""),
    Answer::Error(520, ""),
    Answer::Reset,
];
const S3: [Answer; 7] = [
    Answer::Error(400, "RequestTimeout"),
    Answer::Error(409, "ConditionalRequestConflict"),
    Answer::Error(409, "OperationAborted"),
    Answer::Error(429, "TooManyRequests"),
    Answer::Error(500, "InternalError"),
    Answer::Error(503, "ServiceUnavailable"),
    Answer::Error(503, "SlowDown"),
];
const AZURE: [Answer; 6] = [
    Answer::Error(408, "RequestTimeout"),
    Answer::Error(429, "TooManyRequests"),
    Answer::Error(500, "InternalError"),
    Answer::Error(500, "OperationTimedOut"),
    Answer::Error(503, "OperationTimedOut"),
    Answer::Error(503, "ServerBusy"),
];
const GOOGLE: [Answer; 8] = [
    Answer::Error(403, "rateLimitExceeded"),
    Answer::Error(403, "userRateLimitExceeded"),
    Answer::Error(408, "uploadBrokenConnection"),
    Answer::Error(409, "conflict"),
    Answer::Error(429, "rateLimitExceeded"),
    Answer::Error(500, "backendError"),
    Answer::Error(500, "internalError"),
    Answer::Error(503, "backendError"),
];
/// The same with a status that was sent before it was known.
const IN_200: [Answer; 3] = [
    Answer::Error(200, "InternalError"),
    Answer::Error(200, "SlowDown"),
    Answer::Error(200, "ConditionalRequestConflict"),
];

/// What a store says of a request that is to be made again.
fn answers(kind: StoreKind) -> &'static [Answer] {
    match kind {
        StoreKind::S3 => &S3,
        StoreKind::Azure => &AZURE,
        StoreKind::Google => &GOOGLE,
    }
}

/// What is said of an upload that has ended, by us or by others.
fn gone(kind: StoreKind) -> &'static [Answer] {
    match kind {
        StoreKind::S3 => &[Answer::Error(404, "NoSuchUpload")],
        StoreKind::Azure => &[Answer::Error(400, "InvalidBlockList")],
        StoreKind::Google => &[Answer::Error(404, "notFound"), Answer::Error(410, "gone")],
    }
}

/// What is said of a condition that our own request has ended.
fn changed(kind: StoreKind, work: Work) -> Answer {
    match kind {
        StoreKind::S3 => Answer::Error(412, "PreconditionFailed"),
        StoreKind::Azure if matches!(work, Work::Make(_) | Work::Copy) => {
            Answer::Error(409, "BlobAlreadyExists")
        }
        StoreKind::Azure => Answer::Error(412, "ConditionNotMet"),
        StoreKind::Google => Answer::Error(412, "conditionNotMet"),
    }
}

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

pub(super) fn staged(
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

    /// Does it while the store answers so many requests so. What went wrong, if anything did.
    fn fails(
        self,
        (store, bucket): (&Store, &Arc<RemoteBucket>),
        (step, fault, times): (Step, Fault, usize),
    ) -> Result<(), String> {
        let before = content(self.bytes());
        store.forget_all();
        if !matches!(self, Self::Make(_)) {
            store.put("k", &before);
        }
        let object = bucket.head("k");
        (0..times).for_each(|_| store.doom(step, fault));
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
                let (source, condition) = (&object.unwrap(), &Condition::Absent);
                let copy = CopyRequest { source, target: "to", condition, beside: none };
                bucket.copy(copy).map_err(said)?;
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

/// The steps of which each work is made.
fn steps(kind: StoreKind) -> Vec<(Work, &'static [Step])> {
    let (small, large, larger) = (100, 6 * MIB, 11 * MIB);
    let writes: [(Work, &'static [Step]); 5] = match kind {
        StoreKind::S3 => [
            (Work::Make(small), &[Step::Put]),
            (Work::Change(small), &[Step::Get, Step::Put]),
            (Work::Make(large), &[Step::Begin, Step::Part, Step::Complete]),
            (Work::Change(larger), &[Step::Begin, Step::Part, Step::CopyPart, Step::Complete]),
            (Work::Copy, &[Step::Begin, Step::CopyPart, Step::Complete]),
        ],
        StoreKind::Azure => [
            (Work::Make(small), &[Step::Put]),
            (Work::Change(small), &[Step::Get, Step::Put]),
            (Work::Make(large), &[Step::Part, Step::Complete]),
            (Work::Change(large), &[Step::Get, Step::Complete]),
            (Work::Copy, &[Step::Get, Step::Part, Step::Complete]),
        ],
        StoreKind::Google => [
            (Work::Make(small), &[Step::Begin, Step::Complete]),
            (Work::Change(small), &[Step::Get, Step::Begin, Step::Complete]),
            (Work::Make(larger), &[Step::Begin, Step::Part, Step::Complete]),
            (Work::Change(large), &[Step::Get, Step::Complete]),
            (Work::Copy, &[Step::Get, Step::Begin, Step::Complete]),
        ],
    };
    let others: [(Work, &'static [Step]); 4] = [
        (Work::Delete, &[Step::Delete]),
        (Work::DeleteIf, &[Step::Delete]),
        (Work::List, &[Step::List]),
        (Work::Head, &[Step::Head]),
    ];
    writes.into_iter().chain(others).collect()
}

/// As often as a request is sent before somebody is told that it failed.
const ALWAYS: usize = 5;

/// Each answer at each step, before and after it was done.
fn cases(kind: StoreKind) -> Vec<(Work, Step, Fault, usize)> {
    let steps = steps(kind);
    let steps = steps.iter().flat_map(|(work, steps)| steps.iter().map(|step| (*work, *step)));
    let mut cases = Vec::new();
    for (work, step) in steps {
        let mut add = |answers: &[Answer], is_done: &[bool]| {
            let faults = answers.iter().flat_map(|answer| {
                is_done.iter().map(|is_done| Fault { answer: *answer, is_done: *is_done })
            });
            cases.extend(faults.map(|fault| (work, step, fault, 1)));
        };
        let both = &[false, true];
        add(&PLAIN, both);
        // The answer to a HEAD has no body, and 400 alone is said of what is never going to be right.
        let is_bare = kind == StoreKind::S3 && step == Step::Head;
        add(&answers(kind)[usize::from(is_bare)..], both);
        match step {
            Step::Complete => {
                add(gone(kind), both);
                add(&[changed(kind, work)], both);
            }
            Step::Part | Step::CopyPart if kind != StoreKind::Azure => add(gone(kind), &[false]),
            Step::Put => add(&[changed(kind, work)], both),
            Step::Delete if work == Work::DeleteIf => add(&[changed(kind, work)], &[true]),
            _ => {}
        }
        if kind == StoreKind::S3 && matches!(step, Step::Complete | Step::CopyPart) {
            add(&IN_200, both);
        }
        // It is done the first time, and nobody is ever told.
        if matches!(step, Step::Put | Step::Complete | Step::Delete) {
            let silent = [Answer::Reset, Answer::Error(503, "")];
            let faults = silent.map(|answer| Fault { answer, is_done: true });
            cases.extend(faults.map(|fault| (work, step, fault, ALWAYS)));
        }
    }
    // What takes longest begins first.
    cases.sort_by_key(|(_, _, _, times)| std::cmp::Reverse(*times));
    cases
}

/// All cases of a kind of store.
fn check(kind: StoreKind) {
    let (cases, next) = (cases(kind), AtomicUsize::new(0));
    let failed = parking_lot::Mutex::new(Vec::new());
    // Most of the time is spent in pauses.
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let store = Store::of(kind);
                let bucket = Arc::new(bucket(&store));
                bucket.believe(Promises::ALL);
                while let Some((work, step, fault, times)) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let done = work.fails((&store, &bucket), (*step, *fault, *times));
                    if let Err(error) = done {
                        let case = format!("{work:?}, {step:?}, {fault:?}, {times}");
                        failed.lock().push(format!("{case}: {error}"));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner();
    failed.sort();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn an_answer_of_s3_that_is_no_last_word_is_not_taken_for_one_at_any_step() {
    check(StoreKind::S3);
}

#[test]
fn an_answer_of_azure_that_is_no_last_word_is_not_taken_for_one_at_any_step() {
    check(StoreKind::Azure);
}

#[test]
fn an_answer_of_google_that_is_no_last_word_is_not_taken_for_one_at_any_step() {
    check(StoreKind::Google);
}

/// The counters of refusals and of patience that was asked for.
fn counted(bucket: &RemoteBucket) -> (u64, u64) {
    let (mut denied, mut throttled) = (0, 0);
    bucket.counters(&mut |name, value| match name {
        "origin_denied" => denied = value,
        "origin_throttled" => throttled = value,
        _ => {}
    });
    (denied, throttled)
}

#[test]
fn a_rate_that_google_finds_too_high_is_no_refusal() {
    let store = Store::of(StoreKind::Google);
    store.put("k", b"bytes");
    let bucket = bucket(&store);
    let answer = Answer::Error(403, "rateLimitExceeded");
    store.doom(Step::Head, Fault { answer, is_done: false });
    bucket.head("k").unwrap();
    assert_eq!(counted(&bucket), (0, 1));
    let answer = Answer::Error(403, "forbidden");
    store.doom(Step::Head, Fault { answer, is_done: false });
    let refused = bucket.head("k").unwrap_err().to_string();
    assert_eq!(refused, "the store refuses k: forbidden: so told");
    assert_eq!(counted(&bucket), (1, 1));
}
