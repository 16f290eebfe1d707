//! A plain FUSE passthrough: the measuring stick for what a cache between FUSE and the origin gains
//! or costs.
//!
//! It does as little as an honest passthrough can: no data is kept, an inode is remembered by its
//! file handle, reads are one `pread`. It is read-only, because the benchmarks only read. It stays
//! in the foreground until it is unmounted.

mod counters;
mod directory;
mod filesystem;
mod handle;
mod inodes;

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fuser::{Config, MountOption, SessionACL};

use crate::filesystem::{Options, Passthrough};

const USAGE: &str = "\
usage: bench-passthrough [--direct-io | --from-memory] [--allow-other] [--threads N] [--ttl SECONDS] [--delay SECONDS] SRC MNT

  --direct-io      every read asks the origin (default: the kernel keeps pages across opens)
  --from-memory    every read comes here; one of 64 KiB or less is answered with any bytes out of
                   256 MiB of memory, which is what FUSE and the copy alone cost
  --allow-other    other users may use the mount
  --threads N      threads that answer the kernel (default: two for each CPU, 16 at most)
  --ttl SECONDS    how long the kernel may use names and attributes without asking (default: 1)
  --delay SECONDS  what each request that the kernel waits for takes besides (default: 0)
";

/// Size of the memory of `--from-memory`.
const MEMORY_BYTES: usize = 256 << 20;

/// The command line, read.
struct Arguments {
    options: Options,
    allow_other: bool,
    threads: usize,
    source: PathBuf,
    mount_point: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprint!("bench-passthrough: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-passthrough: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let Arguments { options, allow_other, threads, source, mount_point } = arguments;
    raise_descriptor_limit();
    give_memory_back();
    let root: OwnedFd = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(&source)
        .map_err(|error| format!("cannot open {}: {error}", source.display()))?
        .into();
    let filesystem = Passthrough::new(root, options)
        .map_err(|error| format!("cannot examine {}: {error}", source.display()))?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source.display().to_string()),
        MountOption::Subtype("passthrough".into()),
        MountOption::DefaultPermissions,
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    config.acl = if allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(threads);
    config.clone_fd = true;
    fuser::mount(filesystem, &mount_point, &config)
        .map_err(|error| format!("cannot serve {}: {error}", mount_point.display()))
}

fn parse(mut words: impl Iterator<Item = std::ffi::OsString>) -> Result<Arguments, String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        direct_io: false,
        memory: None,
        ttl: Duration::from_secs(1),
        delay: Duration::ZERO,
    };
    let mut allow_other = false;
    let mut threads = (2 * cpus).min(16);
    let mut paths = Vec::new();
    while let Some(word) = words.next() {
        let mut number = |name: &str| -> Result<f64, String> {
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            let value = value.to_string_lossy();
            value
                .parse()
                .ok()
                .filter(|number| (0.0..=86_400.0).contains(number))
                .ok_or_else(|| format!("{name}: {value} is no number from 0 to 86400"))
        };
        match word.to_str() {
            Some("--direct-io") => options.direct_io = true,
            Some("--from-memory") => {
                options.direct_io = true;
                // Not of zeros: those would all be one page.
                options.memory = Some(vec![1; MEMORY_BYTES]);
            }
            Some("--allow-other") => allow_other = true,
            Some("--threads") => threads = (number("--threads")? as usize).clamp(1, 64),
            Some("--delay") => options.delay = Duration::from_secs_f64(number("--delay")?),
            Some("--ttl") => options.ttl = Duration::from_secs_f64(number("--ttl")?),
            Some(unknown) if unknown.starts_with('-') => {
                return Err(format!("unknown option {unknown}"));
            }
            _ => paths.push(PathBuf::from(word)),
        }
    }
    let [source, mount_point] =
        <[PathBuf; 2]>::try_from(paths).map_err(|_| "SRC and MNT are needed".to_owned())?;
    Ok(Arguments { options, allow_other, threads, source, mount_point })
}

/// Directories keep a descriptor each, so take as many as the system allows.
fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read or write `limit`, which is ours.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Lets the inode tables' memory go back to the system when they shrink: glibc would else learn to
/// keep ever larger freed blocks for itself.
fn give_memory_back() {
    // SAFETY: called before any other thread is there; sets one number in the allocator.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 10) };
}
