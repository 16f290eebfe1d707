//! A store on loopback that speaks as much of S3 as writing an object needs, and answers single
//! requests as it is told.

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Head,
    Get,
    Put,
    Delete,
    List,
    Begin,
    Part,
    CopyPart,
    Complete,
    Abort,
    Uploads,
    Parts,
}

/// What a request is answered with instead of what it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// This status, with the code of an error.
    Error(u16, &'static str),
    /// The connection ends.
    Reset,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) answer: Answer,
    /// Whether the store does what it was asked all the same.
    pub(crate) is_done: bool,
}

#[derive(Clone, Debug, Default)]
struct Stored {
    body: Vec<u8>,
    etag: String,
    beside: Vec<(String, String)>,
}

/// An upload in parts that is under way.
#[derive(Clone, Debug, Default)]
struct Begun {
    key: String,
    beside: Vec<(String, String)>,
    parts: BTreeMap<u32, Vec<u8>>,
    /// In seconds since the epoch.
    initiated: u64,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, Begun>,
    changes: u64,
    faults: HashMap<Step, VecDeque<Fault>>,
    asked: HashMap<Step, u64>,
    /// By how many seconds the clock is before ours.
    ahead: u64,
    /// Uploads on a page of their listing.
    page: Option<usize>,
}

/// The store; it answers for as long as the process lives.
#[derive(Clone)]
pub(crate) struct Store {
    state: Arc<Mutex<State>>,
    pub(crate) endpoint: String,
}

/// A request.
struct Request {
    method: Method,
    key: String,
    query: HashMap<String, String>,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A status, fields and a body.
type Reply = (u16, Vec<(String, String)>, Vec<u8>);

fn error(status: u16, code: &str) -> Reply {
    if code.is_empty() {
        // As what stands before a store says it.
        return (status, Vec::new(), b"<html><body>so told</body></html>".to_vec());
    }
    let text = format!("<Error><Code>{code}</Code><Message>so told</Message></Error>");
    (status, Vec::new(), text.into_bytes())
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
        let key = path.strip_prefix("/bucket").unwrap_or(path).trim_start_matches('/').to_owned();
        let fields = query.split('&').filter(|field| !field.is_empty());
        let query = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
        let plain = opendal::raw::percent_decode_path;
        let query = query.map(|(name, value)| (name.to_owned(), plain(value))).collect();
        Some(Self { method, key: plain(&key), query, headers, body })
    }

    fn step(&self) -> Step {
        let has = |name: &str| self.query.contains_key(name);
        let copies = self.headers.contains_key("x-amz-copy-source");
        match self.method.as_str() {
            "HEAD" => Step::Head,
            "GET" if has("uploads") => Step::Uploads,
            "GET" if has("uploadId") => Step::Parts,
            "GET" if has("list-type") => Step::List,
            "GET" => Step::Get,
            "PUT" if has("uploadId") && copies => Step::CopyPart,
            "PUT" if has("uploadId") => Step::Part,
            "PUT" => Step::Put,
            "POST" if has("uploads") => Step::Begin,
            "POST" => Step::Complete,
            "DELETE" if has("uploadId") => Step::Abort,
            "DELETE" => Step::Delete,
            other => panic!("{other} is not known here"),
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn asked(&self, name: &str) -> String {
        self.query.get(name).cloned().unwrap_or_default()
    }

    /// The bytes that are asked for, or that are to be copied, of so many.
    fn range(&self, size: usize) -> Option<(usize, usize)> {
        let text = self.field("range").or_else(|| self.field("x-amz-copy-source-range"))?;
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        let until = last.parse::<usize>().map_or(size, |last| last + 1).min(size);
        Some((first.parse().ok()?, until))
    }

    /// What is to be kept beside the object.
    fn beside(&self) -> Vec<(String, String)> {
        let fields = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        let kept = fields.filter(|(name, _)| name.starts_with("x-amz-meta-"));
        kept.map(|(name, value)| (name.to_owned(), value.to_str().unwrap_or("").to_owned()))
            .collect()
    }
}

impl State {
    fn store(&mut self, key: &str, body: Vec<u8>, beside: Vec<(String, String)>) -> String {
        self.changes += 1;
        let etag = format!("\"{}\"", self.changes);
        self.objects.insert(key.to_owned(), Stored { body, etag: etag.clone(), beside });
        etag
    }

    /// Whether the conditions of a change hold; else its answer.
    fn check(&self, request: &Request) -> Result<(), Reply> {
        let there = self.objects.get(&request.key).map(|stored| stored.etag.as_str());
        let is_wrong = match (request.field("if-match"), request.field("if-none-match")) {
            (Some(_), _) if there.is_none() => return Err(error(404, "NoSuchKey")),
            (Some(wanted), _) => there != Some(wanted),
            (None, Some(_)) => there.is_some(),
            (None, None) => false,
        };
        if is_wrong { Err(error(412, "PreconditionFailed")) } else { Ok(()) }
    }

    fn respond(&mut self, request: &Request) -> Reply {
        self.carry_out(request).unwrap_or_else(|reply| reply)
    }

    fn carry_out(&mut self, request: &Request) -> Result<Reply, Reply> {
        let key = &request.key;
        match request.step() {
            Step::Head | Step::Get => {
                let stored = self.objects.get(key).ok_or_else(|| error(404, "NoSuchKey"))?;
                if request.field("if-match").is_some_and(|wanted| wanted != stored.etag) {
                    return Err(error(412, "PreconditionFailed"));
                }
                let mut fields = stored.beside.clone();
                fields.push(("ETag".to_owned(), stored.etag.clone()));
                match request.range(stored.body.len()) {
                    Some((from, until)) => {
                        let size = stored.body.len();
                        let range = format!("bytes {from}-{}/{size}", until - 1);
                        fields.push(("Content-Range".to_owned(), range));
                        Ok((206, fields, stored.body[from..until].to_vec()))
                    }
                    None => Ok((200, fields, stored.body.clone())),
                }
            }
            Step::Put => {
                self.check(request)?;
                with_etag(self.store(key, request.body.clone(), request.beside()))
            }
            Step::Delete => {
                if request.field("if-match").is_some() {
                    self.check(request)?;
                }
                self.objects.remove(key);
                Ok((204, Vec::new(), Vec::new()))
            }
            Step::List => {
                let prefix = request.asked("prefix");
                let below = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
                let entries = below.map(|(key, stored)| {
                    format!(
                        "<Contents><Key>{key}</Key><ETag>{}</ETag><Size>{}</Size>\
                         <LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents>",
                        stored.etag,
                        stored.body.len()
                    )
                });
                let entries: String = entries.collect();
                ok(format!("<R><IsTruncated>false</IsTruncated>{entries}</R>"))
            }
            _ => self.carry_out_in_parts(request),
        }
    }

    /// The same for a step of an upload in parts.
    fn carry_out_in_parts(&mut self, request: &Request) -> Result<Reply, Reply> {
        let (key, id) = (&request.key, request.asked("uploadId"));
        let no_upload = || error(404, "NoSuchUpload");
        match request.step() {
            Step::Begin => {
                self.changes += 1;
                let id = format!("upload-{}", self.changes);
                let begun = Begun {
                    key: key.clone(),
                    beside: request.beside(),
                    parts: BTreeMap::new(),
                    initiated: now() + self.ahead,
                };
                self.uploads.insert(id.clone(), begun);
                ok(format!("<Result><UploadId>{id}</UploadId></Result>"))
            }
            Step::Part => {
                let upload = self.uploads.get_mut(&id).ok_or_else(no_upload)?;
                let number = request.asked("partNumber").parse().expect("a number");
                upload.parts.insert(number, request.body.clone());
                with_etag(format!("\"part-{number}\""))
            }
            Step::CopyPart => {
                let source = request.field("x-amz-copy-source").expect("it is one");
                let source = source.trim_start_matches('/').strip_prefix("bucket/");
                let source = self.objects.get(source.expect("of this bucket"));
                let source = source.cloned().ok_or_else(|| error(404, "NoSuchKey"))?;
                let wanted = request.field("x-amz-copy-source-if-match");
                if wanted.is_some_and(|wanted| wanted != source.etag) {
                    return Err(error(412, "PreconditionFailed"));
                }
                let upload = self.uploads.get_mut(&id).ok_or_else(no_upload)?;
                let number = request.asked("partNumber").parse().expect("a number");
                let size = source.body.len();
                let (from, until) = request.range(size).unwrap_or((0, size));
                upload.parts.insert(number, source.body[from..until].to_vec());
                ok(format!("<CopyPartResult><ETag>\"part-{number}\"</ETag></CopyPartResult>"))
            }
            Step::Complete => {
                let upload = self.uploads.get(&id).cloned().ok_or_else(no_upload)?;
                self.check(request)?;
                self.uploads.remove(&id);
                let body = upload.parts.into_values().collect::<Vec<_>>().concat();
                let etag = self.store(key, body, upload.beside);
                ok(format!("<CompleteResult><ETag>{etag}</ETag></CompleteResult>"))
            }
            Step::Abort => {
                self.uploads.remove(&id).ok_or_else(no_upload)?;
                Ok((204, Vec::new(), Vec::new()))
            }
            Step::Uploads => ok(self.listed(request)),
            Step::Parts => {
                let upload = self.uploads.get(&id).ok_or_else(no_upload)?;
                let parts = upload.parts.keys().map(|number| format!("<Part>{number}</Part>"));
                ok(format!("<ListPartsResult>{}</ListPartsResult>", parts.collect::<String>()))
            }
            other => panic!("{other:?} is no step of an upload"),
        }
    }

    /// A page of the uploads that are under way.
    fn listed(&self, request: &Request) -> String {
        let after = (request.asked("key-marker"), request.asked("upload-id-marker"));
        let place = |(id, upload): (&String, &Begun)| (upload.key.clone(), id.clone());
        let mut all: Vec<_> = self.uploads.iter().map(place).collect();
        all.retain(|(key, _)| key.starts_with(&request.asked("prefix")));
        all.sort();
        all.retain(|place| *place > after);
        let page = self.page.unwrap_or(1000);
        let more = all.len() > page;
        all.truncate(page);
        let entry = |(key, id): &(String, String)| {
            let initiated = opendal::raw::Timestamp::try_from(time(self.uploads[id].initiated));
            format!(
                "<Upload><Key>{key}</Key><UploadId>{id}</UploadId>\
                 <Initiated>{}</Initiated></Upload>",
                initiated.expect("a time")
            )
        };
        let entries: String = all.iter().map(entry).collect();
        let (key, id) = all.last().cloned().unwrap_or_default();
        format!(
            "<R><IsTruncated>{more}</IsTruncated><NextKeyMarker>{key}</NextKeyMarker>\
             <NextUploadIdMarker>{id}</NextUploadIdMarker>{entries}</R>"
        )
    }
}

impl Store {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
        let store = Self { state: Arc::default(), endpoint };
        let serving = store.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (store, connection) = (serving.clone(), connection.expect("a connection"));
                std::thread::spawn(move || store.serve(connection));
            }
        });
        store
    }

    /// Forgets all it has and was told.
    pub(crate) fn forget_all(&self) {
        *self.state.lock() = State::default();
    }

    /// Decides what becomes of the next request of a kind for which nothing is decided yet.
    pub(crate) fn doom(&self, step: Step, fault: Fault) {
        self.state.lock().faults.entry(step).or_default().push_back(fault);
    }

    /// How many requests of a kind there were.
    pub(crate) fn asked(&self, step: Step) -> u64 {
        self.state.lock().asked.get(&step).copied().unwrap_or(0)
    }

    /// Puts the clock before ours.
    pub(crate) fn be_ahead(&self, seconds: u64) {
        self.state.lock().ahead = seconds;
    }

    /// Lists so many uploads on a page.
    pub(crate) fn list_on_pages_of(&self, uploads: usize) {
        self.state.lock().page = Some(uploads);
    }

    /// Begins an upload as somebody else would, at a time of the store's clock.
    pub(crate) fn begin_upload(&self, key: &str, id: &str, initiated: u64) {
        let begun = Begun { key: key.to_owned(), initiated, ..Begun::default() };
        self.state.lock().uploads.insert(id.to_owned(), begun);
    }

    /// The ids of the uploads that are under way.
    pub(crate) fn uploads(&self) -> Vec<String> {
        self.state.lock().uploads.keys().cloned().collect()
    }

    /// Writes as somebody else would.
    pub(crate) fn put(&self, key: &str, body: &[u8]) {
        self.state.lock().store(key, body.to_vec(), Vec::new());
    }

    pub(crate) fn body(&self, key: &str) -> Option<Vec<u8>> {
        self.state.lock().objects.get(key).map(|stored| stored.body.clone())
    }

    /// Answers one request after the other, until the connection ends.
    fn serve(&self, mut connection: TcpStream) {
        let mut reader = BufReader::new(connection.try_clone().expect("a descriptor"));
        while let Some(request) = Request::read(&mut reader) {
            let step = request.step();
            let (reply, date) = {
                let mut state = self.state.lock();
                *state.asked.entry(step).or_default() += 1;
                let fault = state.faults.get_mut(&step).and_then(VecDeque::pop_front);
                let done = match fault {
                    Some(Fault { is_done: false, .. }) => None,
                    _ => Some(state.respond(&request)),
                };
                let reply = match fault.map(|fault| fault.answer) {
                    None => done,
                    Some(Answer::Error(status, code)) => Some(error(status, code)),
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
