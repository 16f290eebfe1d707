//! The part of Google Cloud Storage that writing an object needs. Every object is uploaded in a
//! session, because only then its write has a condition.

use super::{Begun, Reply, Request, State, Step, Stored, ok};
use std::fmt::Write as _;

/// The path for uploads.
const UPLOAD: &str = "/upload/storage/v1/b/bucket/o";

pub(super) fn error(status: u16, reason: &str) -> Reply {
    let text = format!(
        r#"{{"error":{{"code":{status},"message":"the message","errors":[{{"domain":"global","#,
    ) + &format!(r#""reason":"{reason}","message":"the message"}}]}}}}"#);
    (status, vec![("Content-Type".to_owned(), "application/json".to_owned())], text.into_bytes())
}

/// The key of a request.
pub(super) fn key(request: &Request) -> String {
    let named = request.path.strip_prefix("/storage/v1/b/bucket/o/");
    named.map_or_else(|| request.asked("name"), opendal::raw::percent_decode_path)
}

/// The kind of a request.
pub(super) fn step(request: &Request) -> Step {
    let is_session = request.query.contains_key("upload_id");
    let range = request.field("content-range").unwrap_or_default();
    match request.method.as_str() {
        "GET" if key(request).is_empty() => Step::List,
        "GET" if request.asked("alt") == "media" => Step::Get,
        "GET" => Step::Head,
        "POST" if request.asked("uploadType") == "resumable" => Step::Begin,
        "PUT" if range.starts_with("bytes */") => Step::Parts,
        "PUT" if range.ends_with("/*") => Step::Part,
        "PUT" if is_session => Step::Complete,
        "DELETE" if is_session => Step::Abort,
        "DELETE" => Step::Delete,
        other => panic!("{other} {} is not known here", request.path),
    }
}

/// The description of an object.
fn resource(key: &str, stored: &Stored) -> String {
    let generation = stored.etag.trim_matches('"');
    let mut text = format!(
        r#"{{"name":"{key}","generation":"{generation}","etag":"e{generation}","size":"{}","#,
        stored.body.len()
    );
    if let Some((_, noted)) = stored.beside.first() {
        let _ = write!(text, r#""metadata":{noted},"#);
    }
    text + r#""updated":"2025-01-01T00:00:00.000Z"}"#
}

/// How much of an object has arrived.
fn so_far(begun: &Begun) -> Reply {
    let bytes: usize = begun.parts.values().map(Vec::len).sum();
    let range = ("Range".to_owned(), format!("bytes=0-{}", bytes.saturating_sub(1)));
    (308, if bytes == 0 { Vec::new() } else { vec![range] }, Vec::new())
}

impl State {
    fn check_generation(&self, key: &str, wanted: &str) -> Result<(), Reply> {
        let there = self.objects.get(key).map_or("0", |stored| stored.etag.trim_matches('"'));
        match wanted.is_empty() || wanted == there {
            true => Ok(()),
            false => Err(error(412, "conditionNotMet")),
        }
    }

    pub(super) fn carry_out_google(&mut self, request: &Request) -> Result<Reply, Reply> {
        let key = key(request);
        let wanted = request.asked("ifGenerationMatch");
        match step(request) {
            Step::Head | Step::Get => {
                let stored = self.objects.get(&key).ok_or_else(|| error(404, "notFound"))?;
                self.check_generation(&key, &wanted)?;
                match request.asked("alt") == "media" {
                    true => self.shown(&key, request).ok_or_else(|| error(404, "notFound")),
                    false => ok(resource(&key, stored)),
                }
            }
            Step::Delete => {
                self.objects.get(&key).ok_or_else(|| error(404, "notFound"))?;
                self.check_generation(&key, &wanted)?;
                self.objects.remove(&key);
                Ok((204, Vec::new(), Vec::new()))
            }
            Step::List => {
                let prefix = request.asked("prefix");
                let below = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
                let below: Vec<_> = below.map(|(key, stored)| resource(key, stored)).collect();
                ok(format!(r#"{{"items":[{}]}}"#, below.join(",")))
            }
            Step::Begin => {
                self.changes += 1;
                let id = format!("session-{}", self.changes);
                let text = String::from_utf8_lossy(&request.body);
                let noted = text.split_once(r#""metadata":"#);
                let noted = noted.and_then(|(_, rest)| Some(rest.split_once('}')?.0.to_owned()));
                let beside = noted.map(|noted| ("metadata".to_owned(), noted + "}"));
                let beside = beside.into_iter().collect();
                let begun = Begun { key, beside, condition: wanted, ..Begun::default() };
                self.uploads.insert(id.clone(), begun);
                let host = request.field("host").unwrap_or_default();
                let location =
                    ("Location".to_owned(), format!("http://{host}{UPLOAD}?upload_id={id}"));
                Ok((200, vec![location], Vec::new()))
            }
            _ => self.carry_out_in_session(request),
        }
    }

    /// Continues an upload session.
    fn carry_out_in_session(&mut self, request: &Request) -> Result<Reply, Reply> {
        let id = request.asked("upload_id");
        let Some(mut begun) = self.uploads.get(&id).cloned() else {
            return Err(error(404, "notFound"));
        };
        if begun.is_done {
            let stored = self.objects.get(&begun.key).ok_or_else(|| error(410, "gone"))?;
            return ok(resource(&begun.key, stored));
        }
        match step(request) {
            Step::Abort => {
                self.uploads.remove(&id);
                Ok((499, Vec::new(), Vec::new()))
            }
            Step::Parts => Ok(so_far(&begun)),
            step => {
                let range = request.field("content-range").unwrap_or_default();
                let from = range.trim_start_matches("bytes ").split('-').next();
                let from = from.and_then(|from| from.parse().ok()).unwrap_or(0);
                // The same bytes may arrive twice.
                begun.parts.insert(from, request.body.clone());
                self.uploads.insert(id.clone(), begun.clone());
                if step == Step::Part {
                    return Ok(so_far(&begun));
                }
                self.check_generation(&begun.key, &begun.condition)?;
                let body = begun.parts.values().cloned().collect::<Vec<_>>().concat();
                self.store(&begun.key, body, begun.beside.clone());
                self.uploads.insert(id, Begun { is_done: true, ..begun.clone() });
                ok(resource(&begun.key, &self.objects[&begun.key]))
            }
        }
    }
}
