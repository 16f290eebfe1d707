//! Profiles that the page has taken: the last few, in memory.
//!
//! A flame graph is a page of its own with a script, and contains names that programs chose. It is
//! shown in a frame without an origin (`sandbox`), so it can never send a request to this server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ogive_profile::Profile;
use ogive_profile::live::{self, Request, Target};
use ogive_profile::roles::Roles;
use ogive_profile::write::{self, Output, Page};
use parking_lot::Mutex;
use regex::RegexBuilder;
use serde_json::{Value, json};

use crate::http::{Response, Token};
use crate::jobs::Subject;

/// Profiles that are kept.
const KEPT_MAX: usize = 8;
/// Bytes of a compiled expression for names of threads at most.
const EXPRESSION_BYTES_MAX: usize = 1 << 18;

/// The rights of a flame graph: its own script, and nothing else.
const FLAME_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'; sandbox allow-scripts";

/// The profiles.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    kept: Mutex<VecDeque<Arc<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    id: String,
    title: String,
    time_ms: u64,
    profile: Profile,
}

impl Profiles {
    /// Samples for a time and describes the profile.
    pub(crate) fn take(
        &self,
        subject: &Subject,
        threads: Option<&str>,
        duration: Duration,
    ) -> Result<Value, String> {
        let (target, title) = target(subject, threads)?;
        let request = Request { target, duration, ..Request::default() };
        let profile = live::sample(&request, &AtomicBool::new(false), &mut |_, _| {});
        let profile = profile.map_err(|error| error.to_string())?;
        if profile.busy().count() == 0 {
            return Err(format!(
                "no sample was taken: {title} did not run; sample for longer, or sample the host"
            ));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = Token::random().map_err(|error| format!("no random number: {error}"))?;
        let kept = Arc::new(Kept {
            id: id.text().to_owned(),
            title,
            time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            profile,
        });
        let description = kept.describe();
        let mut all = self.kept.lock();
        if all.len() == KEPT_MAX {
            all.pop_front();
        }
        all.push_back(kept);
        Ok(description)
    }

    /// The profiles, the oldest first.
    pub(crate) fn list(&self) -> Value {
        self.kept.lock().iter().map(|kept| kept.describe()).collect()
    }

    fn find(&self, id: Option<&str>) -> Option<Arc<Kept>> {
        let id = id?;
        self.kept.lock().iter().find(|kept| kept.id == id).map(Arc::clone)
    }

    /// The flame graph of a profile, compared with another if one is named.
    pub(crate) fn page(&self, id: Option<&str>, base: Option<&str>) -> Response {
        let Some(kept) = self.find(id) else { return gone() };
        let base = match base {
            None => None,
            Some(id) => match self.find(Some(id)) {
                Some(base) => Some(base),
                None => return gone(),
            },
        };
        match kept.written(Output::Html, base.as_deref()) {
            Ok(page) => Response::new("text/html; charset=utf-8", page).policy(FLAME_POLICY),
            Err(response) => response,
        }
    }

    /// A profile as a file to be kept.
    pub(crate) fn file(&self, id: Option<&str>, form: Option<&str>) -> Response {
        let (output, media_type, name) = match form {
            Some("svg") => (Output::Svg, "image/svg+xml", "flame.svg"),
            Some("html") => (Output::Html, "text/html; charset=utf-8", "flame.html"),
            Some("folded") => (Output::Folded, "text/plain; charset=utf-8", "cpu.folded"),
            Some("pprof") => (Output::Pprof, "application/octet-stream", "cpu.pb.gz"),
            _ => return Response::error(400, "\"as\" is one of svg, html, folded, pprof"),
        };
        let Some(kept) = self.find(id) else { return gone() };
        match kept.written(output, None) {
            Ok(bytes) => Response::new(media_type, bytes).policy(FLAME_POLICY).download(name),
            Err(response) => response,
        }
    }
}

impl Kept {
    fn describe(&self) -> Value {
        json!({
            "id": self.id,
            "title": self.title,
            "time_ms": self.time_ms,
            "samples": self.profile.busy().count(),
            "notes": self.profile.meta.notes,
        })
    }

    fn written(&self, output: Output, base: Option<&Self>) -> Result<Vec<u8>, Response> {
        let roles = Roles::bundled();
        let view = self.profile.busy();
        let before = base.map(|base| base.profile.busy());
        let page =
            Page { title: &self.title, view: &view, baseline: before.as_ref(), roles: &roles };
        let mut out = Vec::new();
        match write::write(&mut out, output, &page) {
            Ok(()) => Ok(out),
            Err(error) => Err(Response::error(500, &format!("cannot draw the profile: {error}"))),
        }
    }
}

fn gone() -> Response {
    Response::error(404, "this profile is no longer kept; take another")
}

/// The target of a profile, and its title.
fn target(subject: &Subject, threads: Option<&str>) -> Result<(Target, String), String> {
    if let Some(name) = threads {
        let expression = RegexBuilder::new(name).size_limit(EXPRESSION_BYTES_MAX).build();
        let expression =
            expression.map_err(|error| format!("cannot parse the names of threads: {error}"))?;
        return Ok((Target::Threads(expression), format!("threads {name}")));
    }
    match subject {
        Subject::Host => Ok((Target::System, "this host".to_owned())),
        Subject::Mount(path, Some(process)) => {
            let title = format!("the daemon of {}", path.display());
            Ok((Target::Processes(vec![*process]), title))
        }
        Subject::Mount(path, None) => {
            Err(format!("the process of {} is unknown: it does not answer", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><img/src=x/onerror=alert(1)>;<b>main</b> 90\nidle;other 10\n";

    fn with(text: &str) -> Profiles {
        let profile =
            ogive_profile::read::bytes("t.folded", text.as_bytes(), &Default::default()).unwrap();
        let profiles = Profiles::default();
        profiles.kept.lock().push_back(Arc::new(Kept {
            id: "one".to_owned(),
            title: "<i>title</i>".to_owned(),
            time_ms: 5,
            profile,
        }));
        profiles
    }

    #[test]
    fn hostile_names_stay_text_in_every_form() {
        let profiles = with(HOSTILE);
        for form in ["svg", "html"] {
            let response = profiles.file(Some("one"), Some(form));
            assert_eq!(response.status(), 200);
            let text = String::from_utf8_lossy(response.body()).into_owned();
            assert!(!text.contains("<img/src") && !text.contains("<i>title"), "{form}");
        }
        let page = profiles.page(Some("one"), Some("one"));
        assert!(!String::from_utf8_lossy(page.body()).contains("<img/src"));
    }

    #[test]
    fn a_missing_profile_is_reported() {
        let profiles = with(HOSTILE);
        for response in [
            profiles.page(None, None),
            profiles.page(Some("two"), None),
            profiles.page(Some("one"), Some("two")),
            profiles.file(Some("../one"), Some("svg")),
        ] {
            assert_eq!(response.status(), 404);
        }
        assert_eq!(profiles.file(Some("one"), Some("sh")).status(), 400);
    }

    #[test]
    fn an_expression_that_would_grow_without_bound_is_refused() {
        let huge = "(((((a{99}){99}){99}){99}){99})";
        assert!(target(&Subject::Host, Some(huge)).unwrap_err().contains("threads"));
        assert!(target(&Subject::Host, Some("(")).is_err());
        assert!(target(&Subject::Mount("/m".into(), None), None).is_err());
    }
}
