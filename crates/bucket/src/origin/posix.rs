//! Modes, owners, times, links and extended attributes in object metadata, as other programs write
//! them (`--metadata`).
//!
//! | | s3fs | Google's |
//! |---|---|---|
//! | mode | `mode`, decimal, with the kind | `goog-reserved-posix-mode`, octal |
//! | owner | `uid`, `gid` | `goog-reserved-posix-uid`, `-gid` |
//! | times | `mtime`, `atime`, `ctime`: seconds, with a fraction or not | `goog-reserved-file-mtime`, `-atime`: seconds; `gcsfuse_mtime` or `mtime` as RFC 3339 |
//! | link | the kind, and the target as the object's bytes | `gcsfuse_symlink_target` |
//! | extended attributes | `xattr`: JSON of Base64, percent-encoded | none |
//!
//! rclone writes the same names as s3fs for times; its octal mode is understood as well. Metadata
//! that cannot be parsed, or have other names, are left unchanged.
//!
//! This module does no I/O: it converts metadata to attributes and back.

use crate::ObjectMetadata;
use ogive_origin::{FileKind, Time};

/// The bits of a mode that hold the file type.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// How many bytes of user metadata stores accept, names included.
const METADATA_BYTES_MAX: usize = 2048;

/// Which program's names and formats the metadata have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// Metadata are neither read nor written.
    #[default]
    Off,
    /// That of s3fs.
    S3fs,
    /// That of Google's gsutil and gcsfuse.
    Google,
}

/// The attributes in the metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Posix {
    /// Permission bits.
    pub(super) permissions: Option<u16>,
    /// Regular file or link, if the metadata say so.
    pub(super) kind: Option<FileKind>,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) modified: Option<Time>,
    pub(super) accessed: Option<Time>,
    /// When any of them was changed; programs cannot set it.
    pub(super) changed: Option<Time>,
    /// The target of a link, unless the object's bytes hold it.
    pub(super) target: Option<String>,
}

/// The metadata names of one convention.
struct MetadataNames {
    mode: &'static str,
    user: &'static str,
    group: &'static str,
    modified: &'static [&'static str],
    accessed: &'static str,
    changed: Option<&'static str>,
    target: Option<&'static str>,
}

const S3FS: MetadataNames = MetadataNames {
    mode: "mode",
    user: "uid",
    group: "gid",
    modified: &["mtime"],
    accessed: "atime",
    changed: Some("ctime"),
    target: None,
};
const GOOGLE: MetadataNames = MetadataNames {
    mode: "goog-reserved-posix-mode",
    user: "goog-reserved-posix-uid",
    group: "goog-reserved-posix-gid",
    // The first one is written; all are read.
    modified: &["goog-reserved-file-mtime", "gcsfuse_mtime", "mtime"],
    accessed: "goog-reserved-file-atime",
    changed: None,
    target: Some("gcsfuse_symlink_target"),
};

impl Convention {
    fn names(self) -> Option<&'static MetadataNames> {
        match self {
            Self::Off => None,
            Self::S3fs => Some(&S3FS),
            Self::Google => Some(&GOOGLE),
        }
    }

    /// Whether metadata are used.
    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether the bytes of the object hold the target of a link.
    pub(super) fn has_links_as_bytes(self) -> bool {
        self == Self::S3fs
    }

    /// The attributes in an object's metadata.
    pub(super) fn read(self, kept: &ObjectMetadata) -> Posix {
        let Some(names) = self.names() else { return Posix::default() };
        let number = |name: &str| kept.get(name).and_then(|text| text.trim().parse().ok());
        let mode = kept.get(names.mode).and_then(|text| self.mode(text.trim()));
        let target = names.target.and_then(|name| kept.get(name)).map(str::to_owned);
        let kind = match mode.map(|mode| mode & KIND) {
            _ if target.is_some() => Some(FileKind::Symlink),
            Some(LINK) => Some(FileKind::Symlink),
            Some(_) => Some(FileKind::Regular),
            None => None,
        };
        let modified = names.modified.iter().find_map(|name| time(kept.get(name)?));
        Posix {
            permissions: mode.map(|mode| (mode & 0o7777) as u16),
            kind,
            user: number(names.user),
            group: number(names.group),
            modified,
            accessed: kept.get(names.accessed).and_then(time),
            changed: names.changed.and_then(|name| time(kept.get(name)?)),
            target,
        }
    }

    /// Parses a mode, with its file type.
    fn mode(self, text: &str) -> Option<u32> {
        let octal = u32::from_str_radix(text, 8).ok();
        if self == Self::Google {
            return octal.filter(|mode| *mode <= 0o177_777);
        }
        let is_of_a_kind =
            |mode: &u32| *mode <= 0o177_777 && matches!(mode & KIND, REGULAR | DIRECTORY | LINK);
        // s3fs's decimal first: the octal text of a regular file's mode is not a decimal mode of
        // any type.
        let decimal = text.parse().ok();
        let without_kind = decimal.filter(|mode| *mode <= 0o7777);
        decimal.filter(is_of_a_kind).or(octal.filter(is_of_a_kind)).or(without_kind)
    }

    /// The metadata with these attributes added; all other entries stay unchanged.
    pub(super) fn write(
        self,
        kept: &ObjectMetadata,
        posix: &Posix,
        is_directory: bool,
    ) -> ObjectMetadata {
        let mut kept = kept.clone();
        let Some(names) = self.names() else { return kept };
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                kept.user.insert(name.to_owned(), value);
            }
        };
        let kind = match posix.kind {
            _ if is_directory => DIRECTORY,
            Some(FileKind::Symlink) => LINK,
            _ => REGULAR,
        };
        let mode = posix.permissions.map(u32::from);
        set(
            names.mode,
            mode.map(|mode| match self {
                Self::Google => format!("{mode:o}"),
                _ => (mode | kind).to_string(),
            }),
        );
        set(names.user, posix.user.map(|user| user.to_string()));
        set(names.group, posix.group.map(|group| group.to_string()));
        set(names.modified[0], posix.modified.map(|time| self.time_text(time)));
        set(names.accessed, posix.accessed.map(|time| self.time_text(time)));
        if let Some(name) = names.target {
            set(name, posix.target.clone());
        }
        if let Some(name) = names.changed {
            set(name, Some(self.time_text(Time::now())));
        }
        // Other programs prefer these names for the same time: a stale value would win over ours.
        for other in &names.modified[1..] {
            if posix.modified.is_some() {
                kept.user.remove(*other);
            }
        }
        kept
    }

    /// A time in the convention's format.
    fn time_text(self, time: Time) -> String {
        match (self, time) {
            (Self::Google, _) | (_, Time { nanoseconds: 0, .. }) => time.seconds.to_string(),
            (_, Time { seconds: ..0, nanoseconds }) => {
                // Count whole seconds and the fraction back from 1970, not from the second before.
                let (whole, part) = (time.seconds + 1, 1_000_000_000 - nanoseconds);
                format!("-{}.{part:09}", whole.unsigned_abs())
            }
            (_, Time { seconds, nanoseconds }) => format!("{seconds}.{nanoseconds:09}"),
        }
    }
}

/// Whether a store would reject metadata of this size.
pub(super) fn is_too_much(kept: &ObjectMetadata) -> bool {
    let bytes: usize = kept.user.iter().map(|(name, value)| name.len() + value.len()).sum();
    bytes > METADATA_BYTES_MAX
}

/// Parses a time: seconds with an optional fraction, or RFC 3339.
fn time(text: &str) -> Option<Time> {
    let text = text.trim();
    seconds(text).or_else(|| rfc3339(text))
}

/// The nanoseconds of the digits after the point.
fn fraction(digits: &str) -> Option<u32> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().ok()
}

fn seconds(text: &str) -> Option<Time> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let seconds: i64 = whole.parse().ok()?;
    let nanoseconds = fraction(rest)?;
    match (whole.starts_with('-'), nanoseconds) {
        (true, 1..) => {
            let seconds = seconds.checked_sub(1)?;
            Some(Time { seconds, nanoseconds: 1_000_000_000 - nanoseconds })
        }
        _ => Some(Time { seconds, nanoseconds }),
    }
}

fn rfc3339(text: &str) -> Option<Time> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone_at);
    let (clock, part) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let ranges =
        [(month, 1..=12), (day, 1..=31), (hour, 0..=23), (minute, 0..=59), (second, 0..=60)];
    if !(0..=9999).contains(&year) || ranges.iter().any(|(part, range)| !range.contains(part)) {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        zone => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let hours = hours.parse().ok().filter(|hours: &i64| (0..=23).contains(hours))?;
            let minutes =
                minutes.parse().ok().filter(|minutes: &i64| (0..=59).contains(minutes))?;
            let minutes = hours * 60 + minutes;
            if zone.starts_with('-') { -minutes * 60 } else { minutes * 60 }
        }
    };
    // Days since 1970 in the civil calendar (Howard Hinnant, "chrono-compatible date algorithms").
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(Time { seconds, nanoseconds: fraction(part)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pairs: &[(&str, &str)]) -> ObjectMetadata {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ObjectMetadata { user: pairs.collect(), ..ObjectMetadata::default() }
    }

    fn at(seconds: i64, nanoseconds: u32) -> Option<Time> {
        Some(Time { seconds, nanoseconds })
    }

    #[test]
    fn times_are_read_in_each_format_that_other_programs_write() {
        for (text, expected) in [
            ("1700000000", at(1_700_000_000, 0)),
            ("1700000000.5", at(1_700_000_000, 500_000_000)),
            ("1700000000.123456789", at(1_700_000_000, 123_456_789)),
            ("-1.5", at(-2, 500_000_000)),
            ("-0.25", at(-1, 750_000_000)),
            ("-14182940.6", at(-14_182_941, 400_000_000)),
            ("-9223372036854775808", at(i64::MIN, 0)),
            ("-9223372036854775808.5", None),
            ("9223372036854775807.999999999", at(i64::MAX, 999_999_999)),
            ("9223372036854775808", None),
            ("1969-07-20T02:56:15.4Z", at(-14_245_425, 400_000_000)),
            ("2023-11-14T22:13:20+9223372036854775807:00", None),
            ("2023-11-14T22:13:20+01:99", None),
            ("2023-11-14T22:13:20Z", at(1_700_000_000, 0)),
            ("2023-11-14T22:13:20.25+01:00", at(1_699_996_400, 250_000_000)),
            ("1970-01-01T00:00:00Z", at(0, 0)),
            ("2024-02-29T12:00:00-00:30", at(1_709_209_800, 0)),
            ("", None),
            ("soon", None),
            ("1.x", None),
            ("2023-13-01T00:00:00Z", None),
            ("2023-11-14T22:13:20", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
    }

    #[test]
    fn written_times_are_read_back_to_the_nanosecond() {
        for seconds in [i64::MIN, -2_208_988_800, -2, -1, 0, 1, 4_294_967_296, i64::MAX] {
            for nanoseconds in [0, 1, 400_000_000, 999_999_999] {
                let time = Time { seconds, nanoseconds };
                let text = Convention::S3fs.time_text(time);
                assert_eq!(super::seconds(&text), Some(time), "{text}");
                assert_eq!(Convention::Google.time_text(time), seconds.to_string());
            }
        }
    }

    #[test]
    fn metadata_of_s3fs_and_rclone_are_understood() {
        let s3fs = kept(&[("mode", "33188"), ("uid", "7"), ("gid", "8"), ("mtime", "5")]);
        let found = Convention::S3fs.read(&s3fs);
        assert_eq!((found.permissions, found.kind), (Some(0o644), Some(FileKind::Regular)));
        assert_eq!((found.user, found.group, found.modified), (Some(7), Some(8), at(5, 0)));
        let link = Convention::S3fs.read(&kept(&[("mode", "41471")]));
        assert_eq!((link.permissions, link.kind), (Some(0o777), Some(FileKind::Symlink)));
        let rclone = Convention::S3fs.read(&kept(&[("mode", "100640"), ("mtime", "5.5")]));
        assert_eq!((rclone.permissions, rclone.kind), (Some(0o640), Some(FileKind::Regular)));
        for nonsense in ["", "x", "-1", "99999999999"] {
            assert_eq!(Convention::S3fs.read(&kept(&[("mode", nonsense)])).permissions, None);
        }
        assert_eq!(Convention::Off.read(&s3fs), Posix::default());
    }

    #[test]
    fn metadata_of_googles_tools_are_understood() {
        let google = kept(&[
            ("goog-reserved-posix-mode", "640"),
            ("goog-reserved-posix-uid", "7"),
            ("gcsfuse_mtime", "2023-11-14T22:13:20Z"),
        ]);
        let found = Convention::Google.read(&google);
        assert_eq!((found.permissions, found.user), (Some(0o640), Some(7)));
        assert_eq!(found.modified, at(1_700_000_000, 0));
        let link = Convention::Google.read(&kept(&[("gcsfuse_symlink_target", "../a")]));
        assert_eq!((link.kind, link.target.as_deref()), (Some(FileKind::Symlink), Some("../a")));
    }

    #[test]
    fn written_attributes_are_read_back_and_other_metadata_stay() {
        let posix = Posix {
            permissions: Some(0o4751),
            kind: Some(FileKind::Regular),
            user: Some(1),
            group: Some(2),
            modified: at(3, 0),
            accessed: at(4, 0),
            changed: None,
            target: None,
        };
        let before = kept(&[("theirs", "x"), ("gcsfuse_mtime", "2023-11-14T22:13:20Z")]);
        for convention in [Convention::S3fs, Convention::Google] {
            let after = convention.write(&before, &posix, false);
            let read = convention.read(&after);
            assert_eq!(read.changed.is_some(), convention == Convention::S3fs);
            assert_eq!(Posix { changed: None, ..read }, posix, "{after:?}");
            assert_eq!(after.get("theirs"), Some("x"));
        }
        let s3fs = Convention::S3fs.write(&before, &posix, false);
        assert_eq!(s3fs.get("mode"), Some("35305"));
        assert_eq!(Convention::Off.write(&before, &posix, false), before);
        let partial = Posix { user: Some(9), ..Posix::default() };
        let again = Convention::S3fs.read(&Convention::S3fs.write(&s3fs, &partial, false));
        assert_eq!((again.user, again.permissions), (Some(9), Some(0o4751)));
    }

    #[test]
    fn metadata_beyond_two_kilobytes_are_too_much() {
        assert!(!is_too_much(&kept(&[("a", &"x".repeat(2047))])));
        assert!(is_too_much(&kept(&[("ab", &"x".repeat(2047))])));
    }
}
