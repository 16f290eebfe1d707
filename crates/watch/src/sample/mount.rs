//! One mount of ogive: a separate thread reads its control directory.
//!
//! If a daemon is stopped or stuck, a thread that reads its files hangs until the daemon continues
//! or ends. The step goes on without that thread. A mount gets no new request while its last answer
//! is pending.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use ogive_kstat::Source;
use serde_json::{Value, json};

use super::counters::Counters;
use super::roles::DaemonRoles;
use super::{Step, Subject};

/// A step waits so long for an answer.
const PATIENCE: Duration = Duration::from_millis(400);
/// It waits only so long if the last answer was late, so that the waits of several hanging mounts do
/// not add up.
const PATIENCE_LATE: Duration = Duration::from_millis(10);
/// The description is read again once in so many looks.
const DESCRIBED_EVERY: u32 = 10;
/// Bytes of a description at most.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 10;

/// The result of a look.
struct Found {
    counters: Result<Counters, String>,
    description: Option<Value>,
}

/// A mount.
#[derive(Debug)]
pub(super) struct Mount {
    id: String,
    path: PathBuf,
    ask: SyncSender<bool>,
    answers: Receiver<Found>,
    is_asked: bool,
    is_late: bool,
    looks: u32,
    before: Option<Counters>,
    description: Value,
    state: String,
    roles: DaemonRoles,
}

impl Mount {
    /// Starts to watch a mount.
    pub(super) fn new(id: String, path: PathBuf) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::sync_channel::<bool>(1);
        let (answer, answers) = mpsc::sync_channel(1);
        let directory = path.join(".ogive");
        thread::Builder::new().name("watch_mount".into()).spawn(move || {
            let source = Source::directory(&directory);
            while let Ok(describe) = asked.recv() {
                if answer.send(look(&source, &directory, describe)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self {
            id,
            path,
            ask,
            answers,
            is_asked: false,
            is_late: false,
            looks: 0,
            before: None,
            description: Value::Null,
            state: "answers".to_owned(),
            roles: DaemonRoles::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn forget(&mut self) {
        self.before = None;
        self.roles.forget();
    }

    pub(super) fn step(&mut self, step: &mut Step) {
        if !self.is_asked {
            let describe = self.looks.is_multiple_of(DESCRIBED_EVERY);
            self.looks = self.looks.wrapping_add(1);
            self.is_asked = self.ask.try_send(describe).is_ok();
        }
        let patience = if self.is_late { PATIENCE_LATE } else { PATIENCE };
        match self.answers.recv_timeout(patience) {
            Ok(found) => {
                (self.is_asked, self.is_late) = (false, false);
                self.take(found, step);
            }
            Err(RecvTimeoutError::Timeout) => {
                // The last counters stay, so the next rate covers the whole time since.
                "does not answer".clone_into(&mut self.state);
                self.is_late = true;
            }
            Err(RecvTimeoutError::Disconnected) => {
                "is not watched: its thread has ended".clone_into(&mut self.state);
            }
        }
        if let Some(process) = self.process() {
            self.roles.step(&self.id, process, step);
        }
    }

    fn process(&self) -> Option<i32> {
        self.description["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())
    }

    pub(super) fn subject(&self) -> (String, Subject) {
        (self.id.clone(), Subject::Mount(self.path.clone(), self.process()))
    }

    fn take(&mut self, found: Found, step: &mut Step) {
        if let Some(description) = found.description {
            self.description = description;
        }
        match found.counters {
            Ok(now) => {
                if let Some(before) = &self.before {
                    now.put_series(before, &self.id, step);
                }
                self.before = Some(now);
                self.state = match self.description["source_gone"]["error"].as_str() {
                    Some(error) => format!("its source is gone: {error}"),
                    None => "answers".to_owned(),
                };
            }
            Err(error) => {
                self.before = None;
                self.state = error;
            }
        }
    }

    pub(super) fn describe(&self) -> Value {
        json!({
            "id": self.id,
            "kind": "mount",
            "name": self.path.to_string_lossy(),
            "state": self.state,
            "mount": self.description,
        })
    }
}

fn look(source: &Source, directory: &Path, describe: bool) -> Found {
    let description = describe.then(|| description(directory)).flatten();
    let read = |name| source.kstat(name).map_err(|error| error.to_string());
    let counters = read("arcstats").map(|arcstats| {
        // An older daemon may lack the second file.
        let own = read("ogivestats").ok();
        Counters::new(Instant::now(), [Some(&arcstats), own.as_ref()].into_iter().flatten())
    });
    Found { counters, description }
}

fn description(directory: &Path) -> Option<Value> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(directory.join("mount")).ok()?;
    file.take(DESCRIPTION_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCSTATS: &str = "9 1 0x01 1 272 1000 2000\nname type data\ndemand_data_hits 4 5\n";

    fn steps(mount: &mut Mount, count: u32) -> Step {
        let mut step = Step::default();
        for _ in 0..count {
            step = Step::default();
            // On a busy machine an answer may come too late for its step.
            for _ in 0..6000 {
                mount.step(&mut step);
                if mount.state != "does not answer" {
                    break;
                }
            }
        }
        step
    }

    #[test]
    fn a_control_directory_gives_description_and_series() {
        let place = tempfile::tempdir().unwrap();
        let control = place.path().join(".ogive");
        std::fs::create_dir(&control).unwrap();
        std::fs::write(control.join("arcstats"), ARCSTATS).unwrap();
        std::fs::write(control.join("mount"), r#"{"policy":"duel","pid":-1}"#).unwrap();
        let mut mount = Mount::new("m1".to_owned(), place.path().to_owned()).unwrap();
        let step = steps(&mut mount, 2);
        assert!(step.values.contains(&("m1.demand_data_hits".to_owned(), 0.0)), "{step:?}");
        let description = mount.describe();
        assert_eq!(
            (&description["state"], &description["mount"]["policy"]),
            (&json!("answers"), &json!("duel"))
        );

        std::fs::write(control.join("arcstats"), "\u{0}nonsense").unwrap();
        steps(&mut mount, 1);
        let state = mount.describe()["state"].as_str().unwrap().to_owned();
        assert!(state.contains("arcstats"), "{state}");
    }

    /// A FIFO without a writer acts as a hanging daemon: its open waits.
    #[test]
    fn a_mount_that_does_not_answer_delays_no_step() {
        let place = tempfile::tempdir().unwrap();
        let control = place.path().join(".ogive");
        std::fs::create_dir(&control).unwrap();
        let fifo = control.join("arcstats");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let mut mount = Mount::new("m1".to_owned(), place.path().to_owned()).unwrap();
        for _ in 0..2 {
            mount.step(&mut Step::default());
            assert_eq!(mount.describe()["state"], "does not answer");
        }
        // The daemon continues: the hanging look is answered, and later ones are.
        std::fs::write(&fifo, ARCSTATS).unwrap();
        std::fs::remove_file(&fifo).unwrap();
        std::fs::write(&fifo, ARCSTATS).unwrap();
        steps(&mut mount, 3);
        assert_eq!(mount.describe()["state"], "answers");
    }
}
