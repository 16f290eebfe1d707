//! The programs that keep a mount busy, from /proc.
//!
//! The search reads only links and maps of processes, and never a file on the mount, so an
//! unresponsive mount cannot block it. Every part of the search is bounded: it is a help for the
//! user and need not be complete.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Processes looked at.
const PROCESSES_MAX: usize = 65_536;
/// Open files looked at in each process.
const FILES_PER_PROCESS_MAX: usize = 16_384;
/// Bytes of each process's list of mappings that are read.
const MAPS_BYTES_MAX: u64 = 4 << 20;
/// Processes that are named.
const NAMED_MAX: usize = 8;

/// The text for a process with an open file.
const OPEN_FILE: &str = "open file";

/// A process that uses the mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The process.
    pub(crate) pid: u32,
    /// Its name, as ps(1) prints it.
    pub(crate) name: String,
    /// Its use of the mount, such as "working directory".
    pub(crate) what: &'static str,
    /// The file or directory.
    pub(crate) path: PathBuf,
}

/// The processes found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holders {
    /// The first few, by process number.
    pub(crate) named: Vec<Holder>,
    /// How many more there are.
    pub(crate) unnamed: usize,
    /// Processes of other users, which could not be looked into.
    pub(crate) closed: usize,
}

impl Holders {
    /// Whether every use found may end in a moment: no program was found, or only files of the
    /// control directory are open.
    pub(crate) fn let_go_soon(&self, control: &Path) -> bool {
        let looks = |holder: &Holder| holder.what == OPEN_FILE && holder.path.starts_with(control);
        self.unnamed == 0 && self.named.iter().all(looks)
    }
}

/// Looks for the users of a mount below `proc` (/proc). This process is left out.
pub(crate) fn find(proc: &Path, mount_point: &Path) -> Holders {
    let mut found = Holders::default();
    for (pid, dir) in processes(proc) {
        match use_of(&dir, mount_point) {
            Use::None => {}
            Use::Unknown => found.closed += 1,
            Use::Of(_, _) if found.named.len() >= NAMED_MAX => found.unnamed += 1,
            Use::Of(what, path) => {
                let name = fs::read_to_string(dir.join("comm")).unwrap_or_default();
                found.named.push(Holder { pid, name: name.trim_end().to_owned(), what, path });
            }
        }
    }
    found
}

/// The directories of the processes, by number.
fn processes(proc: &Path) -> BTreeMap<u32, PathBuf> {
    let Ok(entries) = fs::read_dir(proc) else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(pid, _)| *pid != std::process::id())
        .take(PROCESSES_MAX)
        .collect()
}

/// The use of the mount by one process.
enum Use {
    None,
    Unknown,
    Of(&'static str, PathBuf),
}

fn use_of(process: &Path, mount_point: &Path) -> Use {
    let mut denied = false;
    for (link, what) in
        [("cwd", "working directory"), ("root", "root directory"), ("exe", "program")]
    {
        match fs::read_link(process.join(link)) {
            Ok(path) if path.starts_with(mount_point) => return Use::Of(what, path),
            Err(error) => denied |= error.kind() == std::io::ErrorKind::PermissionDenied,
            Ok(_) => {}
        }
    }
    if let Ok(entries) = fs::read_dir(process.join("fd")) {
        let open = entries
            .flatten()
            .take(FILES_PER_PROCESS_MAX)
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .find(|path| path.starts_with(mount_point));
        if let Some(path) = open {
            return Use::Of(OPEN_FILE, path);
        }
    }
    match mapped(&process.join("maps"), mount_point) {
        Some(path) => Use::Of("mapped file", path),
        None if denied => Use::Unknown,
        None => Use::None,
    }
}

/// The first mapping of a file on the mount: the sixth field of a line, which may contain spaces
/// (proc_pid_maps(5)).
fn mapped(maps: &Path, mount_point: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    fs::File::open(maps).ok()?.take(MAPS_BYTES_MAX).read_to_end(&mut text).ok()?;
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        let path = Path::new(std::ffi::OsStr::from_bytes(&line[start..]));
        path.starts_with(mount_point).then(|| path.to_owned())
    })
}

impl fmt::Display for Holders {
    /// Continues a sentence that says the mount is in use: ` by bash (process 12: working directory
    /// /mnt)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, holder) in self.named.iter().enumerate() {
            f.write_str(if number == 0 { " by " } else { ", " })?;
            let Holder { pid, name, what, path } = holder;
            write!(f, "{name} (process {pid}: {what} {})", path.display())?;
        }
        if self.unnamed > 0 {
            write!(f, " and {} more", self.unnamed)?;
        }
        if self.named.is_empty() && self.closed > 0 {
            let who = match rustix::process::geteuid().is_root() {
                true => "a process that even root may not look into",
                false => "a process of another user (root can see which)",
            };
            write!(f, " by {who}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A made up /proc/PID.
    fn process(proc: &Path, pid: u32, name: &str, cwd: &str, files: &[&str], maps: &str) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(dir.join("fd")).unwrap();
        fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
        fs::write(dir.join("maps"), maps).unwrap();
        symlink(cwd, dir.join("cwd")).unwrap();
        symlink("/", dir.join("root")).unwrap();
        symlink("/usr/bin/x", dir.join("exe")).unwrap();
        for (number, file) in files.iter().enumerate() {
            symlink(file, dir.join("fd").join(number.to_string())).unwrap();
        }
    }

    #[test]
    fn each_kind_of_use_is_found_and_named() {
        let proc = tempfile::tempdir().unwrap();
        let maps = "7f0-7f1 r--p 00000000 00:34 12   /mnt/fast/lib one.so\n";
        process(proc.path(), 4_000_000_007, "bash", "/mnt/fast/sub", &[], "");
        process(
            proc.path(),
            4_000_000_009,
            "vim",
            "/",
            &["/dev/null", "pipe:[3]", "/mnt/fast/a b"],
            "",
        );
        process(proc.path(), 4_000_000_011, "java", "/", &[], maps);
        process(
            proc.path(),
            4_000_000_013,
            "other",
            "/mnt/fast2",
            &["/mnt/faster"],
            "1-2 r--p 0 0:1 2 /mnt/fast-x\n",
        );
        fs::create_dir(proc.path().join("self")).unwrap();
        let found = find(proc.path(), Path::new("/mnt/fast"));
        assert_eq!(
            found.to_string(),
            " by bash (process 4000000007: working directory /mnt/fast/sub), \
             vim (process 4000000009: open file /mnt/fast/a b), \
             java (process 4000000011: mapped file /mnt/fast/lib one.so)"
        );
        assert_eq!((found.unnamed, found.closed), (0, 0));
    }

    #[test]
    fn readers_of_counters_count_as_short_users_and_no_others() {
        let soon = |directory: &str, files: &[&str]| {
            let proc = tempfile::tempdir().unwrap();
            process(proc.path(), 4_000_000_007, "looks", "/", &["/m/.ogive/arcstats"], "");
            process(proc.path(), 4_000_000_008, "other", directory, files, "");
            find(proc.path(), Path::new("/m")).let_go_soon(Path::new("/m/.ogive"))
        };
        assert!(soon("/", &[]) && soon("/", &["/m/.ogive/proc/spl/kstat/zfs/arcstats"]));
        assert!(!soon("/", &["/m/file"]) && !soon("/m/.ogive", &[]));
        assert!(Holders::default().let_go_soon(Path::new("/m/.ogive")));
        assert!(!Holders { unnamed: 1, ..Holders::default() }.let_go_soon(Path::new("/m/.ogive")));
    }

    #[test]
    fn only_the_first_few_are_named() {
        let proc = tempfile::tempdir().unwrap();
        for pid in 4_000_000_000..4_000_000_012 {
            process(proc.path(), pid, "sh", "/m", &[], "");
        }
        let found = find(proc.path(), Path::new("/m"));
        assert_eq!((found.named.len(), found.unnamed), (NAMED_MAX, 4));
        assert!(found.to_string().ends_with("and 4 more"));
    }

    #[test]
    fn without_users_the_text_is_empty() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(find(proc.path(), Path::new("/m")).to_string(), "");
        assert_eq!(find(&proc.path().join("none"), Path::new("/m")), Holders::default());
    }

    #[test]
    fn a_real_process_is_found_by_its_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let mut child = std::process::Command::new("cat")
            .current_dir(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let found = find(Path::new("/proc"), &path);
        drop(child.stdin.take());
        child.wait().unwrap();
        let holder = &found.named[0];
        assert_eq!(
            (holder.pid, holder.what, &holder.path),
            (child.id(), "working directory", &path)
        );
    }
}
