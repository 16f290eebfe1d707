//! The options of `ogive mount`, and its help text.
//!
//! Defaults come from [`MountOptions::default`], so the help text always shows the value in use.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};
use ogive_arc::Policy;
use ogive_fs::{Caching, MountOptions, Transport, TrustTimes};

use super::bucket::BucketArgs;
use super::otlp::Receiver;
use crate::help::{self, Section};
use crate::l2::args::SecondLevelArgs;
use crate::logger::Style;
use crate::value::choice::{self, Choices};
use crate::value::{Auto, Count, MemorySize, RecordSize, Size, Span};

/// Mount a directory or a bucket through the cache
///
/// Mounts SRC at MNT. The command returns once the mount answers. A background process then serves
/// it until you unmount it (`ogive unmount MNT`, umount(8), or SIGTERM to the process).
///
/// Reads are served from the cache in records. Writes go through to SRC before they return;
/// fsync(2) is an fsync of SRC. If a file changes behind the mount, the next open sees it.
///
/// Name a bucket as s3://BUCKET or s3://BUCKET/PREFIX; az:// is Azure and gs:// is Google. It is
/// mounted read-only. With --stage you can write files: they are in the store when fsync(2) or
/// close(2) returns. Credentials are never options. They come from the environment, from the files
/// of the store's own programs, or from the container or machine.
///
/// Name a web server as https://HOST/PATH: a file, or with a slash at the end a directory that the
/// server lists. It is mounted read-only.
///
/// If a crash left a dead mount point at MNT, it is removed first.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_long_help = help::render(&sections()))]
pub(crate) struct MountArgs {
    /// The directory or bucket to read through the cache
    #[arg(value_name = "SRC", value_hint = ValueHint::DirPath)]
    pub(crate) source: PathBuf,

    /// The directory at which to mount it
    ///
    /// It must exist, and neither directory may lie inside the other: a mount that serves itself
    /// would wait for itself. The mount hides the contents of MNT.
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_point: PathBuf,

    /// Most memory the cache may hold: a size, or a share of memory such as 50%
    ///
    /// A share is of the memory that this process may use: the machine's, or less if a control
    /// group limits it. The cache gives memory back when the system runs short and grows again
    /// later. The default is half.
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Cache options")]
    pub(crate) arc_max: Option<MemorySize>,

    /// Least memory the cache keeps when the system runs short: a size or a share of memory
    ///
    /// A floor for reclaim, not a reservation: memory is allocated only when it is used. The
    /// default is 1/32 of memory.
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Cache options")]
    pub(crate) arc_min: Option<MemorySize>,

    /// Size of a record, the unit of caching: a power of two from 4K to 1M
    ///
    /// A miss reads a whole record from SRC; a hit copies only the requested bytes. Small records
    /// suit small random reads of large files (databases). Large records suit everything else.
    #[arg(
        long,
        visible_alias = "record-size",
        value_name = "SIZE",
        default_value_t = RecordSize(MountOptions::default().record_size_bytes),
        help_heading = "Cache options"
    )]
    pub(crate) recordsize: RecordSize,

    /// Whether the cache keeps records that the kernel's page cache also holds
    ///
    /// While memory is free, the cache keeps them either way. Has no effect with --direct-io, which
    /// bypasses the page cache.
    #[arg(
        long,
        value_parser = choice::parser(CACHING),
        value_name = "HOW",
        default_value = choice::word(CACHING, &MountOptions::default().caching),
        help_heading = "Cache options"
    )]
    pub(crate) caching: Caching,

    /// Which record leaves the cache when room is needed
    ///
    /// MNT/.ogive/ogivestats shows the rule in use for data (rule_data) and for metadata
    /// (rule_metadata), and how often the duel changed it (rule_changes). The rules are 0 LIRS, 1
    /// LRU, 2 2Q, 3 ARC.
    #[arg(
        long,
        value_parser = choice::parser(POLICY),
        value_name = "POLICY",
        default_value = choice::word(POLICY, &MountOptions::default().policy),
        help_heading = "Cache options"
    )]
    pub(crate) policy: Policy,

    /// Bypass the kernel's page cache: every read goes to ogive
    ///
    /// --arc-max then bounds all cached bytes exactly. Each read costs a round trip to the process,
    /// so small reads of hot data are several times slower than through the page cache.
    #[arg(long, help_heading = "Cache options")]
    pub(crate) direct_io: bool,

    /// Let the kernel read and write the files of SRC itself (root only, Linux 6.9 or later)
    ///
    /// Reads, writes and mmap then go straight to the file of SRC, as fast as SRC itself. The page
    /// cache is the only cache for its bytes; ogive still serves names, attributes and listings.
    /// Not with --direct-io, --l2, --sole-writer, --no-atime or a bucket, and reads cannot be
    /// recorded. If the kernel refuses a file, ogive serves it through the cache;
    /// MNT/.ogive/ogivestats counts these files (passthrough_refused).
    #[arg(long, help_heading = "Cache options")]
    pub(crate) passthrough: bool,

    /// Most bytes read ahead of one sequential reader; 0 turns prefetch off
    ///
    /// The default is 8M. For a bucket it follows the bandwidth and latency of the store, up to
    /// 128M. The limit is never more than 1/32 of the cache, or 1/16 for a bucket.
    #[arg(long, value_name = "SIZE", help_heading = "Cache options")]
    pub(crate) prefetch_max: Option<Size>,

    /// Most inodes to remember, or auto, which follows the size of the cache
    ///
    /// Above the limit, ogive prunes the least recently used inodes that no program holds, and asks
    /// the kernel to do the same.
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Cache options")]
    pub(crate) inode_limit: Auto<Count>,

    #[command(flatten)]
    pub(crate) second_level: SecondLevelArgs,

    /// How long to use attributes, names and link targets before SRC is asked again
    ///
    /// Units: ms, s, m, h; a bare number is in seconds. With 0, SRC is asked every time.
    #[arg(
        long,
        value_name = "TIME",
        default_value_t = Span(MountOptions::default().metadata_ttl),
        help_heading = "Coherence options"
    )]
    pub(crate) metadata_ttl: Span,

    /// How long to remember that a name does not exist
    #[arg(
        long,
        value_name = "TIME",
        default_value_t = Span(MountOptions::default().negative_ttl),
        help_heading = "Coherence options"
    )]
    pub(crate) negative_ttl: Span,

    /// How old a file's last change must be before its timestamps can reveal the next one, or auto
    ///
    /// Two changes within one tick of the clock of SRC leave the same timestamps. A file with a
    /// more recent change is therefore read again at each open. auto is 2s, enough for every file
    /// system.
    #[arg(long, value_name = "TIME", default_value = "auto", help_heading = "Coherence options")]
    pub(crate) racy_window: Auto<Span>,

    /// Whether an unchanged size and unchanged times prove that a file is unchanged
    ///
    /// Some file systems have no change time of their own: FAT, exFAT, SMB, sshfs and most FUSE
    /// file systems. There, a program that restores an old time (touch -r, cp -p, rsync -t) hides a
    /// change. auto decides by the type of file system; for an unknown type, each open discards the
    /// records of the file. always is your promise that no program restores old times. never
    /// discards them on every file system.
    #[arg(
        long,
        value_parser = choice::parser(TRUST_TIMES),
        value_name = "WHEN",
        default_value = choice::word(TRUST_TIMES, &TrustTimes::Auto),
        help_heading = "Coherence options"
    )]
    pub(crate) trust_times: TrustTimes,

    /// Promise that SRC changes only through this mount
    ///
    /// This saves the check at each open. If the promise is broken, reads may return old bytes.
    #[arg(long, help_heading = "Coherence options")]
    pub(crate) sole_writer: bool,

    /// Promise that SRC does not change at all while it is mounted
    ///
    /// Names, missing names, attributes and listings stay valid until you unmount. SRC is asked
    /// once for each, as long as memory holds the answer. Implies --read-only and --sole-writer;
    /// --metadata-ttl and --negative-ttl have no effect. If the promise is broken, the mount shows
    /// old data, perhaps mixed with new data.
    #[arg(long, help_heading = "Coherence options")]
    pub(crate) immutable: bool,

    /// Refuse every change
    #[arg(short, long, help_heading = "Access options")]
    pub(crate) read_only: bool,

    /// Let all users use the mount, under ordinary permissions
    ///
    /// If you are not root, /etc/fuse.conf must say user_allow_other. On some file systems a server
    /// or another program decides about permissions (NFS, SMB, CephFS, AFS, 9p, virtiofs, FUSE).
    /// ogive then asks it as each user, which only root's mount can do; see --trust-permissions.
    #[arg(long, help_heading = "Access options")]
    pub(crate) allow_other: bool,

    /// With --allow-other, let the mode bits that SRC shows decide, even if a server would decide
    ///
    /// The kernel checks the mode bits, and ogive asks SRC as the user who mounted. This saves a
    /// request for each name of a path. But the mount then ignores the server's access lists, both
    /// those that deny and those that allow. With root_squash, users lose access to their own files.
    #[arg(long, requires = "allow_other", help_heading = "Access options")]
    pub(crate) trust_permissions: bool,

    /// Leave out the file systems that are mounted below SRC (root only)
    ///
    /// Like a bind mount, the mount then shows the directory under each of them, which is most
    /// often empty. Without this option they are part of the mount, and programs cannot see where
    /// one begins: "rm --one-file-system", "du -x" and "find -xdev" enter them.
    #[arg(long, help_heading = "Access options")]
    pub(crate) one_file_system: bool,

    /// Let device files in the mount work as devices (root only)
    #[arg(long, help_heading = "Access options")]
    pub(crate) dev: bool,

    /// Honour set-user-ID and set-group-ID bits and file capabilities in the mount (root only)
    #[arg(long, help_heading = "Access options")]
    pub(crate) suid: bool,

    /// Forbid the execution of files in the mount
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_exec: bool,

    /// Do not change access times in SRC by reads through the mount
    ///
    /// Without this option, the mount options of SRC decide. Reads from the cache never change an
    /// access time. An ordinary user can protect only the times of their own files.
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_atime: bool,

    /// The same for directories alone
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_diratime: bool,

    /// Options as in /etc/fstab, separated by commas; may be repeated
    ///
    /// Every long option of this command works here, with _ or - between its words and without the
    /// leading dashes: ro, allow_other, arc_max=4G, recordsize=16K. ro, noexec, dev, suid, noatime
    /// and nodiratime work; nodev and nosuid are the default. Options for mount(8) and systemd are
    /// ignored (defaults, noauto, nofail, _netdev, x-*), and so are relatime and async, which
    /// always hold. sync, dirsync, lazytime and strictatime are refused: mount SRC with them. A
    /// separate option overrides one given here. Write a comma inside a value as \,.
    ///
    /// As root, "mount -o remount" changes ro, nodev, nosuid and noexec of an existing mount.
    #[arg(
        short = 'o',
        long = "options",
        value_name = "OPTIONS",
        action = ArgAction::Append,
        help_heading = "Access options"
    )]
    pub(crate) options: Vec<OsString>,

    /// Ignore unknown options in -o instead of refusing them
    #[arg(long, help_heading = "Access options")]
    pub(crate) sloppy: bool,

    #[command(flatten)]
    pub(crate) bucket: BucketArgs,

    /// Stay in the foreground; messages go to standard error
    ///
    /// The first SIGINT or SIGTERM unmounts cleanly and waits for open files; a second one ends the
    /// mount at once. If messages go to a terminal, so does SIGHUP, which a closed terminal sends.
    /// Any other mount reopens its --log-file and reloads the credentials of s3:// on SIGHUP.
    #[arg(short, long, help_heading = "Process options")]
    pub(crate) foreground: bool,

    /// Append messages to this file once the mount answers (default: discard them in the
    /// background)
    ///
    /// On SIGHUP the mount reopens the file by its name: rename it first, as logrotate does.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Process options"
    )]
    pub(crate) log_file: Option<PathBuf>,

    /// The format of messages on standard error, in the journal and in a log file
    ///
    /// A JSON object has the members time, level (error, warning, notice, info, debug), target, pid
    /// and message. If it reports an event, it also has the members of that event, which
    /// docs/events.md lists.
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "plain",
        help_heading = "Process options"
    )]
    pub(crate) log_format: Style,

    /// Serve the mount's counters to Prometheus at this address of this host, as 127.0.0.1:9135
    ///
    /// At http://ADDR/metrics, in Prometheus's text format or OpenMetrics. Without requests it does
    /// nothing. With port 0 the system chooses a port, which --verbose prints.
    #[arg(long, value_name = "ADDR", help_heading = "Process options")]
    pub(crate) metrics: Option<SocketAddr>,

    /// With --metrics: also serve CPU profiles of the process, in pprof's format
    ///
    /// At http://ADDR/debug/pprof/profile?seconds=N, at most 60, for every user of this host; one
    /// profile at a time. A profile names functions, but no files and no programs.
    #[arg(long, requires = "metrics", help_heading = "Process options")]
    pub(crate) pprof: bool,

    /// Send the mount's counters to a receiver of OTLP, such as http://localhost:4318, every minute
    ///
    /// Over HTTP, in protobuf, to URL, or to URL/v1/metrics if it has no path. Header fields for
    /// the receiver come from OTEL_EXPORTER_OTLP_HEADERS. The names are those of --metrics, without
    /// _total. If the receiver does not answer, the log says so once, and ogive tries again.
    #[arg(long, value_name = "URL", help_heading = "Process options")]
    pub(crate) otlp: Option<Receiver>,

    /// Print more messages: -v what ogive does, -vv details (development builds only)
    #[arg(short, long, action = ArgAction::Count, help_heading = "Process options")]
    pub(crate) verbose: u8,

    /// Threads that answer the kernel's requests, or auto, which follows the number of processors
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Process options")]
    pub(crate) threads: Auto<Count>,

    /// How ogive receives the kernel's requests
    ///
    /// A request takes less CPU time through io_uring than through /dev/fuse, except that opening
    /// and closing files may take a tenth more. io_uring needs Linux 6.14 or later and the switch
    /// /sys/module/fuse/parameters/enable_uring (root writes Y to it, for the whole machine).
    /// MNT/.ogive/mount shows the transport in use.
    #[arg(
        long,
        value_parser = choice::parser(TRANSPORT),
        value_name = "WAY",
        default_value = choice::word(TRANSPORT, &MountOptions::default().transport),
        help_heading = "Process options"
    )]
    pub(crate) transport: Transport,

    /// How long a program waits for SRC before it gets EIO; 0 waits for ever
    ///
    /// Without this option a program waits as long as SRC hangs, but you can kill it. After EIO, a
    /// program cannot know whether its change was made or will be made, as with soft NFS mounts.
    #[arg(long, value_name = "TIME", help_heading = "Process options")]
    pub(crate) origin_timeout: Option<Span>,

    /// Most threads that wait for SRC, or auto, which is 32
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Process options")]
    pub(crate) origin_threads: Auto<Count>,

    /// Name of the hidden control directory in MNT; empty for none
    ///
    /// Listings never show it, but you can read MNT/NAME/arcstats. "ogive stat" and "ogive unmount"
    /// look for the default name.
    #[arg(
        long,
        value_name = "NAME",
        default_value_os_t = MountOptions::default().control_name,
        help_heading = "Process options"
    )]
    pub(crate) control_name: OsString,

    /// Name of the source in the list of mounts (default: the path of SRC)
    #[arg(long, value_name = "NAME", help_heading = "Process options")]
    pub(crate) name: Option<OsString>,

    /// Set in the background process: standard output is a pipe to the command that waits for the
    /// mount.
    #[arg(long, hide = true)]
    pub(crate) ready_on_stdout: bool,
}

/// The choices of `--caching`.
const CACHING: &Choices<Caching> = &[
    (
        "exclusive",
        Caching::Exclusive,
        "They are evicted first when memory is needed. If the page cache asks for a record again, \
         the cache keeps it, at the cost of one more read of SRC if it was evicted",
    ),
    (
        "inclusive",
        Caching::Inclusive,
        "They are kept like all other records, even if that pushes out the page cache",
    ),
];

/// The choices of `--trust-times`.
const TRUST_TIMES: &Choices<TrustTimes> = &[
    (
        "auto",
        TrustTimes::Auto,
        "Trust file systems that are known to have a change time that no program can set",
    ),
    (
        "always",
        TrustTimes::Always,
        "Trust all; names in directories without a safe change time are still read again",
    ),
    ("never", TrustTimes::Never, "Trust none"),
];

/// The choices of `--transport`.
const TRANSPORT: &Choices<Transport> = &[
    (
        "auto",
        Transport::Auto,
        "io_uring with --direct-io if the kernel offers it, otherwise the device",
    ),
    ("uring", Transport::Uring, "io_uring; without it the mount fails"),
    ("device", Transport::Device, "The device"),
];

/// The choices of `--policy`.
const POLICY: &Choices<Policy> = &[
    (
        "duel",
        Policy::Duel,
        "The record that LIRS, LRU, 2Q or ARC would evict, whichever does best at the moment",
    ),
    ("arc", Policy::Arc, "The record that ARC evicts, exactly as in its paper"),
];

/// The sections after the options, in the help text and the man page.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            (
                "ogive mount /srv/data /mnt/fast",
                "Mount in the background with half of memory as the limit.",
            ),
            (
                "ogive mount --arc-max 4G --read-only /srv/data /mnt/fast",
                "At most 4 GiB of cache, and no changes.",
            ),
            (
                "ogive mount --l2 /ssd/cache.ogl2 --l2-size 100G /srv/data /mnt/fast",
                "Keep evicted records on an SSD, sealed; they survive a restart.",
            ),
            ("ogive mount --region eu-west-1 s3://bucket/prefix /mnt/fast", "A bucket, read-only."),
            (
                "ogive mount --stage /var/lib/stage s3://bucket/prefix /mnt/fast",
                "A writable bucket.",
            ),
            (
                "ogive mount -f -v --arc-max 25% ~/photos ~/fast",
                "Watch it work in the foreground; Ctrl-C unmounts.",
            ),
            (
                "mount -t ogive -o allow_other,arc_max=4G /srv/data /mnt/fast",
                "Through mount(8), with the mount.ogive link installed.",
            ),
            (
                "/srv/data  /mnt/fast  ogive  allow_other,arc_max=25%,x-systemd.automount,nofail  \
                 0  0",
                "A line of /etc/fstab: mounted at the first use.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[
                (
                    "NOTIFY_SOCKET",
                    "Set by systemd: ogive reports when the mount answers and when it ends (Type=notify).",
                ),
                (
                    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, \
                     AWS_REGION, AWS_ENDPOINT_URL",
                    "Credentials and location of buckets, as for the AWS command line.",
                ),
                ("PATH", "Where ogive looks for fusermount3 if the user is not root."),
                ("NO_COLOR", "When set and not empty, nothing is printed in colour."),
            ],
        ),
        files(),
    ]
}

/// The files that the man page names.
fn files() -> Section {
    help::terms(
        "Files",
        &[
            ("/dev/fuse", "The kernel's side of FUSE."),
            ("/etc/fuse.conf", "Whether ordinary users may use --allow-other (user_allow_other)."),
            (
                "MNT/.ogive/",
                "The control directory: not in any listing; open its files by name (see \
                     --control-name). Only root can write to them.",
            ),
            (
                "MNT/.ogive/arcstats, zfetchstats, dmu_tx, zil, vdev_*",
                "Counters in the kstat format of OpenZFS; those without a meaning here are 0.",
            ),
            ("MNT/.ogive/ogivestats", "ogive's own counters, in the same format."),
            ("MNT/.ogive/mount", "The source and the process of the mount, as JSON."),
            ("MNT/.ogive/memory", "Which sources of memory pressure ogive watches."),
            ("MNT/.ogive/objects", "The cached bytes of each file, for the user who mounted."),
            ("MNT/.ogive/reads", "A sample of the reads, for \"ogive watch\"; for the same user."),
            ("MNT/.ogive/trace", "Every read as it happens, for \"ogive sim --record\"."),
            (
                "MNT/.ogive/arc_max",
                "Largest size of the cache; write a new one, such as 4G. The limits of --arc-max \
                     hold here too; the log says why a size was refused.",
            ),
            (
                "MNT/.ogive/reclaim, prune",
                "The result of the last request; write how many bytes of cache or of inodes to \
                     free, or all.",
            ),
            (
                "/proc/self/mountinfo",
                "Where ogive finds dead and living mounts; its own are of type fuse.ogive.",
            ),
        ],
    )
}
