//! Probes (`probes.toml`) and commands that change something (`actions.toml`), which rules name.
//!
//! Both are rows with a command for each system. The files are part of the program and are parsed
//! once; the crate's tests check that they parse.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::SignKind;

/// An open question that a probe answers where no cause is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// The users of the CPU.
    Who,
    /// The work of the kernel.
    Kernel,
    /// The work of a program.
    Program,
    /// The busy disk, and the process that uses it.
    Disks,
    /// The users of memory.
    Memory,
    /// The source of interrupts.
    Interrupts,
    /// The guests that take the CPU time.
    Stolen,
    /// The contended locks.
    Locks,
    /// The waits of threads in uninterruptible sleep.
    Sleepers,
}

/// A command of one system.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Here {
    Run(String),
    Full {
        run: String,
        #[serde(default)]
        means: Vec<String>,
        #[serde(default)]
        given: Vec<String>,
    },
}

impl Here {
    fn run(&self) -> &str {
        match self {
            Self::Run(run) | Self::Full { run, .. } => run,
        }
    }
}

/// A probe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Its name.
    pub id: String,
    /// The fact that it shows, as the rest of "to see ...".
    pub shows: String,
    /// The open question that it answers.
    #[serde(default)]
    pub question: Option<Question>,
    /// Kinds of signs that it decides.
    #[serde(default)]
    pub kinds: Vec<SignKind>,
    /// Tables of figures that it shows.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Formats of its output.
    #[serde(default)]
    given: Vec<String>,
    /// Whether it needs a pool.
    #[serde(default)]
    pub pool: bool,
    #[serde(default)]
    means: Vec<String>,
    #[serde(default)]
    any: Option<Here>,
    #[serde(default)]
    linux: Option<Here>,
    #[serde(default)]
    freebsd: Option<Here>,
    #[serde(default)]
    illumos: Option<Here>,
    #[serde(default)]
    macos: Option<Here>,
    #[serde(default)]
    windows: Option<Here>,
}

impl Probe {
    /// Its row for a system. `any` is the row of every system without its own, except Windows.
    fn here(&self, system: &str) -> Option<&Here> {
        let own = match system {
            "freebsd" => &self.freebsd,
            "illumos" => &self.illumos,
            "macos" => &self.macos,
            "windows" => return self.windows.as_ref(),
            _ => &self.linux,
        };
        own.as_ref().or(self.any.as_ref())
    }

    /// The command on a system, if any.
    pub fn run(&self, system: &str) -> Option<&str> {
        self.here(system).map(Here::run).filter(|run| !run.is_empty())
    }

    /// The meaning of each outcome on a system.
    pub fn means(&self, system: &str) -> &[String] {
        match self.here(system) {
            Some(Here::Full { means, .. }) if !means.is_empty() => means,
            _ => &self.means,
        }
    }

    /// Formats of its output on a system.
    pub fn given(&self, system: &str) -> &[String] {
        match self.here(system) {
            Some(Here::Full { given, .. }) if !given.is_empty() => given,
            _ => &self.given,
        }
    }
}

/// An undo that is the same everywhere, or one for each system.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Undo {
    Everywhere(String),
    BySystem(BTreeMap<String, String>),
}

/// A command that changes something.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its name.
    pub id: String,
    /// Whether it needs a pool.
    #[serde(default)]
    pub pool: bool,
    #[serde(default)]
    undo: Option<Undo>,
    #[serde(default)]
    any: Option<String>,
    #[serde(default)]
    linux: Option<String>,
    #[serde(default)]
    freebsd: Option<String>,
}

impl Command {
    /// The command on a system, if any.
    pub fn run(&self, system: &str) -> Option<&str> {
        let own = match system {
            "freebsd" => &self.freebsd,
            "" | "linux" => &self.linux,
            "windows" => return None,
            _ => &None,
        };
        own.as_deref().or(self.any.as_deref())
    }

    /// Its undo on that system.
    pub fn undo(&self, system: &str) -> Option<&str> {
        let system = if system.is_empty() { "linux" } else { system };
        match self.undo.as_ref()? {
            Undo::Everywhere(undo) => Some(undo),
            Undo::BySystem(all) => all.get(system).map(String::as_str),
        }
    }
}

#[derive(Deserialize)]
struct Probes {
    probe: Vec<Probe>,
}

#[derive(Deserialize)]
struct Commands {
    action: Vec<Command>,
}

static PROBES: LazyLock<Vec<Probe>> = LazyLock::new(|| {
    let read: Probes =
        toml::from_str(include_str!("../../probes.toml")).expect("the crate's tests read it");
    read.probe
});
static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
    let read: Commands =
        toml::from_str(include_str!("../../actions.toml")).expect("the crate's tests read it");
    read.action
});

/// All probes, in the order of their file.
pub fn probes() -> &'static [Probe] {
    &PROBES
}

/// A probe by its name.
pub fn probe(id: &str) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| probe.id == id)
}

/// All commands.
pub fn commands() -> &'static [Command] {
    &COMMANDS
}

/// A command by its name.
pub fn command(id: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own_and_a_command_somewhere() {
        const SYSTEMS: [&str; 5] = ["linux", "freebsd", "illumos", "macos", "windows"];
        let mut names: Vec<&str> = probes().iter().map(|probe| probe.id.as_str()).collect();
        names.extend(commands().iter().map(|command| command.id.as_str()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for probe in probes() {
            assert!(SYSTEMS.iter().any(|system| probe.run(system).is_some()), "{}", probe.id);
            assert!(!probe.shows.is_empty() && !probe.shows.ends_with('.'), "{}", probe.id);
        }
        for command in commands() {
            let runs = SYSTEMS.iter().filter(|system| command.run(system).is_some());
            assert!(runs.count() > 0, "{}", command.id);
        }
    }

    #[test]
    fn a_system_without_a_command_of_its_own_has_the_general_one() {
        let status = probe("pool-status").expect("a row");
        assert_eq!(status.run("illumos"), Some("zpool status -v"));
        assert_eq!(status.run("windows"), None);
        let files = probe("memory-files").expect("a row");
        assert_eq!((files.run("macos"), files.run("illumos")), (None, Some("df -F tmpfs")));
        let unload = command("unload").expect("a row");
        assert_eq!(
            (unload.undo("freebsd"), unload.undo("")),
            (Some("kldload zfs"), Some("modprobe zfs"))
        );
    }
}
