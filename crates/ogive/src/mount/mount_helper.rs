//! `mount.ogive`: the helper program that mount(8) calls.
//!
//! mount(8) runs `/sbin/mount.ogive SRC MNT [-sfnv] [-N namespace] [-o options] [-t type]`. A link
//! of that name to `ogive` makes `mount -t ogive` and lines in /etc/fstab work. This module
//! translates the arguments into those of `ogive mount`, which alone decides what they mean. Exit
//! codes are mount(8)'s own: 1 for wrong usage, 32 for a failed mount.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::exit::{self, Refusal};
use crate::help::{self, Section};

/// mount(8): incorrect invocation or permissions.
const MOUNT8_USAGE: u8 = 1;
/// mount(8): the mount failed.
const MOUNT8_FAILURE: u8 = 32;

/// The man page of `mount.ogive`: everything after its name.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::terms(
            "Description",
            &[
                (
                    "mount -t ogive SRC MNT",
                    "mount(8) runs mount.ogive, a link to ogive, for file systems of type ogive. \
                     It does what ogive-mount(1) does.",
                ),
                (
                    "SRC  MNT  ogive  options  0  0",
                    "A line of /etc/fstab. SRC is an absolute path. The last two fields are 0: \
                     there is nothing to dump and nothing to check.",
                ),
            ],
        ),
        help::terms(
            "Options",
            &[
                (
                    "-o options",
                    "As in ogive-mount(1): every long option of that command, and the options of \
                     mount(8) and systemd. Put a value with a comma in double quotes, as in \
                     name=\"a,b\"; in /etc/fstab a space is \\040, as in every field.",
                ),
                ("-s", "Ignore unknown options."),
                ("-f", "Check the options, mount nothing."),
                ("-v", "Print more messages."),
                ("-r, -w", "Mount read-only; read-write, the default."),
                ("-n, -t type", "Accepted and ignored."),
            ],
        ),
        help::examples(&[
            (
                "/srv/data  /mnt/fast  ogive  allow_other,arc_max=25%,nofail  0  0",
                "Mounted at boot; the boot continues if it fails.",
            ),
            (
                "/srv/data  /mnt/fast  ogive  \
                 noauto,x-systemd.automount,x-systemd.idle-timeout=10min,allow_other  0  0",
                "Mounted at the first use, unmounted after ten idle minutes.",
            ),
            (
                "/net/data  /mnt/data  ogive  \
                 ro,allow_other,_netdev,metadata_ttl=1m,x-systemd.requires-mounts-for=/net  0  0",
                "A network file system below, mounted after it.",
            ),
        ]),
        help::terms(
            "Exit codes",
            &[
                ("0", "success"),
                ("1", "the options or arguments do not make sense"),
                ("32", "the mount failed; standard error says why"),
            ],
        ),
        help::terms(
            "Files",
            &[
                ("/sbin/mount.ogive", "A symbolic link to ogive."),
                ("/sbin/mount.fuse.ogive", "The same, for mount -o remount."),
                ("/etc/fstab", "See fstab(5)."),
            ],
        ),
    ]
}

/// The request of mount(8).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    /// The command line of `ogive` that does it, program name first.
    pub(crate) arguments: Vec<OsString>,
    /// `-f`: check everything, mount nothing.
    pub(crate) fake: bool,
}

/// Whether the program was called under the name mount(8) uses: `mount.ogive`, or
/// `mount.fuse.ogive`.
pub(crate) fn is_called(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    name == "mount.ogive" || name == "mount.fuse.ogive"
}

/// mount(8)'s exit code for one of ours.
pub(crate) fn exit_code(code: u8) -> u8 {
    match code {
        exit::SUCCESS => 0,
        exit::USAGE => MOUNT8_USAGE,
        _ => MOUNT8_FAILURE,
    }
}

/// Translates the arguments after the program's name.
pub(crate) fn translate(arguments: &[OsString]) -> Result<Translated, Refusal> {
    let mut flags: Vec<OsString> = Vec::new();
    let mut paths: Vec<OsString> = Vec::new();
    let mut fake = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes.len() < 2 || bytes[0] != b'-' {
            paths.push(argument.clone());
            continue;
        }
        if bytes == b"--" {
            paths.extend(rest.by_ref().cloned());
            break;
        }
        // A cluster of letters, the last of which may take a value: "-fnv", "-oro", "-o ro".
        for (position, letter) in bytes.iter().enumerate().skip(1) {
            match letter {
                b's' => flags.push("--sloppy".into()),
                b'v' => flags.push("--verbose".into()),
                b'r' => flags.push("--read-only".into()),
                b'f' => fake = true,
                // -n: do not write /etc/mtab, which no longer exists. -w: read-write, the default.
                b'n' | b'w' => {}
                b'o' | b't' | b'N' => {
                    let value = value_after(bytes, position, &mut rest)?;
                    match letter {
                        b'o' => flags.extend(["-o".into(), value]),
                        b'N' => return Err(usage(
                            "cannot mount: mount.ogive cannot enter another mount namespace (-N)",
                        )
                        .hint("run mount through nsenter(1)")),
                        // The type is known: it made mount(8) call this program.
                        _ => {}
                    }
                    break;
                }
                other => {
                    return Err(usage(format!(
                        "cannot mount: unknown option -{}",
                        char::from(*other)
                    )));
                }
            }
        }
    }
    let [source, mount_point] = <[OsString; 2]>::try_from(paths)
        .map_err(|_| usage("cannot mount: give one source and one mount point"))?;
    let mut arguments: Vec<OsString> = vec!["ogive".into(), "mount".into()];
    arguments.extend(flags);
    arguments.extend(["--".into(), source, mount_point]);
    Ok(Translated { arguments, fake })
}

fn value_after<'a>(
    bytes: &[u8],
    position: usize,
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Result<OsString, Refusal> {
    match &bytes[position + 1..] {
        [] => rest.next().cloned().ok_or_else(|| {
            usage(format!("cannot mount: -{} needs a value", char::from(bytes[position])))
        }),
        attached => Ok(OsStr::from_bytes(attached).to_owned()),
    }
}

fn usage(message: impl Into<String>) -> Refusal {
    let message = format!("{}; usage: mount.ogive SRC MNT [-sfnvrw] [-o options]", message.into());
    Refusal::new(exit::USAGE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Result<(String, bool), String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        translate(&arguments)
            .map(|t| (t.arguments.join(OsStr::new(" ")).into_string().unwrap(), t.fake))
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_name_decides() {
        for name in ["/sbin/mount.ogive", "mount.ogive", "/usr/sbin/mount.fuse.ogive"] {
            assert!(is_called(OsStr::new(name)), "{name}");
        }
        for name in ["ogive", "/usr/bin/ogive", "mount.ogive.bak", "xmount.ogive", ""] {
            assert!(!is_called(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn arguments_of_mount_are_understood() {
        // As mount(8) of util-linux calls it.
        assert_eq!(
            translated("/srv/a /mnt -o rw,arc_max=4G").unwrap().0,
            "ogive mount -o rw,arc_max=4G -- /srv/a /mnt"
        );
        assert_eq!(
            translated("/srv/a /mnt -snv -t fuse.ogive -oro").unwrap().0,
            "ogive mount --sloppy --verbose -o ro -- /srv/a /mnt"
        );
        assert_eq!(
            translated("-f /srv/a /mnt").unwrap(),
            ("ogive mount -- /srv/a /mnt".into(), true)
        );
        assert_eq!(translated("-- -odd /mnt").unwrap().0, "ogive mount -- -odd /mnt");
    }

    #[test]
    fn unknown_arguments_are_refused_with_the_usage() {
        for line in ["/srv/a", "/a /b /c", "/a /b -o", "/a /b -x", "/a /b -N /proc/1/ns/mnt"] {
            let error = translated(line).unwrap_err();
            assert!(
                error.contains("usage: mount.ogive SRC MNT") || error.contains("nsenter"),
                "{error}"
            );
        }
    }

    #[test]
    fn exit_codes_are_those_of_mount() {
        assert_eq!(exit_code(exit::SUCCESS), 0);
        assert_eq!(exit_code(exit::USAGE), 1);
        for code in [exit::FAILURE, exit::SOURCE, exit::MOUNT_POINT, exit::FUSE, exit::BUSY] {
            assert_eq!(exit_code(code), 32);
        }
    }
}
