//! `-o` options, as in /etc/fstab, translated into long options.
//!
//! There is no second table of options. A name that is a long option of `ogive mount` is that
//! option, with `_` and `-` alike, and clap checks its value. This module lists only the options of
//! mount(8) and systemd, and FUSE's old names.
//!
//! Commas separate options. A value may contain commas inside double quotes, as libmount reads them
//! (`ul_optstr_next`), or each after a backslash. Before util-linux 2.39, mount(8) does not know
//! the backslash. It removes the options that it knows from a value and passes on the rest.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{self, Refusal};

/// Options for mount(8), systemd or the reader of fstab, and options that always hold here.
const IGNORED: &[&str] = &[
    "_netdev",
    "async",
    "auto",
    "default_permissions",
    "defaults",
    "fail",
    "group",
    "loud",
    "noauto",
    "nofail",
    "nogroup",
    "noiversion",
    "nolazytime",
    "noowner",
    "nostrictatime",
    "nouser",
    "nousers",
    "owner",
    "silent",
    "user",
    "users",
];

/// The same for options with a value or a family of names.
const IGNORED_PREFIXES: &[&str] =
    &["x-", "X-", "comment=", "helper=", "uhelper=", "subtype=", "user="];

/// Other names of long options, and the options that undo them. Among the options of one group the
/// last one holds.
const SWITCHES: &[(&str, &str, bool)] = &[
    ("ro", "--read-only", true),
    ("rw", "--read-only", false),
    ("dev", "--dev", true),
    ("nodev", "--dev", false),
    ("suid", "--suid", true),
    ("nosuid", "--suid", false),
    ("noexec", "--no-exec", true),
    ("exec", "--no-exec", false),
    ("noatime", "--no-atime", true),
    ("atime", "--no-atime", false),
    ("relatime", "--no-atime", false),
    ("norelatime", "--no-atime", false),
    ("nodiratime", "--no-diratime", true),
    ("diratime", "--no-diratime", false),
];

/// Options of other file systems that a view cannot support, with an alternative.
const REFUSED: &[(&str, &str)] = &[
    ("sync", "mount the source with it: writes go there at once"),
    ("dirsync", "mount the source with it: changes go there at once"),
    ("lazytime", "mount the source with it: the source keeps the times"),
    ("strictatime", "reads from the cache do not reach the source, which keeps the times"),
    ("iversion", "mount the source with it: the source keeps the versions"),
    ("mand", "no kernel since Linux 5.15 has mandatory locks"),
];

/// Long options that make no sense in `-o`.
const EXCLUDED: &[&str] = &["help", "options", "ready-on-stdout", "sloppy"];

/// The long options that these `-o` arguments mean, as they would be typed.
///
/// With `sloppy`, unknown options are dropped, as `mount -s` asks.
pub(crate) fn long_options(arguments: &[OsString], sloppy: bool) -> Result<Vec<OsString>, Refusal> {
    if let Some(open) = arguments.iter().find(|argument| !split(argument).is_closed) {
        let message = format!("cannot mount: a quote in -o {} is not closed", open.display());
        return Err(Refusal::new(exit::USAGE, message)
            .hint("write \\\" for a quote that belongs to a value"));
    }
    let mount = mount_command();
    let mut flags: Vec<OsString> = Vec::new();
    let mut switches: Vec<(&str, bool)> = Vec::new();
    for option in words(arguments) {
        let option = option.as_os_str();
        if let Some(&(_, flag, on)) = SWITCHES.iter().find(|(name, ..)| option == *name) {
            switches.retain(|(other, _)| *other != flag);
            switches.push((flag, on));
        } else if is_ignored(option) {
            // For another program.
        } else if let Some(refusal) = option.to_str().and_then(refused).filter(|_| !sloppy) {
            return Err(refusal);
        } else if let Some(flag) = long_option(&mount, option)? {
            flags.push(flag);
        } else if !sloppy {
            return Err(Refusal::new(
                exit::USAGE,
                format!("cannot mount: unknown option \"{}\" in -o", option.display()),
            )
            .hint("\"ogive mount --help\" lists all options; --sloppy ignores unknown ones"));
        }
    }
    flags.extend(switches.iter().filter(|(_, on)| *on).map(|(flag, _)| OsString::from(flag)));
    Ok(flags)
}

/// The single options in these `-o` arguments.
pub(crate) fn words(arguments: &[OsString]) -> impl Iterator<Item = OsString> {
    arguments.iter().flat_map(|argument| split(argument).options)
}

/// The refusal of an option that other file systems have.
pub(crate) fn refused(option: &str) -> Option<Refusal> {
    let (name, instead) = REFUSED.iter().find(|(name, _)| *name == option)?;
    let message = format!("cannot mount with \"{name}\": ogive has no such option");
    Some(Refusal::new(exit::USAGE, message).hint(*instead))
}

fn mount_command() -> clap::Command {
    let mut top = Cli::command();
    top.build();
    top.find_subcommand("mount").cloned().unwrap_or_default()
}

/// Whether an option is for another program than ogive.
pub(crate) fn is_ignored(option: &OsStr) -> bool {
    option.is_empty()
        || IGNORED.iter().any(|name| option == *name)
        || IGNORED_PREFIXES.iter().any(|prefix| option.as_bytes().starts_with(prefix.as_bytes()))
}

/// The long option that `name[=value]` means, or `None` if there is none of that name.
fn long_option(mount: &clap::Command, option: &OsStr) -> Result<Option<OsString>, Refusal> {
    let (name, value) = match option.as_bytes().iter().position(|byte| *byte == b'=') {
        Some(at) => (&option.as_bytes()[..at], Some(&option.as_bytes()[at + 1..])),
        None => (option.as_bytes(), None),
    };
    let Ok(name) = std::str::from_utf8(name) else {
        return Ok(None);
    };
    // FUSE's old name for the same thing.
    let long = if name == "fsname" { "name".to_owned() } else { name.replace('_', "-") };
    let known = |argument: &&clap::Arg| {
        argument.get_long() == Some(&long)
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&long.as_str()))
    };
    if EXCLUDED.contains(&long.as_str()) {
        return Ok(None);
    }
    let Some(argument) = mount.get_arguments().find(known) else {
        return Ok(None);
    };
    let refuse = |what: &str| {
        Err(Refusal::new(exit::USAGE, format!("cannot mount: option \"{name}\" in -o {what}")))
    };
    let mut flag = OsString::from(format!("--{long}"));
    match (argument.get_action().takes_values(), value) {
        (true, Some(value)) => {
            flag.push("=");
            flag.push(OsStr::from_bytes(value));
            Ok(Some(flag))
        }
        (false, None) => Ok(Some(flag)),
        (true, None) => refuse("needs a value"),
        (false, Some(_)) => refuse("takes no value"),
    }
}

/// The parts of an argument of `-o`.
struct Split {
    options: Vec<OsString>,
    /// The last quote that was opened was closed.
    is_closed: bool,
}

/// Splits at commas that are not between double quotes. A backslash before a comma, a quote or a
/// backslash makes it part of the option.
fn split(argument: &OsStr) -> Split {
    let mut options = vec![Vec::new()];
    let mut is_closed = true;
    let mut bytes = argument.as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(&escaped @ (b',' | b'\\' | b'"'))) => {
                bytes.next();
                last(&mut options).push(escaped);
            }
            (b'"', _) => is_closed = !is_closed,
            (b',', _) if is_closed => options.push(Vec::new()),
            _ => last(&mut options).push(byte),
        }
    }
    Split { options: options.into_iter().map(OsString::from_vec).collect(), is_closed }
}

fn last(options: &mut [Vec<u8>]) -> &mut Vec<u8> {
    options.last_mut().expect("the list begins with one option and only grows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flags(options: &str) -> Result<Vec<String>, String> {
        long_options(&[options.into()], false)
            .map(|flags| flags.into_iter().map(|flag| flag.into_string().unwrap()).collect())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn long_options_are_known_under_both_spellings() {
        assert_eq!(
            flags("allow_other,arc_max=4G,record-size=16K,direct-io,metadata_ttl=5s").unwrap(),
            [
                "--allow-other",
                "--arc-max=4G",
                "--record-size=16K",
                "--direct-io",
                "--metadata-ttl=5s"
            ]
        );
        assert_eq!(flags("fsname=my\\,data,verbose").unwrap(), ["--name=my,data", "--verbose"]);
    }

    #[test]
    fn options_for_other_programs_in_a_real_fstab_are_ignored() {
        assert!(
            flags("defaults,noauto,nofail,_netdev,relatime,user,x-systemd.automount,comment=a=b,,")
                .unwrap()
                .is_empty()
        );
        assert!(
            flags("X-mount.mkdir,x-systemd.requires-mounts-for=/srv/data,nodev,nosuid,rw")
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn the_last_of_two_opposites_holds() {
        assert_eq!(flags("ro").unwrap(), ["--read-only"]);
        assert!(flags("ro,rw").unwrap().is_empty());
        assert_eq!(flags("rw,suid,nosuid,ro,noexec").unwrap(), ["--read-only", "--no-exec"]);
        assert!(flags("noexec,exec").unwrap().is_empty());
    }

    #[test]
    fn unknown_options_are_refused_unless_sloppy() {
        assert!(flags("discard").unwrap_err().contains("unknown option \"discard\""));
        for hidden in ["ready_on_stdout", "help", "options=ro", "sloppy"] {
            assert!(flags(hidden).is_err(), "{hidden}");
        }
        let sloppy = long_options(&["sync,ro,what=ever".into()], true).unwrap();
        assert_eq!(sloppy, ["--read-only"]);
    }

    #[test]
    fn a_missing_value_and_an_unexpected_value_are_refused() {
        assert!(flags("arc_max").unwrap_err().contains("needs a value"));
        assert!(flags("allow_other=1").unwrap_err().contains("takes no value"));
    }

    #[test]
    fn each_option_of_other_file_systems_is_honoured_ignored_or_refused_with_words() {
        let honoured = [
            ("ro", "--read-only"),
            ("dev", "--dev"),
            ("suid", "--suid"),
            ("noexec", "--no-exec"),
            ("noatime", "--no-atime"),
            ("nodiratime", "--no-diratime"),
        ];
        for (option, flag) in honoured {
            assert_eq!(flags(option).unwrap(), [flag]);
        }
        // These always hold.
        for option in ["rw", "nodev", "nosuid", "exec", "atime", "diratime", "relatime", "async"] {
            assert!(flags(option).unwrap().is_empty(), "{option}");
        }
        for option in ["sync", "dirsync", "lazytime", "strictatime", "iversion", "mand"] {
            let refusal = flags(option).unwrap_err();
            assert!(refusal.contains(&format!("\"{option}\"")), "{refusal}");
            assert!(refusal.contains("source") || refusal.contains("kernel"), "{refusal}");
        }
        assert!(flags("noatime,relatime").unwrap().is_empty(), "the last one holds");
    }

    #[test]
    fn several_arguments_are_one_list() {
        let flags = long_options(&["ro,arc_max=1G".into(), "rw".into()], false).unwrap();
        assert_eq!(flags, ["--arc-max=1G"]);
    }

    #[test]
    fn a_value_between_quotes_is_one_value_as_for_mount() {
        assert_eq!(flags("name=\"x,ro\",noexec").unwrap(), ["--name=x,ro", "--no-exec"]);
        assert_eq!(flags("l2=/ssd/\"a,b\"c").unwrap(), ["--l2=/ssd/a,bc"]);
        assert_eq!(flags(r#"name=6\" disk"#).unwrap(), ["--name=6\" disk"]);
        assert_eq!(flags(r#"name="a \" b\\",ro"#).unwrap(), ["--name=a \" b\\", "--read-only"]);
        let refusal = flags("name=\"x,ro").unwrap_err();
        assert!(refusal.contains("name=\"x,ro is not closed"), "{refusal}");
        assert!(long_options(&["name=\"x,ro".into()], true).is_err(), "not even with sloppy");
    }

    proptest! {
        #[test]
        fn options_joined_with_escapes_or_quotes_split_back(
            options in proptest::collection::vec("[a-z,\\\\=\"]{0,6}", 1..6)
        ) {
            let shielded = |option: &String| option.replace('\\', "\\\\").replace('"', "\\\"");
            let escaped = |option: &String| shielded(option).replace(',', "\\,");
            let quoted = |option: &String| format!("\"{}\"", shielded(option));
            let all: Vec<OsString> = options.iter().map(OsString::from).collect();
            let escaped: Vec<String> = options.iter().map(escaped).collect();
            let quoted: Vec<String> = options.iter().map(quoted).collect();
            for written in [escaped, quoted] {
                let back = split(OsStr::new(&written.join(",")));
                prop_assert!(back.is_closed);
                prop_assert_eq!(&back.options, &all);
            }
        }
    }
}
