//! Mounts as an ordinary user.
//!
//! `fusermount3`, a set-user-id program, opens the device and mounts. It sends the descriptor over
//! a socket, whose number is in its environment (`util/fusermount.c` of libfuse; `_FUSE_COMMFD`).
//!
//! Its options are one string, which it splits at commas. Only the name of the source comes from
//! outside, and it is escaped ([`argument`]). Its standard error contains paths, which are removed
//! before it is searched.

use super::MountOptions;
use crate::view::Permissions;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::FdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, and its older name.
const PROGRAMS: [&str; 2] = ["fusermount3", "fusermount"];
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// Mounts and returns the connection.
///
/// # Errors
/// The program's message, or `NotFound` if it is not installed.
pub(super) fn mount(
    path: &Path,
    (options, permissions): (&MountOptions, Permissions),
    name: &OsStr,
) -> io::Result<OwnedFd> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )?;
    // The program must inherit its own end, but not ours.
    rustix::io::fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    let wanted = argument((options, permissions), name);
    let arguments = [OsStr::new("-o"), &wanted, OsStr::new("--"), path.as_os_str()];
    let output = run(&arguments, Some(theirs))?;
    if !output.status.success() {
        return Err(said(&output, path));
    }
    receive(&ours)
}

/// The argument of `-o`. Other options, device nodes and set-user-id programs are reserved for
/// root: the program would refuse them.
fn argument((options, permissions): (&MountOptions, Permissions), name: &OsStr) -> OsString {
    let mut argument = OsString::from("subtype=ogive");
    let words = [
        (!permissions.are_of_source(), ",default_permissions"),
        (options.read_only, ",ro"),
        (!options.exec, ",noexec"),
        (options.no_atime, ",noatime"),
        (options.allow_other, ",allow_other"),
    ];
    words.iter().filter(|(is_wanted, _)| *is_wanted).for_each(|(_, word)| argument.push(word));
    argument.push(",fsname=");
    argument.push(escaped(name));
    argument
}

/// Escapes a name for the program: a backslash makes the next byte part of the name. Since libfuse
/// 3.17 the program first removes options that begin with `x-` after any comma, escaped or not.
/// That would remove the end of a name. So the byte after a comma has a backslash of its own.
fn escaped(name: &OsStr) -> OsString {
    let mut escaped = Vec::with_capacity(name.len());
    let mut before = None;
    for byte in name.as_bytes() {
        if matches!(byte, b',' | b'\\') || before == Some(b',') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
        before = Some(*byte);
    }
    OsString::from_vec(escaped)
}

/// Unmounts; a file system in use goes when the last program closes it.
///
/// # Errors
/// The program's message; a file system that is not mounted any more is no error.
pub(super) fn unmount(path: &Path) -> io::Result<()> {
    let arguments = ["-u", "-z", "--"].map(AsRef::as_ref);
    let output = run(&[&arguments[..], &[path.as_os_str()]].concat(), None)?;
    let words = words_of(&output, path);
    if output.status.success() || words.contains("not found in") || words.contains("not mounted") {
        return Ok(());
    }
    Err(said(&output, path))
}

/// The program's message without the path, whose name could contain any words.
fn words_of(output: &Output, path: &Path) -> String {
    String::from_utf8_lossy(&output.stderr).replace(&*path.to_string_lossy(), "")
}

fn run(arguments: &[&OsStr], socket: Option<OwnedFd>) -> io::Result<Output> {
    let number = socket.as_ref().map(|socket| (SOCKET_VARIABLE, socket.as_raw_fd().to_string()));
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for program in PROGRAMS {
        let ran = Command::new(program)
            .args(arguments)
            // Its messages are searched, so they must not be translated.
            .env("LC_ALL", "C")
            .envs(number.clone())
            .stdin(Stdio::null())
            .output();
        match ran {
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
            other => return other,
        }
    }
    Err(last)
}

fn said(output: &Output, path: &Path) -> io::Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    let kind = match words_of(output, path).contains("user_allow_other") {
        true => io::ErrorKind::PermissionDenied,
        false => io::ErrorKind::Other,
    };
    io::Error::new(kind, text.strip_prefix("fusermount3: ").unwrap_or(text).to_owned())
}

/// Receives the descriptor from the program.
fn receive(socket: &impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("fusermount3 has mounted but sent no connection"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::io::IoSlice;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    /// Reads an argument like `extract_x_options` and `prepare_mount` of `util/fusermount.c`: its
    /// options, with names unescaped.
    fn read_by_fusermount(argument: &[u8]) -> Vec<Vec<u8>> {
        let kept = argument.split(|byte| *byte == b',').filter(|piece| !piece.starts_with(b"x-"));
        let argument = kept.collect::<Vec<_>>().join(&b","[..]);
        let mut options = Vec::new();
        let mut rest = &argument[..];
        while !rest.is_empty() {
            let is_escaped = rest.starts_with(b"fsname=") || rest.starts_with(b"subtype=");
            let (mut option, mut at) = (Vec::new(), 0);
            while at < rest.len() && rest[at] != b',' {
                at += usize::from(is_escaped && rest[at] == b'\\' && at + 1 < rest.len());
                option.push(rest[at]);
                at += 1;
            }
            options.push(option);
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        options
    }

    #[test]
    fn a_source_name_cannot_add_mount_options() {
        let names = [
            &b"/srv/plain"[..],
            b"/srv/a,b",
            b"/srv/x,ro",
            b"/srv/x,noexec,",
            b"/srv/a,x-b",
            b"/srv/a,x-,x-,ro",
            b"/srv/,,\\,,x-\\",
            b"/srv/ends\\",
            b"/srv/ends,",
            b"/srv/line\nfeed,allow_other \t",
            b"/srv/a=b,fsname=c,subtype=d,fd=3,user_id=0",
            b"/srv/no \xff text,\xc3",
            b"ro",
            b"-o",
            b",",
        ];
        let plain = MountOptions::default();
        let all = MountOptions {
            read_only: true,
            exec: false,
            no_atime: true,
            allow_other: true,
            ..MountOptions::default()
        };
        for name in names {
            let shown = [b"fsname=", name].concat();
            let read = |options, permissions| {
                let argument = argument((options, permissions), OsStr::from_bytes(name));
                read_by_fusermount(argument.as_bytes())
            };
            let own = [&b"subtype=ogive"[..], b"default_permissions"];
            let of_kernel = read(&plain, Permissions::Kernel);
            assert_eq!(of_kernel, [&own[..], &[&shown]].concat(), "{shown:?}");
            let of_source = read(&plain, Permissions::Source);
            assert_eq!(of_source, [&own[..1], &[&shown]].concat(), "{shown:?}");
            let words = [&b"ro"[..], b"noexec", b"noatime", b"allow_other"];
            let all = read(&all, Permissions::Kernel);
            assert_eq!(all, [&own[..], &words, &[&shown]].concat(), "{shown:?}");
        }
    }

    #[test]
    fn words_of_a_path_are_not_mistaken_for_a_message() {
        let output = |text: &str| Output {
            status: std::process::ExitStatus::default(),
            stdout: Vec::new(),
            stderr: text.as_bytes().to_vec(),
        };
        let path = Path::new("/mnt/not mounted user_allow_other");
        let busy = output(
            "fusermount3: failed to unmount /mnt/not mounted user_allow_other: Device or resource \
             busy\n",
        );
        assert!(!words_of(&busy, path).contains("not mounted"));
        assert_eq!(said(&busy, path).kind(), io::ErrorKind::Other);
        let gone = output("fusermount3: entry for /mnt/not mounted not found in /etc/mtab\n");
        assert!(words_of(&gone, Path::new("/mnt/not mounted")).contains("not found in"));
        let refused = output(
            "fusermount3: option allow_other only allowed if 'user_allow_other' is set in \
             /etc/fuse.conf\n",
        );
        assert_eq!(said(&refused, path).kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn the_descriptor_that_was_sent_is_received() {
        let (ours, theirs) = pair();
        let (_, sent) = pair();
        let descriptors = [sent.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        rustix::net::sendmsg(&theirs, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())
            .unwrap();
        let received = receive(&ours).unwrap();
        let number = |descriptor: &OwnedFd| rustix::fs::fstat(descriptor).unwrap().st_ino;
        assert_eq!(number(&received), number(&sent));
        drop(theirs);
        assert!(receive(&ours).unwrap_err().to_string().contains("sent no connection"));
    }
}
