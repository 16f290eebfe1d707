//! Takes the waits of threads: their kernel stacks, and the mounts of daemons and servers.
//!
//! Only `/proc` and `/sys` are read, and no path below a mount. Daemons are searched only if
//! requests wait for one. If the kernel's list of FUSE connections (fusectl) is not mounted,
//! waiting threads are counted instead. The number of threads and mounts is bounded.

use std::path::Path;

use super::detached::{Part, read};

/// Stacks taken at most.
const MOST_STACKS: usize = 64;
/// Threads examined for their wait channel at most, while requests wait for a daemon.
const MOST_ASKED: usize = 20_000;
/// Open files examined at most to find the daemons.
const MOST_DESCRIPTORS: usize = 200_000;
/// Mounts listed at most.
const MOST_MOUNTS: usize = 500;
/// The function in which threads sleep that wait for a daemon. A signal may end their sleep, so
/// their state does not show it.
const WAITS_FOR_DAEMON: &str = "request_wait_answer";
/// Prefixes of the types of served mounts.
const SERVED: [&str; 6] = ["fuse", "nfs", "cifs", "smb3", "ceph", "9p"];
const HEADING: &str = "TYPE SOURCE MOUNT WAITING PID STATE\n";

/// One line of /proc/self/mountinfo.
struct Mount {
    /// Its device's minor number, which is FUSE's number of the connection.
    connection: String,
    point: String,
    kind: String,
    source: String,
    /// The number of requests that wait for its daemon, if it can be read.
    waiting: Option<u64>,
}

/// Takes the served mounts and the stacks of waiting threads.
pub(super) fn take(part: &Part, moment: &str) {
    let mut mounts = mounts(part);
    for mount in &mut mounts {
        mount.waiting = waiting(part, mount);
    }
    let is_open = |mount: &Mount| mount.is_fuse() && mount.waiting.is_none();
    let any_waits = mounts.iter().any(|mount| mount.waiting > Some(0) || is_open(mount));
    let daemons = if any_waits { daemons(part, &mounts) } else { Vec::new() };
    let threads = stacks(part, &format!("{moment}/waits.txt"), !daemons.is_empty());
    if mounts.is_empty() {
        return;
    }
    let open = mounts.iter().filter(|mount| is_open(mount)).count();
    let mut text = HEADING.to_owned();
    for at in 0..mounts.len() {
        let daemon = mounts[at].is_fuse().then(|| daemon_of(at, &mounts, &daemons)).flatten();
        // If there are several mounts, the threads wait for those with a stopped daemon.
        let is_meant = open == 1 || daemon.is_some_and(|one| matches!(one.state, 'T' | 't'));
        if is_open(&mounts[at]) && threads > 0 && is_meant {
            mounts[at].waiting = Some(threads);
        }
        let Mount { kind, source, point, waiting, .. } = &mounts[at];
        let count = waiting.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let (pid, state) = daemon.map_or(("-", '-'), |one| (one.pid.as_str(), one.state));
        text += &format!("{kind} {source} {point} {count} {pid} {state}\n");
    }
    part.add(format!("{moment}/served-mounts.txt"), text.into_bytes());
}

impl Mount {
    fn is_fuse(&self) -> bool {
        self.kind.starts_with("fuse")
    }
}

/// The served mounts.
fn mounts(part: &Part) -> Vec<Mount> {
    let Some(content) = read(part, Path::new("/proc/self/mountinfo")) else { return Vec::new() };
    let text = String::from_utf8_lossy(&content);
    text.lines().filter_map(mount).take(MOST_MOUNTS).collect()
}

/// A served mount: `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE …`.
fn mount(line: &str) -> Option<Mount> {
    let (before, behind) = line.split_once(" - ")?;
    let mut words = before.split(' ');
    let (_, minor) = words.nth(2)?.split_once(':')?;
    let point = words.nth(1)?;
    let mut behind = behind.split(' ');
    let (kind, source) = (behind.next()?, behind.next()?);
    let is_served = SERVED.iter().any(|start| kind.starts_with(start)) && kind != "fusectl";
    let source = if source.is_empty() { "-" } else { source };
    is_served.then(|| Mount {
        connection: minor.to_owned(),
        point: point.to_owned(),
        kind: kind.to_owned(),
        source: source.to_owned(),
        waiting: None,
    })
}

/// The number of requests that wait for a mount's daemon, if it is FUSE and readable.
fn waiting(part: &Part, mount: &Mount) -> Option<u64> {
    if !mount.is_fuse() {
        return None;
    }
    let path = Path::new("/sys/fs/fuse/connections").join(&mount.connection).join("waiting");
    String::from_utf8_lossy(&read(part, &path)?).trim().parse().ok()
}

/// A process that answers FUSE requests.
struct Daemon {
    pid: String,
    name: String,
    state: char,
    arguments: Vec<String>,
}

impl Daemon {
    /// Whether the command names this mount: its last argument that is a mount point, also relative
    /// to its working directory, is this one. An earlier argument may be a mount that it reads.
    fn is_of(&self, mount: &Mount, mounts: &[Mount]) -> bool {
        let names = |word: &String, mount: &Mount| {
            let rest = mount.point.strip_suffix(word.trim_end_matches('/'));
            word.len() > 1 && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let is_mount = |word: &&String| mounts.iter().any(|mount| names(word, mount));
        self.arguments.iter().rev().find(is_mount).is_some_and(|word| names(word, mount))
    }
}

/// The processes that have /dev/fuse open. If another user's open files are not visible, the
/// processes whose command names a mount.
fn daemons(part: &Part, mounts: &[Mount]) -> Vec<Daemon> {
    let mut looked = 0;
    let mut found = Vec::new();
    for pid in processes() {
        let process = Path::new("/proc").join(&pid);
        let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else {
            let one = daemon(part, pid, &process);
            let is_of = |one: &Daemon| mounts.iter().any(|mount| one.is_of(mount, mounts));
            found.extend(one.filter(is_of));
            continue;
        };
        let mut is_daemon = false;
        for descriptor in descriptors.filter_map(Result::ok) {
            looked += 1;
            let target = std::fs::read_link(descriptor.path());
            is_daemon |= target.is_ok_and(|target| target == Path::new("/dev/fuse"));
            if is_daemon || looked >= MOST_DESCRIPTORS {
                break;
            }
        }
        if let Some(one) = is_daemon.then(|| daemon(part, pid, &process)).flatten() {
            found.push(one);
        }
        if looked >= MOST_DESCRIPTORS {
            part.note("too many open files to find the daemons of all mounts".to_owned());
            break;
        }
    }
    found
}

fn daemon(part: &Part, pid: String, process: &Path) -> Option<Daemon> {
    let (name, state) = name_and_state(&read(part, &process.join("stat"))?)?;
    let command = read(part, &process.join("cmdline")).unwrap_or_default();
    let arguments = String::from_utf8_lossy(&command).split('\0').map(str::to_owned).collect();
    Some(Daemon { pid, name, state, arguments })
}

/// The daemon of a mount: the one whose command names the mount point, or else the only one of the
/// mount's type, or else the only one if requests wait for this mount only.
fn daemon_of<'a>(at: usize, mounts: &[Mount], daemons: &'a [Daemon]) -> Option<&'a Daemon> {
    let mount = mounts.get(at)?;
    let only = |is_it: &dyn Fn(&Daemon) -> bool| {
        let mut these = daemons.iter().filter(|daemon| is_it(daemon));
        these.next().filter(|_| these.next().is_none())
    };
    let kind = mount.kind.strip_prefix("fuse.").unwrap_or(&mount.source);
    let waits = mount.waiting > Some(0);
    let of_kind = || only(&|daemon| daemon.name == kind);
    let is_of = |daemon: &Daemon| daemon.is_of(mount, mounts);
    // Readers also name the mount. If open files are not visible, a stopped process is the daemon.
    let stopped = || only(&|daemon| is_of(daemon) && matches!(daemon.state, 'T' | 't'));
    only(&is_of).or_else(stopped).or_else(of_kind).or_else(|| only(&|_| waits))
}

/// Name and state in a line of `/proc/PID/stat`.
fn name_and_state(stat: &[u8]) -> Option<(String, char)> {
    let text = String::from_utf8_lossy(stat);
    let (before, rest) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    Some((name.to_owned(), rest.chars().next()?))
}

/// Numbers of all other processes.
fn processes() -> Vec<String> {
    let own = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own).collect()
}

/// Takes stacks of uninterruptible threads and of those that wait for a daemon: `== NAME TID
/// state=D`, and the stack below. If stacks are not readable, it takes the wait channel. Returns
/// how many threads wait for a daemon.
fn stacks(part: &Part, name: &str, of_daemons: bool) -> u64 {
    let (mut taken, mut asked, mut waiting) = (0, 0, 0);
    for pid in processes() {
        let Ok(tasks) = std::fs::read_dir(Path::new("/proc").join(pid).join("task")) else {
            continue;
        };
        for task in tasks.filter_map(Result::ok) {
            if taken >= MOST_STACKS {
                part.note(format!("more than {MOST_STACKS} threads wait; the rest was left out"));
                return waiting;
            }
            let path = task.path();
            let Some((program, state)) =
                read(part, &path.join("stat")).as_deref().and_then(name_and_state)
            else {
                continue;
            };
            let may_wait = of_daemons && state == 'S' && asked < MOST_ASKED;
            asked += usize::from(may_wait);
            let of_daemon = may_wait && channel(part, &path) == WAITS_FOR_DAEMON;
            if state != 'D' && !of_daemon {
                continue;
            }
            waiting += u64::from(of_daemon);
            let Some(stack) = stack(part, &path) else { continue };
            taken += 1;
            let program: String =
                program.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
            let tid = task.file_name();
            let text = format!("== {program} {} state={state}\n{stack}\n", tid.to_string_lossy());
            part.append(name, text.as_bytes());
        }
    }
    waiting
}

/// The stack of a thread, or its wait channel.
fn stack(part: &Part, task: &Path) -> Option<String> {
    let stack = read(part, &task.join("stack")).unwrap_or_default();
    let stack = String::from_utf8_lossy(&stack).trim().to_owned();
    if !stack.is_empty() {
        return Some(stack);
    }
    let channel = channel(part, task);
    (channel.len() > 1).then(|| format!("[<0>] {channel}+0x0/0x0"))
}

/// The function in which a thread sleeps; `0` if it does not sleep or it is not readable.
fn channel(part: &Part, task: &Path) -> String {
    let content = read(part, &task.join("wchan")).unwrap_or_default();
    String::from_utf8_lossy(&content).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_found_by_the_mount_that_its_command_names() {
        let line = "90 20 0:52 / /mnt/my\\040x rw,nosuid - fuse.sshfs me@h:/ rw,user_id=0";
        let Some(found) = mount(line) else { panic!("{line}") };
        assert_eq!(
            (&*found.connection, &*found.point, &*found.kind, &*found.source),
            ("52", "/mnt/my\\040x", "fuse.sshfs", "me@h:/")
        );
        assert!(mount("21 20 0:51 / /sys/fs/fuse/connections rw - fusectl fusectl rw").is_none());
        assert!(mount("21 20 8:1 / / rw - ext4 /dev/sda1 rw").is_none());
        let daemon = |pid: &str, name: &str, command: &str| Daemon {
            pid: pid.to_owned(),
            name: name.to_owned(),
            state: 'S',
            arguments: command.split(' ').map(str::to_owned).collect(),
        };
        let plain = [Mount { point: "/mnt/x".to_owned(), waiting: Some(1), ..found }];
        let of = |at, mounts: &[Mount], daemons: &[Daemon]| {
            daemon_of(at, mounts, daemons).map(|one| one.pid.clone())
        };
        let whose = |daemons: &[Daemon]| of(0, &plain, daemons);
        let named = daemon("1", "python3", "python3 fs.py /mnt/x/");
        let of_kind = daemon("2", "sshfs", "sshfs h: y");
        let other = daemon("3", "bindfs", "bindfs /a /b");
        assert_eq!(whose(&[other, of_kind, named]), Some("1".to_owned()));
        let (of_kind, other) = (daemon("2", "sshfs", ""), daemon("3", "bindfs", ""));
        assert_eq!(whose(&[of_kind, other]), Some("2".to_owned()));
        assert_eq!(whose(&[daemon("4", "a", ""), daemon("5", "b", "")]), None);
        // A mount over another one: both commands name the lower one and started below /mnt.
        let at =
            |point: &str| mount(&format!("9 2 0:5 / {point} rw - fuse s rw")).expect("a mount");
        let both = [at("/mnt/between"), at("/mnt/view")];
        let (lower, upper) = ("bindfs source between", "ogive mount between view");
        let daemons = [daemon("7", "ogive", upper), daemon("6", "bindfs", lower)];
        assert_eq!(of(0, &both, &daemons), Some("6".to_owned()));
        assert_eq!(of(1, &both, &daemons), Some("7".to_owned()));
    }
}
