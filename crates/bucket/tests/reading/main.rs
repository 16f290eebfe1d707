//! Background reads from a store over HTTP: the requests, the order of waiting reads, and a store
//! that is slow, busy or breaks off.

mod store;

use bytes::Bytes;
use ogive_bucket::{
    Algorithm, Bucket as _, BucketError, Checksum, ETag, Fetch, FetchSink, RemoteBucket,
    RemoteOptions, Result,
};
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use store::{Answer, PATIENCE, Store};

const MIB: u64 = 1 << 20;

fn body(size: u64) -> Vec<u8> {
    (0..size).map(|at| (at * 7 / 3) as u8).collect()
}

fn bucket(store: &Store) -> RemoteBucket {
    let options = RemoteOptions {
        bucket: "bucket".to_owned(),
        endpoint_url: Some(store.endpoint.clone()),
        region: Some("here".to_owned()),
        no_sign_request: true,
        // Longer than any wait of a test, because no test here is about timeouts.
        timeout: Some(Duration::from_secs(600)),
        ..RemoteOptions::default()
    };
    RemoteBucket::new(&options).expect("valid options")
}

/// Collects the bytes of a read, and stops it after enough of them.
struct Take {
    bytes: Vec<u8>,
    enough: usize,
    done: Sender<(Vec<u8>, Result<u64>)>,
}

impl FetchSink for Take {
    fn piece(&mut self, bytes: Bytes) -> ControlFlow<()> {
        self.bytes.extend_from_slice(&bytes);
        match self.bytes.len() >= self.enough {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn end(self: Box<Self>, result: Result<u64>) {
        let Self { bytes, done, .. } = *self;
        done.send((bytes, result)).expect("the test waits");
    }
}

/// A read in progress.
struct Taken(Receiver<(Vec<u8>, Result<u64>)>);

impl Taken {
    /// The bytes of the read, and its result.
    #[track_caller]
    fn end(self) -> (Vec<u8>, Result<u64>) {
        self.0.recv_timeout(PATIENCE).expect("the read ends within a minute")
    }
}

fn fetch(bucket: &RemoteBucket, store: &Store, range: Range<u64>) -> Taken {
    let (done, taken) = channel();
    let expected = Some(ETag::new(&store.etag()));
    let fetch = Fetch { key: "f".to_owned(), range, expected, is_demanded: true };
    bucket.fetch(fetch, Box::new(Take { bytes: Vec::new(), enough: usize::MAX, done }));
    Taken(taken)
}

fn counter(bucket: &RemoteBucket, name: &str) -> u64 {
    let mut found = None;
    bucket.counters(&mut |counter, value| found = (counter == name).then_some(value).or(found));
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

#[test]
fn a_range_is_one_request_and_its_caller_does_not_wait() {
    let store = Store::with(body(3 * MIB));
    let bucket = bucket(&store);
    store.hold();
    let taken = fetch(&bucket, &store, 5..2 * MIB);
    assert!(taken.0.try_recv().is_err(), "it returned before any byte had arrived");
    store.let_go();
    let (bytes, result) = taken.end();
    assert_eq!(result, Ok(2 * MIB - 5));
    assert!(bytes == body(3 * MIB)[5..2 * MIB as usize]);
    assert_eq!(store.asked(), [(5, 2 * MIB)]);
    assert_eq!(bucket.request_counts().get, 1);
}

#[test]
fn a_broken_body_is_resumed_where_it_ended_and_no_byte_arrives_twice() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    store.answer(Answer::BreaksOff(100_000));
    store.answer(Answer::BreaksOff(50_000));
    let (bytes, result) = fetch(&bucket, &store, 0..MIB).end();
    assert_eq!(result, Ok(MIB));
    assert!(bytes == body(MIB));
    assert_eq!(store.asked(), [(0, MIB), (100_000, MIB), (150_000, MIB)]);
    assert_eq!(counter(&bucket, "origin_retried"), 2);
}

#[test]
fn a_read_of_an_object_gets_no_byte_of_its_successor() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    store.answer(Answer::BreaksOff(100_000));
    let (done, taken) = channel();
    let expected = Some(ETag::new(&store.etag()));
    let range = Fetch { key: "f".to_owned(), range: 0..MIB, expected, is_demanded: true };
    // Overwrites the object when its first bytes arrive.
    struct Overwrite(Take, Store);
    impl FetchSink for Overwrite {
        fn piece(&mut self, bytes: Bytes) -> ControlFlow<()> {
            self.1.put(vec![0xff; MIB as usize]);
            self.0.piece(bytes)
        }
        fn end(self: Box<Self>, result: Result<u64>) {
            Box::new(self.0).end(result);
        }
    }
    let take = Take { bytes: Vec::new(), enough: usize::MAX, done };
    bucket.fetch(range, Box::new(Overwrite(take, store.clone())));
    let (bytes, result) = Taken(taken).end();
    assert!(matches!(result, Err(BucketError::ConditionFailed { .. })), "{result:?}");
    assert!(bytes == body(MIB)[..bytes.len()] && bytes.len() <= 100_000);
}

#[test]
fn a_throttled_request_is_retried_and_the_limit_backs_off() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    store.answer(Answer::Error(503, "SlowDown"));
    let (bytes, result) = fetch(&bucket, &store, 0..1000).end();
    assert_eq!((bytes.len(), result), (1000, Ok(1000)));
    assert_eq!(store.asked().len(), 2);
    assert_eq!(counter(&bucket, "origin_throttled"), 1);
    assert_eq!(counter(&bucket, "origin_slow_downs"), 1);
    assert_eq!(counter(&bucket, "origin_reads_at_once"), 32);
    // Throttling beyond all retries is an error.
    (0..5).for_each(|_| store.answer(Answer::Error(503, "SlowDown")));
    let (_, result) = fetch(&bucket, &store, 0..1000).end();
    assert!(matches!(result, Err(BucketError::Busy { .. })), "{result:?}");
    assert_eq!(store.asked().len(), 5);
}

#[test]
fn a_refusal_of_the_store_is_not_retried() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    store.answer(Answer::Error(403, "AccessDenied"));
    let (_, result) = fetch(&bucket, &store, 0..1000).end();
    assert!(matches!(result, Err(BucketError::Denied { .. })), "{result:?}");
    store.answer(Answer::Error(404, "NoSuchKey"));
    let (_, result) = fetch(&bucket, &store, 0..1000).end();
    assert!(matches!(result, Err(BucketError::NotFound { .. })), "{result:?}");
    assert_eq!(store.asked().len(), 2);
}

#[test]
fn a_late_request_is_hedged_and_the_faster_answer_wins() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    // Enough reads to estimate the latency. None of them is hedged.
    for read in 0..32 {
        fetch(&bucket, &store, read..read + 10).end().1.unwrap();
    }
    assert_eq!((counter(&bucket, "origin_hedged"), store.asked().len()), (0, 32));
    // Only the hedge is answered.
    store.never_answer_first((7, 1000));
    let (bytes, result) = fetch(&bucket, &store, 7..1000).end();
    assert_eq!(result, Ok(993));
    assert!(bytes == body(MIB)[7..1000]);
    assert_eq!(store.asked(), [(7, 1000), (7, 1000)]);
    assert_eq!(counter(&bucket, "origin_hedged"), 1);
    assert_eq!(counter(&bucket, "origin_hedges_won"), 1);
    assert!(20 <= bucket.request_counts().get, "at most one in twenty");
}

#[test]
fn concurrent_reads_reach_the_limit_and_do_not_exceed_it() {
    let store = Store::with(body(MIB));
    let bucket = bucket(&store);
    store.hold();
    let reads: Vec<Taken> = (0..200).map(|read| fetch(&bucket, &store, read..read + 100)).collect();
    store.wait_for_at_once(64);
    store.let_go();
    for taken in reads {
        assert_eq!(taken.end().1, Ok(100));
    }
    // The limit, plus the hedges of late reads.
    let most = 64 + 200 / 20;
    assert!((64..=most).contains(&store.at_once()), "{}", store.at_once());
}

#[test]
fn a_sink_that_has_enough_ends_the_read() {
    let store = Store::with(body(64 * MIB));
    let bucket = bucket(&store);
    let (done, taken) = channel();
    let expected = Some(ETag::new(&store.etag()));
    let range = Fetch { key: "f".to_owned(), range: 0..64 * MIB, expected, is_demanded: false };
    bucket.fetch(range, Box::new(Take { bytes: Vec::new(), enough: 1000, done }));
    let (bytes, result) = Taken(taken).end();
    assert_eq!(result, Ok(bytes.len() as u64));
    assert!(bytes.len() < MIB as usize, "{}", bytes.len());
    drop(bucket);
}

#[test]
fn a_head_requests_the_checksum_without_another_request() {
    let store = Store::with(b"123456789".to_vec());
    let bucket = bucket(&store);
    store.show_checksum(Some("x-amz-checksum-crc64nvme: rosUhgp5mIg="));
    let object = bucket.head("f").unwrap();
    assert_eq!((object.size_bytes, store.heads()), (9, (1, 1)));
    let expected =
        Checksum { algorithm: Algorithm::Crc64Nvme, value: Algorithm::Crc64Nvme.of(b"123456789") };
    assert_eq!(bucket.checksum_of(&object), Some(expected));
    assert_eq!(bucket.request_counts().head, 1);
}

#[test]
fn a_store_that_refuses_the_checksum_header_gets_it_once_and_still_answers() {
    let store = Store::with(b"123456789".to_vec());
    let bucket = bucket(&store);
    let object = bucket.head("f").unwrap();
    assert_eq!((object.size_bytes, store.heads()), (9, (2, 1)), "repeated without the header");
    bucket.head("f").unwrap();
    assert_eq!(store.heads(), (3, 1));
    assert_eq!(bucket.checksum_of(&object), None);
    assert_eq!(bucket.request_counts().head, 3);
}

#[test]
fn a_small_object_and_its_bytes_are_one_request() {
    let store = Store::with(b"123456789".to_vec());
    let bucket = bucket(&store);
    store.show_checksum(Some("x-amz-checksum-crc64nvme: rosUhgp5mIg="));
    let (object, bytes) = bucket.head_with_bytes("f", 9).unwrap();
    assert_eq!(bytes.as_deref(), Some(b"123456789".as_slice()));
    assert_eq!(object, bucket.head("f").unwrap(), "the same description");
    assert!(bucket.checksum_of(&object).is_some());
    assert_eq!((bucket.request_counts().get, bucket.request_counts().head), (1, 1));
    assert_eq!(counter(&bucket, "origin_first_bytes"), 1, "the latency is measured");
    // An object that has grown in the meantime is not read.
    store.put(vec![7; MIB as usize]);
    let (object, bytes) = bucket.head_with_bytes("f", 9).unwrap();
    assert_eq!((object.size_bytes, bytes), (MIB, None));
    // A broken body is requested again from its start, from the current object.
    store.put(vec![8; 5000]);
    store.answer(Answer::BreaksOff(1000));
    let (object, bytes) = bucket.head_with_bytes("f", 5000).unwrap();
    assert_eq!((object.size_bytes, bytes.as_deref()), (5000, Some([8; 5000].as_slice())));
    store.answer(Answer::Error(404, "NoSuchKey"));
    let gone = bucket.head_with_bytes("f", 5000).unwrap_err();
    assert!(matches!(gone, BucketError::NotFound { .. }), "{gone:?}");
}
