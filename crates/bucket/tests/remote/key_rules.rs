//! Key rules over HTTP: a key either comes back from the store on loopback unchanged, or is refused
//! before a request is sent.

use super::child::{again_at, demo_options, is_child};
use bytes::Bytes;
use ogive_bucket::{
    Bucket as _, BucketError, Condition, Entry, KeyRules, Listing, RemoteBucket, WriteMetadata,
};
use ogive_demo_store::DemoStore;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// One character of each class that is special in Unicode, in XML, in addresses or for a store.
fn characters() -> impl Iterator<Item = char> {
    let ascii_and_latin = '\u{1}'..='\u{ff}';
    let others = "\u{300}\u{338}\u{34f}\u{5d0}\u{61c}\u{1680}\u{180e}\u{2000}\u{200b}\u{200d}\u{200e}\
                  \u{2028}\u{2029}\u{202e}\u{2060}\u{2126}\u{212b}\u{2215}\u{2f00}\u{3000}\u{ac00}\
                  \u{d7ff}\u{e000}\u{f8ff}\u{fb01}\u{fdd0}\u{fdef}\u{fe0f}\u{feff}\u{ff0e}\u{ff0f}\
                  \u{ff3c}\u{ff5e}\u{fff0}\u{fffd}\u{fffe}\u{ffff}\u{10000}\u{1f600}\u{1fffe}\
                  \u{e0001}\u{10fffd}\u{10ffff}";
    ascii_and_latin.chain(others.chars())
}

fn keys() -> BTreeSet<String> {
    let forms = |letter: &str| {
        ["d/{}", "d/a{}", "d/{}a", "d/a{}a", "{}/d", "d{}/d"].map(|form| form.replace("{}", letter))
    };
    let mut keys: BTreeSet<String> =
        characters().flat_map(|letter| forms(&letter.to_string())).collect();
    for whole in [".", "..", "...", "a..", "%2e", "%2F", "%5C", "%00", "%", "e\u{301}", "A", "a"] {
        keys.extend(forms(whole));
    }
    for length in [1022, 1023, 1024, 1025] {
        keys.insert(format!("{}y", &"x/".repeat(512)[..length - 1]));
        keys.insert(format!("d/{}", "x".repeat(length - 2)));
    }
    keys
}

#[test]
fn a_key_comes_back_unchanged_or_is_refused_before_it_is_sent() {
    if !is_child() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(directory.path()).unwrap();
        let test = "key_rules::a_key_comes_back_unchanged_or_is_refused_before_it_is_sent";
        return again_at(test, &store, &[]);
    }
    let bucket = RemoteBucket::new(&demo_options()).unwrap();
    let mut made = BTreeSet::new();
    for key in keys() {
        let body = Bytes::from(key.clone());
        let put = bucket.put(&key, body, &Condition::Absent, WriteMetadata::NONE);
        match KeyRules::S3.creatable(&key) {
            Ok(_) => {
                put.unwrap_or_else(|error| panic!("{key:?}: {error}"));
                made.insert(key);
            }
            Err(refusal) => {
                assert_eq!(put, Err(refusal), "{key:?}");
                let (head, delete) = (bucket.head(&key), bucket.delete(&key, None));
                // A key that cannot be created is still requested: the object may exist.
                if let Err(refusal) = KeyRules::S3.sendable(&key) {
                    assert_eq!((head, delete), (Err(refusal.clone()), Err(refusal)), "{key:?}");
                }
            }
        }
    }
    let mut listed = BTreeSet::new();
    let listing = Listing { prefix: "", delimited: false, page: 1000 };
    let all = bucket.list(&listing, &mut |entry| {
        let Entry::Object(object) = entry else { panic!("the listing has no delimiter") };
        listed.insert(object.key);
        ControlFlow::Continue(())
    });
    all.expect("a listing");
    let missing: Vec<_> = made.difference(&listed).collect();
    let others: Vec<_> = listed.difference(&made).collect();
    assert!(missing.is_empty() && others.is_empty(), "not listed {missing:?}, listed {others:?}");
    for key in &made {
        // A directory marker has no bytes.
        if key.ends_with('/') {
            continue;
        }
        let mut bytes = Vec::new();
        let got = bucket.get(key, 0..key.len() as u64, None, &mut |piece| {
            bytes.extend_from_slice(&piece);
            ControlFlow::Continue(())
        });
        assert!(got.is_ok() && bytes == key.as_bytes(), "{key:?}: {got:?}");
        bucket.delete(key, None).unwrap_or_else(|error| panic!("{key:?}: {error}"));
        assert!(matches!(bucket.head(key), Err(BucketError::NotFound { .. })), "{key:?}");
    }
}
