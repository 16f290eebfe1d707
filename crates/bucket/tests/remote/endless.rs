//! A store with endless answers: each is read only as far as it is useful.

use ogive_bucket::{
    Bucket as _, BucketError, Condition, Listing, RemoteBucket, WebBucket, WriteMetadata,
};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::mpsc;

const MIB: usize = 1 << 20;
/// The length of an endless answer.
const ENDLESS_BYTES: usize = 64 * MIB;
/// More than the buffers of two unread sockets hold.
const BUFFERED_BYTES: usize = 16 * MIB;

/// A server that answers each request with the same status and an endless body, which starts with
/// given bytes.
struct Endless {
    address: String,
    /// How many bytes of each answer were written.
    written: mpsc::Receiver<usize>,
}

/// Reads a request; `None` if the connection has ended.
fn read(reader: &mut BufReader<TcpStream>) -> Option<()> {
    let (mut length, mut line) = (0, String::new());
    while !line.ends_with("\r\n\r\n") {
        let from = line.len();
        (reader.read_line(&mut line).ok()? > 0).then_some(())?;
        if let Some(text) = line[from..].to_lowercase().strip_prefix("content-length: ") {
            length = text.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()
}

impl Endless {
    fn new(head: &'static str, first: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, written) = mpsc::channel();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut reader = BufReader::new(connection.try_clone().unwrap());
                if read(&mut reader).is_none() {
                    continue;
                }
                let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{first}");
                let mut count = 0;
                if connection.write_all(head.as_bytes()).is_ok() {
                    let more = vec![b'x'; MIB / 16];
                    while count < ENDLESS_BYTES && connection.write_all(&more).is_ok() {
                        count += more.len();
                    }
                }
                let _ = sender.send(count);
            }
        });
        Self { address, written }
    }

    fn bucket(&self) -> RemoteBucket {
        super::bucket_at(&self.address)
    }

    /// How many bytes of the next answer were written.
    fn written(&self) -> usize {
        self.written.recv().unwrap()
    }
}

const REFUSED: &str = "<Error><Code>AccessDenied</Code><Message>not you</Message></Error>";

#[test]
fn an_endless_error_is_read_up_to_its_bound() {
    let endless = Endless::new("403 Forbidden\r\nContent-Type: application/xml", REFUSED);
    let (bucket, marked) = (endless.bucket(), WriteMetadata::marked("m"));
    for bytes in [1, MIB] {
        let put = bucket.put("k", vec![0; bytes].into(), &Condition::Absent, marked);
        assert!(matches!(put, Err(BucketError::Denied { .. })), "{put:?}");
        assert!(endless.written() < BUFFERED_BYTES, "of {bytes} bytes");
    }
    let got = bucket.get("k", 0..10, None, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(got, Err(BucketError::Denied { .. })), "{got:?}");
    assert!(endless.written() < BUFFERED_BYTES);
}

#[test]
fn an_endless_answer_to_a_write_is_read_up_to_its_bound() {
    let endless = Endless::new("200 OK\r\nETag: \"1\"", "");
    let bucket = endless.bucket();
    let (large, marked) = (vec![0; MIB], WriteMetadata::marked("m"));
    let _ = bucket.put("k", large.into(), &Condition::Absent, marked);
    assert!(endless.written() < BUFFERED_BYTES);
}

#[test]
fn an_endless_listing_is_an_error() {
    const MOST: usize = 32 * MIB + BUFFERED_BYTES;
    let listing = Listing { prefix: "", delimited: true, page: 1000 };
    let endless = Endless::new("200 OK\r\nContent-Type: application/xml", "<ListBucketResult>");
    let answer = endless.bucket().list(&listing, &mut |_| ControlFlow::Continue(()));
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("longer than 32768 KiB"), "{error}");
    assert!(endless.written() < MOST);
    let endless = Endless::new("207 Multi-Status", "<multistatus>");
    let error = WebBucket::open(&format!("{}/", endless.address), None).unwrap_err();
    assert!(error.to_string().contains("over 32 MiB"), "{error}");
    assert!(endless.written() < MOST);
}
