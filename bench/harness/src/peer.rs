//! The peers that ogive is compared with, and how each is mounted.
//!
//! Every peer is started as its documentation says for reading a local folder; the results show
//! additional options. A peer that is not installed is reported and left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cgroup::Cgroup;
use crate::error::{Context, Result};
use crate::mounted::{Mounted, Start};
use crate::session::{Session, on_path};

/// Name of ogive by direct I/O over io_uring.
pub const OVER_URING: &str = "ogive, direct I/O, io_uring";

/// A way to read a file tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The folder itself, on its own file system.
    Bare,
    /// Our own passthrough on the library ogive uses; `direct`: the kernel keeps no pages.
    Passthrough {
        /// Whether by direct I/O.
        direct: bool,
    },
    /// The passthrough again, but it answers from memory and never reads the source: the limit that
    /// FUSE and one copy set.
    Memory,
    /// ogive with these options.
    Ogive {
        /// Name in the tables.
        name: String,
        /// Options of `ogive mount`.
        options: Vec<String>,
    },
    /// A slow source for other peers: the passthrough again, with a delay for each request.
    Slow,
    /// libfuse's fastest pass-through, example/passthrough_hp.cc. The user builds it and names it in
    /// `PASSTHROUGH_HP`.
    PassthroughHp,
    /// bindfs.
    Bindfs,
    /// mergerfs, over one branch.
    Mergerfs,
    /// gocryptfs, over an encrypted copy.
    Gocryptfs,
    /// rclone's mount with its VFS cache in full mode.
    Rclone,
}

impl Peer {
    /// The delay of each request of the slow source.
    pub const DELAY_SECONDS: &str = "0.001";

    /// ogive, page cache on or by direct I/O, with an ARC of at most `arc_max_bytes`.
    pub fn ogive(direct: bool, arc_max_bytes: u64) -> Self {
        let mut options = vec!["--arc-max".to_owned(), arc_max_bytes.to_string()];
        if direct {
            options.push("--direct-io".into());
        }
        // Always by the device, so that runs on different kernels can be compared.
        options.extend(["--transport".into(), "device".into()]);
        let name = if direct { "ogive, direct I/O" } else { "ogive, page cache" };
        Self::Ogive { name: name.into(), options }
    }

    /// ogive by direct I/O over io_uring.
    pub fn ogive_uring(arc_max_bytes: u64) -> Self {
        let Self::Ogive { options, .. } = Self::ogive(true, arc_max_bytes) else {
            return Self::Bare;
        };
        let options = options.into_iter().chain(["--transport".into(), "uring".into()]).collect();
        Self::Ogive { name: OVER_URING.into(), options }
    }

    /// The same with further options, and another name.
    pub fn with(self, name: &str, further: &[&str]) -> Self {
        match self {
            Self::Ogive { mut options, .. } => {
                options.extend(further.iter().map(|option| (*option).to_owned()));
                Self::Ogive { name: name.into(), options }
            }
            other => other,
        }
    }

    /// Name in the tables.
    pub fn name(&self) -> &str {
        match self {
            Self::Bare => "bare file system",
            Self::Passthrough { direct: false } => "passthrough, page cache",
            Self::Passthrough { direct: true } => "passthrough, direct I/O",
            Self::Memory => "FUSE limit, direct I/O",
            Self::Ogive { name, .. } => name,
            Self::PassthroughHp => "passthrough_hp",
            Self::Slow => "slow source",
            Self::Bindfs => "bindfs",
            Self::Mergerfs => "mergerfs",
            Self::Gocryptfs => "gocryptfs",
            Self::Rclone => "rclone, VFS cache full",
        }
    }

    /// Why this peer cannot run here, if it cannot.
    pub fn missing(&self, session: &Session) -> Option<String> {
        let program = match self {
            Self::Bare | Self::Passthrough { .. } | Self::Memory | Self::Slow => return None,
            Self::Ogive { .. } => return session.ogive.clone().err(),
            Self::PassthroughHp => return passthrough_hp().err(),
            Self::Bindfs => "bindfs",
            Self::Mergerfs => "mergerfs",
            Self::Gocryptfs => "gocryptfs",
            Self::Rclone => "rclone",
        };
        (!on_path(program)).then(|| format!("{program} is not installed"))
    }

    /// Does what must be done once for `source` before this peer can be mounted.
    pub fn prepare(&self, session: &Session, source: &Path) -> Result<()> {
        match self {
            Self::Gocryptfs => encrypt(session, source),
            _ => Ok(()),
        }
    }

    /// Mounts the peer over `source`.
    pub fn mount(
        &self,
        session: &Session,
        source: &Path,
        cgroup: Option<&Cgroup>,
    ) -> Result<Mounted> {
        let label: String =
            self.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let point = session.folder("mnt")?.join(label);
        let mut unmount = None;
        let start = match self {
            Self::Bare => return Ok(Mounted::plain(source)),
            Self::Passthrough { direct } => {
                let mut command = Command::new(&session.passthrough);
                command.args(direct.then_some("--direct-io")).args([source, &point]);
                Start::Foreground(command)
            }
            Self::Memory => {
                let mut command = Command::new(&session.passthrough);
                command.arg("--from-memory").args([source, &point]);
                Start::Foreground(command)
            }
            Self::Slow => {
                let mut command = Command::new(&session.passthrough);
                command.args(["--delay", Self::DELAY_SECONDS, "--threads", "64"]);
                command.arg("--allow-other").args([source, &point]);
                Start::Foreground(command)
            }
            Self::Ogive { options, .. } => {
                let ogive = session.ogive.as_ref()?;
                let mut command = Command::new(ogive);
                command.arg("mount").args(options).args([source, &point]);
                let mut end = Command::new(ogive);
                end.arg("unmount").arg(&point);
                unmount = Some(end);
                Start::Background(command)
            }
            Self::PassthroughHp => {
                let mut command = Command::new(passthrough_hp()?);
                command.arg("--foreground").args([source, &point]);
                Start::Foreground(command)
            }
            Self::Bindfs => {
                let mut command = Command::new("bindfs");
                command.arg("-f").args([source, &point]);
                Start::Foreground(command)
            }
            Self::Mergerfs => {
                let mut command = Command::new("mergerfs");
                command.args(["-f", "-o", "cache.files=auto-full"]).args([source, &point]);
                Start::Foreground(command)
            }
            Self::Gocryptfs => {
                let mut command = Command::new("gocryptfs");
                command.args(["-fg", "-q", "-passfile"]).arg(passfile(session)?);
                command.args([&cipher_folder(session, source), &point]);
                Start::Foreground(command)
            }
            Self::Rclone => {
                let mut command = Command::new("rclone");
                command.args(["mount", "--vfs-cache-mode", "full", "--config", ""]);
                command.arg("--cache-dir").arg(session.folder("rclone-cache")?);
                command.args([source, &point]);
                Start::Foreground(command)
            }
        };
        Mounted::start(&session.work, &point, start, unmount, cgroup)
            .context(|| format!("{} on {}", self.name(), point.display()))
    }
}

/// The path of libfuse's pass-through.
fn passthrough_hp() -> Result<PathBuf> {
    let path = std::env::var_os("PASSTHROUGH_HP").map(PathBuf::from);
    path.filter(|path| path.is_file()).ok_or_else(|| {
        "PASSTHROUGH_HP names no binary: build example/passthrough_hp.cc of libfuse and say where \
         it is"
            .into()
    })
}

/// Leaves out the peers that cannot run, and those that `BENCH_PEERS` does not name; returns the
/// reasons.
pub fn present(peers: Vec<Peer>, session: &Session) -> (Vec<Peer>, Vec<String>) {
    let mut notes = Vec::new();
    let asked_for = std::env::var("BENCH_PEERS").unwrap_or_default();
    let is_asked_for =
        |peer: &Peer| asked_for.split(';').any(|words| peer.name().contains(words.trim()));
    let kept = peers.into_iter().filter(|peer| match peer.missing(session) {
        _ if !is_asked_for(peer) => {
            notes.push(format!("{}: not run: BENCH_PEERS is \"{asked_for}\"", peer.name()));
            false
        }
        Some(reason) => {
            notes.push(format!("{}: not run: {reason}", peer.name()));
            false
        }
        None => true,
    });
    let kept = kept.collect();
    (kept, notes)
}

/// rclone keeps copies on disk from one mount to the next.
pub fn forget_copies(session: &Session, peer: &Peer) -> Result<()> {
    if *peer == Peer::Rclone {
        let _ = fs::remove_dir_all(session.folder("rclone-cache")?);
    }
    Ok(())
}

/// The folder of the encrypted copy of `source`.
pub fn cipher_folder(session: &Session, source: &Path) -> PathBuf {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    session.work.join(format!("cipher-{name}"))
}

fn passfile(session: &Session) -> Result<PathBuf> {
    let path = session.work.join("passfile");
    fs::write(&path, "measured in the open\n")
        .context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Makes the encrypted copy gocryptfs is mounted over.
fn encrypt(session: &Session, source: &Path) -> Result<()> {
    let cipher = cipher_folder(session, source);
    // Next to the copy, because gocryptfs would treat a mark in it as a damaged file.
    let mark = cipher.with_extension("complete");
    if mark.exists() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(&cipher);
    fs::create_dir_all(&cipher).context(|| format!("cannot make {}", cipher.display()))?;
    let mut init = Command::new("gocryptfs");
    init.args(["-init", "-q", "-scryptn", "10", "-passfile"]).arg(passfile(session)?).arg(&cipher);
    run(init)?;
    let mounted = Peer::Gocryptfs.mount(session, source, None)?;
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(source.join(".")).arg(&mounted.root);
    run(copy)?;
    drop(mounted);
    fs::write(mark, "").context(|| "cannot mark the copy".into())
}

/// Runs a command to its end.
fn run(mut command: Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.context(|| format!("cannot start {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
