//! Shares of the busy samples.
//!
//! All shares are percent of the samples in which the CPU was not idle. A table of symbols shows
//! only its top. A missing symbol is unknown if the rest is large, and zero if the rest is too
//! small to matter. Rows without callers give lower bounds for their callers; a bound of zero is no
//! answer. A profile of a few busy samples has no shares, because one sample would change the
//! answer.

use super::fallback::Sought;
use super::known_names::Leaf;
use super::profile_index::{Hits, NONE, Path, ProfileIndex, Row, has};
use super::threads::{Consumer, shares_of};
use super::{Facts, Known, Missing, Owner, absent};

const NO_PROFILE: &str = "a CPU profile (perf record -a -g -- sleep 10)";
/// A profile with fewer busy samples has no shares and names no user.
pub(crate) const FEWEST_SAMPLES: f64 = 20.0;
/// A profile with fewer busy samples names no place and fills no list.
pub(crate) const ENOUGH_SAMPLES: f64 = 60.0;
const NO_CALLERS: &str = "callers (a profile with a call graph: perf record -a -g -- sleep 10)";

impl Facts {
    /// Percent of busy samples in matching functions themselves.
    pub fn self_share(&self, symbol: &str) -> Known<f64> {
        let pattern = self.selector(symbol)?;
        if let Some(presence) = self.presence_of(Sought::Leaf(&pattern)) {
            return presence;
        }
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.functions(&pattern);
            self.leaf_share(profile, |place| hits.has(place))
        })
    }

    /// The same for functions of the kernel and its modules only.
    pub fn kernel_self_share(&self, symbol: &str) -> Known<f64> {
        let pattern = self.selector(symbol)?;
        if let Some(presence) = self.presence_of(Sought::Leaf(&pattern)) {
            return presence;
        }
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.functions(&pattern);
            self.leaf_share(profile, |place| place.kernel != Some(false) && hits.has(place))
        })
    }

    /// Percent of busy samples with a matching function anywhere on the stack.
    pub fn stack_share(&self, symbol: &str) -> Known<f64> {
        let pattern = self.selector(symbol)?;
        if let Some(presence) = self.presence_of(Sought::Anywhere(&pattern)) {
            return presence;
        }
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.functions(&pattern);
            let whole =
                self.path_share(&profile.stacks, |path| path.places.iter().any(|p| hits.has(p)));
            if !profile.stacks.is_empty() {
                return Some(whole);
            }
            let part =
                self.path_share(&profile.chains, |path| path.places.iter().any(|p| hits.has(p)));
            let rows = self.row_total(profile, &hits);
            let share = part
                .max(rows)
                .max(self.leaf_share(profile, |place| hits.has(place)).unwrap_or(0.0));
            let complete = profile.rows.iter().any(|row| row.total_percent.is_some());
            (share > 0.0 || complete).then_some(share)
        })
    }

    /// Percent of busy samples with a function matching `inner` below one matching `caller`, at any
    /// depth.
    pub fn under(&self, caller: &str, inner: &str) -> Known<f64> {
        let (caller, inner) = (self.selector(caller)?, self.selector(inner)?);
        if let Some(presence) = self.presence_of(Sought::Below(&caller, &inner)) {
            return presence;
        }
        self.first_known(NO_CALLERS, |profile| {
            let (callers, inners) = (profile.functions(&caller), profile.functions(&inner));
            let nested = |path: &Path| {
                let below = path.places.iter().position(|place| inners.has(place));
                below.is_some_and(|at| path.places[at + 1..].iter().any(|place| callers.has(place)))
            };
            if profile.stacks.iter().any(|path| path.places.len() > 1) {
                return Some(self.path_share(&profile.stacks, nested));
            }
            let share = self.path_share(&profile.chains, nested);
            let shown_without =
                profile.rows.iter().any(|row| inners.has(&row.place) && !row.has_chains);
            (share > 0.0 || (!profile.chains.is_empty() && !shown_without)).then_some(share)
        })
    }

    /// Percent of busy samples that spin for a lock.
    pub fn spinning(&self) -> Known<f64> {
        self.first_known(NO_PROFILE, |profile| {
            if profile.stacks.is_empty() {
                let rows: Vec<&Row> =
                    profile.rows.iter().filter(|row| row.leaf == Leaf::Spin).collect();
                rows.iter().for_each(|row| self.used(&row.source));
                Some(rows.iter().filter_map(|row| row.self_percent).sum())
            } else {
                Some(self.path_share(&profile.stacks, |path| path.leaf == Leaf::Spin))
            }
        })
    }

    /// Percent of busy samples that spin for a lock below a matching caller.
    pub fn spin_under(&self, caller: &str) -> Known<f64> {
        let pattern = self.selector(caller)?;
        if let Some(presence) = self.presence_of(Sought::SpinBelow(&pattern)) {
            return presence;
        }
        self.first_known(NO_CALLERS, |profile| {
            let hits = profile.functions(&pattern);
            let below = |path: &Path| {
                path.leaf == Leaf::Spin && path.places.iter().skip(1).any(|place| hits.has(place))
            };
            if profile.stacks.iter().any(|path| path.places.len() > 1) {
                return Some(self.path_share(&profile.stacks, below));
            }
            let spins = profile.chains.iter().any(|path| path.leaf == Leaf::Spin);
            let bare = profile.rows.iter().any(|row| row.leaf == Leaf::Spin && !row.has_chains);
            let share = self.path_share(&profile.chains, below);
            (share > 0.0 || (spins && !bare)).then_some(share)
        })
    }

    /// Percent of busy samples in a matching leaf for which no caller was recorded.
    pub fn leaf_without_caller(&self, leaf: &str) -> Known<f64> {
        let pattern = self.selector(leaf)?;
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.functions(&pattern);
            if !profile.stacks.is_empty() {
                let bare = |path: &Path| path.places.len() == 1 && hits.has(&path.places[0]);
                return Some(self.path_share(&profile.stacks, bare));
            }
            let rows = profile.rows.iter().filter(|row| !row.has_chains && hits.has(&row.place));
            Some(
                rows.inspect(|row| self.used(&row.source)).filter_map(|row| row.self_percent).sum(),
            )
        })
    }

    /// Percent of busy samples of matching threads that have a matching function on their stack.
    pub fn in_thread(&self, thread: &str, symbol: &str) -> Known<f64> {
        let (thread, symbol) = (self.selector(thread)?, self.selector(symbol)?);
        self.first_known("thread names in the profile", |profile| {
            let (threads, symbols) =
                (profile.threads.matching(&thread), profile.functions(&symbol));
            if profile.stacks.iter().any(|path| path.thread != NONE) {
                return Some(self.path_share(&profile.stacks, |path| {
                    has(&threads, path.thread) && path.places.iter().any(|place| symbols.has(place))
                }));
            }
            let named = profile.rows.iter().any(|row| row.thread != NONE);
            let rows = profile
                .rows
                .iter()
                .filter(|row| has(&threads, row.thread) && symbols.has(&row.place));
            let share: f64 =
                rows.inspect(|row| self.used(&row.source)).filter_map(|row| row.self_percent).sum();
            // A row of a thread may have its functions only in the call graph below it.
            let below = self.path_share(&profile.chains, |path| {
                has(&threads, path.thread) && path.places.iter().any(|place| symbols.has(place))
            });
            named.then_some(share.max(below))
        })
    }

    /// Percent of busy samples of matching threads, as profiled.
    pub(super) fn profiled_thread_share(&self, thread: &str) -> Known<f64> {
        let pattern = self.selector(thread)?;
        self.first_known("thread names in the profile", |profile| {
            let hits = profile.threads.matching(&pattern);
            if profile.stacks.iter().any(|path| path.thread != NONE) {
                return Some(self.path_share(&profile.stacks, |path| has(&hits, path.thread)));
            }
            if !profile.rows.iter().any(|row| row.thread != NONE) {
                return None;
            }
            let rows = profile.rows.iter().filter(|row| has(&hits, row.thread));
            Some(
                rows.inspect(|row| self.used(&row.source)).filter_map(|row| row.self_percent).sum(),
            )
        })
    }

    /// Percent of busy samples whose function lies in a matching module.
    pub fn module_self(&self, module: &str) -> Known<f64> {
        let pattern = self.selector(module)?;
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.modules.matching(&pattern);
            self.leaf_share(profile, |place| has(&hits, place.module))
        })
    }

    /// Percent of busy samples in functions without a name that lie in a matching module.
    pub fn unnamed_in(&self, module: &str) -> Known<f64> {
        let pattern = self.selector(module)?;
        self.first_known(NO_PROFILE, |profile| {
            let hits = profile.modules.matching(&pattern);
            self.leaf_share(profile, |place| place.symbol == NONE && has(&hits, place.module))
        })
    }

    /// Percent of busy samples in user space.
    pub(super) fn profiled_user_share(&self) -> Known<f64> {
        self.first_known("user and kernel marks in the profile", |profile| {
            let is_known = |kernel: Option<bool>| kernel.is_some();
            let any = profile
                .stacks
                .iter()
                .any(|path| path.places.first().is_some_and(|p| is_known(p.kernel)))
                || profile.rows.iter().any(|row| is_known(row.place.kernel));
            any.then(|| {
                self.leaf_share(profile, |place| place.kernel == Some(false)).unwrap_or(0.0)
            })
        })
    }

    /// Percent of busy samples that belong to ZFS: one of its modules on the stack, or one of its
    /// threads.
    pub fn profiled_zfs_share(&self) -> Known<f64> {
        self.first_known(NO_PROFILE, |profile| {
            if !profile.stacks.is_empty() {
                return Some(self.path_share(&profile.stacks, |path| profile.is_zfs(path)));
            }
            let ours = |row: &&Row| row.place.zfs || profile.is_zfs_thread(row.thread);
            let own: f64 =
                profile.rows.iter().filter(ours).filter_map(|row| row.self_percent).sum();
            let chained = self.path_share(&profile.chains, |path| profile.is_zfs(path));
            Some(own.max(chained))
        })
    }

    /// Percent of busy samples in user processes outside ZFS.
    pub(super) fn profiled_process_share(&self) -> Known<f64> {
        self.first_known("thread names in the profile", |profile| {
            let named = profile.stacks.iter().any(|path| path.thread != NONE);
            named.then(|| {
                self.path_share(&profile.stacks, |path| {
                    let name = profile.threads.name(path.thread);
                    name.is_some_and(|name| self.owner(name) == Owner::Program)
                        && !profile.is_zfs(path)
                })
            })
        })
    }

    /// Number of busy samples.
    pub fn profile_samples(&self) -> Known<f64> {
        match self.profiles.iter().find_map(|profile| profile.busy_samples) {
            Some(samples) => Ok(samples),
            None => absent("the number of samples"),
        }
    }

    /// Whether there is a profile, and whether it has callers.
    pub fn profile_kind(&self) -> (bool, bool) {
        (!self.profiles.is_empty(), self.profiles.iter().any(ProfileIndex::has_callers))
    }

    /// The functions with the largest own share, best first: name, module, percent.
    pub fn top_symbols(&self, at_most: usize) -> Vec<(String, String, f64)> {
        let Some(profile) = self.profiles.first() else { return Vec::new() };
        let mut sums: std::collections::HashMap<(u32, u32), f64> = std::collections::HashMap::new();
        if profile.stacks.is_empty() {
            for row in &profile.rows {
                *sums.entry((row.place.symbol, row.place.module)).or_default() +=
                    row.self_percent.unwrap_or(0.0);
            }
        } else {
            for path in &profile.stacks {
                if let Some(place) = path.places.first() {
                    *sums.entry((place.symbol, place.module)).or_default() += path.percent;
                }
            }
        }
        let name = |names: &super::profile_index::Names, number| {
            names.name(number).unwrap_or("?").to_owned()
        };
        let mut rows: Vec<(String, String, f64)> = sums
            .into_iter()
            .map(|((symbol, module), percent)| {
                (name(&profile.symbols, symbol), name(&profile.modules, module), percent)
            })
            .collect();
        rows.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        rows.truncate(at_most);
        rows
    }

    /// Percent of the busy samples that the best profile shows: tables of functions are often cut.
    pub fn profile_shown(&self) -> f64 {
        let usable = self.profiles.iter().find(|one| one.weighted || !one.rows.is_empty());
        usable.map_or(0.0, |profile| {
            if !profile.stacks.is_empty() {
                return 100.0;
            }
            let rows = profile.rows.iter().filter_map(|row| row.self_percent).sum::<f64>();
            let chains = profile.chains.iter().map(|path| path.percent).sum::<f64>();
            rows.max(chains).min(100.0)
        })
    }

    /// The users of the busy samples, largest first, if the profile names threads.
    pub fn profiled_users(&self) -> Vec<Consumer> {
        let users = self.profiled_consumers();
        if !users.is_empty() {
            return users.to_vec();
        }
        let Some(profile) =
            self.profiles.iter().find(|one| one.rows.iter().any(|row| row.thread != NONE))
        else {
            return Vec::new();
        };
        // A table of callers and callees repeats a thread's samples in its largest row.
        let mut shares: std::collections::BTreeMap<&str, (f64, f64)> =
            std::collections::BTreeMap::new();
        for row in &profile.rows {
            let Some(name) = profile.threads.name(row.thread) else { continue };
            let share = shares.entry(name).or_default();
            share.0 += row.self_percent.unwrap_or(0.0);
            share.1 = share.1.max(row.total_percent.unwrap_or(0.0));
        }
        let rows = shares.into_iter().map(|(name, (own, total))| {
            (name.to_owned(), name.to_owned(), own.max(total), self.owner(name))
        });
        shares_of(rows)
    }

    /// Threads of the samples with their processes and percent.
    pub(super) fn profiled_threads(&self) -> Vec<(String, String, f64)> {
        let Some(profile) = self
            .profiles
            .iter()
            .find(|profile| profile.stacks.iter().any(|path| path.thread != NONE))
        else {
            return Vec::new();
        };
        let mut sums: std::collections::BTreeMap<(u32, u32), f64> =
            std::collections::BTreeMap::new();
        for path in &profile.stacks {
            *sums.entry((path.process, path.thread)).or_default() += path.percent;
        }
        let name = |number| profile.threads.name(number).map(str::to_owned);
        sums.into_iter()
            .filter_map(|((process, thread), percent)| {
                Some((name(process)?, name(thread)?, percent))
            })
            .collect()
    }

    /// The first profile, best first, that can answer.
    fn first_known(&self, what: &str, answer: impl Fn(&ProfileIndex) -> Option<f64>) -> Known<f64> {
        let usable = self.profiles.iter().filter(|profile| {
            let few = profile.busy_samples.is_some_and(|count| count < FEWEST_SAMPLES);
            !few && (profile.weighted || !profile.rows.is_empty())
        });
        match usable.filter_map(answer).next() {
            Some(share) => Ok(share.clamp(0.0, 100.0)),
            None => Err(Missing::Absent(what.to_owned())),
        }
    }

    /// Sum of matching paths; it cites the largest.
    fn path_share(&self, paths: &[Path], matches: impl Fn(&Path) -> bool) -> f64 {
        let mut sum = 0.0;
        let mut largest: Option<&Path> = None;
        for path in paths.iter().filter(|path| matches(path)) {
            sum += path.percent;
            if largest.is_none_or(|known| known.percent < path.percent) {
                largest = Some(path);
            }
        }
        if let Some(path) = largest {
            self.used(&path.source);
        }
        sum
    }

    /// Share of samples whose leaf matches; `None` if a cut table leaves it open.
    fn leaf_share(
        &self,
        profile: &ProfileIndex,
        matches: impl Fn(&super::profile_index::Place) -> bool,
    ) -> Option<f64> {
        if !profile.stacks.is_empty() {
            return Some(
                self.path_share(&profile.stacks, |path| path.places.first().is_some_and(&matches)),
            );
        }
        let mut shown = 0.0;
        let mut smallest = f64::INFINITY;
        let mut sum = 0.0;
        let mut found = false;
        for row in &profile.rows {
            let Some(percent) = row.self_percent else { continue };
            shown += percent;
            smallest = f64::min(smallest, percent);
            if matches(&row.place) {
                found = true;
                sum += percent;
                self.used(&row.source);
            }
        }
        // A missing row is smaller than the smallest row; if that is small, it is as good as zero.
        let rest_is_small = shown > 80.0 || smallest < 3.0;
        (found || (shown > 0.0 && rest_is_small)).then_some(sum)
    }

    /// Largest inclusive percentage of one matching function, summed over threads.
    fn row_total(&self, profile: &ProfileIndex, hits: &Hits) -> f64 {
        let mut sums: std::collections::HashMap<u32, f64> = std::collections::HashMap::new();
        for row in profile.rows.iter().filter(|row| hits.has(&row.place)) {
            if let Some(total) = row.total_percent.or(row.self_percent) {
                self.used(&row.source);
                *sums.entry(row.place.symbol).or_default() += total;
            }
        }
        sums.into_values().fold(0.0, f64::max)
    }
}
