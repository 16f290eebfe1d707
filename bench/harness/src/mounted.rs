//! A mounted peer: started, found, watched, and always unmounted.
//!
//! Before the benchmark goes on, the file `daemons` of the work folder has the number and the start
//! time of every daemon. So a later run can end the daemons of an interrupted one. It ends no
//! other process, because a number that was used again has another start time.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::error::{Context, Result};
use crate::process;

const MOUNT_PATIENCE: Duration = Duration::from_secs(20);
const END_PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);

/// How a daemon is started.
pub enum Start {
    /// It stays in the foreground as our child.
    Foreground(Command),
    /// It goes to the background once the mount answers; its command line then names the mount
    /// point.
    Background(Command),
}

/// A mounted file system, or a plain folder in its place.
pub struct Mounted {
    /// The folder to read the files in.
    pub root: PathBuf,
    daemon: Option<Daemon>,
}

struct Daemon {
    pid: u32,
    child: Option<Child>,
    /// The peer's own command to unmount, tried before `umount`.
    unmount: Option<Command>,
}

impl Mounted {
    /// A folder without any daemon.
    pub fn plain(root: &Path) -> Self {
        Self { root: root.to_owned(), daemon: None }
    }

    /// Starts a daemon and waits until `mount_point` is mounted.
    ///
    /// `unmount` is this peer's own way to unmount, if it has one. With `cgroup` the daemon is in it
    /// from its first instruction on.
    pub fn start(
        work: &Path,
        mount_point: &Path,
        start: Start,
        unmount: Option<Command>,
        cgroup: Option<&Cgroup>,
    ) -> Result<Self> {
        fs::create_dir_all(mount_point)
            .context(|| format!("cannot make {}", mount_point.display()))?;
        let log_path = work.join("daemon.log");
        let log = OpenOptions::new().create(true).append(true).open(&log_path);
        let log = log.context(|| format!("cannot open {}", log_path.display()))?;
        let (command, background) = match start {
            Start::Foreground(command) => (command, false),
            Start::Background(command) => (command, true),
        };
        let command = if background { command } else { in_session_of_its_own(command) };
        let mut command = inside(command, cgroup);
        command.stdin(Stdio::null()).stderr(log.try_clone().context(|| "log".into())?).stdout(log);
        let mut child = command.spawn().context(|| format!("cannot start {command:?}"))?;
        let pid = match wait_for_mount(&mut child, mount_point, background) {
            Ok(pid) => pid,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let _ = umount2(mount_point, MntFlags::MNT_DETACH);
                return Err(format!("{error} (its words are in {})", log_path.display()));
            }
        };
        note(work, pid)?;
        let child = (!background).then_some(child);
        let daemon = Some(Daemon { pid, child, unmount });
        Ok(Self { root: mount_point.to_owned(), daemon })
    }

    /// The daemon's process id; a plain folder has none.
    pub fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(|daemon| daemon.pid)
    }

    /// CPU seconds the daemon has used, 0 without one.
    pub fn cpu_seconds(&self) -> Result<f64> {
        self.pid().map_or(Ok(0.0), process::cpu_seconds)
    }

    /// Whether the daemon still lives; a plain folder always does.
    pub fn alive(&self) -> bool {
        self.pid().is_none_or(|pid| process::start_time(pid).is_some() && !is_zombie(pid))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let Some(mut daemon) = self.daemon.take() else {
            return;
        };
        if let Some(command) = &mut daemon.unmount {
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        unmount(&self.root);
        let asked = Instant::now();
        let mut killed = false;
        loop {
            let gone = match &mut daemon.child {
                Some(child) => !matches!(child.try_wait(), Ok(None)),
                None => process::start_time(daemon.pid).is_none() || is_zombie(daemon.pid),
            };
            if gone {
                return;
            }
            if !killed && asked.elapsed() > END_PATIENCE {
                eprintln!("  the daemon of {} does not end: killed", self.root.display());
                let _ = kill(Pid::from_raw(daemon.pid.cast_signed()), Signal::SIGKILL);
                killed = true;
            } else if asked.elapsed() > 2 * END_PATIENCE {
                return;
            }
            sleep(POLL);
        }
    }
}

/// Unmounts everything below the work folder and ends the daemons noted there.
pub fn remove_leftovers(work: &Path) {
    let Ok(work) = work.canonicalize() else {
        return;
    };
    let mut mounts = mount_points();
    mounts.retain(|mount| mount.starts_with(&work));
    for mount in mounts.iter().rev() {
        eprintln!("  unmounting {}", mount.display());
        unmount(mount);
    }
    let list = work.join("daemons");
    for line in fs::read_to_string(&list).unwrap_or_default().lines() {
        let mut words = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let (Some(pid), Some(started)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(pid) = u32::try_from(pid) else {
            continue;
        };
        let same = || process::start_time(pid) == Some(started);
        let asked = Instant::now();
        while same() && !is_zombie(pid) && asked.elapsed() < Duration::from_secs(3) {
            sleep(POLL);
        }
        if same() && !is_zombie(pid) {
            eprintln!("  ending daemon {pid}");
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
    let _ = fs::remove_file(list);
}

/// Gives a daemon in the foreground its own session, as daemons in the background have. The scheduler
/// (`sched_autogroup_enabled`) shares processors among sessions, so a daemon in the reader's session
/// would get less than another.
fn in_session_of_its_own(command: Command) -> Command {
    let mut setsid = Command::new("setsid");
    setsid.arg(command.get_program()).args(command.get_args());
    setsid
}

/// Makes `command` run inside `cgroup`: a shell enters it and becomes the program.
pub fn inside(command: Command, cgroup: Option<&Cgroup>) -> Command {
    let Some(cgroup) = cgroup else { return command };
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(cgroup.entrance());
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

fn wait_for_mount(child: &mut Child, mount_point: &Path, background: bool) -> Result<u32> {
    let asked = Instant::now();
    let canonical = mount_point.canonicalize().unwrap_or_else(|_| mount_point.to_owned());
    let mut ended = None;
    while asked.elapsed() < MOUNT_PATIENCE {
        if ended.is_none() {
            ended = child.try_wait().context(|| "cannot wait for the daemon".into())?;
        }
        if let Some(status) = ended
            && (!background || !status.success())
        {
            return Err(format!("the daemon ended before it had mounted: {status}"));
        }
        let mounted = mount_points().contains(&canonical);
        if mounted && !background {
            return Ok(child.id());
        }
        if mounted && ended.is_some() {
            return daemon_of(mount_point, child.id());
        }
        sleep(POLL);
    }
    Err(format!("nothing was mounted on {} in {MOUNT_PATIENCE:?}", mount_point.display()))
}

/// The background process whose command line names `mount_point`.
fn daemon_of(mount_point: &Path, starter: u32) -> Result<u32> {
    let named = mount_point.to_string_lossy();
    let this = std::process::id();
    let mut found: Vec<u32> = process::all();
    found.retain(|&pid| {
        pid != starter
            && pid != this
            && !is_zombie(pid)
            && process::command_line(pid).iter().any(|word| *word == named)
    });
    match found.as_slice() {
        [pid] => Ok(*pid),
        [] => Err(format!("no process names {named}: the daemon cannot be found")),
        many => Err(format!("several processes name {named}: {many:?}")),
    }
}

fn note(work: &Path, pid: u32) -> Result<()> {
    let path = work.join("daemons");
    let started = process::start_time(pid).ok_or("the daemon ended at once")?;
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let mut file = file.context(|| format!("cannot open {}", path.display()))?;
    writeln!(file, "{pid} {started}").context(|| format!("cannot write {}", path.display()))
}

fn unmount(mount_point: &Path) {
    let canonical = mount_point.to_owned();
    for _ in 0..100 {
        if !mount_points().contains(&canonical) {
            return;
        }
        if umount2(mount_point, MntFlags::empty()).is_ok() {
            return;
        }
        sleep(POLL);
    }
    let _ = umount2(mount_point, MntFlags::MNT_DETACH);
}

/// All mount points, in the order they were mounted.
fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let field = |line: &str| line.split(' ').nth(4).map(|path| path.replace("\\040", " "));
    text.lines().filter_map(field).map(PathBuf::from).collect()
}

fn is_zombie(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}
