//! Mounting as an ordinary user: `fusermount3`, a set-user-id program, opens the device, mounts,
//! and hands the descriptor over a socket whose number is in the environment (`util/fusermount.c`
//! of libfuse; `_FUSE_COMMFD`).

use super::MountOptions;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::FdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, and its older name.
const PROGRAMS: [&str; 2] = ["fusermount3", "fusermount"];
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// Mounts and returns the connection.
///
/// # Errors
/// What the program says, or `NotFound` if there is none.
pub(super) fn mount(path: &Path, options: &MountOptions, name: &str) -> io::Result<OwnedFd> {
    // Anything else is root's: the program would refuse it.
    let mut wanted = vec![
        format!("fsname={}", name.replace('\\', "\\\\").replace(',', "\\,")),
        "subtype=ogive".to_owned(),
        "default_permissions".to_owned(),
    ];
    wanted.extend(options.read_only.then(|| "ro".to_owned()));
    wanted.extend((!options.exec).then(|| "noexec".to_owned()));
    wanted.extend(options.allow_other.then(|| "allow_other".to_owned()));
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )?;
    // Its own end is the program's to inherit, ours is not.
    rustix::io::fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    let wanted = wanted.join(",");
    let arguments = ["-o", &wanted, "--"].map(AsRef::as_ref);
    let output = run(&[&arguments[..], &[path.as_os_str()]].concat(), Some(theirs))?;
    if !output.status.success() {
        return Err(said(&output));
    }
    receive(&ours)
}

/// Unmounts; what is in use goes when the last program lets go.
///
/// # Errors
/// What the program says; that it is not mounted any more is no error.
pub(super) fn unmount(path: &Path) -> io::Result<()> {
    let arguments = ["-u", "-z", "--"].map(AsRef::as_ref);
    let output = run(&[&arguments[..], &[path.as_os_str()]].concat(), None)?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || text.contains("not found in") || text.contains("not mounted") {
        return Ok(());
    }
    Err(said(&output))
}

fn run(arguments: &[&OsStr], socket: Option<OwnedFd>) -> io::Result<Output> {
    let number = socket.as_ref().map(|socket| (SOCKET_VARIABLE, socket.as_raw_fd().to_string()));
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for program in PROGRAMS {
        let ran = Command::new(program)
            .args(arguments)
            // Its messages are looked at, so they must not be translated.
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

fn said(output: &Output) -> io::Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim();
    let kind = match text.contains("user_allow_other") {
        true => io::ErrorKind::PermissionDenied,
        false => io::ErrorKind::Other,
    };
    io::Error::new(kind, text.strip_prefix("fusermount3: ").unwrap_or(text).to_owned())
}

/// The descriptor that the program has sent.
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
