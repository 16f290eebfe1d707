//! A store on loopback that supports what writing an object needs in three protocols, and fails
//! single requests on demand.

mod azure;
mod google;
mod s3;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Method};
use md5::{Digest as _, Md5};
use ogive_bucket::StoreKind;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Head,
    Get,
    Put,
    Delete,
    List,
    Versions,
    Begin,
    Part,
    CopyPart,
    Complete,
    Abort,
    Uploads,
    Parts,
}

/// The answer that replaces the normal one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// This status, with an error code.
    Error(u16, &'static str),
    /// The connection ends.
    Reset,
}

/// A fault of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) answer: Answer,
    /// Whether the store executes the request before it fails.
    pub(crate) is_done: bool,
}

#[derive(Clone, Debug, Default)]
struct Stored {
    body: Vec<u8>,
    etag: String,
    beside: Vec<(String, String)>,
}

/// A multipart upload in progress.
#[derive(Clone, Debug, Default)]
struct Begun {
    key: String,
    beside: Vec<(String, String)>,
    parts: BTreeMap<u32, Vec<u8>>,
    /// The numbers of the parts by id.
    names: HashMap<String, u32>,
    /// The condition of its completion.
    condition: String,
    is_done: bool,
    /// In seconds since the epoch.
    initiated: u64,
}

#[derive(Default)]
struct State {
    kind: StoreKind,
    objects: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, Begun>,
    changes: u64,
    faults: HashMap<Step, VecDeque<Fault>>,
    asked: HashMap<Step, u64>,
    /// By how many seconds the store's clock is ahead of ours.
    ahead: u64,
    /// How many uploads are on a page of their listing.
    page: Option<usize>,
    demands_checksums: bool,
    demands_even_parts: bool,
    /// Keys and numbers of versions and delete markers, if they are kept.
    versions: Option<Vec<(String, u64)>>,
    /// The key that signed the last request.
    signed_by: String,
    /// Whether prefixes with only deleted objects are listed.
    lists_deleted: bool,
    /// How many bodies came with a checksum, and how many were refused without one.
    summed: u64,
    unsummed: u64,
}

/// The store; it answers as long as the process lives.
#[derive(Clone)]
pub(crate) struct Store {
    state: Arc<Mutex<State>>,
    pub(crate) endpoint: String,
}

/// A request.
struct Request {
    method: Method,
    path: String,
    key: String,
    query: HashMap<String, String>,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A status, headers and a body.
type Reply = (u16, Vec<(String, String)>, Vec<u8>);

/// An error of the store, or of a gateway if there is no code.
fn error(kind: StoreKind, status: u16, code: &str) -> Reply {
    match kind {
        _ if code.is_empty() => {
            (status, Vec::new(), b"<html><body>the message</body></html>".to_vec())
        }
        StoreKind::S3 => s3::error(status, code),
        StoreKind::Azure => azure::error(status, code),
        StoreKind::Google => google::error(status, code),
    }
}

fn ok(text: String) -> Result<Reply, Reply> {
    Ok((200, Vec::new(), text.into_bytes()))
}

fn with_etag(etag: String) -> Result<Reply, Reply> {
    Ok((200, vec![("ETag".to_owned(), etag)], Vec::new()))
}

fn time(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_secs()
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        let mut headers = HeaderMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            let name: http::HeaderName = name.parse().ok()?;
            headers.insert(name, value.parse().ok()?);
        }
        let length = headers.get("content-length").and_then(|text| text.to_str().ok());
        let mut body = vec![0; length.and_then(|text| text.parse().ok()).unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        // A proxy receives the whole address.
        let path = path.strip_prefix("http://store.example").unwrap_or(path);
        let key = path.strip_prefix("/bucket").unwrap_or(path).trim_start_matches('/').to_owned();
        let fields = query.split('&').filter(|field| !field.is_empty());
        let query = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
        let plain = opendal::raw::percent_decode_path;
        let query = query.map(|(name, value)| (name.to_owned(), plain(value))).collect();
        let path = path.to_owned();
        Some(Self { method, path, key: plain(&key), query, headers, body })
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn asked(&self, name: &str) -> String {
        self.query.get(name).cloned().unwrap_or_default()
    }

    /// The requested range of an object of this size.
    pub(crate) fn range(&self, size: usize) -> Option<(usize, usize)> {
        let named = ["range", "x-ms-range", "x-amz-copy-source-range"];
        let text = named.iter().find_map(|name| self.field(name))?;
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        let until = last.parse::<usize>().map_or(size, |last| last + 1).min(size);
        Some((first.parse().ok()?, until))
    }

    fn signed_by(&self) -> String {
        let text = self.field("authorization").unwrap_or_default();
        let key = text.split_once("Credential=").and_then(|(_, rest)| rest.split_once('/'));
        key.map(|(key, _)| key.to_owned()).unwrap_or_default()
    }

    /// Whether its checksum matches its body.
    fn is_summed(&self) -> bool {
        let sum = BASE64_STANDARD.encode(Md5::digest(&self.body));
        self.field("content-md5") == Some(&sum)
    }

    /// The metadata of the object.
    pub(crate) fn beside(&self, prefix: &str) -> Vec<(String, String)> {
        let fields = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        let kept = fields.filter(|(name, _)| name.starts_with(prefix));
        kept.map(|(name, value)| (name.to_owned(), value.to_str().unwrap_or("").to_owned()))
            .collect()
    }
}

impl State {
    fn store(&mut self, key: &str, body: Vec<u8>, beside: Vec<(String, String)>) -> String {
        self.version(key);
        let etag = format!("\"{}\"", self.changes);
        self.objects.insert(key.to_owned(), Stored { body, etag: etag.clone(), beside });
        etag
    }

    /// Adds a version or a delete marker, if they are kept.
    fn version(&mut self, key: &str) {
        self.changes += 1;
        let version = (key.to_owned(), self.changes);
        self.versions.iter_mut().for_each(|versions| versions.push(version.clone()));
    }

    fn respond(&mut self, request: &Request) -> Reply {
        self.summed += u64::from(request.is_summed());
        let is_body = || matches!(s3::step(request), Step::Put | Step::Part);
        if self.demands_checksums && !request.is_summed() && is_body() {
            self.unsummed += 1;
            let text = "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- \
                        HTTP header is required for Put Object requests with Object Lock \
                        parameters</Message></Error>";
            return (400, Vec::new(), text.as_bytes().to_vec());
        }
        let done = match self.kind {
            StoreKind::S3 => self.carry_out_s3(request),
            StoreKind::Azure => self.carry_out_azure(request),
            StoreKind::Google => self.carry_out_google(request),
        };
        done.unwrap_or_else(|reply| reply)
    }

    /// The answer to a HEAD or a GET.
    fn shown(&self, key: &str, request: &Request) -> Option<Reply> {
        let stored = self.objects.get(key)?;
        let mut fields = stored.beside.clone();
        fields.push(("ETag".to_owned(), stored.etag.clone()));
        Some(match request.range(stored.body.len()) {
            Some((from, until)) => {
                let size = stored.body.len();
                fields.push((
                    "Content-Range".to_owned(),
                    format!("bytes {from}-{}/{size}", until - 1),
                ));
                (206, fields, stored.body[from..until].to_vec())
            }
            None => (200, fields, stored.body.clone()),
        })
    }
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::of(StoreKind::S3)
    }

    /// A store with this protocol.
    pub(crate) fn of(kind: StoreKind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
        let state = Arc::new(Mutex::new(State { kind, ..State::default() }));
        let store = Self { state, endpoint };
        let serving = store.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (store, connection) = (serving.clone(), connection.expect("a connection"));
                std::thread::spawn(move || store.serve(connection));
            }
        });
        store
    }

    /// Its protocol.
    pub(crate) fn kind(&self) -> StoreKind {
        self.state.lock().kind
    }

    /// Resets the store, except for its protocol.
    pub(crate) fn forget_all(&self) {
        let mut state = self.state.lock();
        *state = State { kind: state.kind, ..State::default() };
    }

    /// Queues a fault for the next request of a kind that has none yet.
    pub(crate) fn doom(&self, step: Step, fault: Fault) {
        self.state.lock().faults.entry(step).or_default().push_back(fault);
    }

    /// How many requests of a kind there were.
    pub(crate) fn asked(&self, step: Step) -> u64 {
        self.state.lock().asked.get(&step).copied().unwrap_or(0)
    }

    /// Sets its clock ahead of ours.
    pub(crate) fn be_ahead(&self, seconds: u64) {
        self.state.lock().ahead = seconds;
    }

    /// Limits a page of uploads.
    pub(crate) fn list_on_pages_of(&self, uploads: usize) {
        self.state.lock().page = Some(uploads);
    }

    /// Refuses bodies without a checksum, like a bucket with Object Lock.
    pub(crate) fn demand_checksums(&self) {
        self.state.lock().demands_checksums = true;
    }

    /// Requires parts of one length except for the last, like R2.
    pub(crate) fn demand_even_parts(&self) {
        self.state.lock().demands_even_parts = true;
    }

    /// Keeps versions, like a versioned bucket, and may list prefixes with only deleted objects.
    pub(crate) fn keep_versions(&self, lists_deleted: bool) {
        let mut state = self.state.lock();
        state.versions = Some(Vec::new());
        state.lists_deleted = lists_deleted;
    }

    /// The keys of all versions and delete markers.
    pub(crate) fn versions(&self) -> Vec<String> {
        self.state.lock().versions.iter().flatten().map(|(key, _)| key.clone()).collect()
    }

    /// The key that signed the last request.
    pub(crate) fn signed_by(&self) -> String {
        self.state.lock().signed_by.clone()
    }

    /// How many bodies came with their checksum.
    pub(crate) fn summed(&self) -> u64 {
        self.state.lock().summed
    }

    /// How many bodies were refused without one.
    pub(crate) fn unsummed(&self) -> u64 {
        self.state.lock().unsummed
    }

    /// Begins an upload of another client, at a time of the store's clock.
    pub(crate) fn begin_upload(&self, key: &str, id: &str, initiated: u64) {
        let begun = Begun { key: key.to_owned(), initiated, ..Begun::default() };
        self.state.lock().uploads.insert(id.to_owned(), begun);
    }

    /// The ids of the uploads in progress.
    pub(crate) fn uploads(&self) -> Vec<String> {
        self.state.lock().uploads.keys().cloned().collect()
    }

    /// Writes like another client.
    pub(crate) fn put(&self, key: &str, body: &[u8]) {
        self.state.lock().store(key, body.to_vec(), Vec::new());
    }

    /// The same, with headers for each answer about the object.
    pub(crate) fn put_with(&self, key: &str, body: &[u8], fields: &[(&str, &str)]) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.state.lock().store(key, body.to_vec(), fields.iter().map(own).collect());
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.lock().objects.keys().cloned().collect()
    }

    pub(crate) fn body(&self, key: &str) -> Option<Vec<u8>> {
        self.state.lock().objects.get(key).map(|stored| stored.body.clone())
    }

    /// Answers requests until the connection ends.
    fn serve(&self, mut connection: TcpStream) {
        let mut reader = BufReader::new(connection.try_clone().expect("a descriptor"));
        while let Some(request) = Request::read(&mut reader) {
            let (reply, date) = {
                let mut state = self.state.lock();
                let step = match state.kind {
                    StoreKind::S3 => s3::step(&request),
                    StoreKind::Azure => azure::step(&request),
                    StoreKind::Google => google::step(&request),
                };
                *state.asked.entry(step).or_default() += 1;
                state.signed_by = request.signed_by();
                let fault = state.faults.get_mut(&step).and_then(VecDeque::pop_front);
                let done = match fault {
                    Some(Fault { is_done: false, .. }) => None,
                    _ => Some(state.respond(&request)),
                };
                let reply = match fault.map(|fault| fault.answer) {
                    None => done,
                    Some(Answer::Error(status, code)) => Some(error(state.kind, status, code)),
                    Some(Answer::Reset) => None,
                };
                (reply, httpdate::fmt_http_date(time(now() + state.ahead)))
            };
            let Some((status, fields, body)) = reply else { return };
            let mut head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nDate: {date}\r\n\
                 Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n",
                body.len()
            );
            for (name, value) in fields {
                head += &format!("{name}: {value}\r\n");
            }
            head += "\r\n";
            let body: &[u8] = if request.method == Method::HEAD { &[] } else { &body };
            let is_sent = connection.write_all(head.as_bytes()).is_ok();
            if !is_sent || connection.write_all(body).is_err() {
                return;
            }
        }
    }
}
