//! What the arguments of `ogive mount` mean: options of the file system, and how the process shall
//! behave.

use std::path::PathBuf;

use anyhow::Result;
use log::LevelFilter;
use ogive_fs::MountOptions;

use super::args::MountArgs;
use crate::exit::{self, Refusal};
use crate::l2::key::KeyArgs;
use crate::quantity::{Auto, Count, MemorySize, Size};

/// A mount as it shall be done.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What the file system is told.
    pub(crate) options: MountOptions,
    /// Where the key of the second level comes from, if there is to be one: it is fetched by the
    /// process that serves.
    pub(crate) key: Option<KeyArgs>,
    /// Whether this process serves the mount under the eyes of its caller.
    pub(crate) foreground: bool,
    /// Whether this is the background process, whose standard output is awaited.
    pub(crate) ready_on_stdout: bool,
    /// Where messages go once the mount answers.
    pub(crate) log_file: Option<PathBuf>,
    /// Which messages are wanted.
    pub(crate) verbosity: LevelFilter,
}

impl Plan {
    /// Works out what was meant. `memory_limit_bytes` tells the memory that shares are of; it is
    /// asked only if there is a share.
    pub(crate) fn new(
        args: &MountArgs,
        memory_limit_bytes: impl Fn() -> Result<u64>,
    ) -> Result<Self> {
        let bytes = |size: Option<MemorySize>| match size {
            Some(MemorySize::Percent(_)) => {
                memory_limit_bytes().map(|limit| size.map(|size| size.bytes(limit)))
            }
            // The limit does not matter to a number of bytes.
            size => Ok(size.map(|size| size.bytes(u64::MAX))),
        };
        let (arc_max_bytes, arc_min_bytes) = (bytes(args.arc_max)?, bytes(args.arc_min)?);
        check_cache_sizes(arc_max_bytes, arc_min_bytes, u64::from(args.recordsize.0))?;
        check_control_name(&args.control_name)?;
        if args.mount_point.as_os_str().is_empty() || args.source.as_os_str().is_empty() {
            return Err(Refusal::new(exit::USAGE, "cannot mount: an empty path was given").into());
        }
        let options = MountOptions {
            source: args.source.clone(),
            mount_point: args.mount_point.clone(),
            read_only: args.read_only,
            allow_other: args.allow_other,
            direct_io: args.direct_io,
            caching: args.caching.into(),
            policy: args.policy.into(),
            arc_max_bytes,
            arc_min_bytes,
            record_size_bytes: args.recordsize.0,
            metadata_ttl: args.metadata_ttl.0,
            negative_ttl: args.negative_ttl.0,
            racy_window: args.racy_window.exactly().map(|span| span.0),
            sole_writer: args.sole_writer,
            threads: thread_count("--threads", args.threads)?,
            transport: args.transport.into(),
            origin_threads: thread_count("--origin-threads", args.origin_threads)?,
            prefetch_max_bytes: args.prefetch_max.0,
            inode_limit: args.inode_limit.exactly().map_or(0, |count| count.0),
            control_name: args.control_name.clone(),
            dev: args.dev,
            suid: args.suid,
            exec: !args.no_exec,
            name: args.name.clone(),
            second_level: args.second_level.options(),
            release_memory: crate::allocator::release_memory,
        };
        let key = options.second_level.is_some().then(|| args.second_level.key.clone());
        Ok(Self {
            options,
            key,
            foreground: args.foreground,
            ready_on_stdout: args.ready_on_stdout,
            log_file: args.log_file.clone(),
            verbosity: match args.verbose {
                0 => LevelFilter::Warn,
                1 => LevelFilter::Info,
                _ => LevelFilter::Debug,
            },
        })
    }
}

/// More threads than this serve no machine; the limit keeps a typing error from starting a million.
const THREADS_MAX: u64 = 1024;

fn thread_count(flag: &str, count: Auto<Count>) -> Result<usize, Refusal> {
    match count {
        Auto::Auto => Ok(0),
        Auto::Exactly(Count(number)) if number <= THREADS_MAX => Ok(number as usize),
        Auto::Exactly(Count(number)) => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount: {flag} {number} is more than {THREADS_MAX}"),
        )),
    }
}

/// A cache must have room for a few records of each list, or every read evicts the one before it.
const RECORDS_MIN: u64 = 16;

fn check_cache_sizes(
    max: Option<u64>,
    min: Option<u64>,
    record_size_bytes: u64,
) -> Result<(), Refusal> {
    if let Some(max) = max.filter(|max| *max < RECORDS_MIN * record_size_bytes) {
        return Err(Refusal::new(
            exit::USAGE,
            format!(
                "cannot mount: --arc-max {} has no room for {RECORDS_MIN} records of {}",
                Size(max),
                Size(record_size_bytes)
            ),
        )
        .hint("raise --arc-max or lower --recordsize"));
    }
    match (max, min) {
        (Some(max), Some(min)) if min > max => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount: --arc-min {} is more than --arc-max {}", Size(min), Size(max)),
        )),
        _ => Ok(()),
    }
}

/// The longest name a directory entry can have on Linux (NAME_MAX), in bytes.
const NAME_BYTES_MAX: usize = 255;

fn check_control_name(name: &std::ffi::OsStr) -> Result<(), Refusal> {
    let bad = name == "."
        || name == ".."
        || name.as_encoded_bytes().contains(&b'/')
        || name.len() > NAME_BYTES_MAX;
    if bad {
        return Err(Refusal::new(
            exit::USAGE,
            format!(
                "cannot mount: --control-name {} is no name of a directory entry",
                name.display()
            ),
        )
        .hint("give one name without a slash, or an empty one for no control directory"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use std::time::Duration;

    const MEMORY_BYTES: u64 = 8_000_000_000;

    fn plan(line: &str) -> Result<Plan, String> {
        let line = format!("ogive mount {line} /src /mnt");
        let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Mount(args) = cli.command else { panic!("not mount") };
        Plan::new(&args, || Ok(MEMORY_BYTES)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn nothing_typed_means_the_defaults_of_the_file_system() {
        let plan = plan("").unwrap();
        let expected = MountOptions {
            source: "/src".into(),
            mount_point: "/mnt".into(),
            release_memory: crate::allocator::release_memory,
            ..MountOptions::default()
        };
        assert_eq!(format!("{:?}", plan.options), format!("{expected:?}"));
        assert!(
            !plan.foreground
                && plan.options.exec
                && !plan.ready_on_stdout
                && plan.log_file.is_none()
        );
        assert_eq!(plan.verbosity, LevelFilter::Warn);
        assert!(plan.key.is_none());
    }

    #[test]
    fn a_second_level_is_what_was_typed() {
        let plan = plan(
            "--l2 /ssd/a --l2 /ssd/b --l2-size 10G --cipher ccm --compress zstd:3 --l2-dwpd 0.5 \
             --l2-write-max 40M --l2-admit all --l2-engine pread --passphrase-fd 3",
        )
        .unwrap();
        let second_level = plan.options.second_level.unwrap();
        assert_eq!(second_level.devices, ["/ssd/a", "/ssd/b"].map(std::path::PathBuf::from));
        assert_eq!(second_level.size_bytes, Some(10 << 30));
        assert_eq!(second_level.cipher, Some(ogive_l2::Cipher::Ccm));
        assert_eq!(second_level.compression, ogive_l2::Compression::Zstd(3));
        assert_eq!(second_level.admission, ogive_l2::Admission::All);
        assert_eq!(second_level.limits.bytes_per_second, Some(40 << 20));
        assert_eq!(second_level.limits.drive_writes_per_day, Some(0.5));
        assert_eq!(plan.key.unwrap().passphrase_fd, Some(3));
    }

    #[test]
    fn keys_and_limits_that_make_no_sense_are_refused() {
        for line in [
            "--key-file /k --passphrase",
            "--passphrase-fd -1",
            "--l2-dwpd 0",
            "--l2-dwpd nan",
            "--compress gzip",
            "--cipher rot13",
        ] {
            assert!(super::tests::plan(&format!("--l2 /ssd/a {line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn everything_typed_arrives() {
        let plan = plan(
            "-r -f -vv --allow-other --dev --suid --no-exec --direct-io --sole-writer \
             --caching inclusive --policy arc --arc-max 25% --arc-min 64M --recordsize 16K --metadata-ttl 5 \
             --negative-ttl 0 --racy-window 20ms --threads 3 --origin-threads 7 --prefetch-max 0 \
             --inode-limit 1000 --control-name .x --name data --log-file /l --transport uring",
        )
        .unwrap();
        let o = plan.options;
        assert!(o.read_only && o.allow_other && o.dev && o.suid && o.direct_io && o.sole_writer);
        assert!(!o.exec && plan.foreground);
        assert_eq!(o.caching, ogive_fs::Caching::Inclusive);
        assert_eq!(o.policy, ogive_arc::Policy::Arc);
        assert_eq!((o.arc_max_bytes, o.arc_min_bytes), (Some(2_000_000_000), Some(64 << 20)));
        assert_eq!(o.record_size_bytes, 16 << 10);
        assert_eq!((o.metadata_ttl, o.negative_ttl), (Duration::from_secs(5), Duration::ZERO));
        assert_eq!(o.racy_window, Some(Duration::from_millis(20)));
        assert_eq!((o.threads, o.origin_threads), (3, 7));
        assert_eq!(o.transport, ogive_fs::Transport::Uring);
        assert_eq!((o.prefetch_max_bytes, o.inode_limit), (0, 1000));
        assert_eq!((o.control_name, o.name), (".x".into(), Some("data".to_owned())));
        assert_eq!(plan.log_file, Some("/l".into()));
        assert_eq!(plan.verbosity, LevelFilter::Debug);
    }

    #[test]
    fn the_last_of_one_option_given_twice_holds() {
        assert_eq!(
            plan("--recordsize 16K --recordsize 8K -r -r").unwrap().options.record_size_bytes,
            8192
        );
    }

    #[test]
    fn sizes_that_cannot_work_are_refused() {
        assert!(plan("--arc-max 1M").unwrap_err().contains("no room for 16 records of 128K"));
        assert!(plan("--arc-max 1M --recordsize 4K").is_ok());
        assert!(plan("--arc-max 1G --arc-min 2G").unwrap_err().contains("more than --arc-max"));
        assert!(plan("--arc-min 50% --arc-max 25%").is_err());
        assert!(plan("--threads 1025").unwrap_err().contains("--threads 1025"));
        assert!(plan("--recordsize 3K").unwrap_err().contains("power of two"));
    }

    #[test]
    fn a_control_name_is_one_name_or_none() {
        assert_eq!(plan("--control-name=").unwrap().options.control_name, "");
        for name in [".", "..", "a/b", &"x".repeat(256)] {
            assert!(plan(&format!("--control-name={name}")).is_err(), "{name}");
        }
    }
}
