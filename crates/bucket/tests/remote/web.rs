//! A web server: one answer does not decide how all its directories are listed.

use ogive_bucket::{Bucket as _, BucketError, Entry, Listing, WebBucket};
use parking_lot::Mutex;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The answer of a server to a method and a path: a status, the type of the body, and the body.
pub(super) type Says = fn(&str, &str) -> (u16, &'static str, String);

/// A server, and the requests that it received.
pub(super) struct Server {
    pub(super) address: String,
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn new(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let (says, asked) = (Arc::new(Mutex::new(says)), Arc::<Mutex<Vec<String>>>::default());
        let (answers, noted) = (Arc::clone(&says), Arc::clone(&asked));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut reader = BufReader::new(connection.try_clone().unwrap());
                let (mut head, mut length) = (String::new(), 0);
                if reader.read_line(&mut head).is_err() {
                    continue;
                }
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                        break;
                    }
                    if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
                        length = text.trim().parse().unwrap();
                    }
                }
                let _ = reader.read_exact(&mut vec![0; length]);
                let mut words = head.split(' ');
                let (method, path) = (words.next().unwrap(), words.next().unwrap());
                noted.lock().push(format!("{method} {path}"));
                let (status, kind, body) = answers.lock()(method, path);
                let _ = write!(
                    connection,
                    "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { address, says, asked }
    }

    fn say(&self, says: Says) {
        *self.says.lock() = says;
    }

    /// The requests since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

/// A WebDAV listing with one file.
fn dav(path: &str) -> (u16, &'static str, String) {
    let entry = |path: String, properties: &str| {
        format!(
            "<D:response><D:href>{path}</D:href><D:propstat><D:prop>{properties}</D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let own = entry(path.to_owned(), "<D:resourcetype><D:collection/></D:resourcetype>");
    let file = "<D:resourcetype/><D:getcontentlength>5</D:getcontentlength>";
    let file = entry(format!("{path}f"), file);
    let text = format!("<D:multistatus xmlns:D=\"DAV:\">{own}{file}</D:multistatus>");
    (207, "application/xml", text)
}

fn works(method: &str, path: &str) -> (u16, &'static str, String) {
    match method {
        "PROPFIND" => dav(path),
        _ => (403, "text/plain", String::new()),
    }
}

fn names(bucket: &WebBucket, prefix: &str) -> Result<Vec<String>, BucketError> {
    let mut names = Vec::new();
    bucket.list(&Listing { prefix, delimited: true, page: 1000 }, &mut |entry| {
        if let Entry::Object(object) = entry {
            names.push(object.key);
        }
        ControlFlow::Continue(())
    })?;
    names.retain(|name| !name.ends_with('/'));
    Ok(names)
}

#[test]
fn one_error_does_not_change_how_the_next_directory_is_listed() {
    let server = Server::new(works);
    let bucket = WebBucket::open(&server.address, None).unwrap();
    let faults: [Says; 4] = [
        |_, _| (403, "text/plain", String::new()),
        |_, _| (400, "text/plain", String::new()),
        |_, _| (500, "text/plain", String::new()),
        |_, _| (502, "text/plain", String::new()),
    ];
    for fault in faults {
        server.say(fault);
        names(&bucket, "d/").unwrap_err();
        server.say(works);
        server.asked();
        assert_eq!(names(&bucket, "e/").unwrap(), ["e/f"]);
        assert_eq!(server.asked(), ["PROPFIND /e/"]);
    }
}

#[test]
fn a_server_without_webdav_gets_one_propfind() {
    let refusals: [Says; 3] = [
        |_, _| (405, "text/plain", String::new()),
        |_, _| (501, "text/plain", String::new()),
        |_, _| (200, "text/plain", String::new()),
    ];
    for refusal in refusals {
        let server = Server::new(refusal);
        // None of these answers is a listing.
        let bucket = WebBucket::open(&server.address, None);
        let asked = server.asked();
        assert_eq!(asked, ["PROPFIND /", "GET /"], "{:?}", bucket.err());
    }
    let server = Server::new(|method, path| match (method, path) {
        ("GET", path) if path.ends_with('/') => {
            (200, "text/html", "<a href=\"f\">f</a>".to_owned())
        }
        ("HEAD", _) => (200, "text/plain", "hello".to_owned()),
        _ => (405, "text/plain", String::new()),
    });
    let bucket = WebBucket::open(&server.address, None).unwrap();
    server.asked();
    assert_eq!(names(&bucket, "d/").unwrap(), ["d/f"]);
    assert_eq!(server.asked(), ["GET /d/", "HEAD /d/f"]);
}
