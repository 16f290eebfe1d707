//! The directory of a key, and the inode numbers and tags derived from keys.

use crate::{BucketIdentity, Object};
use ogive_origin::Tag;

/// Splits a key into its directory and its name.
pub(crate) fn split(key: &str) -> (&str, &str) {
    key.split_at(key.rfind('/').map_or(0, |slash| slash + 1))
}

/// The directory whose listing has this key or common prefix. It may end in two slashes.
pub(crate) fn directory_of(key: &str) -> &str {
    split(key.strip_suffix('/').unwrap_or(key)).0
}

/// Numbers that identify an object of a bucket, even if clients choose keys to make them collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The inode number, the same on every mount. It is below the numbers that a mount assigns.
    pub(crate) inode: u64,
    /// Distinguishes objects whose inode numbers collide.
    pub(crate) generation: u64,
}

/// The numbers of a key: BLAKE3 of the store, the bucket and the key.
pub(crate) fn numbers(bucket: &BucketIdentity, key: &str) -> Numbers {
    let hash = digest(&[bucket.endpoint.as_bytes(), bucket.bucket.as_bytes(), key.as_bytes()]);
    let (inode, generation) = ((hash >> 64) as u64, hash as u64);
    // 63 bits, without the reserved numbers of no inode and of the root.
    Numbers { inode: (inode >> 1).max(2), generation }
}

/// The device number of a bucket.
pub(crate) fn device(bucket: &BucketIdentity) -> u64 {
    digest(&[bucket.endpoint.as_bytes(), bucket.bucket.as_bytes()]) as u64
}

/// The tag of an object's contents: a strong ETag with size and time. Without a strong ETag there
/// is no tag: stores report times in whole seconds, and no request can depend on them.
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

/// The first 16 bytes of a BLAKE3 hash of fields, each preceded by its length.
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
    fn numbers_depend_on_bucket_and_key_and_stay_the_same() {
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
        // git and tar remember it, so it must never change.
        assert_eq!(numbers(&one, "k").inode, INODE_OF_K);
    }
    const INODE_OF_K: u64 = 5_275_363_810_334_881_733;

    #[test]
    fn contents_are_identified_by_a_strong_etag_with_size_and_time() {
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
