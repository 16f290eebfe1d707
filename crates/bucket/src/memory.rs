//! A store inside the process, for tests. It honours or ignores conditions, fails and delays as a
//! test configures it, and counts requests.
//!
//! One lock covers everything. It is never held while a fault delays a caller.

use crate::{
    Bucket, BucketError, BucketIdentity, Checksum, Condition, CopyRequest, ETag, Entry, KeyRules,
    Listing, Object, ObjectMetadata, Pages, Promises, Requests, Result, Upload, WriteMetadata,
};
use bytes::{Bytes, BytesMut};
use ogive_origin::Time;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`Bucket::head`].
    Head,
    /// [`Bucket::get`].
    Get,
    /// [`Bucket::put`].
    Put,
    /// [`Bucket::upload`].
    Begin,
    /// [`Upload::part`].
    Part,
    /// [`Upload::copy_part`].
    CopyPart,
    /// [`Upload::complete`].
    Complete,
    /// [`Upload::abort`].
    Abort,
    /// [`Bucket::copy`].
    Copy,
    /// [`Bucket::delete`].
    Delete,
    /// A page of [`Bucket::list`].
    List,
}

/// A fault of the next request of its kind.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The request fails, and nothing is done.
    Fails(BucketError),
    /// The request is done, but its answer is lost: the caller gets this error.
    AnswerLost(BucketError),
    /// The request is done after a delay.
    Slow(Duration),
    /// The request is done once the gate is open.
    Held(Gate),
    /// The body of a GET ends after this many bytes, and the caller gets this error.
    BreaksOff(u64, BucketError),
    /// Nothing is done, and the call panics, as for a bug.
    Panics,
}

/// Holds requests until a test opens it. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// The longest wait; no test needs more.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Lets all requests pass, waiting and future ones.
    pub fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut is_open = self.0.0.lock();
        let shut = |is_open: &mut bool| !*is_open;
        let waited = self.0.1.wait_while_for(&mut is_open, shut, Self::PATIENCE);
        assert!(!waited.timed_out(), "no test opened the gate of a request");
    }
}

/// A store inside the process. Clones are the same store.
#[derive(Clone, Debug)]
pub struct MemoryBucket {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<String, Stored>,
    promises: Promises,
    rules: &'static KeyRules,
    takes_even_parts_only: bool,
    faults: HashMap<Operation, VecDeque<Fault>>,
    requests: HashMap<Operation, u64>,
    writes: u64,
    uploads: u64,
    checksums: HashMap<String, Checksum>,
}

#[derive(Clone, Debug)]
struct Stored {
    body: Bytes,
    etag: ETag,
    modified: Time,
    beside: Noted,
}

impl Stored {
    fn object(&self, key: &str) -> Object {
        Object {
            key: key.to_owned(),
            size_bytes: self.body.len() as u64,
            etag: Some(self.etag.clone()),
            modified: self.modified,
            mark: self.beside.0.clone(),
            kept: Some(self.beside.1.clone().unwrap_or_default()),
        }
    }
}

impl Default for MemoryBucket {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBucket {
    /// An empty store that honours every condition.
    pub fn new() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            promises: Promises::ALL,
            rules: &KeyRules::S3,
            takes_even_parts_only: false,
            faults: HashMap::new(),
            requests: HashMap::new(),
            writes: 0,
            uploads: 0,
            checksums: HashMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets which conditions are honoured; others are accepted and ignored.
    pub fn honour(&self, promises: Promises) {
        self.state.lock().promises = promises;
    }

    /// Sets which keys are kept unchanged.
    pub fn set_key_rules(&self, rules: &'static KeyRules) {
        self.state.lock().rules = rules;
    }

    /// Requires parts of one length from now on, except for the last.
    pub fn take_even_parts_only(&self) {
        self.state.lock().takes_even_parts_only = true;
    }

    /// Queues a fault for the next request of a kind that has none yet.
    pub fn doom(&self, operation: Operation, fault: Fault) {
        self.state.lock().faults.entry(operation).or_default().push_back(fault);
    }

    /// Removes all queued faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Reports this checksum for any object under a key.
    pub fn show_checksum(&self, key: &str, checksum: Checksum) {
        self.state.lock().checksums.insert(key.to_owned(), checksum);
    }

    /// How many requests of a kind were made.
    pub fn requests(&self, operation: Operation) -> u64 {
        self.state.lock().requests.get(&operation).copied().unwrap_or(0)
    }

    /// How many uploads are neither completed nor aborted.
    pub fn open_uploads(&self) -> u64 {
        self.state.lock().uploads
    }

    /// Writes like another client: without condition, fault or count.
    pub fn foreign_put(&self, key: &str, body: impl Into<Bytes>) -> ETag {
        self.state
            .lock()
            .store(key, body.into(), Noted::default())
            .etag
            .expect("this store gives ETags")
    }

    /// Removes an object like another client.
    pub fn foreign_delete(&self, key: &str) {
        self.state.lock().objects.remove(key);
    }

    /// The bytes of an object, without a counted request.
    pub fn bytes(&self, key: &str) -> Option<Bytes> {
        self.state.lock().objects.get(key).map(|stored| stored.body.clone())
    }

    /// Counts a request and applies its fault.
    fn request(&self, operation: Operation) -> Result<Option<Fault>> {
        let fault = {
            let mut state = self.state.lock();
            *state.requests.entry(operation).or_default() += 1;
            state.faults.get_mut(&operation).and_then(VecDeque::pop_front)
        };
        match fault {
            Some(Fault::Fails(error)) => Err(error),
            Some(Fault::Panics) => panic!("on purpose"),
            Some(Fault::Slow(time)) => {
                std::thread::sleep(time);
                Ok(None)
            }
            Some(Fault::Held(gate)) => {
                gate.pass();
                Ok(None)
            }
            other => Ok(other),
        }
    }
}

/// The metadata of an object: its mark, and the rest.
type Noted = (Option<String>, Option<Arc<ObjectMetadata>>);

fn noted(beside: WriteMetadata<'_>) -> Noted {
    let kept = beside.kept.filter(|kept| !kept.is_empty());
    (beside.mark.map(str::to_owned), kept.map(|kept| Arc::new(kept.clone())))
}

/// The answer of a request that was done.
fn answer<T>(value: T, fault: Option<Fault>) -> Result<T> {
    match fault {
        Some(Fault::AnswerLost(error) | Fault::BreaksOff(_, error)) => Err(error),
        _ => Ok(value),
    }
}

impl State {
    fn store(&mut self, key: &str, body: Bytes, beside: Noted) -> Object {
        self.writes += 1;
        let stored = Stored {
            body,
            etag: ETag::new(&format!("\"{:016x}\"", self.writes)),
            modified: Time { seconds: Time::now().seconds, nanoseconds: 0 },
            beside,
        };
        let object = stored.object(key);
        self.objects.insert(key.to_owned(), stored);
        object
    }

    /// Whether a condition holds, or is ignored by this store.
    fn check(&self, key: &str, condition: &Condition, uploaded: bool) -> Result<()> {
        let promises = &self.promises;
        let (creates, overwrites) = match uploaded {
            true => (promises.upload_create, promises.upload_overwrite),
            false => (promises.create, promises.overwrite),
        };
        let holds = match condition {
            Condition::None => true,
            Condition::Absent => !creates || !self.objects.contains_key(key),
            Condition::Matches(_) if !overwrites => true,
            Condition::Matches(etag) => {
                self.objects.get(key).is_some_and(|stored| stored.etag == *etag)
            }
        };
        if holds { Ok(()) } else { Err(BucketError::ConditionFailed { key: key.to_owned() }) }
    }

    fn find(&self, key: &str, expected: Option<&ETag>) -> Result<&Stored> {
        let stored =
            self.objects.get(key).ok_or_else(|| BucketError::NotFound { key: key.to_owned() })?;
        match expected {
            Some(etag) if *etag != stored.etag => {
                Err(BucketError::ConditionFailed { key: key.to_owned() })
            }
            _ => Ok(stored),
        }
    }

    /// The bytes of a range that starts within the object.
    fn range(&self, key: &str, range: &Range<u64>, expected: Option<&ETag>) -> Result<Bytes> {
        let body = &self.find(key, expected)?.body;
        let length = body.len() as u64;
        if range.start >= length || range.is_empty() {
            return Err(BucketError::OutOfRange { key: key.to_owned() });
        }
        Ok(body.slice(range.start as usize..range.end.min(length) as usize))
    }
}

impl Bucket for MemoryBucket {
    fn identity(&self) -> BucketIdentity {
        BucketIdentity { endpoint: "memory:".to_owned(), bucket: "test".to_owned() }
    }

    fn key_rules(&self) -> &'static KeyRules {
        self.state.lock().rules
    }

    fn promises(&self) -> Promises {
        self.state.lock().promises
    }

    fn checksum_of(&self, object: &Object) -> Option<Checksum> {
        self.state.lock().checksums.get(&object.key).copied()
    }

    fn request_counts(&self) -> Requests {
        let state = self.state.lock();
        let count = |operation| state.requests.get(&operation).copied().unwrap_or(0);
        let writes = [Operation::Put, Operation::Begin, Operation::Part, Operation::CopyPart];
        let others = [Operation::Complete, Operation::Copy];
        Requests {
            get: count(Operation::Get),
            head: count(Operation::Head),
            list: count(Operation::List),
            put: writes.into_iter().chain(others).map(count).sum(),
            delete: count(Operation::Delete) + count(Operation::Abort),
            ..Requests::default()
        }
    }

    fn head(&self, key: &str) -> Result<Object> {
        let fault = self.request(Operation::Head)?;
        let object = self.state.lock().find(key, None)?.object(key);
        answer(object, fault)
    }

    fn head_with_bytes(&self, key: &str, most_bytes: u64) -> Result<(Object, Option<Bytes>)> {
        let fault = self.request(Operation::Get)?;
        let state = self.state.lock();
        let object = state.find(key, None)?.object(key);
        let size = object.size_bytes;
        let is_small = (1..=most_bytes).contains(&size);
        let bytes = if is_small { Some(state.range(key, &(0..size), None)?) } else { None };
        drop(state);
        answer((object, bytes), fault)
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: Option<&ETag>,
        sink: &mut dyn FnMut(Bytes) -> ControlFlow<()>,
    ) -> Result<u64> {
        let fault = self.request(Operation::Get)?;
        let mut bytes = self.state.lock().range(key, &range, expected)?;
        if let Some(Fault::BreaksOff(after, _)) = &fault {
            bytes.truncate(usize::try_from(*after).unwrap_or(usize::MAX));
        }
        let mut given = 0;
        // Pieces of a size that matches no record, as from a network.
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(30_011));
            given += piece.len() as u64;
            if sink(piece).is_break() {
                break;
            }
        }
        answer(given, fault)
    }

    fn put(
        &self,
        key: &str,
        body: Bytes,
        condition: &Condition,
        beside: WriteMetadata<'_>,
    ) -> Result<Object> {
        self.key_rules().creatable(key)?;
        let fault = self.request(Operation::Put)?;
        let mut state = self.state.lock();
        state.check(key, condition, false)?;
        let object = state.store(key, body, noted(beside));
        answer(object, fault)
    }

    fn upload(
        &self,
        key: &str,
        condition: &Condition,
        beside: WriteMetadata<'_>,
    ) -> Result<Box<dyn Upload>> {
        self.key_rules().creatable(key)?;
        let fault = self.request(Operation::Begin)?;
        answer((), fault)?;
        self.state.lock().uploads += 1;
        Ok(Box::new(MemoryUpload {
            bucket: self.clone(),
            key: key.to_owned(),
            condition: condition.clone(),
            beside: noted(beside),
            parts: Vec::new(),
        }))
    }

    fn copy(&self, copy: CopyRequest<'_>) -> Result<Object> {
        let CopyRequest { source, target, condition, beside } = copy;
        self.key_rules().creatable(target)?;
        let fault = self.request(Operation::Copy)?;
        let mut state = self.state.lock();
        let body = state.find(&source.key, source.etag.as_ref())?.body.clone();
        state.check(target, condition, true)?;
        let object = state.store(target, body, noted(beside));
        answer(object, fault)
    }

    fn delete(&self, key: &str, expected: Option<&ETag>) -> Result<()> {
        let fault = self.request(Operation::Delete)?;
        let mut state = self.state.lock();
        let expected = expected.filter(|_| state.promises.delete);
        match (state.find(key, expected), expected) {
            (Err(BucketError::NotFound { .. }), None) => {}
            (found, _) => drop(found?),
        }
        state.objects.remove(key);
        answer((), fault)
    }

    fn pages(&self, listing: &Listing<'_>) -> Result<Box<dyn Pages>> {
        Ok(Box::new(MemoryPages {
            bucket: self.clone(),
            prefix: listing.prefix.to_owned(),
            delimited: listing.delimited,
            page: listing.page.clamp(1, 1000),
            after: Some((listing.prefix.to_owned(), true)),
        }))
    }
}

struct MemoryPages {
    bucket: MemoryBucket,
    prefix: String,
    delimited: bool,
    page: usize,
    /// Where the next page starts, and whether that key is included; `None` after the last page.
    after: Option<(String, bool)>,
}

impl Pages for MemoryPages {
    fn next(&mut self) -> Result<Vec<Entry>> {
        let Some((after, is_first)) = self.after.take() else { return Ok(Vec::new()) };
        let fault = self.bucket.request(Operation::List)?;
        let listing = Listing { prefix: &self.prefix, delimited: self.delimited, page: self.page };
        let (entries, next) = self.bucket.state.lock().page(&listing, &after, is_first, self.page);
        self.after = next.map(|next| (next, false));
        answer(entries, fault)
    }
}

impl State {
    /// One page of a listing that starts at `after`, and the start of the next.
    fn page(
        &self,
        listing: &Listing<'_>,
        after: &str,
        is_first: bool,
        page: usize,
    ) -> (Vec<Entry>, Option<String>) {
        use std::ops::Bound;
        let mut from = match is_first {
            true => Bound::Included(after.to_owned()),
            false => Bound::Excluded(after.to_owned()),
        };
        let mut entries = Vec::new();
        let mut last = after.to_owned();
        loop {
            let Some((key, stored)) = self.objects.range((from, Bound::Unbounded)).next() else {
                return (entries, None);
            };
            let Some(rest) = key.strip_prefix(listing.prefix) else { return (entries, None) };
            if entries.len() == page {
                return (entries, Some(last));
            }
            match rest.find('/').filter(|_| listing.delimited) {
                Some(slash) => {
                    let prefix = &key[..listing.prefix.len() + slash + 1];
                    entries.push(Entry::Prefix(prefix.to_owned()));
                    // All keys with the prefix sort before this.
                    last = format!("{prefix}\u{10ffff}");
                }
                None => {
                    let mut object = stored.object(key);
                    (object.mark, object.kept) = (None, None);
                    entries.push(Entry::Object(object));
                    last = key.clone();
                }
            }
            from = Bound::Excluded(last.clone());
        }
    }
}

/// Whether all parts except the last have one length, and the last is no longer.
fn are_even(parts: &[Bytes]) -> bool {
    let Some((last, others)) = parts.split_last() else { return true };
    let first = others.first().unwrap_or(last).len();
    last.len() <= first && others.iter().all(|part| part.len() == first)
}

struct MemoryUpload {
    bucket: MemoryBucket,
    key: String,
    condition: Condition,
    beside: Noted,
    parts: Vec<Bytes>,
}

impl Drop for MemoryUpload {
    fn drop(&mut self) {
        self.bucket.state.lock().uploads -= 1;
    }
}

impl Upload for MemoryUpload {
    fn part(&mut self, bytes: Bytes) -> Result<()> {
        let fault = self.bucket.request(Operation::Part)?;
        self.parts.push(bytes);
        answer((), fault)
    }

    fn copy_part(&mut self, source: &Object, range: Range<u64>) -> Result<()> {
        let fault = self.bucket.request(Operation::CopyPart)?;
        let bytes = self.bucket.state.lock().range(&source.key, &range, source.etag.as_ref())?;
        self.parts.push(bytes);
        answer((), fault)
    }

    fn complete(self: Box<Self>) -> Result<Object> {
        let fault = self.bucket.request(Operation::Complete)?;
        if self.bucket.state.lock().takes_even_parts_only && !are_even(&self.parts) {
            let message = "InvalidPart: all parts except the last must have one length".to_owned();
            return Err(BucketError::UnevenParts { key: self.key.clone(), message });
        }
        let mut body = BytesMut::new();
        self.parts.iter().for_each(|part| body.extend_from_slice(part));
        let object = {
            let mut state = self.bucket.state.lock();
            state.check(&self.key, &self.condition, true)?;
            state.store(&self.key, body.freeze(), self.beside.clone())
        };
        answer(object, fault)
    }

    fn abort(self: Box<Self>) -> Result<()> {
        self.bucket.request(Operation::Abort).map(drop)
    }
}

#[cfg(test)]
mod tests;
