//! Symbolic links, if the metadata convention can store them.

use super::posix::Posix;
use super::{BucketOrigin, Node};
use crate::{Bucket, ObjectMetadata};
use bytes::Bytes;
use ogive_origin::{Caller, Errno, FileKind, Found, Result, Time};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt as _;

/// The longest target of a link on Linux (PATH_MAX), in bytes.
const TARGET_BYTES_MAX: u64 = 4096;

impl<B: Bucket> BucketOrigin<B> {
    /// The target of a link.
    pub(super) fn link_target(&self, node: &Node) -> Result<OsString> {
        if !self.options.convention.is_on() || node.is_directory() {
            return Err(Errno::INVAL);
        }
        if node.is_gone() {
            return Err(Errno::STALE);
        }
        let object = self.or_errno(self.bucket.head(node.key()))?;
        let kept = object.kept.clone().unwrap_or_default();
        let found = self.options.convention.read(&kept);
        if found.kind != Some(FileKind::Symlink) {
            return Err(Errno::INVAL);
        }
        if let Some(target) = found.target {
            return Ok(target.into());
        }
        if object.size_bytes == 0 || object.size_bytes > TARGET_BYTES_MAX {
            return Err(Errno::IO);
        }
        let mut target = Vec::new();
        let range = 0..object.size_bytes;
        let got = self.bucket.get(node.key(), range, object.etag.as_ref(), &mut |piece| {
            target.extend_from_slice(&piece);
            ControlFlow::Continue(())
        });
        self.or_errno(got)?;
        // Some versions of s3fs append a newline.
        while target.last().is_some_and(u8::is_ascii_whitespace) {
            target.pop();
        }
        Ok(OsString::from_vec(target))
    }

    /// Creates a link.
    pub(super) fn make_link(
        &self,
        parent: &Node,
        name: &OsStr,
        target: &OsStr,
        caller: Caller,
    ) -> Result<Found<Node>> {
        let key = self.key_to_make(parent, name, "")?;
        if self.look_up_current(&key)?.is_some() {
            return Err(Errno::EXIST);
        }
        let target = target.to_str().ok_or(Errno::INVAL)?;
        let convention = self.options.convention;
        let is_in_bytes = convention.has_links_as_bytes();
        let posix = Posix {
            permissions: Some(0o777),
            kind: Some(FileKind::Symlink),
            user: Some(caller.user),
            group: Some(caller.group),
            modified: Some(Time::now()),
            accessed: None,
            changed: None,
            target: (!is_in_bytes).then(|| target.to_owned()),
        };
        let bytes = if is_in_bytes { target.to_owned() } else { String::new() };
        let kept = convention.write(&ObjectMetadata::default(), &posix, false);
        let made = self.writing()?.make_object(&key, Bytes::from(bytes), &kept)?;
        self.found(&key, &super::directory::Item::File(made))
    }
}
