//! The files in a cache, while the screen shows them: a separate thread reads them from the mount.
//!
//! A mount may hang and block its readers; the screen goes on. One read is in flight at a time, and
//! at most one begins every five seconds. The mount walks its cache for each of them, and counts
//! reads by file only while a program reads that file.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::events::Event;
use super::view::View;
use crate::stat::cached_files;

/// Between the beginnings of two reads.
const AGAIN: Duration = Duration::from_secs(5);

/// The thread that reads, and its last request.
pub(super) struct ObjectsReader {
    requests: SyncSender<PathBuf>,
    last: Option<(PathBuf, Instant)>,
    is_pending: bool,
}

impl ObjectsReader {
    /// Starts the thread, which waits.
    pub(super) fn start(events: Sender<Event>) -> Result<Self> {
        let (requests, received) = mpsc::sync_channel::<PathBuf>(1);
        thread::Builder::new()
            .name("top_objects".into())
            .spawn(move || {
                while let Ok(mount) = received.recv() {
                    let answer = read_objects(&mount);
                    if events.send(Event::Objects { mount, answer }).is_err() {
                        break;
                    }
                }
            })
            .context("cannot start the thread that reads the files in a cache")?;
        Ok(Self { requests, last: None, is_pending: false })
    }

    /// Begins a read if the screen shows files and the last read is old enough.
    pub(super) fn request(&mut self, view: &View, now: Instant) {
        let Some(mount) = view.mount_of_objects() else { return };
        let is_early = self
            .last
            .as_ref()
            .is_some_and(|(path, at)| path == mount && now.saturating_duration_since(*at) < AGAIN);
        if !self.is_pending && !is_early {
            self.is_pending = self.requests.try_send(mount.to_owned()).is_ok();
            self.last = Some((mount.to_owned(), now));
        }
    }

    /// An answer has come.
    pub(super) fn answered(&mut self) {
        self.is_pending = false;
    }
}

fn read_objects(mount: &Path) -> Result<Value, String> {
    let file = mount.join(".ogive/objects");
    let text = cached_files::read(&file).map_err(|error| format!("{error:#}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is damaged: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn view(mount: &Path) -> View {
        let mut view = View::new(Duration::from_secs(1), false);
        view.describe(&json!([
            {"id": "host", "kind": "host", "name": "h", "state": "answers"},
            {"id": "m1", "kind": "mount", "name": mount.to_string_lossy(), "state": "answers"},
        ]));
        view
    }

    #[test]
    fn a_mount_is_read_while_its_files_are_shown_and_once_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join(".ogive")).unwrap();
        let (events, answers) = mpsc::channel();
        let mut reader = ObjectsReader::start(events).unwrap();
        let mut view = view(place.path());
        let now = Instant::now();
        reader.request(&view, now);
        assert!(reader.last.is_none(), "no files are shown");
        view.show_next();
        reader.request(&view, now);
        let Event::Objects { mount, answer: Err(why) } = answers.recv_timeout(PATIENCE).unwrap()
        else {
            panic!()
        };
        assert_eq!(mount, place.path());
        assert!(why.contains("objects"), "{why}");
        // The answer is still pending: no second read begins, however late it is.
        reader.request(&view, now + 100 * AGAIN);
        assert_eq!(reader.last.as_ref().unwrap().1, now);
        reader.answered();
        reader.request(&view, now + AGAIN / 2);
        assert_eq!(reader.last.as_ref().unwrap().1, now, "too early");
        std::fs::write(place.path().join(".ogive/objects"), r#"{"files":[]}"#).unwrap();
        reader.request(&view, now + AGAIN);
        let Event::Objects { answer, .. } = answers.recv_timeout(PATIENCE).unwrap() else {
            panic!()
        };
        assert_eq!(answer, Ok(json!({"files": []})));
    }
}
