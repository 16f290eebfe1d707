//! `ogive watch` during other operations on the watched mounts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{OGIVE, Place, assert_code, can_mount, eventually, ogive, stderr};
use serde_json::Value;

/// A server of the page, which ends with the test.
struct Watch {
    child: Child,
    address: String,
    token: String,
}

impl Watch {
    fn start(place: &Place) -> Self {
        let mut child = Command::new(OGIVE)
            .args(["watch", "--listen", "127.0.0.1:0"])
            .arg(place.mount_point())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let link = link.trim().strip_prefix("http://").unwrap();
        let (address, token) = link.split_once("/#token=").unwrap();
        let (address, token) = (address.to_owned(), token.to_owned());
        Self { child, address, token }
    }

    /// The answer that the page would get.
    fn asked(&self, path: &str) -> (u16, Value) {
        asked(&self.address, &self.token, path)
    }

    /// The identifier of the only mount.
    fn source(&self) -> String {
        let mut found = None;
        eventually("a mount that answers", || {
            let (_, answer) = self.asked("/api/steps?since=0");
            let sources = answer["sources"].as_array().cloned().unwrap_or_default();
            found = sources
                .iter()
                .find(|source| source["kind"] == "mount" && source["state"] == "answers")
                .and_then(|source| source["id"].as_str().map(str::to_owned));
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asked(address: &str, token: &str, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// A page whose Cache panel is open: it polls faster than a real one.
struct OpenCache {
    is_open: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl OpenCache {
    fn open(watch: &Watch, source: &str) -> Self {
        let is_open = Arc::new(AtomicBool::new(true));
        let own = Arc::clone(&is_open);
        let (address, token) = (watch.address.clone(), watch.token.clone());
        let paths = [
            "/api/steps?since=0".to_owned(),
            format!("/api/curve?source={source}"),
            format!("/api/objects?source={source}"),
        ];
        let thread = thread::spawn(move || {
            while own.load(Ordering::Relaxed) {
                for path in &paths {
                    asked(&address, &token, path);
                }
                thread::sleep(std::time::Duration::from_millis(200));
            }
        });
        Self { is_open, thread: Some(thread) }
    }
}

impl Drop for OpenCache {
    fn drop(&mut self) {
        self.is_open.store(false, Ordering::Relaxed);
        self.thread.take().map(thread::JoinHandle::join);
    }
}

/// A mount with direct I/O, with a file in it that was read once.
fn mounted() -> Place {
    let place = Place::new();
    fs::write(place.source().join("file"), vec![7_u8; 3 << 20]).unwrap();
    place.mount(&["--direct-io"]);
    read(&place);
    place
}

/// Twenty-four records of 128 KiB.
fn read(place: &Place) {
    assert_eq!(fs::read(place.mount_point().join("file")).unwrap().len(), 3 << 20);
}

/// Reads the file until the curve has so many reads.
fn curve_of(watch: &Watch, source: &str, place: &Place, reads: u64) -> Value {
    let path = format!("/api/curve?source={source}");
    let mut curve = Value::Null;
    eventually("reads of the curve", || {
        read(place);
        curve = watch.asked(&path).1;
        curve["reads"].as_u64().is_some_and(|found| found >= reads)
    });
    curve
}

fn unmount(place: &Place) -> Output {
    ogive(["unmount".into(), place.mount_point()])
}

#[test]
fn a_mount_goes_and_comes_back_while_the_cache_panel_is_open() {
    if !can_mount() {
        return;
    }
    let place = mounted();
    let watch = Watch::start(&place);
    let source = watch.source();
    let _panel = OpenCache::open(&watch, &source);
    curve_of(&watch, &source, &place, 1000);
    // The limit of the cache is known after the second step.
    let mut curve = Value::Null;
    eventually("a curve", || {
        curve = curve_of(&watch, &source, &place, 1000);
        curve["points"].as_array().is_some_and(|points| points.len() == 33)
    });
    assert_eq!(curve["dropped"], 0);

    let output = unmount(&place);
    assert_code(&output, 0);
    let path = format!("/api/curve?source={source}");
    eventually("the word that it was unmounted", || watch.asked(&path).0 == 404);
    place.mount(&["--direct-io"]);
    curve_of(&watch, &source, &place, curve["reads"].as_u64().unwrap() + 100);
    assert_code(&unmount(&place), 0);
}

#[test]
fn a_recording_and_the_curve_run_at_the_same_time() {
    if !can_mount() {
        return;
    }
    let place = mounted();
    let watch = Watch::start(&place);
    let source = watch.source();
    let _panel = OpenCache::open(&watch, &source);
    let before = curve_of(&watch, &source, &place, 100)["reads"].as_u64().unwrap();

    let trace = place.path("trace");
    let mut recording = Command::new(OGIVE)
        .args(["sim", "--record"])
        .arg(place.mount_point())
        .arg("-o")
        .arg(&trace)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It records from the creation of the file on.
    eventually("a recording", || {
        let ended = recording.try_wait().unwrap();
        assert_eq!(ended, None, "it ends by itself only if it is refused");
        read(&place);
        trace.metadata().is_ok_and(|metadata| metadata.len() > 100 * 32)
    });
    curve_of(&watch, &source, &place, before + 100);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&recording),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let output = recording.wait_with_output().unwrap();
    assert_code(&output, 0);
    assert!(stderr(&output).contains("recorded "), "{}", stderr(&output));
    assert_code(&unmount(&place), 0);
}
