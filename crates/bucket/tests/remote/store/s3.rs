//! The part of S3 that writing an object needs.

use super::{Begun, Reply, Request, State, Step, now, ok, time, with_etag};
use std::collections::BTreeSet;

pub(super) fn error(status: u16, code: &str) -> Reply {
    let text = format!("<Error><Code>{code}</Code><Message>so told</Message></Error>");
    (status, Vec::new(), text.into_bytes())
}

/// The kind of a request.
pub(super) fn step(request: &Request) -> Step {
    let has = |name: &str| request.query.contains_key(name);
    let copies = request.headers.contains_key("x-amz-copy-source");
    match request.method.as_str() {
        "HEAD" => Step::Head,
        "GET" if has("uploads") => Step::Uploads,
        "GET" if has("uploadId") => Step::Parts,
        "GET" if has("list-type") => Step::List,
        "GET" if has("versions") => Step::Versions,
        "GET" => Step::Get,
        "PUT" if has("uploadId") && copies => Step::CopyPart,
        "PUT" if has("uploadId") => Step::Part,
        "PUT" => Step::Put,
        "POST" if has("uploads") => Step::Begin,
        "POST" => Step::Complete,
        "DELETE" if has("uploadId") => Step::Abort,
        "DELETE" => Step::Delete,
        other => panic!("{other} is not known here"),
    }
}

impl State {
    /// Checks the conditions of a change.
    fn check(&self, request: &Request) -> Result<(), Reply> {
        let there = self.objects.get(&request.key).map(|stored| stored.etag.as_str());
        let is_wrong = match (request.field("if-match"), request.field("if-none-match")) {
            (Some(_), _) if there.is_none() => return Err(error(404, "NoSuchKey")),
            (Some(wanted), _) => there != Some(wanted),
            (None, Some(_)) => there.is_some(),
            (None, None) => false,
        };
        if is_wrong { Err(error(412, "PreconditionFailed")) } else { Ok(()) }
    }

    pub(super) fn carry_out_s3(&mut self, request: &Request) -> Result<Reply, Reply> {
        let key = &request.key;
        match step(request) {
            Step::Head | Step::Get => {
                let stored = self.objects.get(key).ok_or_else(|| error(404, "NoSuchKey"))?;
                if request.field("if-match").is_some_and(|wanted| wanted != stored.etag) {
                    return Err(error(412, "PreconditionFailed"));
                }
                self.shown(key, request).ok_or_else(|| error(404, "NoSuchKey"))
            }
            Step::Put => {
                self.check(request)?;
                let etag = self.store(key, request.body.clone(), request.beside("x-amz-meta-"));
                let (status, mut fields, body) = with_etag(etag)?;
                if self.versions.is_some() {
                    fields.push(("x-amz-version-id".to_owned(), self.changes.to_string()));
                }
                Ok((status, fields, body))
            }
            Step::Delete => self.delete(request),
            Step::List => ok(self.list(request)),
            Step::Versions => ok(self.list_versions(request)),
            _ => self.carry_out_in_parts(request),
        }
    }

    fn list(&self, request: &Request) -> String {
        let prefix = request.asked("prefix");
        let is_delimited = request.asked("delimiter") == "/";
        let folder = |key: &str| {
            let (name, _) = key.strip_prefix(&prefix)?.split_once('/')?;
            is_delimited.then(|| format!("{prefix}{name}/"))
        };
        let below = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        let entries = below.clone().filter(|(key, _)| folder(key).is_none());
        let entries = entries.map(|(key, stored)| {
            format!(
                "<Contents><Key>{key}</Key><ETag>{}</ETag><Size>{}</Size>\
                 <LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents>",
                stored.etag,
                stored.body.len()
            )
        });
        let entries: String = entries.collect();
        let deleted = self.versions.iter().flatten().filter(|_| self.lists_deleted);
        let keys = below.map(|(key, _)| key).chain(deleted.map(|(key, _)| key));
        let folders: BTreeSet<_> = keys.filter_map(|key| folder(key)).collect();
        let folders: String = folders
            .iter()
            .map(|prefix| format!("<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>"))
            .collect();
        format!("<R><IsTruncated>false</IsTruncated>{entries}{folders}</R>")
    }

    /// All versions and delete markers of keys, listed as one kind.
    fn list_versions(&self, request: &Request) -> String {
        let kept = self.versions.iter().flatten();
        let kept = kept.filter(|(key, _)| key.starts_with(&request.asked("prefix")));
        let entries = kept.map(|(key, version)| {
            format!(
                "<DeleteMarker><Key>{key}</Key><VersionId>{version}</VersionId>\
                 <IsLatest>false</IsLatest><LastModified>2025-01-01T00:00:00.000Z</LastModified>\
                 </DeleteMarker>"
            )
        });
        let entries: String = entries.collect();
        format!("<R><IsTruncated>false</IsTruncated>{entries}</R>")
    }

    fn delete(&mut self, request: &Request) -> Result<Reply, Reply> {
        if request.field("if-match").is_some() {
            self.check(request)?;
        }
        match request.query.get("versionId").map(|version| version.parse()) {
            None => {
                self.objects.remove(&request.key);
                self.version(&request.key);
            }
            Some(version) => {
                let version = (request.key.clone(), version.expect("a number"));
                self.versions.iter_mut().for_each(|versions| versions.retain(|it| *it != version));
            }
        }
        Ok((204, Vec::new(), Vec::new()))
    }

    /// Executes a step of a multipart upload.
    fn carry_out_in_parts(&mut self, request: &Request) -> Result<Reply, Reply> {
        let (key, id) = (&request.key, request.asked("uploadId"));
        let no_upload = || error(404, "NoSuchUpload");
        match step(request) {
            Step::Begin => {
                self.changes += 1;
                let id = format!("upload-{}", self.changes);
                let begun = Begun {
                    key: key.clone(),
                    beside: request.beside("x-amz-meta-"),
                    initiated: now() + self.ahead,
                    ..Begun::default()
                };
                self.uploads.insert(id.clone(), begun);
                ok(format!("<Result><UploadId>{id}</UploadId></Result>"))
            }
            Step::Part => {
                let upload = self.uploads.get_mut(&id).ok_or_else(no_upload)?;
                let number = request.asked("partNumber").parse().expect("a number");
                upload.parts.insert(number, request.body.clone());
                with_etag(format!("\"part-{number}\""))
            }
            Step::CopyPart => {
                let source = request.field("x-amz-copy-source").expect("it is one");
                let source = source.trim_start_matches('/').strip_prefix("bucket/");
                let source = self.objects.get(source.expect("of this bucket"));
                let source = source.cloned().ok_or_else(|| error(404, "NoSuchKey"))?;
                let wanted = request.field("x-amz-copy-source-if-match");
                if wanted.is_some_and(|wanted| wanted != source.etag) {
                    return Err(error(412, "PreconditionFailed"));
                }
                let upload = self.uploads.get_mut(&id).ok_or_else(no_upload)?;
                let number = request.asked("partNumber").parse().expect("a number");
                let size = source.body.len();
                let (from, until) = request.range(size).unwrap_or((0, size));
                upload.parts.insert(number, source.body[from..until].to_vec());
                ok(format!("<CopyPartResult><ETag>\"part-{number}\"</ETag></CopyPartResult>"))
            }
            Step::Complete => {
                let upload = self.uploads.get(&id).cloned().ok_or_else(no_upload)?;
                let lengths: Vec<_> = upload.parts.values().map(Vec::len).collect();
                let is_even = |pair: &[usize]| pair[0] == pair[1];
                let (others, last) = lengths.split_at(lengths.len() - 1);
                let are_even = others.windows(2).all(is_even) && others.first() >= last.first();
                if self.demands_even_parts && !others.is_empty() && !are_even {
                    return Err(error(400, "InvalidPart"));
                }
                self.check(request)?;
                self.uploads.remove(&id);
                let body = upload.parts.into_values().collect::<Vec<_>>().concat();
                let etag = self.store(key, body, upload.beside);
                ok(format!("<CompleteResult><ETag>{etag}</ETag></CompleteResult>"))
            }
            Step::Abort => {
                self.uploads.remove(&id).ok_or_else(no_upload)?;
                Ok((204, Vec::new(), Vec::new()))
            }
            Step::Uploads => ok(self.listed(request)),
            Step::Parts => {
                let upload = self.uploads.get(&id).ok_or_else(no_upload)?;
                let parts = upload.parts.keys().map(|number| format!("<Part>{number}</Part>"));
                ok(format!("<ListPartsResult>{}</ListPartsResult>", parts.collect::<String>()))
            }
            other => panic!("{other:?} is no step of an upload"),
        }
    }

    /// A page of the uploads in progress.
    fn listed(&self, request: &Request) -> String {
        let after = (request.asked("key-marker"), request.asked("upload-id-marker"));
        let place = |(id, upload): (&String, &Begun)| (upload.key.clone(), id.clone());
        let mut all: Vec<_> = self.uploads.iter().map(place).collect();
        all.retain(|(key, _)| key.starts_with(&request.asked("prefix")));
        all.sort();
        all.retain(|place| *place > after);
        let page = self.page.unwrap_or(1000);
        let more = all.len() > page;
        all.truncate(page);
        let entry = |(key, id): &(String, String)| {
            let initiated = opendal::raw::Timestamp::try_from(time(self.uploads[id].initiated));
            format!(
                "<Upload><Key>{key}</Key><UploadId>{id}</UploadId>\
                 <Initiated>{}</Initiated></Upload>",
                initiated.expect("a time")
            )
        };
        let entries: String = all.iter().map(entry).collect();
        let (key, id) = all.last().cloned().unwrap_or_default();
        format!(
            "<R><IsTruncated>{more}</IsTruncated><NextKeyMarker>{key}</NextKeyMarker>\
             <NextUploadIdMarker>{id}</NextUploadIdMarker>{entries}</R>"
        )
    }
}
