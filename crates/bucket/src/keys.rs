//! Which keys can be asked for, which can be names of files, and the numbers made of them.

use crate::{BucketError, BucketIdentity, Object, Result};
use ogive_origin::Tag;

/// The longest name a directory entry can have on Linux (NAME_MAX), in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The longest key that stores take, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 1024;

/// Refuses keys that no store takes: empty ones, and those over 1,024 bytes.
pub(crate) fn check(key: &str) -> Result<()> {
    let why = match key.len() {
        0 => "it is empty",
        1..=KEY_BYTES_MAX => return Ok(()),
        _ => "it is longer than 1,024 bytes",
    };
    Err(BucketError::BadKey { key: key.to_owned(), why })
}

/// The key, if it survives the way to the store: the library that sends it trims and joins paths,
/// and the address of a request drops `.` and `..`.
pub(crate) fn sendable(key: &str) -> Result<&str> {
    check(key)?;
    let why = if key.trim() != key {
        "it begins or ends with white space"
    } else if key.starts_with('/') || key.contains("//") {
        "it has an empty part"
    } else if key.split('/').any(|part| part == "." || part == "..") {
        "it has a part . or .."
    } else {
        return Ok(key);
    };
    Err(BucketError::BadKey { key: key.to_owned(), why })
}

/// The name that a key or common prefix has in a directory, `None` if it can have none.
pub(crate) fn name_in<'a>(directory: &str, key: &'a str) -> Option<&'a str> {
    let name = key.strip_prefix(directory)?;
    let name = name.strip_suffix('/').unwrap_or(name);
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(['/', '\0'])
        && sendable(key).is_ok();
    is_name.then_some(name)
}

/// Why a key or common prefix cannot have a name in a directory.
pub(crate) fn why_nameless(directory: &str, key: &str) -> &'static str {
    if let Err(BucketError::BadKey { why, .. }) = sendable(key) {
        return why;
    }
    match key.strip_prefix(directory) {
        Some(name) if name.contains('\0') => "it has a NUL",
        _ => "a part of it is longer than 255 bytes",
    }
}

/// The directory of a key that ends in a name, and the name.
pub(crate) fn split(key: &str) -> (&str, &str) {
    key.split_at(key.rfind('/').map_or(0, |slash| slash + 1))
}

/// The directory in whose listing a key is told, or a common prefix, which may end in two slashes.
pub(crate) fn directory_of(key: &str) -> &str {
    split(key.strip_suffix('/').unwrap_or(key)).0
}

/// What tells an object of a bucket from all others, whoever chooses the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Number of the inode, the same on every mount: below those that a mount gives itself.
    pub(crate) inode: u64,
    /// Tells those apart that have the same number by accident or by design.
    pub(crate) generation: u64,
}

/// The numbers of a key: BLAKE3 of the store, the bucket and the key.
pub(crate) fn numbers(bucket: &BucketIdentity, key: &str) -> Numbers {
    let hash = digest(&[bucket.endpoint.as_bytes(), bucket.bucket.as_bytes(), key.as_bytes()]);
    let (inode, generation) = ((hash >> 64) as u64, hash as u64);
    // 63 bits, and not the numbers of the root and of nothing.
    Numbers { inode: (inode >> 1).max(2), generation }
}

/// The number of a bucket, as a device.
pub(crate) fn device(bucket: &BucketIdentity) -> u64 {
    digest(&[bucket.endpoint.as_bytes(), bucket.bucket.as_bytes()]) as u64
}

/// What tells the contents of an object: a strong ETag with size and time. Without one nothing does:
/// times of stores are of whole seconds, and no request can be made to depend on them.
pub(crate) fn tag(object: &Object) -> Tag {
    match &object.etag {
        Some(etag) if etag.is_strong() => Tag::Contents(digest(&[
            etag.as_str().as_bytes(),
            &object.size_bytes.to_le_bytes(),
            &object.modified.seconds.to_le_bytes(),
        ])),
        _ => Tag::Nothing,
    }
}

/// The first 16 bytes of the BLAKE3 hash of some fields, each with its length.
fn digest(fields: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    let hash = hasher.finalize();
    let (half, _) = hash.as_bytes().split_at(16);
    u128::from_le_bytes(half.try_into().expect("half of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ETag;
    use ogive_origin::Time;

    #[test]
    fn keys_that_would_reach_another_object_are_refused() {
        let long = "x".repeat(1025);
        for key in ["", "/a", "a//b", " a", "a ", "a\n", ".", "a/./b", "a/..", "//", "a//", &long] {
            assert!(sendable(key).is_err(), "{key:?}");
        }
        for key in ["a", "a/", "a b", "a/ b/c", "...", "a/.b", "ä", "%2e", "a+b?c#d&e"] {
            assert_eq!(sendable(key), Ok(key));
        }
    }

    #[test]
    fn a_name_is_what_a_directory_entry_can_be() {
        let long = format!("d/{}", "x".repeat(256));
        assert_eq!(name_in("d/", "d/a"), Some("a"));
        assert_eq!(name_in("d/", "d/a/"), Some("a"));
        assert_eq!(name_in("", "a"), Some("a"));
        for key in ["d/", "d//", "e/a", "d/a/b", "d/.", "d/..", "d/../", "d/a\0", "d/a ", &long] {
            assert_eq!(name_in("d/", key), None, "{key:?}");
        }
    }

    #[test]
    fn numbers_are_of_bucket_and_key_and_stay_the_same() {
        let bucket = |endpoint: &str, bucket: &str| BucketIdentity {
            endpoint: endpoint.to_owned(),
            bucket: bucket.to_owned(),
        };
        let one = bucket("http://a", "b");
        assert_eq!(numbers(&one, "k"), numbers(&one, "k"));
        let others = [
            numbers(&one, "l"),
            numbers(&bucket("http://a", "bk"), ""),
            numbers(&bucket("http://ab", ""), "k"),
        ];
        for other in others {
            assert_ne!(numbers(&one, "k"), other);
            assert!(other.inode > 1 && other.inode < 1 << 63);
        }
        // Remembered by git and tar: it may never change.
        assert_eq!(numbers(&one, "k").inode, INODE_OF_K);
    }
    const INODE_OF_K: u64 = 5_275_363_810_334_881_733;

    #[test]
    fn contents_are_told_by_a_strong_etag_with_size_and_time() {
        let object = |etag: Option<&str>, size_bytes, seconds| Object {
            key: "k".to_owned(),
            size_bytes,
            etag: etag.map(ETag::new),
            modified: Time { seconds, nanoseconds: 0 },
            mark: None,
            kept: None,
        };
        let base = tag(&object(Some("\"a\""), 1, 1));
        assert!(matches!(base, Tag::Contents(_)));
        for other in [(Some("\"b\""), 1, 1), (Some("\"a\""), 2, 1), (Some("\"a\""), 1, 2)] {
            assert_ne!(tag(&object(other.0, other.1, other.2)), base, "{other:?}");
        }
        assert_eq!(tag(&object(Some("W/\"a\""), 1, 1)), Tag::Nothing);
        assert_eq!(tag(&object(None, 1, 1)), Tag::Nothing);
    }
}
