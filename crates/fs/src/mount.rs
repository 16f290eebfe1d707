//! A mount from its first system call to its last.
//!
//! A mount starts from the bottom up: origin, memory, engine, view, session. A failure leaves
//! nothing behind. It ends with the kernel first. The file system is unmounted, and the session
//! threads lose their device. The threads that wait for the origin finish their work, and then the
//! rest is dropped.

mod attach;
mod error;
mod fusermount;
mod options;
mod permissions;
mod root_reserve;
mod summary;
mod transport;

pub use attach::Unmounter;
pub use error::MountError;
pub use options::{Caching, MountOptions, RECORDS_MIN, Transport};
pub use summary::Summary;

use crate::control::Control;
use crate::inode_limit::InodeLimit;
use crate::memory::{self, Bounds, SystemPressure};
use crate::pruning::InodePruner;
use crate::record::{Entry, Key};
use crate::second_level::SecondLevel;
use crate::session::in_flight::InFlight;
use crate::session::uring::Rings;
use crate::session::{Session, device};
use crate::statistics::{INODE_BYTES, PLACE_BYTES, Statistics};
use crate::version::Versions;
use crate::view::{Permissions, Settings, View};
use crate::workers::{Permits, Workers};
use ogive_arc::reclaim::{Reclaimer, ReclaimerConfig};
use ogive_arc::{Cache, Registration};
use ogive_origin::{DirectoryOrigin, Errno, HealthChecked, Origin, TrustTimes};
use ogive_pressure::Sources;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Default number of threads that wait for the origin.
const ORIGIN_THREADS: usize = 32;
/// Default number of session threads per processor, and its bounds. With one each, a processor
/// whose thread is just waking up would have none for the next request.
const SESSION_THREADS_PER_PROCESSOR: usize = 2;
const SESSION_THREADS_MIN: usize = 2;
const SESSION_THREADS_MAX: usize = 16;
/// Default share of the cache's maximum that the table of inodes may take.
const INODES_SHARE: u64 = 16;
const INODES_MIN: u64 = 1 << 16;

/// A mounted file system that answers requests.
pub struct Mount<O: Origin = DirectoryOrigin> {
    view: Arc<View<HealthChecked<O>>>,
    session: JoinHandle<std::io::Result<()>>,
    unmounter: Unmounter,
    started: Instant,
    mount_point: std::path::PathBuf,
    kstats: Kstats,
    // Dropped in this order once the session has ended.
    _reclaimer: Option<Reclaimer>,
    _registration: Registration,
    _index_registration: Option<Registration>,
}

/// The counters of a mount, for this process.
#[derive(Clone)]
pub struct Kstats {
    read: Arc<ReadKstat>,
}

/// The threads that serve a mount, and its rings, if any.
type Served<O> = (device::Threads, Option<Rings<O>>);

/// Reads the text of the counters with this name.
type ReadKstat = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Kstats {
    /// The present text of `arcstats`, `zfetchstats` or `ogivestats`, as in the control directory's
    /// file of this name. `None` for another name, and once the mount has ended.
    pub fn read(&self, name: &str) -> Option<String> {
        (self.read)(name)
    }
}

impl Mount {
    /// Mounts a directory; when this returns the file system answers.
    ///
    /// # Errors
    /// See [`MountError`]; nothing is left mounted.
    pub fn start(options: MountOptions) -> Result<Self, MountError> {
        let options = options.checked()?;
        let source = std::path::absolute(&options.source)
            .and_then(|path| path.canonicalize())
            .map_err(|error| MountError::source(&options.source, error))?;
        let (origin, permissions) = permissions::decide(options.open(&source)?, &options)?;
        let inode_bytes = INODE_BYTES + if origin.keeps_handles() { 0 } else { PLACE_BYTES };
        let mount_point = options.mount_point.clone();
        let (trust, metadata_ttl) = (options.trust_times, options.metadata_ttl);
        let attached = move |origin: &DirectoryOrigin| {
            warn_of_untrusted_times(origin, trust);
            warn_of_mounts_below(origin);
            tell_of_client(origin, metadata_ttl);
            tell_origin_of_mount(origin, &mount_point);
        };
        Self::begin(origin, &source, (inode_bytes, permissions), options, attached)
    }
}

impl<O: Origin> Mount<O> {
    /// Mounts any origin under the name that `options` has as its source; when this returns the
    /// file system answers.
    ///
    /// # Errors
    /// See [`MountError`]; nothing is left mounted.
    pub fn of(origin: O, options: MountOptions) -> Result<Self, MountError> {
        let options = options.checked()?;
        let source = options.source.clone();
        let inode_bytes = INODE_BYTES + PLACE_BYTES;
        Self::begin(origin, &source, (inode_bytes, Permissions::Kernel), options, |_| {})
    }

    /// `attached` is called after the kernel has mounted, and before the first answer.
    fn begin(
        origin: O,
        source: &std::path::Path,
        (inode_bytes, permissions): (u64, Permissions),
        options: MountOptions,
        attached: impl FnOnce(&O),
    ) -> Result<Self, MountError> {
        let origin = HealthChecked::new(origin, source.display().to_string());
        let pressure = Sources::probe().map_err(MountError::memory)?;
        let limit_bytes = pressure.limit_bytes().map_err(MountError::memory)?;
        let bounds = Bounds::new(limit_bytes, options.arc_max_bytes, options.arc_min_bytes);

        let session_threads = options.session_threads();
        let second_level = SecondLevel::open(
            options.second_level.as_ref(),
            (source, &options.mount_point),
            u64::from(options.record_size_bytes),
            bounds.max_bytes,
        )?
        .map(Arc::new);
        let secret = SecondLevel::version_secret(second_level.as_deref())?;
        let view = Arc::new(
            View::new(
                origin,
                Settings { permissions, ..options.settings() },
                cache(bounds, &options, second_level.clone()),
                Versions::new(options.racy_window(), options.sole_writer, salt(), secret),
                Workers::new(or(options.origin_threads, ORIGIN_THREADS)),
                InodeLimit::new(
                    options.inode_limit(inode_bytes, bounds.max_bytes),
                    options.release_memory,
                ),
                second_level,
            )
            .map_err(|errno| MountError::source(source, errno.into()))?,
        );
        let control = Arc::new(Control::new(
            &view,
            options.control_name.clone(),
            Statistics::new(Sources::probe().ok()),
            options.describe(source, bounds, permissions),
            options.release_memory,
        ));
        let session = Arc::new(Session {
            view: view.clone(),
            control: control.clone(),
            in_flight: Arc::new(InFlight::new(options.origin_timeout)),
            device_nodes: options.dev || rustix::process::geteuid().is_root(),
            permits: Permits::new(session_threads),
            owner: (!options.allow_other).then(|| rustix::process::geteuid().as_raw()),
        });
        let ((threads, rings), unmounter) = serve(&session, source, &options, attached)?;
        let session = run(session, threads, rings).map_err(MountError::thread)?;
        let pruner = Arc::new(InodePruner { view: Arc::downgrade(&view) });
        let registration = view.cache.register_prune("inodes", pruner);
        // Pruned after the inodes. The memory of a pruned inode comes back from the origin quickly,
        // that of the second level's index only with the next mount.
        let index = view.second_level.clone();
        let index_registration = index.map(|level| view.cache.register_prune("l2_index", level));
        let reclaimer = reclaimer(pressure, limit_bytes, &view, options.release_memory);
        Ok(Self {
            view,
            session,
            unmounter,
            started: Instant::now(),
            mount_point: options.mount_point,
            kstats: Kstats { read: Arc::new(move |name| control.kstat(name)) },
            _reclaimer: reclaimer,
            _registration: registration,
            _index_registration: index_registration,
        })
    }

    /// A handle that ends the mount.
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// A handle that reads the mount's counters.
    pub fn kstats(&self) -> Kstats {
        self.kstats.clone()
    }

    /// Waits until the file system is unmounted, and returns the mount's summary.
    ///
    /// # Errors
    /// If the session ended in another way than by unmounting.
    pub fn wait(self) -> Result<Summary, MountError> {
        let ended = match self.session.join() {
            Ok(result) => result,
            Err(_) => Err(std::io::Error::other("a session thread panicked; see the log")),
        };
        if let Some(second_level) = &self.view.second_level {
            second_level.close();
        }
        let stats = self.view.cache.stats();
        let counts = self.view.counters.counts();
        let summary = Summary::new(
            self.mount_point,
            self.started.elapsed(),
            &stats,
            &counts,
            self.view.second_level.is_some(),
        );
        ended.map(|()| summary).map_err(MountError::session)
    }
}

/// Gives the origin the device number of the mount before the first answer, because a request may
/// lead back here.
fn tell_origin_of_mount(origin: &DirectoryOrigin, mount_point: &std::path::Path) {
    if let Some(device) = attach::device_at(mount_point) {
        // It is set only once.
        let _ = origin.served_as().set(device);
    }
}

fn cache(
    bounds: Bounds,
    options: &MountOptions,
    second_level: Option<Arc<SecondLevel>>,
) -> Cache<Key, Entry> {
    let builder = Cache::builder(bounds.max_bytes)
        .min_bytes(bounds.min_bytes)
        .start_bytes(bounds.min_bytes)
        .expected_weight_bytes(u64::from(options.record_size_bytes))
        .policy(options.policy)
        .hash_seed(salt());
    match second_level {
        Some(second_level) => {
            builder.on_evict(move |eviction| second_level.on_evict(eviction)).build()
        }
        None => builder.build(),
    }
}

/// Mounts, and starts the threads that answer requests; calls `attached` in between.
fn serve<O: Origin>(
    session: &Arc<Session<HealthChecked<O>>>,
    source: &std::path::Path,
    options: &MountOptions,
    attached: impl FnOnce(&O),
) -> Result<(Served<HealthChecked<O>>, Unmounter), MountError> {
    let _without_reserve = root_reserve::WithoutReserve::begin();
    let prepared = transport::prepare(session, options)?;
    let permissions = session.view.settings.permissions;
    let (device, unmounter) =
        attach::attach(options, source, permissions, session.in_flight.clone())?;
    attached(session.view.origin.origin());
    let started = transport::start(prepared, session, device, options).inspect_err(|_| {
        if let Err(error) = unmounter.unmount() {
            log::warn!("cannot undo the mount: {error}");
        }
    })?;
    Ok((started, unmounter))
}

/// Waits for the end of the connection, and then for the requests in flight. Threads that hang in
/// the origin are left behind.
fn run<O: Origin>(
    session: Arc<Session<O>>,
    threads: device::Threads,
    rings: Option<Rings<O>>,
) -> std::io::Result<JoinHandle<std::io::Result<()>>> {
    std::thread::Builder::new().name("fuse_session".into()).spawn(move || {
        let ended = threads.join();
        session.view.kernel.disconnect();
        let in_rings = rings.map_or(0, Rings::join);
        let in_pools = session.view.workers.stop(device::PATIENCE);
        session.in_flight.stop();
        let left = ended.as_ref().map_or(0, |left| *left) + in_rings + in_pools;
        if left > 0 {
            let threads = ogive_text::counted(left, "thread still waits", "threads still wait");
            log::warn!("{threads} for the source, which does not answer");
        }
        ended.map(drop)
    })
}

/// Starts giving memory back under pressure. A mount without pressure events works all the same.
fn reclaimer<O: Origin>(
    pressure: Sources,
    limit_bytes: u64,
    view: &Arc<View<HealthChecked<O>>>,
    release_memory: fn(),
) -> Option<Reclaimer> {
    let total_bytes = pressure.read().map_or(limit_bytes, |reading| reading.total_bytes);
    let governor = memory::governor(total_bytes, limit_bytes);
    let check_every_bytes = Some(memory::check_every_bytes(limit_bytes));
    let config = ReclaimerConfig { governor, check_every_bytes };
    let reclaimer = SystemPressure::new(pressure, governor, view, release_memory)
        .and_then(|pressure| Reclaimer::spawn(&view.cache, pressure, config));
    reclaimer
        .inspect_err(|error| log::warn!("the cache will not shrink under memory pressure: {error}"))
        .ok()
}

/// Different for each mount, so that no user can choose names that collide in tables or versions.
fn salt() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Logs the file systems whose contents are not kept between opens.
fn warn_of_untrusted_times(origin: &DirectoryOrigin, trust: TrustTimes) {
    // The user asked for it, and needs no advice against it.
    let advice = match trust {
        TrustTimes::Never => "",
        _ => {
            "; if no program puts old times back (touch -r, cp -p, rsync --times), mount with \
             --trust-times always"
        }
    };
    origin.untrusted_times(&mut |file_system, why| {
        log::warn!(
            event = "times_doubted",
            file_system;
            "contents of {file_system} are not kept between opens, in memory or by --l2: \
             {why}{advice}"
        );
    });
}

/// Logs that other file systems are part of the view, because no program can see that.
fn warn_of_mounts_below(origin: &DirectoryOrigin) {
    const NAMED_MAX: usize = 3;
    let below = origin.mounted_below();
    let named = below.iter().take(NAMED_MAX).map(|path| path.display().to_string());
    let named = named.collect::<Vec<_>>().join(", ");
    let named = ogive_text::one_line(&named);
    let more = match below.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if !below.is_empty() {
        log::warn!(
            event = "mounted_below",
            count = below.len();
            "other file systems are mounted below the source: {named}{more}; the mount has one \
             device number, so du -x, find -xdev and rm --one-file-system enter them; \
             --one-file-system leaves them out"
        );
    }
}

/// Why a source cannot be served without the mounts below it.
fn not_alone(errno: Errno) -> String {
    let why = match errno {
        Errno::PERM => "only root can copy a mount without what is mounted below it".to_owned(),
        Errno::NOSYS => "it needs Linux 5.2".to_owned(),
        errno => format!("the kernel refuses to copy the mount of the source: {errno}"),
    };
    format!("cannot be had: {why}")
}

/// Logs how late changes by other NFS clients are seen, and the remedy.
fn tell_of_client(origin: &DirectoryOrigin, metadata_ttl: Duration) {
    let Some(client) = origin.nfs_client() else { return };
    let (files, directories) = (&client.files_seconds, &client.directories_seconds);
    let (names, remedy) = match client.believes_names() {
        true => (
            format!(" and names by up to {} s", directories.end()),
            "; if other machines change names, mount NFS with lookupcache=none",
        ),
        false => (String::new(), ""),
    };
    log::info!(
        event = "nfs_client",
        version = client.version.as_str(),
        files_seconds_max = *files.end(),
        names_seconds_max = if client.believes_names() { *directories.end() } else { 0 },
        metadata_ttl_seconds = metadata_ttl.as_secs_f64();
        "the source is on NFS {}: each open sees the current contents, but attributes lag by up to \
         {} s{names} in the NFS client, and by {} s more in the kernel (--metadata-ttl){remedy}",
        client.version,
        files.end(),
        metadata_ttl.as_secs_f64()
    );
}

/// `given`, or `automatic` if that is 0.
fn or(given: usize, automatic: usize) -> usize {
    if given == 0 { automatic } else { given }
}

impl MountOptions {
    fn settings(&self) -> Settings {
        Settings {
            record_size_bytes: u64::from(self.record_size_bytes),
            direct_io: self.direct_io,
            exclusive: self.caching == Caching::Exclusive,
            metadata_ttl: self.metadata_ttl,
            negative_ttl: self.negative_ttl,
            prefetch_max_bytes: self.prefetch_max_bytes,
            read_only: self.read_only,
            immutable: self.immutable,
            permissions: Permissions::Kernel,
        }
    }

    fn open(&self, source: &std::path::Path) -> Result<DirectoryOrigin, MountError> {
        let origin = match self.one_file_system {
            true => DirectoryOrigin::open_one_file_system(source).map_err(|error| {
                MountError::Option { option: "one-file-system", reason: not_alone(error.errno) }
            })?,
            false => DirectoryOrigin::open(source)?,
        };
        let origin = origin.trusting_times(self.trust_times);
        Ok(origin.sparing_access_times(self.no_atime, self.no_atime || self.no_diratime))
    }

    fn session_threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = processors.saturating_mul(SESSION_THREADS_PER_PROCESSOR);
        or(self.threads, wanted.clamp(SESSION_THREADS_MIN, SESSION_THREADS_MAX))
    }

    fn inode_limit(&self, inode_bytes: u64, arc_max_bytes: u64) -> usize {
        let wanted = match self.inode_limit {
            0 => (arc_max_bytes / INODES_SHARE / inode_bytes).max(INODES_MIN),
            limit => limit,
        };
        usize::try_from(wanted).unwrap_or(usize::MAX)
    }

    fn describe(
        &self,
        source: &std::path::Path,
        bounds: Bounds,
        permissions: Permissions,
    ) -> serde_json::Value {
        serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "source": source.to_string_lossy(),
            "mount_point": self.mount_point.to_string_lossy(),
            "record_size_bytes": self.record_size_bytes,
            "arc_max_bytes": bounds.max_bytes,
            "arc_min_bytes": bounds.min_bytes,
            "direct_io": self.direct_io,
            "caching": match self.caching {
                Caching::Inclusive => "inclusive",
                Caching::Exclusive => "exclusive",
            },
            "policy": self.policy.name(),
            "read_only": self.read_only,
            "permissions": if permissions.are_of_source() { "source" } else { "kernel" },
            "sole_writer": self.sole_writer,
            "immutable": self.immutable,
            "metadata_ttl_seconds": self.metadata_ttl.as_secs_f64(),
            "negative_ttl_seconds": self.negative_ttl.as_secs_f64(),
            "prefetch_max_bytes": self.prefetch_max_bytes,
        })
    }
}
