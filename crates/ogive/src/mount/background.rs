//! Serving a mount in the background.
//!
//! The program starts itself again in a session of its own. It waits until the new process reports
//! on its standard output that the mount answers. Until then that process keeps the caller's
//! standard error, so its errors appear where the user typed the command. If it ends early, its
//! exit code becomes the command's. Unlike fork(2), a new start leaves no thread or lock behind in
//! a half-copied process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use zeroize::Zeroizing;

use super::paths;
use crate::exit::{self, Refusal};

/// The report of the background process when the mount answers.
const READY: &[u8] = b"ready\n";

/// Starts `ogive mount` with these arguments (those after the subcommand) in the background and
/// waits for the mount.
///
/// Returns the exit code of the command. The background process has printed its error already. A
/// typed passphrase goes through a pipe.
pub(crate) fn start(arguments: &[OsString], passphrase: Option<&Zeroizing<Vec<u8>>>) -> Result<u8> {
    let pipe = passphrase.map(|passphrase| hand_on(passphrase)).transpose()?;
    let handed = pipe.as_ref().map(|pipe| format!("--passphrase-fd={}", pipe.as_raw_fd()));
    let mut child = Command::new(program()?)
        .arg0("ogive")
        .args([OsStr::new("mount"), OsStr::new("--ready-on-stdout")])
        .args(handed)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the background process")?;
    let mut report = Vec::with_capacity(READY.len());
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(READY.len() as u64)
            .read_to_end(&mut report)
            .context("cannot read from the background process")?;
    }
    if report == READY {
        return Ok(exit::SUCCESS);
    }
    let status = child.wait().context("cannot wait for the background process")?;
    match (status.code(), status.signal()) {
        (Some(code), _) if code != 0 => Ok(u8::try_from(code).unwrap_or(exit::FAILURE)),
        (_, Some(signal)) => bail!(
            "cannot mount: the background process was ended by signal {signal} before the mount \
             answered"
        ),
        _ => bail!("cannot mount: the background process ended before the mount answered"),
    }
}

/// A pipe with a passphrase in it, which the background process inherits.
fn hand_on(passphrase: &[u8]) -> Result<OwnedFd> {
    let context = "cannot pass the passphrase to the background process";
    let (read, write) = rustix::pipe::pipe().context(context)?;
    // A pipe takes 64 KiB before a writer waits; a typed passphrase is shorter.
    File::from(write).write_all(passphrase).context(context)?;
    Ok(read)
}

/// The program to start again: this one, even if its file has been replaced or deleted since.
fn program() -> Result<PathBuf> {
    let path =
        std::env::current_exe().context("cannot find this program through /proc/self/exe")?;
    Ok(if path.exists() { path } else { PathBuf::from("/proc/self/exe") })
}

/// Leaves the caller's session and terminal, first thing in the background process.
pub(crate) fn leave_session() -> Result<()> {
    rustix::process::setsid().context("cannot begin a session of its own")?;
    Ok(())
}

/// Reports to the waiting command that the mount answers, and closes the shared standard output.
///
/// Fails if the command no longer waits: it was interrupted, and the mount is unwanted.
pub(crate) fn announce() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(READY)?;
    stdout.flush()?;
    rustix::stdio::dup2_stdout(null()?)?;
    Ok(())
}

/// Opens the log file for appending. A new one is readable only by this user.
pub(crate) fn open_log_file(path: &Path) -> Result<File, Refusal> {
    ogive_private::options().append(true).create(true).open(path).map_err(|error| {
        let reason = paths::reason(&error);
        Refusal::new(
            exit::FAILURE,
            format!("cannot open the log file {}: {reason}", path.display()),
        )
    })
}

/// Redirects messages to the log file, or discards them.
pub(crate) fn redirect_messages(log_file: Option<File>) -> io::Result<()> {
    let target = match log_file {
        Some(file) => file,
        None => null()?,
    };
    rustix::stdio::dup2_stderr(target)?;
    Ok(())
}

fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_file_is_appended_to_and_an_impossible_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        open_log_file(&path).unwrap().write_all(b"new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\nnew\n");
        let error = open_log_file(&dir.path().join("no/log")).unwrap_err().to_string();
        assert!(
            error.contains("cannot open the log file") && error.contains("no such file"),
            "{error}"
        );
    }
}
