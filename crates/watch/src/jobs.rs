//! Jobs that take seconds and that users start: a diagnosis, a capture, a profile.
//!
//! Each is a POST with the token, and the response comes when the job is done. One job of each kind
//! runs at a time: jobs measure the host, and two at once would measure each other. The program
//! that runs the server brings the code that diagnoses and captures ([`Looker`]). A request names a
//! source by the identifier that the page knows, never by a path.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::hour_comparison::Earlier;
use crate::http::{Access, Request, Response, Routes};
use crate::profile_store::Profiles;
pub use crate::sample::Subject;
use crate::sampler::Sampler;

/// Most seconds of a job.
const SECONDS_MAX: u64 = 60;

/// Looks at a host for a while.
pub trait Looker: Send + Sync {
    /// Says where the CPU goes: the report of `ogive doctor --json`.
    ///
    /// # Errors
    ///
    /// The reason, as text for people.
    fn diagnose(&self, subject: &Subject, duration: Duration) -> Result<Value, String>;

    /// Compares the last minute with the one an hour ago, as `ogive doctor --compare` does, for a
    /// source by its identifier.
    fn compare(&self, source: &str, subject: &Subject, earlier: &Earlier) -> Value;

    /// Takes a bundle that the doctor can read elsewhere.
    ///
    /// # Errors
    ///
    /// The reason, as text for people.
    fn capture(&self, subject: &Subject, duration: Duration) -> Result<Vec<u8>, String>;
}

/// Adds the routes.
pub fn routes(routes: Routes, sampler: &Sampler, looker: Arc<dyn Looker>) -> Routes {
    let looking = Arc::new(Mutex::new(()));
    let (sources, look, busy) = (sampler.clone(), Arc::clone(&looker), Arc::clone(&looking));
    let routes = routes.post("/api/diagnose", move |request| {
        answered(one_at_a_time(&busy).and_then(|_busy| {
            let (subject, duration) = asked(&sources, request, 5)?;
            let report = look.diagnose(&subject, duration).map_err(failed)?;
            Ok(Response::json(report.to_string()))
        }))
    });
    let (sources, look) = (sampler.clone(), Arc::clone(&looker));
    let routes = routes.post("/api/compare", move |request| {
        answered(asked(&sources, request, 1).and_then(|(subject, _)| {
            // "No hour yet" is an answer, not a failure.
            let earlier = sources.earlier().map_err(|why| Response::error(409, &why))?;
            let source = request.query("source").unwrap_or("host");
            Ok(Response::json(look.compare(source, &subject, &earlier).to_string()))
        }))
    });
    let (sources, busy) = (sampler.clone(), looking);
    let routes = routes.post("/api/capture", move |request| {
        answered(one_at_a_time(&busy).and_then(|_busy| {
            let (subject, duration) = asked(&sources, request, 10)?;
            let bundle = looker.capture(&subject, duration).map_err(failed)?;
            Ok(Response::new("application/zstd", bundle).download("ogive-capture.tar.zst"))
        }))
    });
    profile_routes(routes, sampler.clone())
}

fn profile_routes(routes: Routes, sources: Sampler) -> Routes {
    let profiles = Arc::new(Profiles::default());
    let sampling = Mutex::new(());
    let own = Arc::clone(&profiles);
    let routes = routes.post("/api/profile", move |request| {
        answered(one_at_a_time(&sampling).and_then(|_busy| {
            let (subject, duration) = asked(&sources, request, 10)?;
            let threads = request.query("threads").filter(|name| !name.is_empty());
            let profile = own.take(&subject, threads, duration).map_err(failed)?;
            Ok(Response::json(profile.to_string()))
        }))
    });
    let own = Arc::clone(&profiles);
    let routes =
        routes.get("/api/profiles", Access::Act, move |_| Response::json(own.list().to_string()));
    // A frame and a link send no token. They name a profile by an unpredictable number.
    let own = Arc::clone(&profiles);
    let routes = routes.get("/flame", Access::Page, move |request| {
        own.page(request.query("id"), request.query("base"))
    });
    routes.get("/flame/file", Access::Page, move |request| {
        profiles.file(request.query("id"), request.query("as"))
    })
}

fn answered(result: Result<Response, Response>) -> Response {
    result.unwrap_or_else(|refused| refused)
}

fn failed(error: String) -> Response {
    Response::error(500, &error)
}

fn one_at_a_time(busy: &Mutex<()>) -> Result<parking_lot::MutexGuard<'_, ()>, Response> {
    busy.try_lock().ok_or_else(|| {
        Response::error(409, "another job of this kind is running; try again in a few seconds")
    })
}

/// The subject of a request, and its duration.
fn asked(
    sources: &Sampler,
    request: &Request,
    default: u64,
) -> Result<(Subject, Duration), Response> {
    let duration = request
        .seconds("seconds", default, SECONDS_MAX)
        .map_err(|reason| Response::error(400, &reason))?;
    let source = request.query("source").unwrap_or("host");
    let subject = sources
        .subject(source)
        .ok_or_else(|| Response::error(404, "this source no longer exists; reload the page"))?;
    Ok((subject, duration))
}
