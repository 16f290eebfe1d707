//! Credentials in the files of the AWS command line: replaced ones, and missing ones.

use super::child::{again, is_child};
use super::options;
use super::store::Store;
use ogive_bucket::{Bucket as _, RemoteBucket, RemoteOptions};
use std::fs;
use std::path::PathBuf;

/// Runs a test again with these files in its home directory.
fn in_a_home(test: &str, with: &[(&str, &str)]) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    for (name, text) in with {
        fs::write(home.path().join(".aws").join(name), text).unwrap();
    }
    let machine = ("AWS_EC2_METADATA_DISABLED", "true".as_ref());
    again(test, &[("HOME", home.path().as_os_str()), machine]);
}

fn signing(store: &Store) -> RemoteBucket {
    let options = RemoteOptions { no_sign_request: false, ..options(&store.endpoint) };
    RemoteBucket::new(&options).unwrap()
}

fn keys(key: &str) -> String {
    format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = secret\n")
}

#[test]
fn credentials_in_a_replaced_file_are_used_as_soon_as_they_are_announced() {
    if !is_child() {
        let test =
            "credentials::credentials_in_a_replaced_file_are_used_as_soon_as_they_are_announced";
        return in_a_home(test, &[("credentials", &keys("FIRST"))]);
    }
    let store = Store::new();
    store.put("k", b"bytes");
    let bucket = signing(&store);
    let renewal = bucket.renewal().unwrap();
    let all_are_signed_by = |key| {
        // The first request is signed twice, to request a checksum; the second one once.
        bucket.head("k").unwrap();
        assert_eq!(store.signed_by(), key);
        bucket.delete("other", None).unwrap();
        assert_eq!(store.signed_by(), key);
    };
    all_are_signed_by("FIRST");
    let path = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".aws/credentials");
    fs::write(&path, keys("SECOND")).unwrap();
    renewal.look().unwrap();
    all_are_signed_by("SECOND");
    fs::remove_file(path).unwrap();
    renewal.look().unwrap_err();
}

#[test]
fn a_request_without_credentials_says_why_there_are_none() {
    if !is_child() {
        let sign_on = "[default]\nsso_start_url = https://house.example/start\n\
                       sso_region = r\nsso_account_id = 1\nsso_role_name = reader\n";
        let test = "credentials::a_request_without_credentials_says_why_there_are_none";
        return in_a_home(test, &[("config", sign_on)]);
    }
    let error = signing(&Store::new()).head("k").unwrap_err().to_string();
    assert!(error.contains("single sign-on: ") && error.contains("aws sso login"), "{error}");
}
