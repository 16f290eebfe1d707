//! Messages on standard error: `ogive: warning: ...`.
//!
//! A message is always one line ([`ogive_text::one_line`]). Otherwise a file's name could end one
//! line and forge the next.
//!
//! Under systemd each line carries its priority (sd-daemon(3)); in a log file it carries the time.
//! With [`Style::Json`] a line is a JSON object with the members `time`, `level`, `target`, `pid`
//! and `message`. The time is RFC 3339 in UTC with milliseconds. The level is `error`, `warning`,
//! `notice`, `info` or `debug`, and the target is the part of ogive. In the journal it carries its
//! priority as well.
//!
//! A record with a member `event` reports something that happened to the mount. At level info it is
//! a notice, which is printed at every level. Its members become members of the JSON object, as
//! numbers if they are numbers; the sentence also contains them.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::SystemTime;

use log::kv::{self, VisitSource, VisitValue};
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde_json::{Map, Value};

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

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Style {
    /// A sentence
    #[default]
    Plain,
    /// A JSON object
    Json,
}

struct Messages {
    form: Form,
    style: Style,
    level: LevelFilter,
}

/// Begins to print messages of this level and above. To be called once.
pub(crate) fn start(level: LevelFilter, to_file: bool, style: Style) {
    let form = if to_file {
        Form::File
    } else if is_journal() {
        Form::Journal
    } else {
        Form::Person
    };
    // Set once, here.
    let _ = FORM.set((form, style));
    if log::set_boxed_logger(Box::new(Messages { form, style, level })).is_ok() {
        // Events are printed at every level.
        log::set_max_level(level.max(LevelFilter::Info));
        report_panics();
    }
}

/// Reports panics like other errors: the place, the thread and the message. With RUST_BACKTRACE it
/// also prints the stack.
fn report_panics() {
    let by_default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no words");
        log::error!(
            event = "panic",
            thread = name,
            place = place.as_str();
            "a thread called {name} panicked at {place}: {what}; this is a bug of ogive's: please \
             report it"
        );
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            by_default(panic);
        }
    }));
}

/// Prints a line at every level that is not a warning.
pub(crate) fn print(text: &dyn Display) {
    let (form, style) = FORM.get().copied().unwrap_or((Form::Person, Style::Plain));
    write(&line(form, style, &LogLine::of(Level::Info, text), SystemTime::now()));
}

/// Prints the program's last error, if lines are JSON; returns whether they are.
pub(crate) fn print_error(text: &dyn Display) -> bool {
    let Some((form, style @ Style::Json)) = FORM.get().copied() else { return false };
    write(&line(form, style, &LogLine::of(Level::Error, text), SystemTime::now()));
    true
}

/// The form of messages, once they have begun.
static FORM: OnceLock<(Form, Style)> = OnceLock::new();

/// Whether standard error is a stream of the journal, by its device and inode. The variable alone
/// proves nothing, because redirected programs inherit it, too.
fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// One write a line, so that lines of several threads do not mix.
fn write(line: &str) {
    // Without standard error there is nowhere to report to.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

impl Log for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries log their own internals. Their failures come back to us and are reported in
        // our words. So their warnings appear only at higher verbosity.
        let level = match metadata.target().starts_with("ogive") {
            true => self.level,
            false if self.level >= LevelFilter::Info => LevelFilter::Warn,
            false => LevelFilter::Off,
        };
        metadata.level() <= level
    }

    fn log(&self, record: &Record<'_>) {
        let is_event = is_event(record);
        if is_event || self.enabled(record.metadata()) {
            let entry = LogLine {
                grade: Grade::of(record.level(), is_event),
                target: record.target(),
                text: record.args(),
                members: record.key_values(),
            };
            write(&line(self.form, self.style, &entry, SystemTime::now()));
        }
    }

    fn flush(&self) {}
}

/// Whether a record reports an event.
fn is_event(record: &Record<'_>) -> bool {
    record.target().starts_with("ogive")
        && record.key_values().get(kv::Key::from_str("event")).is_some()
}

/// How much a line matters, by syslog's words.
#[derive(Debug, Clone, Copy)]
enum Grade {
    Error,
    Warning,
    Notice,
    Info,
    Debug,
}

impl Grade {
    const fn of(level: Level, is_event: bool) -> Self {
        match level {
            Level::Error => Self::Error,
            Level::Warn => Self::Warning,
            Level::Info if is_event => Self::Notice,
            Level::Info => Self::Info,
            Level::Debug | Level::Trace => Self::Debug,
        }
    }

    /// Its name, the beginning of a line for a person, and its priority by syslog(3).
    const fn words(self) -> (&'static str, &'static str, u8) {
        match self {
            Self::Error => ("error", "error: ", 3),
            Self::Warning => ("warning", "warning: ", 4),
            Self::Notice => ("notice", "", 5),
            Self::Info => ("info", "", 6),
            Self::Debug => ("debug", "debug: ", 7),
        }
    }
}

/// The content of a line.
struct LogLine<'a> {
    grade: Grade,
    target: &'a str,
    text: &'a dyn Display,
    members: &'a dyn kv::Source,
}

const NO_MEMBERS: [(&str, kv::Value<'static>); 0] = [];

impl<'a> LogLine<'a> {
    /// A sentence of the program itself.
    fn of(level: Level, text: &'a dyn Display) -> Self {
        let grade = Grade::of(level, false);
        Self { grade, target: "ogive", text, members: &NO_MEMBERS }
    }
}

/// Collects members as JSON.
struct Members(Map<String, Value>);

impl<'kv> VisitSource<'kv> for Members {
    fn visit_pair(&mut self, key: kv::Key<'kv>, value: kv::Value<'kv>) -> Result<(), kv::Error> {
        let mut json = Json(Value::Null);
        value.visit(&mut json)?;
        // No event may replace the members of every line.
        self.0.entry(key.as_str()).or_insert(json.0);
        Ok(())
    }
}

/// One value as JSON.
struct Json(Value);

impl<'value> VisitValue<'value> for Json {
    fn visit_any(&mut self, value: kv::Value<'_>) -> Result<(), kv::Error> {
        self.0 = Value::String(value.to_string());
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), kv::Error> {
        self.0 = Value::Null;
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }
}

fn line(form: Form, style: Style, entry: &LogLine<'_>, now: SystemTime) -> String {
    let (name, word, priority) = entry.grade.words();
    let text = entry.text;
    if style == Style::Json {
        let mut members = Members(Map::new());
        let own = [
            ("time", humantime::format_rfc3339_millis(now).to_string().into()),
            ("level", name.into()),
            ("target", entry.target.into()),
            ("pid", std::process::id().into()),
            ("message", text.to_string().into()),
        ];
        members.0.extend(own.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
        // A member that cannot be converted is left out; the line is still printed.
        let _ = entry.members.visit(&mut members);
        let object = Value::Object(members.0);
        return match form {
            Form::Journal => format!("<{priority}>{object}\n"),
            Form::Person | Form::File => format!("{object}\n"),
        };
    }
    let text = text.to_string();
    let text = ogive_text::one_line(&text);
    match form {
        Form::Person => format!("ogive: {word}{text}\n"),
        Form::Journal => format!("<{priority}>{text}\n"),
        Form::File => format!("{} {word}{text}\n", humantime::format_rfc3339_millis(now)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_line_begins_in_the_form_of_its_reader() {
        let plain = |form, level| {
            line(form, Style::Plain, &LogLine::of(level, &"x"), SystemTime::UNIX_EPOCH)
        };
        assert_eq!(plain(Form::Person, Level::Warn), "ogive: warning: x\n");
        assert_eq!(plain(Form::Person, Level::Info), "ogive: x\n");
        assert_eq!(plain(Form::Journal, Level::Error), "<3>x\n");
        assert_eq!(plain(Form::File, Level::Warn), "1970-01-01T00:00:00.000Z warning: x\n");
    }

    #[test]
    fn a_name_with_a_line_feed_forges_no_line() {
        let hostile = "/srv/x\n<0>forged\r2026-01-01T00:00:00.000Z error: too\u{1b}[2J";
        for form in [Form::Person, Form::File, Form::Journal] {
            let entry = LogLine::of(Level::Warn, &hostile);
            let line = line(form, Style::Plain, &entry, SystemTime::UNIX_EPOCH);
            let body = line.strip_suffix('\n').unwrap();
            assert!(!body.contains(char::is_control), "{body:?}");
            assert!(body.contains("/srv/x\\n<0>forged\\r2026-"), "{body}");
        }
    }

    #[test]
    fn a_json_line_is_one_object_whatever_the_message_holds() {
        let hostile = "a \"b\"\n{\u{7}}\u{202e}";
        for form in [Form::Person, Form::File, Form::Journal] {
            let target = "ogive_origin::watched";
            let entry = LogLine { target, ..LogLine::of(Level::Warn, &hostile) };
            let line = line(form, Style::Json, &entry, SystemTime::UNIX_EPOCH);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            let object = line.strip_prefix("<4>").unwrap_or(&line);
            assert_eq!(line != object, form == Form::Journal);
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            assert_eq!(object["message"], hostile);
            assert_eq!(object["level"], "warning");
            assert_eq!(object["target"], "ogive_origin::watched");
            assert_eq!(object["time"], "1970-01-01T00:00:00.000Z");
            assert_eq!(object["pid"], std::process::id());
        }
    }

    #[test]
    fn members_of_an_event_are_typed_and_none_replaces_a_member_of_every_line() {
        let members: [(&str, kv::Value<'_>); 6] = [
            ("event", "memory_short".into()),
            ("target_bytes", u64::MAX.into()),
            ("headroom_bytes", (-5_i64).into()),
            ("stalled", true.into()),
            ("available_bytes", kv::Value::null()),
            ("level", "mine".into()),
        ];
        let record = Record::builder()
            .target("ogive_fs::notable")
            .level(Level::Info)
            .key_values(&members)
            .build();
        assert!(is_event(&record) && !is_event(&Record::builder().target("ogive").build()));
        let grade = Grade::of(Level::Info, true);
        let entry = LogLine { grade, members: &members, ..LogLine::of(Level::Info, &"x") };
        let text = line(Form::Journal, Style::Json, &entry, SystemTime::UNIX_EPOCH);
        let object: Value = serde_json::from_str(text.strip_prefix("<5>").unwrap()).unwrap();
        assert_eq!(object["level"], "notice");
        assert_eq!(object["event"], "memory_short");
        assert_eq!(object["target_bytes"], u64::MAX);
        assert_eq!(object["headroom_bytes"], -5);
        assert_eq!(object["stalled"], true);
        assert_eq!(object["available_bytes"], Value::Null);
        assert_eq!(line(Form::Person, Style::Plain, &entry, SystemTime::UNIX_EPOCH), "ogive: x\n");
    }

    #[test]
    fn other_libraries_log_from_warnings_up() {
        let messages =
            Messages { form: Form::Person, style: Style::Plain, level: LevelFilter::Info };
        let enabled = |target: &str, level| {
            messages.enabled(&Metadata::builder().target(target).level(level).build())
        };
        assert!(enabled("ogive_fs::mount", Level::Info) && enabled("io_uring", Level::Warn));
        assert!(!enabled("io_uring::types", Level::Info) && !enabled("ogive", Level::Debug));

        let quiet = Messages { level: LevelFilter::Warn, ..messages };
        let warns = |target: &str| {
            quiet.enabled(&Metadata::builder().target(target).level(Level::Warn).build())
        };
        assert!(warns("ogive_fs") && !warns("reqsign_core::api") && !warns("rustls::client"));
    }
}
