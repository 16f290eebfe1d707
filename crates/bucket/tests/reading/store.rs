//! A store on loopback that supports what reading an S3 object needs, counts its requests and fails
//! on demand.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait for an event, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The answer to a GET.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// A status and the code of an error.
    Error(u16, &'static str),
    /// The connection ends after this many bytes of the body.
    BreaksOff(u64),
}

#[derive(Default)]
struct State {
    body: Vec<u8>,
    etag: u32,
    /// Ranges of the GETs so far.
    asked: Vec<(u64, u64)>,
    /// How many GETs are in progress, and the largest number so far.
    under_way: usize,
    at_once: usize,
    answers: VecDeque<Answer>,
    /// Whether the answers to GETs are held.
    is_held: bool,
    /// The first GET of this range is never answered.
    unanswered: Option<(u64, u64)>,
    /// The checksum header of the object; without one, requests for it get an error.
    checksum: Option<&'static str>,
    /// How many HEADs requested it, and how many HEADs there were.
    checksums_asked: u64,
    heads: u64,
}

/// The store; it answers as long as the process lives.
#[derive(Clone)]
pub(crate) struct Store {
    state: Arc<Mutex<State>>,
    /// Signals that a GET has arrived, or that answers are no longer held.
    changed: Arc<Condvar>,
    pub(crate) endpoint: String,
}

impl Store {
    pub(crate) fn with(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
        let store = Self { state: Arc::default(), changed: Arc::default(), endpoint };
        store.put(body);
        let serving = store.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (store, connection) = (serving.clone(), connection.expect("a connection"));
                std::thread::spawn(move || store.serve(connection));
            }
        });
        store
    }

    /// Overwrites the object.
    pub(crate) fn put(&self, body: Vec<u8>) {
        let mut state = self.state.lock();
        (state.body, state.etag) = (body, state.etag + 1);
    }

    /// Queues an answer for the next GET that has none yet.
    pub(crate) fn answer(&self, answer: Answer) {
        self.state.lock().answers.push_back(answer);
    }

    /// Holds the answers to all further GETs.
    pub(crate) fn hold(&self) {
        self.state.lock().is_held = true;
    }

    /// Answers the held GETs and all later ones.
    pub(crate) fn let_go(&self) {
        self.state.lock().is_held = false;
        self.changed.notify_all();
    }

    /// Waits until this many GETs are in progress at once.
    pub(crate) fn wait_for_at_once(&self, wanted: usize) {
        let (mut state, until) = (self.state.lock(), Instant::now() + PATIENCE);
        while state.under_way < wanted {
            let is_late = self.changed.wait_until(&mut state, until).timed_out();
            assert!(!is_late, "never came: {wanted} at once, but {}", state.under_way);
        }
    }

    /// Never answers the first GET of a range.
    pub(crate) fn never_answer_first(&self, range: (u64, u64)) {
        self.state.lock().unanswered = Some(range);
    }

    /// Sets the checksum header; without one, requests for it get an error.
    pub(crate) fn show_checksum(&self, checksum: Option<&'static str>) {
        self.state.lock().checksum = checksum;
    }

    /// How many HEADs there were, and how many of them requested a checksum.
    pub(crate) fn heads(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.heads, state.checksums_asked)
    }

    /// The requested ranges since the last call.
    pub(crate) fn asked(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.state.lock().asked)
    }

    pub(crate) fn at_once(&self) -> usize {
        self.state.lock().at_once
    }

    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.state.lock().etag)
    }

    /// Answers requests until the connection ends.
    fn serve(&self, connection: TcpStream) {
        let mut reader = BufReader::new(connection.try_clone().expect("a descriptor"));
        let mut connection = connection;
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                match reader.read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if line == "\r\n" => break,
                    Ok(_) => head.push(line.trim_end().to_ascii_lowercase()),
                }
            }
            if !self.respond(&head, &mut connection) {
                return;
            }
        }
    }

    fn respond(&self, head: &[String], connection: &mut TcpStream) -> bool {
        let field = |name: &str| {
            head.iter().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let is_get = head[0].starts_with("get ");
        let asks_checksum = field("x-amz-checksum-mode").is_some();
        let (answer, body, etag, checksum) = {
            let mut state = self.state.lock();
            state.heads += u64::from(!is_get);
            state.checksums_asked += u64::from(asks_checksum);
            let answer = if is_get { state.answers.pop_front() } else { None };
            state.under_way += 1;
            state.at_once = state.at_once.max(state.under_way);
            let etag = format!("\"{}\"", state.etag);
            (answer, state.body.clone(), etag, state.checksum)
        };
        let size = body.len() as u64;
        let range = field("range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse::<u64>().ok()?, last.parse().map_or(size, |last: u64| last + 1)))
        });
        let (from, until) = range.unwrap_or((0, size));
        let until = until.min(size);
        if is_get {
            let mut state = self.state.lock();
            state.asked.push((from, until));
            self.changed.notify_all();
            let is_unanswered = state.unanswered == Some((from, until));
            if is_unanswered {
                state.unanswered = None;
            }
            while is_unanswered || state.is_held {
                self.changed.wait(&mut state);
            }
        }
        let is_changed = field("if-match").is_some_and(|wanted| wanted != etag);
        let error = match answer {
            Some(Answer::Error(status, code)) => Some((status, code)),
            _ if is_changed => Some((412, "PreconditionFailed")),
            _ if asks_checksum && checksum.is_none() => Some((400, "InvalidRequest")),
            _ => None,
        };
        self.state.lock().under_way -= 1;
        if let Some((status, code)) = error {
            if !is_get {
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                return connection.write_all(head.as_bytes()).is_ok();
            }
            let text = format!("<Error><Code>{code}</Code><Message>so told</Message></Error>");
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", text.len());
            return connection.write_all((head + &text).as_bytes()).is_ok();
        }
        if !is_get || (range.is_none() && answer.is_none()) {
            let shown = checksum.filter(|_| asks_checksum).unwrap_or("none: here");
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: {etag}\r\n{shown}\r\n\
                 Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n\r\n"
            );
            let body: &[u8] = if is_get { &body } else { &[] };
            let is_sent = connection.write_all(head.as_bytes()).is_ok();
            return is_sent && connection.write_all(body).is_ok();
        }
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nETag: {etag}\r\n\
             Content-Range: bytes {from}-{}/{size}\r\n\
             Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n\r\n",
            until - from,
            until - 1,
        );
        let mut bytes = &body[from as usize..until as usize];
        let breaks_off = match answer {
            Some(Answer::BreaksOff(after)) => Some(after),
            _ => None,
        };
        if let Some(after) = breaks_off {
            bytes = &bytes[..after as usize];
        }
        let is_sent = connection.write_all(head.as_bytes()).is_ok();
        is_sent && connection.write_all(bytes).is_ok() && breaks_off.is_none()
    }
}
