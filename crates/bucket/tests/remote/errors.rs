//! Answers that are not final: each is given at each step of an operation, before and after the
//! store has done it. Once the store works, the operation is done, and programs see no error.

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

/// Answers of a gateway to a request that may be repeated.
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
/// The same errors after a status that was sent too early.
const IN_200: [Answer; 3] = [
    Answer::Error(200, "InternalError"),
    Answer::Error(200, "SlowDown"),
    Answer::Error(200, "ConditionalRequestConflict"),
];

/// Answers of a store to a request that may be repeated.
fn answers(kind: StoreKind) -> &'static [Answer] {
    match kind {
        StoreKind::S3 => &S3,
        StoreKind::Azure => &AZURE,
        StoreKind::Google => &GOOGLE,
    }
}

/// Answers about an upload that has already ended.
fn gone(kind: StoreKind) -> &'static [Answer] {
    match kind {
        StoreKind::S3 => &[Answer::Error(404, "NoSuchUpload")],
        StoreKind::Azure => &[Answer::Error(400, "InvalidBlockList")],
        StoreKind::Google => &[Answer::Error(404, "notFound"), Answer::Error(410, "gone")],
    }
}

/// Answers about a condition that no longer holds because of our own request.
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

/// An operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Create a file of this size.
    Make(usize),
    /// Change one byte of a file of this size.
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

    /// Runs the operation while the store fails a number of requests. Returns what went wrong.
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
        let text = |error: ogive_bucket::BucketError| format!("{}: {error}", error.errno());
        let mut expected = Some(before.clone());
        let (key, none) = ("k", WriteMetadata::marked("m"));
        let found = match self {
            Self::Make(_) => {
                staged(Arc::clone(bucket), Base::New, |file| file.write(0, &before).unwrap())?;
                store.body(key)
            }
            Self::Change(bytes) => {
                let etag = object.map_err(text)?.etag.unwrap().as_str().to_owned();
                let base = Base::Object { etag, size: bytes as u64 };
                staged(Arc::clone(bucket), base, |file| file.write(0, &[255]).unwrap())?;
                expected.as_mut().unwrap()[0] = 255;
                store.body(key)
            }
            Self::Copy => {
                let (source, condition) = (&object.unwrap(), &Condition::Absent);
                let copy = CopyRequest { source, target: "to", condition, beside: none };
                bucket.copy(copy).map_err(text)?;
                store.body("to")
            }
            Self::Delete | Self::DeleteIf => {
                let etag = object.unwrap().etag.filter(|_| self == Self::DeleteIf);
                bucket.delete(key, etag.as_ref()).map_err(text)?;
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
                bucket.list(&listing, visit).map_err(text)?;
                found
            }
            Self::Head => store.body(&bucket.head(key).map_err(text)?.key),
        };
        if store.asked(step) < 1 {
            return Err("the request was never made".to_owned());
        }
        if found == expected { Ok(()) } else { Err("the store has other contents".to_owned()) }
    }
}

/// The requests of each operation.
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

/// The number of attempts before a program sees an error.
const ALWAYS: usize = 5;

/// Each answer at each step, before and after the store has done it.
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
        // The answer to a HEAD has no body, and 400 without a code is a final error.
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
        // The first request is done, and no attempt is ever answered.
        if matches!(step, Step::Put | Step::Complete | Step::Delete) {
            let silent = [Answer::Reset, Answer::Error(503, "")];
            let faults = silent.map(|answer| Fault { answer, is_done: true });
            cases.extend(faults.map(|fault| (work, step, fault, ALWAYS)));
        }
    }
    // The slowest cases start first.
    cases.sort_by_key(|(_, _, _, times)| std::cmp::Reverse(*times));
    cases
}

/// Checks all cases of a store.
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
fn temporary_errors_of_s3_do_not_fail_any_step() {
    check(StoreKind::S3);
}

#[test]
fn temporary_errors_of_azure_do_not_fail_any_step() {
    check(StoreKind::Azure);
}

#[test]
fn temporary_errors_of_google_do_not_fail_any_step() {
    check(StoreKind::Google);
}

/// The counters of refusals and of throttling.
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
fn a_rate_limit_of_google_is_not_a_refusal() {
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
    assert_eq!(refused, "the store refuses k: forbidden: the message");
    assert_eq!(counted(&bucket), (1, 1));
}
