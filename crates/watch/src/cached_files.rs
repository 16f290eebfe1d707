//! The files in the cache of a mount: `/api/objects`, from its control directory.
//!
//! The response names files, so a request needs the token. The mount walks its cache for each
//! response, so one request a mount is under way at a time. A daemon that is stuck blocks its
//! readers. So a separate thread reads, and the request gives up after `PATIENCE`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::http::{Access, Response, Routes};
use crate::sample::Subject;
use crate::sampler::Sampler;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer at most: eight hundred paths of 4 KiB, each byte escaped to seven.
const BYTES_MAX: u64 = 32 << 20;

/// Mounts with a pending answer.
#[derive(Debug, Default)]
struct Due(Mutex<Vec<PathBuf>>);

/// Adds the route.
pub fn routes(routes: Routes, sampler: Sampler) -> Routes {
    let due = Arc::new(Due::default());
    routes.get("/api/objects", Access::Act, move |request| {
        match sampler.subject(request.query("source").unwrap_or_default()) {
            Some(Subject::Mount(path, _)) => due.answer(&path, PATIENCE),
            Some(Subject::Host) => {
                Response::error(400, "the host has no cache of its own; name a mount")
            }
            None => Response::error(404, "this source no longer exists; reload the page"),
        }
    })
}

impl Due {
    fn answer(self: &Arc<Self>, path: &Path, patience: Duration) -> Response {
        {
            let mut due = self.0.lock();
            if due.iter().any(|own| own == path) {
                return busy();
            }
            due.push(path.to_owned());
        }
        let (send, receive) = mpsc::sync_channel(1);
        let (own, mount) = (Arc::clone(self), path.to_owned());
        let started = thread::Builder::new().name("watch_objects".into()).spawn(move || {
            let read = read(&mount.join(".ogive/objects"));
            own.0.lock().retain(|other| *other != mount);
            // No request waits any more if it took too long.
            let _ = send.send(read);
        });
        if let Err(error) = started {
            self.0.lock().retain(|other| other != path);
            return Response::error(500, &format!("cannot start a thread: {error}"));
        }
        match receive.recv_timeout(patience) {
            Ok(Ok(text)) => Response::json(text),
            Ok(Err(error)) => failed(path, &error),
            Err(_) => Response::error(500, &format!("{} does not answer", path.display())),
        }
    }
}

fn busy() -> Response {
    Response::error(409, "another page is reading the files in this cache; trying again")
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(file)?.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn failed(mount: &Path, error: &std::io::Error) -> Response {
    use std::io::ErrorKind::{NotFound, PermissionDenied, ResourceBusy};
    let mount = mount.display();
    match error.kind() {
        ResourceBusy => busy(),
        NotFound => Response::error(
            404,
            &format!(
                "{mount} does not list the files in its cache: it was unmounted, or its daemon is \
                 of an earlier version; mount it again to see them"
            ),
        ),
        PermissionDenied => Response::error(
            403,
            &format!(
                "only the user who mounted {mount} may see this; run ogive watch as that user"
            ),
        ),
        _ => {
            Response::error(500, &format!("cannot read the files in the cache of {mount}: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENEROUS: Duration = Duration::from_secs(60);

    fn mount() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join(".ogive")).unwrap();
        let file = place.path().join(".ogive/objects");
        (place, file)
    }

    fn text(response: &Response) -> String {
        String::from_utf8_lossy(response.body()).into_owned()
    }

    #[test]
    fn objects_of_a_mount_are_passed_on_and_missing_ones_are_reported() {
        let (place, file) = mount();
        let due = Arc::new(Due::default());
        let missing = due.answer(place.path(), GENEROUS);
        assert_eq!(missing.status(), 404);
        assert!(text(&missing).contains("earlier version"), "{}", text(&missing));
        std::fs::write(&file, r#"{"files":[]}"#).unwrap();
        let answer = due.answer(place.path(), GENEROUS);
        assert_eq!((answer.status(), text(&answer).as_str()), (200, r#"{"files":[]}"#));
        std::fs::write(&file, b"\xff").unwrap();
        assert_eq!(due.answer(place.path(), GENEROUS).status(), 500);
        assert!(due.0.lock().is_empty());
    }

    /// A FIFO without a writer acts as a hanging daemon.
    #[test]
    fn a_hanging_mount_blocks_one_thread_for_any_number_of_requests() {
        let (place, file) = mount();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        let due = Arc::new(Due::default());
        let late = due.answer(place.path(), Duration::from_millis(1));
        assert!(text(&late).contains("does not answer"), "{}", text(&late));
        assert_eq!(due.answer(place.path(), GENEROUS).status(), 409);
        // It goes on: the thread ends, and the next request is answered.
        std::fs::write(&file, "{}").unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "{}").unwrap();
        let until = std::time::Instant::now() + GENEROUS;
        while due.answer(place.path(), GENEROUS).status() == 409 {
            assert!(std::time::Instant::now() < until, "never came: the end of the thread");
            thread::yield_now();
        }
        assert_eq!(due.answer(place.path(), GENEROUS).status(), 200);
    }
}
