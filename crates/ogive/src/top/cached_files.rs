//! The files in a cache, while the screen shows them: a separate thread asks the mount.
//!
//! A mount may hang and block its readers; the screen goes on. The thread asks once, and again
//! after the answer, every five seconds at most: the mount walks its cache for each answer, and
//! counts reads by file only while somebody asks.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::events::Event;
use super::view::View;
use crate::stat::cached_files;

/// Between two questions.
const AGAIN: Duration = Duration::from_secs(5);

/// Who asks, and when it did.
pub(super) struct Asker {
    ask: SyncSender<PathBuf>,
    asked: Option<(PathBuf, Instant)>,
    is_due: bool,
}

impl Asker {
    /// Starts the thread, which waits.
    pub(super) fn start(events: Sender<Event>) -> Result<Self> {
        let (ask, asked) = mpsc::sync_channel::<PathBuf>(1);
        thread::Builder::new()
            .name("top_objects".into())
            .spawn(move || {
                while let Ok(mount) = asked.recv() {
                    let answer = read_objects(&mount);
                    if events.send(Event::Objects { mount, answer }).is_err() {
                        break;
                    }
                }
            })
            .context("cannot start the thread that asks what is in a cache")?;
        Ok(Self { ask, asked: None, is_due: false })
    }

    /// Asks if that is shown, and if it is time.
    pub(super) fn ask(&mut self, view: &View, now: Instant) {
        let Some(mount) = view.objects_wanted() else { return };
        let is_early = self
            .asked
            .as_ref()
            .is_some_and(|(path, at)| path == mount && now.saturating_duration_since(*at) < AGAIN);
        if !self.is_due && !is_early {
            self.is_due = self.ask.try_send(mount.to_owned()).is_ok();
            self.asked = Some((mount.to_owned(), now));
        }
    }

    /// An answer has come.
    pub(super) fn answered(&mut self) {
        self.is_due = false;
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
    fn a_mount_is_asked_while_it_is_shown_and_not_before_it_has_answered() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join(".ogive")).unwrap();
        let (events, answers) = mpsc::channel();
        let mut asker = Asker::start(events).unwrap();
        let mut view = view(place.path());
        let now = Instant::now();
        asker.ask(&view, now);
        assert!(asker.asked.is_none(), "nobody looks");
        view.show_next();
        asker.ask(&view, now);
        let Event::Objects { mount, answer: Err(why) } = answers.recv_timeout(PATIENCE).unwrap()
        else {
            panic!()
        };
        assert_eq!(mount, place.path());
        assert!(why.contains("objects"), "{why}");
        // It has not been taken yet: nobody asks twice, however late it is.
        asker.ask(&view, now + 100 * AGAIN);
        assert_eq!(asker.asked.as_ref().unwrap().1, now);
        asker.answered();
        asker.ask(&view, now + AGAIN / 2);
        assert_eq!(asker.asked.as_ref().unwrap().1, now, "too early");
        std::fs::write(place.path().join(".ogive/objects"), r#"{"files":[]}"#).unwrap();
        asker.ask(&view, now + AGAIN);
        let Event::Objects { answer, .. } = answers.recv_timeout(PATIENCE).unwrap() else {
            panic!()
        };
        assert_eq!(answer, Ok(json!({"files": []})));
    }
}
