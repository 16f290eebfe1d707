//! An error of a request through a proxy names the proxy, which may be its cause. The proxy comes
//! from the environment.

use super::bucket_at;
use super::child::{again, is_child};
use super::store::{Answer, Fault, Step, Store};
use super::web::Server;
use bytes::Bytes;
use ogive_bucket::{Bucket as _, Fetch, FetchSink, Result, WebBucket};
use std::ops::ControlFlow;
use std::sync::mpsc;

/// The variable that sets the proxy for the child process.
const PROXY: &str = "HTTP_PROXY";

fn names_the_proxy<T: std::fmt::Debug>(done: Result<T>) {
    let (error, proxy) = (done.unwrap_err().to_string(), std::env::var(PROXY).unwrap());
    assert_eq!(error.matches(proxy.trim_end_matches('/')).count(), 1, "{error}");
}

#[test]
fn each_way_to_ask_a_store() {
    if !is_child() {
        let store = Store::new();
        store.put("k", b"bytes");
        // A HEAD is sent again without the header for a checksum.
        for step in [Step::Head, Step::Head, Step::Get, Step::Get, Step::List] {
            let answer = Answer::Error(403, "AccessDenied");
            store.doom(step, Fault { answer, is_done: false });
        }
        return again("proxied::each_way_to_ask_a_store", &[(PROXY, store.endpoint.as_ref())]);
    }
    struct Waits(mpsc::Sender<Result<u64>>);
    impl FetchSink for Waits {
        fn piece(&mut self, _: Bytes) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
        fn end(self: Box<Self>, result: Result<u64>) {
            self.0.send(result).unwrap();
        }
    }
    let bucket = bucket_at("http://store.example");
    names_the_proxy(bucket.head("k"));
    names_the_proxy(bucket.get("k", 0..1, None, &mut |_| ControlFlow::Continue(())));
    let (sender, receiver) = mpsc::channel();
    let fetch = Fetch { key: "k".into(), range: 0..1, expected: None, is_demanded: true };
    bucket.fetch(fetch, Box::new(Waits(sender)));
    names_the_proxy(receiver.recv().unwrap());
    let listing = ogive_bucket::Listing { prefix: "", delimited: true, page: 10 };
    names_the_proxy(bucket.list(&listing, &mut |_| ControlFlow::Continue(())));
    assert_eq!(bucket.head("k").unwrap().size_bytes, 5, "the proxy is used");
}

#[test]
fn a_web_server() {
    if !is_child() {
        let proxy = Server::new(|method, _| match method {
            "HEAD" => (200, "text/plain", "hello".to_owned()),
            _ => (403, "text/plain", String::new()),
        });
        return again("proxied::a_web_server", &[(PROXY, proxy.address.as_ref())]);
    }
    names_the_proxy(WebBucket::open("http://files.example/d/", None));
    let file = WebBucket::open("http://files.example/f", None).unwrap();
    names_the_proxy(file.get("f", 0..1, None, &mut |_| ControlFlow::Continue(())));
}
