//! Messages on standard error: `ogive: warning: ...`.
//!
//! Under systemd each line carries its priority (sd-daemon(3)); in a log file it carries the time.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::SystemTime;

use log::{Level, LevelFilter, Log, Metadata, Record};
use rustix::io::Errno;

/// Where a line goes decides how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// For a person: the program's name, and the level unless it is information.
    Person,
    /// For the journal: the priority.
    Journal,
    /// For a file: the time.
    File,
}

struct Messages {
    form: Form,
    level: LevelFilter,
}

/// Begins to print messages of this level and above. To be called once.
pub(crate) fn start(level: LevelFilter, to_file: bool) {
    let form = if to_file {
        Form::File
    } else if is_journal() {
        Form::Journal
    } else {
        Form::Person
    };
    // Set once, here.
    let _ = FORM.set(form);
    if log::set_boxed_logger(Box::new(Messages { form, level })).is_ok() {
        log::set_max_level(level);
    }
}

/// Prints a line that is no warning and is wanted at every level.
pub(crate) fn print(text: &dyn Display) {
    let form = FORM.get().copied().unwrap_or(Form::Person);
    write(&line(form, Level::Info, text, SystemTime::now()));
}

/// The form messages have, once they have begun.
static FORM: OnceLock<Form> = OnceLock::new();

/// Whether standard error is a stream of the journal: its device and inode are those systemd says.
/// The variable alone proves nothing, since it is inherited by what was redirected elsewhere.
fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// One write a line, so that lines of several threads do not mix.
fn write(line: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

impl Log for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries below speak of their own inner life; only their warnings are for the user.
        let level = if metadata.target().starts_with("ogive") {
            self.level
        } else {
            self.level.min(LevelFilter::Warn)
        };
        metadata.level() <= level
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) && !is_unwanted_answer(record) {
            write(&line(self.form, record.level(), record.args(), SystemTime::now()));
        }
    }

    fn flush(&self) {}
}

/// Whether the library complains that the kernel knows nothing of the request it has answered
/// (`ENOENT`). That is what becomes of a program that was interrupted, and over io_uring of every
/// answer to an interruption, which the kernel looks up among the requests of the device.
fn is_unwanted_answer(record: &Record<'_>) -> bool {
    record.target() == "fuser::reply"
        && record.args().to_string().ends_with(&std::io::Error::from(Errno::NOENT).to_string())
}

fn line(form: Form, level: Level, text: &dyn Display, now: SystemTime) -> String {
    let (word, priority) = match level {
        Level::Error => ("error: ", 3),
        Level::Warn => ("warning: ", 4),
        Level::Info => ("", 6),
        Level::Debug | Level::Trace => ("debug: ", 7),
    };
    match form {
        Form::Person => format!("ogive: {word}{text}\n"),
        Form::Journal => format!("<{priority}>{text}\n"),
        Form::File => format!("{} {word}{text}\n", humantime::format_rfc3339_millis(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_as_its_reader_wants() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(line(Form::Person, Level::Warn, &"x", now), "ogive: warning: x\n");
        assert_eq!(line(Form::Person, Level::Info, &"x", now), "ogive: x\n");
        assert_eq!(line(Form::Journal, Level::Error, &"x", now), "<3>x\n");
        assert_eq!(
            line(Form::File, Level::Warn, &"x", now),
            "1970-01-01T00:00:00.000Z warning: x\n"
        );
    }

    #[test]
    fn an_answer_that_came_too_late_is_no_error() {
        let is_unwanted = |target: &str, errno: Errno| {
            let text = format!("Failed to send FUSE reply: {}", std::io::Error::from(errno));
            is_unwanted_answer(
                &Record::builder().target(target).args(format_args!("{text}")).build(),
            )
        };
        assert!(is_unwanted("fuser::reply", Errno::NOENT));
        assert!(!is_unwanted("fuser::reply", Errno::INVAL));
        assert!(!is_unwanted("ogive_fs", Errno::NOENT));
    }

    #[test]
    fn other_libraries_are_heard_from_warnings_up() {
        let messages = Messages { form: Form::Person, level: LevelFilter::Info };
        let enabled = |target: &str, level| {
            messages.enabled(&Metadata::builder().target(target).level(level).build())
        };
        assert!(enabled("ogive_fs::mount", Level::Info) && enabled("fuser", Level::Warn));
        assert!(!enabled("fuser::session", Level::Info) && !enabled("ogive", Level::Debug));
    }
}
