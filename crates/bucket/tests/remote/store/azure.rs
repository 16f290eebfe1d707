//! The part of Azure Blob Storage that writing a blob needs.

use super::{Begun, Reply, Request, State, Step, ok};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

pub(super) fn error(status: u16, code: &str) -> Reply {
    let text = format!("<Error><Code>{code}</Code><Message>so told</Message></Error>");
    (status, vec![("x-ms-error-code".to_owned(), code.to_owned())], text.into_bytes())
}

/// The kind of a request.
pub(super) fn step(request: &Request) -> Step {
    match (request.method.as_str(), request.asked("comp").as_str()) {
        ("HEAD", _) => Step::Head,
        ("GET", "list") => Step::List,
        ("GET", _) => Step::Get,
        ("PUT", "block") => Step::Part,
        ("PUT", "blocklist") => Step::Complete,
        ("PUT", _) => Step::Put,
        ("DELETE", _) => Step::Delete,
        other => panic!("{other:?} is not known here"),
    }
}

impl State {
    /// Checks the conditions of a change.
    fn check_blob(&self, request: &Request) -> Result<(), Reply> {
        let there = self.objects.get(&request.key);
        if request.field("if-none-match").is_some() && there.is_some() {
            return Err(error(409, "BlobAlreadyExists"));
        }
        let wanted = request.field("if-match");
        if wanted.is_some_and(|wanted| there.is_none_or(|there| there.etag != wanted)) {
            return Err(error(412, "ConditionNotMet"));
        }
        let is_held =
            |(name, value): &(String, String)| name == "x-ms-lease-status" && value == "locked";
        if there.is_some_and(|there| there.beside.iter().any(is_held)) {
            return Err(error(412, "LeaseIdMissing"));
        }
        Ok(())
    }

    fn store_blob(&mut self, request: &Request, body: Vec<u8>) -> Result<Reply, Reply> {
        self.check_blob(request)?;
        let mut beside = request.beside("x-ms-meta-");
        beside.push(("x-ms-blob-type".to_owned(), "BlockBlob".to_owned()));
        let etag = self.store(&request.key, body, beside);
        Ok((201, vec![("ETag".to_owned(), etag)], Vec::new()))
    }

    pub(super) fn carry_out_azure(&mut self, request: &Request) -> Result<Reply, Reply> {
        let key = &request.key;
        match step(request) {
            Step::Head | Step::Get => {
                let shown = self.shown(key, request).ok_or_else(|| error(404, "BlobNotFound"))?;
                let etag = &self.objects[key].etag;
                match request.field("if-match").is_some_and(|wanted| wanted != etag) {
                    true => Err(error(412, "ConditionNotMet")),
                    false => Ok(shown),
                }
            }
            Step::Put => self.store_blob(request, request.body.clone()),
            Step::Part => {
                let begun = self.uploads.entry(key.clone()).or_default();
                let number = begun.parts.len() as u32;
                begun.key = key.clone();
                begun.names.insert(request.asked("blockid"), number);
                begun.parts.insert(number, request.body.clone());
                Ok((201, Vec::new(), Vec::new()))
            }
            Step::Complete => {
                let text = String::from_utf8_lossy(&request.body).into_owned();
                let ids = text.split("<Latest>").skip(1);
                let ids = ids.map(|rest| rest.split("</").next().unwrap_or_default().to_owned());
                let begun = self.uploads.get(key).cloned().unwrap_or_default();
                let block = |id: String| {
                    assert!(BASE64_STANDARD.decode(&id).is_ok(), "{id} is not an id");
                    begun.names.get(&id).and_then(|number| begun.parts.get(number))
                };
                let blocks = ids.map(block).collect::<Option<Vec<_>>>();
                let blocks = blocks.ok_or_else(|| error(400, "InvalidBlockList"))?;
                let body = blocks.into_iter().cloned().collect::<Vec<_>>().concat();
                let done = self.store_blob(request, body)?;
                self.uploads.insert(key.clone(), Begun::default());
                Ok(done)
            }
            Step::Delete => {
                if !self.objects.contains_key(key) {
                    return Err(error(404, "BlobNotFound"));
                }
                self.check_blob(request)?;
                self.objects.remove(key);
                Ok((202, Vec::new(), Vec::new()))
            }
            Step::List => ok(self.blobs(&request.asked("prefix"))),
            other => panic!("{other:?} is no step of this store"),
        }
    }

    fn blobs(&self, prefix: &str) -> String {
        let below = self.objects.iter().filter(|(key, _)| key.starts_with(prefix));
        let blobs = below.map(|(key, stored)| {
            format!(
                "<Blob><Name>{key}</Name><Properties><Etag>{}</Etag>\
                 <Content-Length>{}</Content-Length><Content-Type/><Content-MD5/>\
                 <Last-Modified>Wed, 01 Jan 2025 00:00:00 GMT</Last-Modified>\
                 </Properties></Blob>",
                stored.etag.trim_matches('"'),
                stored.body.len()
            )
        });
        let blobs: String = blobs.collect();
        format!("<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>")
    }
}
