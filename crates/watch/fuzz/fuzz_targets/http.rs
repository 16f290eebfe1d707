//! Any bytes of a peer are parsed as requests or refused, without any other effect.
//!
//! - Answers do not depend on how the bytes arrive: the first byte says where they are split.
//! - An action needs the token, POST, and a name of this server, and never comes from another
//!   site's page.
//! - No text of a request ends a line of an answer: each answer has its announced length.
#![no_main]

#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the module as it is, sockets and all"
)]
#[path = "../../src/http/mod.rs"]
mod http;

use std::net::{IpAddr, Ipv4Addr};

use http::{Access, Asset, Gate, Limits, Method, Request, Response, Routes, Site, Token};
use libfuzzer_sys::fuzz_target;

const TOKEN: &str = "0123456789abcdef";
static PAGE: Asset = Asset::new("/", "text/html; charset=utf-8", b"<!doctype html>");

fn site() -> Site {
    let gate = Gate::new(IpAddr::V4(Ipv4Addr::LOCALHOST), Token::chosen(TOKEN).expect("is long"));
    let routes = Routes::new()
        .asset(&PAGE)
        .get("/look", Access::Look, |request| {
            let _ = request.seconds("seconds", 5, 60);
            let name = request.query("name").unwrap_or_default();
            Response::json(name.to_owned()).download(name).header("X-Name", name)
        })
        .post("/act", |request| {
            assert_may_act(request);
            Response::json(request.body().to_vec())
        });
    // Small limits, so that the fuzzer can exceed them.
    let limits = Limits { head_bytes: 512, body_bytes: 64, ..Limits::default() };
    Site::new(gate.name("watch.example"), routes, limits)
}

fn assert_may_act(request: &Request) {
    assert_eq!(request.method(), Method::Post);
    let host = request.field("host").expect("a name of this server");
    let own = ["localhost", "127.", "[", "watch.example"];
    let small = host.to_ascii_lowercase();
    assert!(own.iter().any(|name| small.starts_with(name)), "{host}");
    if let Some(origin) = request.field("origin") {
        assert!(origin.to_ascii_lowercase().ends_with(&small), "{origin}");
    }
    let fetched = request.field("sec-fetch-site");
    assert!(matches!(fetched, None | Some("same-origin" | "none")), "{fetched:?}");
    assert!(request.field("authorization").expect("a token").ends_with(TOKEN));
}

/// Reads answers by their heads; fails if something is left between them.
fn assert_whole(mut answers: &[u8]) {
    while !answers.is_empty() {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut fields);
        let read = head.parse(answers).expect("an answer");
        let length = read.unwrap();
        let field = |name: &str| head.headers.iter().filter(|one| one.name == name).count();
        for name in ["Content-Length", "Content-Security-Policy", "X-Content-Type-Options"] {
            assert_eq!(field(name), 1, "{name}");
        }
        assert_eq!(field("Set-Cookie") + field("Access-Control-Allow-Origin"), 0);
        let said = head.headers.iter().find(|one| one.name == "Content-Length").expect("counted");
        let said = std::str::from_utf8(said.value).expect("digits");
        let body: usize = said.parse().expect("a number");
        answers = &answers[length + body..];
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, request)) = bytes.split_first() else { return };
    let (before, after) = request.split_at(usize::from(*cut).min(request.len()));
    let site = site();
    let whole = site.answers(&[request]);
    assert_eq!(site.answers(&[before, after]), whole);
    // Answers to HEAD have the length of the body that they leave out.
    if !request.windows(4).any(|word| word == b"HEAD") {
        assert_whole(&whole);
    }
});
