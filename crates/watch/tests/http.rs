//! The server from outside, with peers of all kinds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/seed.rs"]
mod seed;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use ogive_watch::http::{Access, Asset, Gate, Limits, Response, Routes, Server, Token};

const TOKEN: &str = "0123456789abcdef";
const GENEROUS: Duration = Duration::from_secs(60);
static PAGE: Asset =
    Asset::new("/", "text/html; charset=utf-8", b"<!doctype html><title>t</title>");

/// Long time limits, for all tests that are not about time limits.
fn limits() -> Limits {
    Limits {
        request_time: GENEROUS,
        idle_time: GENEROUS,
        answer_time: GENEROUS,
        ..Limits::default()
    }
}

/// A server with a page, a route to read and an action; counts the actions.
fn server(limits: Limits) -> (SocketAddr, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let routes = Routes::new()
        .asset(&PAGE)
        .get("/api/echo", Access::Look, |request| {
            Response::json(format!("{:?}", request.query("text").unwrap_or_default()))
        })
        .get("/api/large", Access::Look, |_| Response::json("x".repeat(100_000)))
        .post("/api/act", move |request| {
            count.fetch_add(1, Ordering::SeqCst);
            Response::json(request.body().to_vec())
        });
    (started(routes, limits), done)
}

fn started(routes: Routes, limits: Limits) -> SocketAddr {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let gate = Gate::new(address, Token::chosen(TOKEN).unwrap());
    let server = Server::bind(SocketAddr::new(address, 0), gate, routes, limits).unwrap();
    let bound = server.address().unwrap();
    thread::spawn(move || server.serve());
    bound
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(GENEROUS)).unwrap();
    stream
}

/// Sends bytes and reads until the server closes.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn asked(address: SocketAddr, line: &str, fields: &str) -> String {
    let request =
        format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n");
    exchange(address, &request)
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn every_answer_makes_the_browser_strict() {
    let (address, _) = server(limits());
    for line in
        ["GET /", "HEAD /", "GET /api/echo", "GET /nothing", "POST /api/act", "GET /api/act"]
    {
        let answer = asked(address, line, "");
        for field in [
            "\r\nContent-Security-Policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'",
            "\r\nX-Content-Type-Options: nosniff\r\n",
            "\r\nReferrer-Policy: no-referrer\r\n",
            "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
        ] {
            assert!(answer.contains(field), "{line}: {field}: {answer}");
        }
        assert!(!answer.contains("Access-Control-Allow"), "{answer}");
    }
    assert!(asked(address, "HEAD /", "").ends_with("\r\n\r\n"), "a head has no body");
}

#[test]
fn no_path_leads_out_of_the_table() {
    let (address, _) = server(limits());
    for path in [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/./",
        "/etc/passwd",
        "/api/echo/..",
        "/\\..\\..\\etc\\passwd",
        "/%00",
    ] {
        let answer = asked(address, &format!("GET {path}"), "");
        assert_eq!(status(&answer), 404, "{path}: {answer}");
        assert!(!answer.contains("root:"), "{path}: {answer}");
    }
}

#[test]
fn a_client_without_the_token_cannot_act() {
    let (address, done) = server(limits());
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let hostile_host = format!(
        "POST /api/act HTTP/1.1\r\nHost: evil.example\r\n{token}\
                                Connection: close\r\n\r\n"
    );
    assert_eq!(status(&exchange(address, &hostile_host)), 421);
    let old = format!("POST /api/act HTTP/1.0\r\n{token}\r\n");
    assert_eq!(status(&exchange(address, &old)), 421, "no Host at all");
    let foreign = format!("{token}Origin: http://evil.example\r\n");
    assert_eq!(status(&asked(address, "POST /api/act", &foreign)), 403);
    let cross = format!("{token}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(status(&asked(address, "POST /api/act", &cross)), 403);
    assert_eq!(status(&asked(address, "POST /api/act", "")), 401);
    let wrong = "Authorization: Bearer 0123456789abcdee\r\n";
    assert_eq!(status(&asked(address, "POST /api/act", wrong)), 401);
    assert_eq!(status(&asked(address, "POST /api/act?token=0123456789abcdef", "")), 401);
    assert_eq!(status(&asked(address, "GET /api/act", &token)), 405);
    assert_eq!(done.load(Ordering::SeqCst), 0);

    let right = format!("{token}Origin: http://{address}\r\nContent-Length: 2\r\n\r\nhi");
    let request =
        format!("POST /api/act HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{right}");
    assert!(exchange(address, &request).ends_with("\r\n\r\nhi"));
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[test]
fn a_request_that_is_too_large_is_refused_while_it_is_sent() {
    let (address, done) = server(Limits { head_bytes: 2048, body_bytes: 1024, ..limits() });
    let long = format!("X-Long: {}\r\n", "a".repeat(4000));
    assert_eq!(status(&asked(address, "GET /", &long)), 431);
    let endless = format!("GET /{}", "a".repeat(10_000));
    assert_eq!(status(&exchange(address, &endless)), 431);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let body = format!("{token}Content-Length: 1025\r\n");
    assert_eq!(status(&asked(address, "POST /api/act", &body)), 413);
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[test]
fn a_connection_serves_request_after_request() {
    let (address, _) = server(limits());
    let mut stream = connect(address);
    let first = format!("GET /api/echo?text=one HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let second =
        format!("GET /api/echo?text=two HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    // Both at once, and the second in two parts.
    stream.write_all(format!("{first}{}", &second[..20]).as_bytes()).unwrap();
    stream.write_all(&second.as_bytes()[20..]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"one\"HTTP/1.1 200") && answer.ends_with("\"two\""), "{answer}");
}

#[test]
fn a_large_answer_is_compressed_for_clients_that_accept_it() {
    let (address, _) = server(limits());
    assert!(asked(address, "GET /api/large", "").len() > 100_000);
    let packed = asked(address, "GET /api/large", "Accept-Encoding: br, gzip\r\n");
    assert!(packed.len() < 4000 && packed.contains("Content-Encoding: gzip"), "{}", packed.len());
    let refused = asked(address, "GET /api/large", "Accept-Encoding: gzip;q=0\r\n");
    assert!(refused.len() > 100_000);
}

/// A peer that sends its request byte by byte, until it is closed.
fn trickle(address: SocketAddr) -> (TcpStream, thread::JoinHandle<()>) {
    let mut slow = connect(address);
    slow.write_all(b"GET /").unwrap();
    let mut writing = slow.try_clone().unwrap();
    let thread = thread::spawn(move || {
        while writing.write_all(b"A").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    (slow, thread)
}

#[test]
fn a_request_that_trickles_in_ends_with_its_time() {
    let (address, _) = server(Limits { request_time: Duration::from_millis(300), ..limits() });
    let (mut slow, trickling) = trickle(address);
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert_eq!(answer, b"", "closed without an answer");
    trickling.join().unwrap();
}

#[test]
fn others_are_served_while_a_request_trickles_in() {
    let (address, _) = server(limits());
    let (slow, trickling) = trickle(address);
    assert_eq!(status(&asked(address, "GET /", "")), 200);
    assert!(!trickling.is_finished(), "the slow one was served as well");
    slow.shutdown(std::net::Shutdown::Both).unwrap();
    trickling.join().unwrap();
}

#[test]
fn thousands_of_connections_keep_no_client_out() {
    let connections = seed::rounds(2_000, 10_000);
    let (address, _) = server(Limits { connections: 8, ..limits() });
    let mut kept = Vec::new();
    for number in 0..connections {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc");
            // Each connection also takes a descriptor of this process.
            if kept.len() == 200 {
                kept.remove(0);
            }
            kept.push(stream);
        }
        if (number + 1).is_multiple_of(connections / 4) {
            assert!(served(address), "after {number} connections");
        }
    }
    assert!(threads_named("watch_http") <= 16 + served_elsewhere(), "threads are bounded");
}

/// Tries until the threads of closed connections have ended, as a browser does.
fn served(address: SocketAddr) -> bool {
    for _ in 0..600 {
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(address)
            && stream.set_read_timeout(Some(GENEROUS)).is_ok()
            && stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && status(&answer) == 200
        {
            return true;
        }
        thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Other tests of this file run in the same process, each with a few connections.
fn served_elsewhere() -> usize {
    64
}

fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|own| own.trim() == name).count()
}

/// The requests in progress fill the server: one more is refused, and none of them is cut off.
#[test]
fn answers_in_progress_are_not_cut_off_to_make_room() {
    let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
    let inside = Arc::clone(&gate);
    let routes = Routes::new().get("/api/slow", Access::Look, move |_| {
        let (lock, bell) = &*inside;
        let mut state = lock.lock().unwrap();
        state.0 += 1;
        bell.notify_all();
        while !state.1 {
            state = bell.wait(state).unwrap();
        }
        Response::json("\"done\"")
    });
    let address = started(routes, Limits { connections: 2, ..limits() });
    let slow: Vec<_> =
        (0..2).map(|_| thread::spawn(move || asked(address, "GET /api/slow", ""))).collect();
    let (lock, bell) = &*gate;
    let mut state = lock.lock().unwrap();
    while state.0 < 2 {
        let (now, waited) = bell.wait_timeout(state, GENEROUS).unwrap();
        assert!(!waited.timed_out(), "never came: two answers that are being made");
        state = now;
    }
    drop(state);
    assert_eq!(asked_or_closed(address), "", "no room");
    lock.lock().unwrap().1 = true;
    bell.notify_all();
    for answer in slow {
        assert!(answer.join().unwrap().ends_with("\"done\""));
    }
}

fn asked_or_closed(address: SocketAddr) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}
