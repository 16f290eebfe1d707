//! What can be typed after `ogive mount`, and its help text.
//!
//! Defaults are taken from [`MountOptions::default`], so the help text cannot say another value
//! than the one used.

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
/// Mounts SRC at MNT. The command returns once the mount answers; a process in the background then
/// serves it until it is unmounted (`ogive unmount MNT`, umount(8), or SIGTERM to the process).
///
/// Reads are served from the cache in records. Writes go through to SRC before they return;
/// fsync(2) is an fsync of SRC. A file changed behind the mount is seen at the next open.
///
/// A bucket is written as s3://BUCKET or s3://BUCKET/PREFIX, one of Azure as az://, of Google as
/// gs://. It is mounted read-only, or with --stage so that files can be written: they are in the
/// store when fsync(2) or close(2) returns. Its credentials come from the environment, the files
/// that the store's own programs use, or the container or machine that this is, and are never
/// options.
///
/// A web server is written as https://HOST/PATH: a file, or with a slash at its end a directory
/// that the server lists. It is mounted read-only.
///
/// A dead mount point that a crash left behind at MNT is taken away first.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_long_help = help::render(&sections()))]
pub(crate) struct MountArgs {
    /// The directory or bucket to read through the cache
    #[arg(value_name = "SRC", value_hint = ValueHint::DirPath)]
    pub(crate) source: PathBuf,

    /// The directory at which to mount it
    ///
    /// It must exist, and neither directory may lie inside the other: a mount that serves itself
    /// would wait for itself. What MNT itself contains is hidden while mounted.
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_point: PathBuf,

    /// Most memory the cache may hold: a size, or a share of memory such as 50%
    ///
    /// A share is of the memory this process may use: the machine's, or less where a control group
    /// limits it. The cache gives memory back when the system runs short and grows again later.
    /// Without this option: half.
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Cache options")]
    pub(crate) arc_max: Option<MemorySize>,

    /// Least memory the cache keeps when the system runs short: a size or a share of memory
    ///
    /// A floor for reclaim, not a reservation: nothing is allocated before it is used. Without
    /// this option: a 32nd of memory.
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Cache options")]
    pub(crate) arc_min: Option<MemorySize>,

    /// Size of a record, the unit of caching: a power of two from 4K to 1M
    ///
    /// A miss reads a whole record from SRC; a hit copies only what was asked for. Small records
    /// suit small random reads of large files (databases), large ones suit everything else.
    #[arg(
        long,
        visible_alias = "record-size",
        value_name = "SIZE",
        default_value_t = RecordSize(MountOptions::default().record_size_bytes),
        help_heading = "Cache options"
    )]
    pub(crate) recordsize: RecordSize,

    /// What the cache keeps of bytes it has handed to the kernel's page cache
    ///
    /// While memory is free, the cache keeps them either way. Has no effect with --direct-io, where
    /// nothing is handed over.
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
    /// MNT/.ogive/ogivestats has the rule the duel goes by, for data (rule_data) and for metadata
    /// (rule_metadata), and how often it has changed it (rule_changes). The rules are 0 LIRS, 1
    /// LRU, 2 2Q, 3 ARC.
    #[arg(
        long,
        value_parser = choice::parser(POLICY),
        value_name = "POLICY",
        default_value = choice::word(POLICY, &MountOptions::default().policy),
        help_heading = "Cache options"
    )]
    pub(crate) policy: Policy,

    /// Bypass the kernel's page cache: every read comes to ogive
    ///
    /// Memory is then accounted to the byte and bounded by --arc-max alone. Each read costs a round
    /// trip to the process, so small reads of hot data are several times slower than through the
    /// page cache.
    #[arg(long, help_heading = "Cache options")]
    pub(crate) direct_io: bool,

    /// Let the kernel read and write the files of SRC itself (root only, Linux 6.9 or later)
    ///
    /// Reads, writes and mmap of a file then go to the file of SRC without a round trip to ogive,
    /// as fast as SRC itself, and the page cache is the only cache for its bytes; names, attributes
    /// and listings are served as ever. It cannot go with --direct-io, --l2, --sole-writer,
    /// --no-atime and buckets, and nothing can be recorded. A file with which it cannot be done is
    /// read and written through the cache: MNT/.ogive/ogivestats counts them
    /// (passthrough_refused).
    #[arg(long, help_heading = "Cache options")]
    pub(crate) passthrough: bool,

    /// Most bytes read ahead of one sequential reader; 0 turns prefetch off
    ///
    /// Without this option: 8M. Of a bucket as much as the way to it can carry, up to 128M. Never
    /// more than a 32nd of the cache, and of a bucket a 16th.
    #[arg(long, value_name = "SIZE", help_heading = "Cache options")]
    pub(crate) prefetch_max: Option<Size>,

    /// Most inodes to remember, or auto, which goes by the size of the cache
    ///
    /// Beyond it the least recently used ones that no program holds are forgotten, and the kernel
    /// is asked to forget its own.
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Cache options")]
    pub(crate) inode_limit: Auto<Count>,

    #[command(flatten)]
    pub(crate) second_level: SecondLevelArgs,

    /// How long attributes, names and link targets may be used without asking SRC again
    ///
    /// Units: ms, s, m, h; a bare number is in seconds. 0 asks every time.
    #[arg(
        long,
        value_name = "TIME",
        default_value_t = Span(MountOptions::default().metadata_ttl),
        help_heading = "Coherence options"
    )]
    pub(crate) metadata_ttl: Span,

    /// How long a name that does not exist may be remembered as missing
    #[arg(
        long,
        value_name = "TIME",
        default_value_t = Span(MountOptions::default().negative_ttl),
        help_heading = "Coherence options"
    )]
    pub(crate) negative_ttl: Span,

    /// How old a file's last change must be before its times are trusted to tell the next one,
    /// or auto
    ///
    /// Two changes within one tick of the clock of SRC leave the same time stamps, so a file
    /// changed more recently than this is read again at each open. auto is 2s, enough for every
    /// file system.
    #[arg(long, value_name = "TIME", default_value = "auto", help_heading = "Coherence options")]
    pub(crate) racy_window: Auto<Span>,

    /// Whether to believe that a file is unchanged whose size and times are
    ///
    /// Some file systems have no change time of their own: FAT, exFAT, SMB, sshfs and most that are
    /// made with FUSE. There a program that puts an old time back (touch -r, cp -p, rsync -t)
    /// hides a change. auto goes by the type of file system, and of one that is not known nothing
    /// is kept from one opening of a file to the next. always keeps it: a promise that nobody puts
    /// old times back.
    /// never keeps nothing.
    #[arg(
        long,
        value_parser = choice::parser(TRUST_TIMES),
        value_name = "WHEN",
        default_value = choice::word(TRUST_TIMES, &TrustTimes::Auto),
        help_heading = "Coherence options"
    )]
    pub(crate) trust_times: TrustTimes,

    /// Promise that nothing changes SRC except through this mount
    ///
    /// Saves the checks at each open. If the promise is broken, old bytes may be served.
    #[arg(long, help_heading = "Coherence options")]
    pub(crate) sole_writer: bool,

    /// Promise that nothing changes SRC at all as long as it is mounted
    ///
    /// Names, attributes, listings and that a name is missing are believed until it is unmounted,
    /// and SRC is asked for each once, as long as there is memory for the answer. Implies
    /// --read-only and --sole-writer; --metadata-ttl and --negative-ttl have no meaning then. If
    /// the promise is broken, what is shown is old, and may be mixed with new.
    #[arg(long, help_heading = "Coherence options")]
    pub(crate) immutable: bool,

    /// Refuse every change
    #[arg(short, long, help_heading = "Access options")]
    pub(crate) read_only: bool,

    /// Let users other than the one who mounts use the mount, under ordinary permissions
    ///
    /// For users who are not root, /etc/fuse.conf must say user_allow_other. Where a server or
    /// another program decides what users may do (NFS, SMB, CephFS, AFS, 9p, virtiofs, FUSE), it
    /// is asked in the name of each user, which only root's mount can do; see --trust-permissions.
    #[arg(long, help_heading = "Access options")]
    pub(crate) allow_other: bool,

    /// With --allow-other, have the mode bits that SRC shows decide, also where a server does
    ///
    /// The kernel checks them, and SRC is asked with the rights of the one who mounts. That spares
    /// a request for each name of a path. But users get what the access lists of a server deny
    /// them, and not what they give; and under root_squash they lose their own files.
    #[arg(long, requires = "allow_other", help_heading = "Access options")]
    pub(crate) trust_permissions: bool,

    /// Leave out the file systems that are mounted below SRC (root only)
    ///
    /// A directory that one is mounted on is shown as it is without it, most often empty, as a bind
    /// mount does. Without this option they are part of the mount, and no program can tell where
    /// one begins: "rm --one-file-system", "du -x" and "find -xdev" enter them.
    #[arg(long, help_heading = "Access options")]
    pub(crate) one_file_system: bool,

    /// Let device files in the mount work as devices (root only)
    #[arg(long, help_heading = "Access options")]
    pub(crate) dev: bool,

    /// Honour set-user-ID and set-group-ID bits and file capabilities in the mount (root only)
    #[arg(long, help_heading = "Access options")]
    pub(crate) suid: bool,

    /// Let no file in the mount be executed
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_exec: bool,

    /// Let reads through the mount change no access times in SRC
    ///
    /// Without this option it goes by how SRC is mounted; what is read from the cache changes none
    /// in any case. An ordinary user can spare only times of files of his own.
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_atime: bool,

    /// The same for directories alone
    #[arg(long, help_heading = "Access options")]
    pub(crate) no_diratime: bool,

    /// Options as in /etc/fstab, separated by commas; may be repeated
    ///
    /// Every long option of this command may be written here with _ or - between its words and
    /// without the leading dashes: ro, allow_other, arc_max=4G, recordsize=16K. ro, noexec, dev,
    /// suid, noatime and nodiratime are honoured, nodev and nosuid the default. Options for
    /// mount(8) and systemd (defaults, noauto, nofail, _netdev, x-*) are accepted and ignored, and
    /// those that say what is so anyhow (relatime, async). sync, dirsync, lazytime and strictatime
    /// are refused: mount SRC with them. An option given on its own beats one given here. A comma
    /// inside a value is written \,.
    ///
    /// "mount -o remount" changes ro, nodev, nosuid and noexec of a mount that is there, as root.
    #[arg(
        short = 'o',
        long = "options",
        value_name = "OPTIONS",
        action = ArgAction::Append,
        help_heading = "Access options"
    )]
    pub(crate) options: Vec<OsString>,

    /// Ignore options in -o that ogive does not know instead of refusing them
    #[arg(long, help_heading = "Access options")]
    pub(crate) sloppy: bool,

    #[command(flatten)]
    pub(crate) bucket: BucketArgs,

    /// Stay in the foreground; messages go to standard error
    ///
    /// The first SIGINT or SIGTERM unmounts cleanly, waiting for open files; a second one ends at
    /// once. So does SIGHUP, which a terminal sends when it is closed, if messages go to a terminal.
    /// Any other mount opens its --log-file anew on SIGHUP, and reads the credentials of s3:// anew.
    #[arg(short, long, help_heading = "Process options")]
    pub(crate) foreground: bool,

    /// Append messages to this file once the mount answers (default: discard them in the
    /// background)
    ///
    /// SIGHUP has it opened anew by its name: rename it first, as logrotate does.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help_heading = "Process options"
    )]
    pub(crate) log_file: Option<PathBuf>,

    /// What a message is, on standard error, in the journal and in a log file
    ///
    /// An object has the members time, level (error, warning, notice, info, debug), target, pid and
    /// message, and those of its event, if it tells of one: docs/events.md lists them.
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "plain",
        help_heading = "Process options"
    )]
    pub(crate) log_format: Style,

    /// Tell the mount's counters to Prometheus at this address of this host, such as 127.0.0.1:9135
    ///
    /// At http://ADDR/metrics, in Prometheus's text format or OpenMetrics. Nothing is done while
    /// nobody asks. Port 0 lets the system choose one, which --verbose prints.
    #[arg(long, value_name = "ADDR", help_heading = "Process options")]
    pub(crate) metrics: Option<SocketAddr>,

    /// With --metrics: also tell where the CPU of the process goes, in pprof's format
    ///
    /// At http://ADDR/debug/pprof/profile?seconds=N, 60 at most, to every user of this host; one
    /// profile at a time. Which functions ran is told, and no file or program.
    #[arg(long, requires = "metrics", help_heading = "Process options")]
    pub(crate) pprof: bool,

    /// Send the mount's counters to a receiver of OTLP, such as http://localhost:4318, every minute
    ///
    /// Over HTTP, in protobuf, to URL, or to URL/v1/metrics if it has no path. Header fields that
    /// the receiver wants come from OTEL_EXPORTER_OTLP_HEADERS. The names are those of --metrics,
    /// without _total. One that does not answer is said once in the log, and tried again.
    #[arg(long, value_name = "URL", help_heading = "Process options")]
    pub(crate) otlp: Option<Receiver>,

    /// Say more: -v what is done, -vv in detail (development builds only)
    #[arg(short, long, action = ArgAction::Count, help_heading = "Process options")]
    pub(crate) verbose: u8,

    /// Threads that answer the kernel's requests, or auto, which goes by the processors
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Process options")]
    pub(crate) threads: Auto<Count>,

    /// How the kernel's requests come to ogive
    ///
    /// Through io_uring a request that comes to ogive takes less processor time than through
    /// /dev/fuse, but for opening and closing files, which may take a tenth more. It needs Linux
    /// 6.14 or later and the switch /sys/module/fuse/parameters/enable_uring (root writes Y to it,
    /// for the whole machine). MNT/.ogive/mount says what is used.
    #[arg(
        long,
        value_parser = choice::parser(TRANSPORT),
        value_name = "WAY",
        default_value = choice::word(TRANSPORT, &MountOptions::default().transport),
        help_heading = "Process options"
    )]
    pub(crate) transport: Transport,

    /// How long a program may wait for an answer of SRC before it is told EIO; 0 for ever
    ///
    /// Without it a program waits as long as SRC hangs, but can be killed. Whoever was told EIO
    /// cannot know whether a change has been made or is going to be, as with soft mounts of NFS.
    #[arg(long, value_name = "TIME", help_heading = "Process options")]
    pub(crate) origin_timeout: Option<Span>,

    /// Threads that wait for SRC, at most, or auto, which is 32
    #[arg(long, value_name = "NUMBER", default_value = "auto", help_heading = "Process options")]
    pub(crate) origin_threads: Auto<Count>,

    /// Name of the hidden control directory in MNT; empty for none
    ///
    /// It never appears in a listing, but MNT/NAME/arcstats can be read. "ogive stat" and "ogive
    /// unmount" look for the default name.
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
        "They are the first to leave when memory is needed. Those that the page cache asks for \
         again are kept, at the price of one more read of SRC if they had left",
    ),
    (
        "inclusive",
        Caching::Inclusive,
        "They are kept as all other bytes are, also where that pushes out the page cache",
    ),
];

/// The choices of `--trust-times`.
const TRUST_TIMES: &Choices<TrustTimes> = &[
    (
        "auto",
        TrustTimes::Auto,
        "Where the file system is known to have a change time that nobody can set",
    ),
    (
        "always",
        TrustTimes::Always,
        "Everywhere; names in directories of such file systems are read again all the same",
    ),
    ("never", TrustTimes::Never, "Nowhere"),
];

/// The choices of `--transport`.
const TRANSPORT: &Choices<Transport> = &[
    (
        "auto",
        Transport::Auto,
        "io_uring with --direct-io where the kernel offers it, the device otherwise",
    ),
    ("uring", Transport::Uring, "io_uring, or no mount"),
    ("device", Transport::Device, "The device"),
];

/// The choices of `--policy`.
const POLICY: &Choices<Policy> = &[
    (
        "duel",
        Policy::Duel,
        "What LIRS, LRU, 2Q or ARC would let go, whichever does best at the moment",
    ),
    ("arc", Policy::Arc, "What ARC lets go, exactly as in its paper"),
];

/// What follows the options in the help text and the man page.
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
                "Keep what falls out of memory on an SSD, sealed; a restart finds it again.",
            ),
            ("ogive mount --region eu-west-1 s3://bucket/prefix /mnt/fast", "A bucket, read-only."),
            (
                "ogive mount --stage /var/lib/stage s3://bucket/prefix /mnt/fast",
                "A bucket that can be written to.",
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
                "A line of /etc/fstab: mounted when first used.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[
                (
                    "NOTIFY_SOCKET",
                    "Set by systemd: told when the mount answers and when it ends (Type=notify).",
                ),
                (
                    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, \
                     AWS_REGION, AWS_ENDPOINT_URL",
                    "Credentials and place of buckets, as for the AWS command line.",
                ),
                ("PATH", "Where fusermount3 is looked for when the user is not root."),
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
            (
                "/etc/fuse.conf",
                "Whether users who are not root may use --allow-other (user_allow_other).",
            ),
            (
                "MNT/.ogive/",
                "The control directory: in no listing, its files opened by name (see \
                     --control-name). What is written to them, root writes.",
            ),
            (
                "MNT/.ogive/arcstats, zfetchstats, dmu_tx, zil, vdev_*",
                "Counters in the kstat format of OpenZFS; those that mean nothing here are 0.",
            ),
            ("MNT/.ogive/ogivestats", "Counters of ogive's own, in the same format."),
            ("MNT/.ogive/mount", "What is mounted and by which process, as JSON."),
            ("MNT/.ogive/memory", "Which sources of memory pressure are watched."),
            ("MNT/.ogive/objects", "What is in the cache by file, for the user who mounted."),
            ("MNT/.ogive/reads", "A sample of the reads, for \"ogive watch\"; likewise."),
            ("MNT/.ogive/trace", "The reads as they come, for \"ogive sim --record\"."),
            (
                "MNT/.ogive/arc_max",
                "Largest size of the cache; write a new one, such as 4G. What --arc-max \
                     refuses is refused here, and the log says why.",
            ),
            (
                "MNT/.ogive/reclaim, prune",
                "What the last request gave; write how many bytes of cache or of inodes are \
                     to be given back, or all.",
            ),
            (
                "/proc/self/mountinfo",
                "Where dead and living mounts are found; ogive's are of type fuse.ogive.",
            ),
        ],
    )
}
