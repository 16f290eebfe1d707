//! The probe of a store's conditions: it tries them, because stores accept unknown conditions and
//! ignore them.
//!
//! The probe writes two objects with random names below the prefix, one of them twice. So it has an
//! ETag that was valid and is outdated; an ETag that never existed would prove little. Then it
//! sends each condition in a state in which the condition does not hold. A store that executes the
//! request ignores the condition.
//!
//! At the end the probe removes both objects, and their versions if that is allowed. An interrupted
//! probe leaves them; any client may remove them.

use crate::{Bucket, BucketError, Condition, CopyRequest, ETag, Promises, Result, WriteMetadata};
use bytes::Bytes;

/// Probes all conditions below a prefix, which is empty or ends in a slash.
///
/// # Errors
/// The store's error for an unconditional write: [`BucketError::Denied`] if writes are not
/// permitted. Errors after which it is unknown whether a condition is honoured: no answer, a broken
/// connection, a busy store.
pub fn probe(bucket: &dyn Bucket, prefix: &str) -> Result<Promises> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| BucketError::Failed {
        key: prefix.to_owned(),
        message: format!("the system gave no random bytes: {error}"),
    })?;
    let name = u64::from_be_bytes(random);
    let stem = format!("{prefix}.ogive-probe-{name:016x}");
    let [first, second] = [1, 2].map(|number| format!("{stem}-{number}"));
    let tried = try_all(bucket, &first, &second);
    // Remove both after errors, too; the first error is returned.
    let removed = [&first, &second].map(|key| bucket.delete(key, None));
    if let Err(error) = bucket.purge(&stem) {
        log::info!("old versions of {stem} remain in the bucket: {error}");
    }
    let promises = tried?;
    removed.into_iter().collect::<Result<()>>()?;
    Ok(promises)
}

fn try_all(bucket: &dyn Bucket, first: &str, second: &str) -> Result<Promises> {
    let put = |key: &str, body: &'static str, condition: &Condition| {
        bucket.put(key, Bytes::from_static(body.as_bytes()), condition, WriteMetadata::NONE)
    };
    let etag = |key: &str| {
        let what = "give its objects ETags, without which changes by other clients go unnoticed";
        bucket.head(key)?.etag.ok_or(BucketError::Unsupported { what })
    };
    put(first, "ogive", &Condition::None)?;
    put(second, "before", &Condition::None)?;
    let stale = etag(second)?;
    put(second, "after", &Condition::None)?;
    // With weak or constant ETags no condition can be honoured.
    let is_distinct = |now: &ETag| *now != stale && now.is_strong();
    if !is_distinct(&etag(second)?) {
        return Ok(Promises::NONE);
    }
    let matches = Condition::Matches(stale.clone());
    let create = is_refused(put(second, "again", &Condition::Absent))?;
    let overwrite = is_refused(put(second, "again", &matches))?;
    // A copy is a multipart upload of one part, which may be short.
    let source = bucket.head(first)?;
    let copy = |condition| bucket.copy(CopyRequest::new(&source, second, condition));
    let upload_create = is_refused(copy(&Condition::Absent))?;
    let upload_overwrite = is_refused(copy(&matches))?;
    // This is last: if the condition is ignored, the object is gone.
    let delete = is_refused(bucket.delete(second, Some(&stale)))?;
    Ok(Promises { create, overwrite, upload_create, upload_overwrite, delete })
}

/// Whether the store honoured a condition that does not hold.
fn is_refused<T>(done: Result<T>) -> Result<bool> {
    match done {
        Ok(_) => Ok(false),
        Err(BucketError::ConditionFailed { .. }) => Ok(true),
        // The store does not execute the request, but not because of the condition.
        Err(BucketError::Unsupported { .. } | BucketError::Refused { .. }) => Ok(false),
        // It is unknown what the store would do.
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, MemoryBucket, Operation};

    #[test]
    fn a_probe_finds_ignored_conditions_and_leaves_nothing() {
        let all = Promises::ALL;
        let stores = [
            all,
            Promises::NONE,
            Promises { create: false, ..all },
            Promises { overwrite: false, ..all },
            Promises { upload_create: false, ..all },
            Promises { upload_overwrite: false, ..all },
            Promises { delete: false, ..all },
        ];
        for promises in stores {
            let bucket = MemoryBucket::new();
            bucket.foreign_put("p/x", "x");
            bucket.honour(promises);
            assert_eq!(probe(&bucket, "p/"), Ok(promises));
            let mut keys = Vec::new();
            let listing = crate::Listing { prefix: "", delimited: false, page: 1000 };
            let visit = &mut |entry: crate::Entry| {
                keys.push(entry.key().to_owned());
                std::ops::ControlFlow::Continue(())
            };
            bucket.list(&listing, visit).unwrap();
            assert_eq!(keys, ["p/x"]);
        }
    }

    #[test]
    fn a_store_without_write_permission_returns_the_error() {
        let bucket = MemoryBucket::new();
        let denied = BucketError::Denied { key: "k".into(), message: "no".into() };
        bucket.doom(Operation::Put, Fault::Fails(denied.clone()));
        assert_eq!(probe(&bucket, ""), Err(denied));
    }

    #[test]
    fn a_store_that_does_not_answer_does_not_count_as_ignoring_conditions() {
        let lost = BucketError::Failed { key: "k".into(), message: "connection reset".into() };
        let late = BucketError::TimedOut { key: "k".into(), seconds: 30 };
        for error in [lost, late] {
            for operation in [Operation::Put, Operation::Copy, Operation::Delete] {
                let bucket = MemoryBucket::new();
                bucket.doom(operation, Fault::Fails(error.clone()));
                assert_eq!(probe(&bucket, ""), Err(error.clone()), "{operation:?}");
            }
        }
    }

    #[test]
    fn a_condition_that_the_store_refuses_is_not_relied_on() {
        let bucket = MemoryBucket::new();
        let refused = BucketError::Refused { key: "k".into(), message: "NotImplemented".into() };
        bucket.doom(Operation::Copy, Fault::Fails(refused));
        let promises = probe(&bucket, "").unwrap();
        assert!(!promises.upload_create && promises.upload_overwrite && promises.overwrite);
    }
}
