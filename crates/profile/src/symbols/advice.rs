//! Advice for missing names on this distribution: the file, the variables and the commands.
//!
//! DKMS reads the file that the package's dkms.conf names (`PACKAGE_CONFIG`). On Debian this is
//! /etc/dkms/zfs.conf, although /etc/default/zfs lists the same variables.

use std::path::{Path, PathBuf};

use crate::model::{Profile, Reason, Unresolved, ZFS_MODULES};

/// Below this share of all weight no advice is given.
const SHARE_MIN: f64 = 0.01;
/// The facts about the profiled machine that advice depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct System {
    /// `ID` of /etc/os-release.
    pub distribution: String,
    /// The file that DKMS reads for ZFS, if DKMS builds ZFS.
    pub dkms_config: Option<PathBuf>,
    /// The version of ZFS that DKMS builds.
    pub dkms_version: Option<String>,
    /// Kernel release.
    pub release: String,
}

impl System {
    /// This machine.
    pub fn here() -> Self {
        Self::below(Path::new("/"))
    }

    /// A machine whose root directory is available here.
    pub fn below(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let os_release = read("etc/os-release");
        let id = os_release.lines().find_map(|line| line.strip_prefix("ID="));
        let mut system = Self {
            distribution: id.unwrap_or_default().trim_matches('"').to_owned(),
            release: rustix::system::uname().release().to_string_lossy().into_owned(),
            ..Self::default()
        };
        let sources = std::fs::read_dir(root.join("usr/src")).into_iter().flatten().flatten();
        for source in sources {
            let name = source.file_name().to_string_lossy().into_owned();
            let Some(version) = name.strip_prefix("zfs-") else { continue };
            let Ok(text) = std::fs::read_to_string(source.path().join("dkms.conf")) else {
                continue;
            };
            system.dkms_version = Some(version.to_owned());
            system.dkms_config = package_config(&text);
        }
        system
    }
}

/// The value of `PACKAGE_CONFIG` in a dkms.conf.
fn package_config(text: &str) -> Option<PathBuf> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PACKAGE_CONFIG="))?;
    let value = value.trim_matches(['"', '\'', ' ']);
    value.starts_with('/').then(|| PathBuf::from(value))
}

/// Advice for this machine, most important first; empty if nothing important is missing. See
/// [`advice_for`].
pub fn advice(profile: &Profile) -> Vec<String> {
    if profile.meta.unresolved.is_empty() {
        return Vec::new();
    }
    advice_for(profile, &System::here())
}

/// Advice for the names that a profile of a machine lacks.
pub fn advice_for(profile: &Profile, system: &System) -> Vec<String> {
    let total = profile.busy().weight();
    let matters = |entry: &&Unresolved| entry.self_weight as f64 >= total as f64 * SHARE_MIN;
    let missing: Vec<&Unresolved> = profile.meta.unresolved.iter().filter(matters).collect();
    let share = |entry: &Unresolved| {
        format!("{:.0}% of the CPU", entry.self_weight as f64 / total.max(1) as f64 * 100.0)
    };
    let mut lines = Vec::new();
    let mut say = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    for entry in missing {
        let (what, share) = (&entry.module, share(entry));
        let zfs = ZFS_MODULES.contains(&what.as_str());
        match entry.reason {
            Reason::KallsymsHidden => say(
                "kernel functions have no names: /proc/kallsyms hides addresses; run as root, or \
                 setcap cap_perfmon,cap_syslog+ep on the program, or sysctl kernel.kptr_restrict=0 \
                 kernel.perf_event_paranoid=1"
                    .to_owned(),
            ),
            Reason::OtherKernel if entry.kernel => {
                say(format!(
                    "{share} is in {what} without names: the recording has no symbols of its \
                     kernel; on that machine and before it is booted again, save them (sudo cat \
                     /proc/kallsyms > kallsyms) and give them with --kallsyms"
                ));
                if zfs {
                    let advice = module_advice(what, &share, zfs, system);
                    say(format!("if kallsyms has no names of {what} either: {advice}"));
                }
            }
            Reason::UnnamedInSource if entry.kernel && !zfs => say(format!(
                "{share} is in {what} without names, which the text does not have; record again \
                 with ogive profile, or save perf.data and /proc/kallsyms instead of the text"
            )),
            Reason::BuildDiffers => say(format!(
                "{share} is in {what}, whose file here is of another build than the one that \
                 ran{}; give the directory of the right one with --symbols",
                if entry.kernel { " (rebuilt and not loaded again?)" } else { "" }
            )),
            Reason::ModuleUnknown
            | Reason::FileMissing
            | Reason::Stripped
            | Reason::UnnamedInSource
            | Reason::OtherKernel
                if entry.kernel =>
            {
                say(module_advice(what, &share, zfs, system));
            }
            Reason::Stripped | Reason::FileMissing if what.starts_with('/') => {
                say(format!("{share} is in {what} without names; {}", user_advice(system)));
            }
            Reason::NoMapping if !entry.kernel => say(format!(
                "{share} is in user code that is in no file: generated code (have the runtime \
                 write /tmp/perf-PID.map: node --perf-basic-prof, java with perf-map-agent), or \
                 programs built without frame pointers; kernel stacks are not concerned"
            )),
            _ => {}
        }
    }
    if lines.iter().any(|line| line.contains("ENABLE_DEBUGINFO")) {
        lines.push(
            "mind: OpenZFS builds with debug information without inlining (-fno-inline), so that \
             the code which is then measured is not quite the code that ran; names alone need \
             only that modules are not stripped"
                .to_owned(),
        );
    }
    lines
}

fn module_advice(module: &str, share: &str, zfs: bool, system: &System) -> String {
    let name = module.trim_matches(['[', ']']);
    if !zfs {
        return format!(
            "{share} is in the module {name} without names: its symbols are neither in the \
             kallsyms at hand nor in a file; sample with ogive profile as root while it is loaded"
        );
    }
    let config = system.dkms_config.as_deref().unwrap_or(match system.distribution.as_str() {
        "debian" => Path::new("/etc/dkms/zfs.conf"),
        "ubuntu" | "linuxmint" | "arch" | "manjaro" => Path::new("/etc/default/zfs"),
        _ => Path::new("/etc/sysconfig/zfs"),
    });
    let sure = match &system.dkms_config {
        Some(_) => "",
        None => " (the file that PACKAGE_CONFIG names in /usr/src/zfs-*/dkms.conf)",
    };
    let version = system.dkms_version.as_deref().unwrap_or("VERSION");
    let release = if system.release.is_empty() { "$(uname -r)" } else { system.release.as_str() };
    format!(
        "{share} is in OpenZFS's module {name} without names: it was stripped. Put \
         ZFS_DKMS_DISABLE_STRIP=yes, and for lines ZFS_DKMS_ENABLE_DEBUGINFO=yes, into {}{sure}; \
         then: dkms build --force zfs/{version} -k {release} && dkms install --force zfs/{version} \
         -k {release} && depmod {release}; export the pools and load the modules again, or boot. \
         Without a rebuild, sampling live as root names what /proc/kallsyms has",
        config.display(),
    )
}

fn user_advice(system: &System) -> &'static str {
    match system.distribution.as_str() {
        "debian" => {
            "install its -dbgsym package (deb http://deb.debian.org/debian-debug/), or set \
             DEBUGINFOD_URLS=https://debuginfod.debian.net and fetch it"
        }
        "ubuntu" => "install its -dbgsym package (ddebs.ubuntu.com)",
        "fedora" | "rhel" | "centos" | "rocky" | "almalinux" => "dnf debuginfo-install its package",
        "arch" => "fetch its symbols: DEBUGINFOD_URLS=https://debuginfod.archlinux.org",
        "opensuse-leap" | "opensuse-tumbleweed" | "sles" => "install its -debuginfo package",
        _ => "install the debug symbols of its package",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Meta, Mode, Sample, StackId};

    fn missing(module: &str, kernel: bool, reason: Reason) -> Profile {
        let mut profile = Profile::new(Meta::default());
        let thread = profile.add_thread(1, 1, "z_rd_int");
        let (symbol, name) = (profile.intern(""), profile.intern(module));
        let mode = if kernel { Mode::Kernel } else { Mode::User };
        let frame = profile.add_frame(symbol, name, mode, 7);
        let stack = profile.push_frame(StackId::EMPTY, frame);
        profile.push(Sample { time_ns: 1, weight: 100, thread, cpu: 0, stack, count: 1 });
        profile.meta.unresolved.push(Unresolved {
            module: module.to_owned(),
            kernel,
            addresses: 1,
            self_weight: 100,
            reason,
        });
        profile.finish();
        profile
    }

    #[test]
    fn advice_names_the_file_that_dkms_reads() {
        let root = tempfile::tempdir().unwrap();
        let place = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        place("etc/os-release", "NAME=\"Debian\"\nID=debian\n");
        place("etc/default/zfs", "ZFS_DKMS_ENABLE_DEBUGINFO=no\n");
        place(
            "usr/src/zfs-2.1.11/dkms.conf",
            "PACKAGE_NAME=\"zfs\"\nPACKAGE_CONFIG=\"/etc/dkms/zfs.conf\"\n",
        );
        let system = System::below(root.path());
        assert_eq!(system.dkms_config.as_deref(), Some(Path::new("/etc/dkms/zfs.conf")));
        let lines = advice_for(&missing("[icp]", true, Reason::Stripped), &system);
        assert!(
            lines[0].contains("/etc/dkms/zfs.conf") && lines[0].contains("zfs/2.1.11"),
            "{lines:?}"
        );
        assert!(
            lines[0].contains("ZFS_DKMS_DISABLE_STRIP") && lines[0].contains("100% of the CPU")
        );
        assert!(lines[1].contains("-fno-inline"));
    }

    #[test]
    fn each_reason_has_its_own_advice_and_small_shares_have_none() {
        let system = System { distribution: "debian".to_owned(), ..System::default() };
        for (module, kernel, reason, word) in [
            ("[kernel.kallsyms]", true, Reason::KallsymsHidden, "kptr_restrict"),
            ("[kernel.kallsyms]", true, Reason::OtherKernel, "--kallsyms"),
            ("[zfs]", true, Reason::UnnamedInSource, "ZFS_DKMS_ENABLE_DEBUGINFO"),
            ("[zfs]", true, Reason::BuildDiffers, "another build"),
            ("/usr/bin/x", false, Reason::Stripped, "-dbgsym"),
            ("[unknown]", false, Reason::NoMapping, "frame pointers"),
        ] {
            let lines = advice_for(&missing(module, kernel, reason), &system);
            assert!(lines[0].contains(word), "{reason:?}: {lines:?}");
        }
        let mut trifle = missing("[zfs]", true, Reason::Stripped);
        trifle.meta.unresolved[0].self_weight = 0;
        assert_eq!(advice_for(&trifle, &system), Vec::<String>::new());
    }
}
