//! `--pprof`: CPU profiles of the mount's process, for `go tool pprof`, Parca and Pyroscope.
//!
//! `/debug/pprof/profile?seconds=N` is the path that Go's programs made common. The process samples
//! itself at 99 hertz for as long as the request asks. So any client that may ask can cause a
//! little work. Therefore the route needs an option, one profile runs at a time, and none takes
//! longer than [`SECONDS_MAX`]. A profile contains names of functions, but no file, path or program
//! of a user.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ogive_profile::live::{self, LiveError, Target};
use ogive_profile::roles::Roles;
use ogive_profile::write::{self, Output, Page};
use ogive_watch::http::{Request, Response};

/// The path of profiles.
pub(super) const PATH: &str = "/debug/pprof/profile";
/// The default length, as Go's.
const SECONDS_DEFAULT: u64 = 30;
/// The longest profile.
const SECONDS_MAX: u64 = 60;

/// Takes a profile, one at a time.
#[derive(Default)]
pub(super) struct Sampler {
    busy: Mutex<()>,
}

impl Sampler {
    /// Answers a request.
    pub(super) fn answer(&self, request: &Request) -> Response {
        let Ok(_turn) = self.busy.try_lock() else {
            return Response::error(429, "a profile is being taken; ask when it is done");
        };
        let duration = match request.seconds("seconds", SECONDS_DEFAULT, SECONDS_MAX) {
            Ok(duration) => duration,
            Err(reason) => return Response::error(400, &reason),
        };
        match profile(duration) {
            Ok(bytes) => Response::new("application/octet-stream", bytes).download("profile.pb.gz"),
            Err(LiveError::Denied { advice, .. }) => Response::error(
                503,
                &format!("the kernel does not let the mount's process sample itself; {advice}"),
            ),
            Err(error) => Response::error(500, &error.to_string()),
        }
    }
}

/// Samples this process.
fn profile(duration: Duration) -> Result<Vec<u8>, LiveError> {
    let own = std::process::id().cast_signed();
    let request = live::Request {
        target: Target::Processes(vec![own]),
        duration,
        ..live::Request::default()
    };
    let profile = live::sample(&request, &AtomicBool::new(false), &mut |_, _| {})?;
    let (view, roles) = (profile.view(), Roles::bundled());
    let page = Page { title: "ogive mount", view: &view, baseline: None, roles: &roles };
    let mut bytes = Vec::new();
    write::write(&mut bytes, Output::Pprof, &page)
        .map_err(|source| LiveError::Failed { what: "writing the profile", source })?;
    Ok(bytes)
}
