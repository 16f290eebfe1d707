//! The meaning of the arguments of `ogive mount`: options of the file system and of the process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use log::LevelFilter;
use ogive_fs::{MountOptions, RECORDS_MIN};

use super::args::MountArgs;
use super::bucket::BucketSource;
use super::otlp::Receiver;
use super::stage::Stage;
use crate::exit::{self, Refusal};
use crate::l2::key::KeyArgs;
use crate::logger::Style;
use crate::value::{Auto, Count, MemorySize, Size};

/// Memory that a cache can be in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The memory of the machine.
    pub(crate) total_bytes: u64,
    /// The memory that this process may use; shares refer to it.
    pub(crate) limit_bytes: u64,
}

/// A planned mount.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Options of the file system.
    pub(crate) options: MountOptions,
    /// The bucket to mount, if the source is not a directory.
    pub(crate) bucket: Option<BucketSource>,
    /// The origin of the key for the second level and the stage, if the mount has one of them. The
    /// serving process fetches the key.
    pub(crate) key: Option<KeyArgs>,
    /// Whether this process serves the mount in the foreground.
    pub(crate) foreground: bool,
    /// Whether this is the background process; the command waits for its standard output.
    pub(crate) ready_on_stdout: bool,
    /// Where messages go once the mount answers.
    pub(crate) log_file: Option<PathBuf>,
    /// The format of log lines.
    pub(crate) log_format: Style,
    /// The address for Prometheus.
    pub(crate) metrics: Option<SocketAddr>,
    /// Where counters are sent.
    pub(crate) otlp: Option<Receiver>,
    /// Whether that address serves profiles of the process.
    pub(crate) pprof: bool,
    /// The least level of messages.
    pub(crate) verbosity: LevelFilter,
}

impl Plan {
    /// Translates the arguments. `memory` is read only if a size of the cache is given, or if
    /// the bucket is writable.
    pub(crate) fn new(args: &MountArgs, memory: impl Fn() -> Result<Memory>) -> Result<Self> {
        let bytes = |flag: &str, size: Option<MemorySize>| {
            let Some(size) = size else { return Ok(None) };
            let Memory { total_bytes, limit_bytes } = memory()?;
            let bytes = size.bytes(limit_bytes);
            // A size above the limit of a control group is allowed: the limit may be raised later.
            if bytes <= total_bytes {
                return Ok(Some(bytes));
            }
            Err(anyhow::Error::from(more_than_memory(flag, bytes, total_bytes)))
        };
        let arc_max_bytes = bytes("--arc-max", args.arc_max)?;
        let arc_min_bytes = bytes("--arc-min", args.arc_min)?;
        check_cache_sizes(arc_max_bytes, arc_min_bytes, u64::from(args.recordsize.0))?;
        check_control_name(&args.control_name)?;
        if args.mount_point.as_os_str().is_empty() || args.source.as_os_str().is_empty() {
            return Err(Refusal::new(exit::USAGE, "cannot mount: an empty path was given").into());
        }
        let (mut bucket, has_stage) = bucket(args)?;
        if let Some(stage) = bucket.as_mut().and_then(|bucket| bucket.stage.as_mut()) {
            // The default of the cache is half of the memory.
            stage.bound_uploads(match arc_max_bytes {
                Some(bytes) => bytes,
                None => memory()?.limit_bytes / 2,
            });
        }
        let options = MountOptions {
            source: args.source.clone(),
            mount_point: args.mount_point.clone(),
            // A bucket without a stage is read-only.
            read_only: args.read_only || (bucket.is_some() && !has_stage),
            allow_other: args.allow_other,
            trust_permissions: args.trust_permissions,
            direct_io: args.direct_io,
            passthrough: args.passthrough,
            caching: args.caching,
            policy: args.policy,
            arc_max_bytes,
            arc_min_bytes,
            record_size_bytes: args.recordsize.0,
            metadata_ttl: args.metadata_ttl.0,
            negative_ttl: args.negative_ttl.0,
            racy_window: args.racy_window.exactly().map(|span| span.0),
            trust_times: args.trust_times,
            sole_writer: args.sole_writer,
            immutable: args.immutable,
            threads: thread_count("--threads", args.threads)?,
            transport: args.transport,
            origin_timeout: origin_timeout(args),
            origin_threads: thread_count("--origin-threads", args.origin_threads)?,
            prefetch_max_bytes: prefetch_max(args, bucket.is_some()),
            inode_limit: args.inode_limit.exactly().map_or(0, |count| count.0),
            control_name: args.control_name.clone(),
            dev: args.dev,
            suid: args.suid,
            exec: !args.no_exec,
            no_atime: args.no_atime,
            no_diratime: args.no_diratime,
            one_file_system: args.one_file_system,
            name: args.name.clone(),
            second_level: args.second_level.options()?,
            release_memory: crate::allocator::release_memory,
        };
        check_passthrough(&options, bucket.is_some())?;
        let has_key = options.second_level.is_some() || has_stage;
        Ok(Self {
            key: has_key.then(|| args.second_level.key.clone()),
            options,
            bucket,
            foreground: args.foreground,
            ready_on_stdout: args.ready_on_stdout,
            log_file: args.log_file.clone(),
            log_format: args.log_format,
            metrics: args.metrics,
            otlp: args.otlp.clone(),
            pprof: args.pprof,
            verbosity: verbosity(args.verbose),
        })
    }
}

fn more_than_memory(flag: &str, bytes: u64, total_bytes: u64) -> Refusal {
    let message = format!(
        "cannot mount: {flag} {} is more than the memory of this machine, {}",
        Size(bytes),
        Size(total_bytes >> 20 << 20)
    );
    Refusal::new(exit::USAGE, message).hint("give a smaller size, or a share such as 50%")
}

/// The level of messages, by the number of -v.
fn verbosity(times: u8) -> LevelFilter {
    match times {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    }
}

/// The bucket to mount, if the source is one, and whether it is writable.
fn bucket(args: &MountArgs) -> Result<(Option<BucketSource>, bool), Refusal> {
    let (ttl, timeout) = (args.metadata_ttl.0, origin_timeout(args));
    let Some(mut bucket) = BucketSource::new(&args.source, &args.bucket, ttl, timeout)? else {
        return Ok((None, false));
    };
    let promises = (args.read_only, args.sole_writer, args.immutable);
    let work = args.second_level.key.kdf_work_max_kib();
    bucket.stage = Stage::new(&args.bucket.stage, promises, work)?;
    let has_stage = bucket.stage.is_some();
    Ok((Some(bucket), has_stage))
}

/// Most bytes read ahead of one reader of a bucket. Below that, bandwidth and latency decide.
const BUCKET_PREFETCH_MAX_BYTES: u64 = 128 << 20;

/// Most bytes read ahead of one reader.
fn prefetch_max(args: &MountArgs, is_bucket: bool) -> u64 {
    let usual = match is_bucket {
        true => BUCKET_PREFETCH_MAX_BYTES,
        false => MountOptions::default().prefetch_max_bytes,
    };
    args.prefetch_max.map_or(usual, |size| size.0)
}

/// 0 means no timeout, so that a unit of systemd can say so.
fn origin_timeout(args: &MountArgs) -> Option<std::time::Duration> {
    args.origin_timeout.map(|span| span.0).filter(|span| !span.is_zero())
}

/// No machine needs more threads; the limit keeps a typing error from starting a million.
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

/// Refuses options that would have no effect on files that the kernel reads itself.
fn check_passthrough(options: &MountOptions, is_bucket: bool) -> Result<(), Refusal> {
    if !options.passthrough {
        return Ok(());
    }
    let refused = |reason: String| Refusal::new(exit::USAGE, format!("cannot mount: {reason}"));
    if is_bucket {
        let reason =
            "--passthrough is for directories: a bucket has no files that the kernel can read";
        return Err(refused(reason.to_owned()));
    }
    if let Some((option, why)) = options.contradicts_passthrough() {
        return Err(refused(format!("--passthrough cannot go with --{option}: {why}"))
            .hint("leave one of the two out"));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(refused(
            "--passthrough is for root only: the kernel refuses it to other users".into(),
        )
        .hint("mount as root, or leave it out"));
    }
    Ok(())
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
            format!("cannot mount: --control-name {} is not a valid file name", name.display()),
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
        let memory = Memory { total_bytes: 2 * MEMORY_BYTES, limit_bytes: MEMORY_BYTES };
        Plan::new(&args, || Ok(memory)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn without_options_the_defaults_of_the_file_system_hold() {
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
    fn a_second_level_gets_its_options() {
        let plan = plan(
            "--l2 /ssd/a --l2 /ssd/b --l2-size 10G --cipher gcm --compress zstd:3 --l2-dwpd 0.5 \
             --l2-write-max 40M --l2-padding 4K --l2-admit all --l2-engine pread --passphrase-fd 3",
        )
        .unwrap();
        let second_level = plan.options.second_level.unwrap();
        assert_eq!(second_level.devices, ["/ssd/a", "/ssd/b"].map(std::path::PathBuf::from));
        assert_eq!(second_level.size_bytes, Some(10 << 30));
        assert_eq!(second_level.cipher, Some(ogive_l2::Cipher::Gcm));
        assert_eq!(second_level.compression, ogive_l2::Compression::Zstd(3));
        assert_eq!(second_level.padding, ogive_l2::Padding::Step(4096));
        assert_eq!(second_level.admission, ogive_l2::Admission::All);
        assert_eq!(second_level.limits.bytes_per_second, Some(40 << 20));
        assert_eq!(second_level.limits.drive_writes_per_day, Some(0.5));
        assert_eq!(plan.key.unwrap().passphrase_fd, Some(3));
    }

    #[test]
    fn contradictory_keys_and_limits_are_refused() {
        for line in [
            "--key-file /k --passphrase",
            "--passphrase-fd -1",
            "--l2-dwpd 0",
            "--l2-dwpd nan",
            "--compress gzip",
            "--l2-padding 3K",
            "--l2-exclude [",
            "--cipher rot13",
            "--cipher aes-256-ccm",
        ] {
            assert!(super::tests::plan(&format!("--l2 /ssd/a {line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn every_option_arrives() {
        let plan = plan(
            "-r -f -vv --allow-other --dev --suid --no-exec --no-atime --no-diratime --one-file-system --direct-io --sole-writer \
             --caching inclusive --policy arc --arc-max 25% --arc-min 64M --recordsize 16K --metadata-ttl 5 \
             --negative-ttl 0 --racy-window 20ms --threads 3 --origin-threads 7 --prefetch-max 0 \
             --inode-limit 1000 --control-name .x --name data --log-file /l --transport uring \
             --trust-times always --trust-permissions",
        )
        .unwrap();
        let o = plan.options;
        assert!(o.read_only && o.allow_other && o.dev && o.suid && o.direct_io && o.sole_writer);
        assert!(!o.exec && o.no_atime && o.no_diratime && o.one_file_system && plan.foreground);
        assert_eq!(o.caching, ogive_fs::Caching::Inclusive);
        assert_eq!(o.policy, ogive_arc::Policy::Arc);
        assert_eq!((o.arc_max_bytes, o.arc_min_bytes), (Some(2_000_000_000), Some(64 << 20)));
        assert_eq!(o.record_size_bytes, 16 << 10);
        assert_eq!((o.metadata_ttl, o.negative_ttl), (Duration::from_secs(5), Duration::ZERO));
        assert_eq!(o.racy_window, Some(Duration::from_millis(20)));
        assert_eq!((o.trust_times, o.trust_permissions), (ogive_fs::TrustTimes::Always, true));
        assert_eq!((o.threads, o.origin_threads), (3, 7));
        assert_eq!(o.transport, ogive_fs::Transport::Uring);
        assert_eq!((o.prefetch_max_bytes, o.inode_limit), (0, 1000));
        assert_eq!((o.control_name, o.name), (".x".into(), Some("data".into())));
        assert_eq!(plan.log_file, Some("/l".into()));
        assert_eq!(plan.verbosity, LevelFilter::Debug);
    }

    #[test]
    fn passthrough_excludes_every_other_cache() {
        for (options, reason) in [
            ("--direct-io", "--passthrough cannot go with --direct-io"),
            ("--l2 /ssd", "--passthrough cannot go with --l2"),
            ("--sole-writer", "--passthrough cannot go with --sole-writer"),
            ("--no-atime", "--passthrough cannot go with --no-atime"),
        ] {
            let refusal = plan(&format!("--passthrough {options}")).unwrap_err();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
        assert!(bucket_plan("--passthrough").unwrap_err().contains("is for directories"));
        match plan("--passthrough") {
            Ok(plan) => assert!(plan.options.passthrough),
            Err(refusal) => assert!(refusal.contains("is for root"), "{refusal}"),
        }
    }

    fn bucket_plan(options: &str) -> Result<Plan, String> {
        let line = format!("ogive mount {options} s3://b /mnt");
        let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Mount(args) = cli.command else { panic!("not mount") };
        let memory = Memory { total_bytes: 2 * MEMORY_BYTES, limit_bytes: MEMORY_BYTES };
        Plan::new(&args, || Ok(memory)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_bucket_is_writable_only_with_a_stage() {
        let without = bucket_plan("").unwrap();
        assert!(without.options.read_only && without.key.is_none());
        let with = bucket_plan("--stage /s --close journal --key-file /k").unwrap();
        assert!(!with.options.read_only && with.key.is_some());
        for (options, reason) in [
            ("--stage /s --immutable", "contradict each other"),
            ("--stage /s --sole-writer", "must find out which object"),
            ("--stage /s --read-only", "refuses the changes"),
            ("--close journal", "give a directory with --stage"),
            ("--rename-max 5", "give a directory with --stage"),
        ] {
            let refusal = bucket_plan(options).unwrap_err();
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
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
    fn a_size_above_the_memory_is_refused_and_one_above_a_groups_limit_is_not() {
        let refusal = plan("--arc-max 999T").unwrap_err();
        assert!(refusal.contains("--arc-max 999T is more than the memory of this machine"));
        assert!(plan("--arc-min 999T").unwrap_err().contains("--arc-min 999T"));
        assert!(plan("--arc-max 15G").unwrap_err().contains("this machine"));
        assert_eq!(plan("--arc-max 12G").unwrap().options.arc_max_bytes, Some(12 << 30));
    }

    #[test]
    fn a_control_name_is_one_name_or_none() {
        assert_eq!(plan("--control-name=").unwrap().options.control_name, "");
        for name in [".", "..", "a/b", &"x".repeat(256)] {
            assert!(plan(&format!("--control-name={name}")).is_err(), "{name}");
        }
    }
}
