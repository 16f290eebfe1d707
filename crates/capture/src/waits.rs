//! What threads wait for: their kernel stacks, and the mounts that a daemon or a server answers
//! for.
//!
//! No path below a mount is touched: what is asked is `/proc` and `/sys` alone. A daemon is looked
//! for only where requests wait for one. What is looked at is bounded.

use std::path::Path;

use super::apart::{Part, read};

/// As many stacks are taken.
const MOST_STACKS: usize = 64;
/// As many threads are asked where they sleep, while requests wait for a daemon.
const MOST_ASKED: usize = 20_000;
/// As many open files are looked at for whose daemon it is.
const MOST_DESCRIPTORS: usize = 200_000;
/// As many mounts are listed.
const MOST_MOUNTS: usize = 500;
/// Where threads sleep that wait for a daemon; a signal may end their sleep, so their state does
/// not tell.
const WAITS_FOR_DAEMON: &str = "request_wait_answer";
/// How types of mounts begin that somebody answers for.
const SERVED: [&str; 6] = ["fuse", "nfs", "cifs", "smb3", "ceph", "9p"];
const HEADING: &str = "TYPE SOURCE MOUNT WAITING PID STATE\n";

/// One line of /proc/self/mountinfo.
struct Mount {
    /// Its device's minor number, by which FUSE names its connection.
    connection: String,
    point: String,
    kind: String,
    source: String,
    /// Requests that wait for its daemon, where that may be read.
    waiting: Option<u64>,
}

/// Takes the mounts that are answered for, and the stacks of threads that wait.
pub(super) fn take(part: &Part, moment: &str) {
    let mut mounts = mounts(part);
    for mount in &mut mounts {
        mount.waiting = waiting(part, mount);
    }
    let any_waits = mounts.iter().any(|mount| mount.waiting > Some(0));
    let daemons = if any_waits { daemons(part) } else { Vec::new() };
    stacks(part, &format!("{moment}/waits.txt"), !daemons.is_empty());
    if mounts.is_empty() {
        return;
    }
    let mut text = HEADING.to_owned();
    for mount in &mounts {
        let daemon = mount.waiting.and_then(|_| daemon_of(mount, &daemons));
        let count = mount.waiting.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let (pid, state) = daemon.map_or(("-", '-'), |one| (one.pid.as_str(), one.state));
        let Mount { kind, source, point, .. } = mount;
        text += &format!("{kind} {source} {point} {count} {pid} {state}\n");
    }
    part.add(format!("{moment}/served-mounts.txt"), text.into_bytes());
}

/// The mounts that are answered for.
fn mounts(part: &Part) -> Vec<Mount> {
    let Some(content) = read(part, Path::new("/proc/self/mountinfo")) else { return Vec::new() };
    let text = String::from_utf8_lossy(&content);
    text.lines().filter_map(mount).take(MOST_MOUNTS).collect()
}

/// A mount that is answered for: `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE …`.
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

/// How many requests wait for a mount's daemon, where it is FUSE and may be read.
fn waiting(part: &Part, mount: &Mount) -> Option<u64> {
    if !mount.kind.starts_with("fuse") {
        return None;
    }
    let path = Path::new("/sys/fs/fuse/connections").join(&mount.connection).join("waiting");
    String::from_utf8_lossy(&read(part, &path)?).trim().parse().ok()
}

/// A process that answers requests of FUSE.
struct Daemon {
    pid: String,
    name: String,
    state: char,
    command: String,
}

/// The processes that have /dev/fuse open.
fn daemons(part: &Part) -> Vec<Daemon> {
    let mut looked = 0;
    let mut found = Vec::new();
    for pid in processes() {
        let process = Path::new("/proc").join(&pid);
        let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { continue };
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
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Daemon { pid, name, state, command })
}

/// The daemon of a mount: the one whose command names the mount point, or else the only one of the
/// mount's kind, or else the only one where requests wait.
fn daemon_of<'a>(mount: &Mount, daemons: &'a [Daemon]) -> Option<&'a Daemon> {
    let only = |is_it: &dyn Fn(&Daemon) -> bool| {
        let mut these = daemons.iter().filter(|daemon| is_it(daemon));
        these.next().filter(|_| these.next().is_none())
    };
    let kind = mount.kind.strip_prefix("fuse.").unwrap_or(&mount.source);
    let names = |daemon: &Daemon| {
        daemon.command.split(' ').any(|word| word.trim_end_matches('/') == mount.point)
    };
    let waits = mount.waiting > Some(0);
    let of_kind = || only(&|daemon| daemon.name == kind);
    only(&names).or_else(of_kind).or_else(|| only(&|_| waits))
}

/// Name and state of a line of `/proc/PID/stat`.
fn name_and_state(stat: &[u8]) -> Option<(String, char)> {
    let text = String::from_utf8_lossy(stat);
    let (before, rest) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    Some((name.to_owned(), rest.chars().next()?))
}

/// Numbers of all processes but this one.
fn processes() -> Vec<String> {
    let own = std::process::id().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own).collect()
}

/// Stacks of threads that cannot be interrupted, and of those that wait for a daemon: `== NAME TID
/// state=D`, and the stack below. Where stacks may not be read, the function in which it sleeps.
fn stacks(part: &Part, name: &str, of_daemons: bool) {
    let (mut taken, mut asked) = (0, 0);
    for pid in processes() {
        let Ok(tasks) = std::fs::read_dir(Path::new("/proc").join(pid).join("task")) else {
            continue;
        };
        for task in tasks.filter_map(Result::ok) {
            if taken >= MOST_STACKS {
                part.note(format!("more than {MOST_STACKS} threads wait; the rest was left out"));
                return;
            }
            let path = task.path();
            let Some((program, state)) =
                read(part, &path.join("stat")).as_deref().and_then(name_and_state)
            else {
                continue;
            };
            let may_wait = of_daemons && state == 'S' && asked < MOST_ASKED;
            asked += usize::from(may_wait);
            if state != 'D' && !(may_wait && channel(part, &path) == WAITS_FOR_DAEMON) {
                continue;
            }
            let Some(stack) = stack(part, &path) else { continue };
            taken += 1;
            let program: String =
                program.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
            let tid = task.file_name();
            let text = format!("== {program} {} state={state}\n{stack}\n", tid.to_string_lossy());
            part.append(name, text.as_bytes());
        }
    }
}

/// The stack of a thread, or the one function in which it sleeps.
fn stack(part: &Part, task: &Path) -> Option<String> {
    let stack = read(part, &task.join("stack")).unwrap_or_default();
    let stack = String::from_utf8_lossy(&stack).trim().to_owned();
    if !stack.is_empty() {
        return Some(stack);
    }
    let channel = channel(part, task);
    (channel.len() > 1).then(|| format!("[<0>] {channel}+0x0/0x0"))
}

/// The function in which a thread sleeps; `0` where it does not or may not be asked.
fn channel(part: &Part, task: &Path) -> String {
    let content = read(part, &task.join("wchan")).unwrap_or_default();
    String::from_utf8_lossy(&content).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_what_its_command_names() {
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
            command: command.to_owned(),
        };
        let plain = Mount { point: "/mnt/x".to_owned(), waiting: Some(1), ..found };
        let whose = |daemons: &[Daemon]| daemon_of(&plain, daemons).map(|one| one.pid.clone());
        let named = daemon("1", "python3", "python3 fs.py /mnt/x/");
        let of_kind = daemon("2", "sshfs", "sshfs h: y");
        let other = daemon("3", "bindfs", "bindfs /a /b");
        assert_eq!(whose(&[other, of_kind, named]), Some("1".to_owned()));
        let (of_kind, other) = (daemon("2", "sshfs", ""), daemon("3", "bindfs", ""));
        assert_eq!(whose(&[of_kind, other]), Some("2".to_owned()));
        assert_eq!(whose(&[daemon("4", "a", ""), daemon("5", "b", "")]), None);
    }
}
