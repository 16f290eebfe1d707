//! Requests to a mount by kind, counted by the kernel.
//!
//! Every FUSE request passes the kernel's trace event `fuse_request_send`, so all peers are counted
//! alike. The events of one connection go to a trace buffer that no other program uses, and that is
//! removed afterwards. `FORGET` is missing, because the kernel does not trace it.

use std::collections::BTreeMap;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::error::{Context, Result};

/// Requests by kind, in lower case and without `FUSE_`.
pub type Kinds = BTreeMap<String, u64>;

/// Room for events, for each processor. An event takes 44 bytes.
const BUFFER_KIB: u32 = 48 << 10;

/// Requests being counted.
pub struct Requests {
    tracing: PathBuf,
    buffer: PathBuf,
}

impl Requests {
    /// Begins to count those of the file system that is mounted at `root`.
    pub fn begin(work: &Path, root: &Path) -> Result<Self> {
        let device = fs::metadata(root).context(|| format!("cannot look at {}", root.display()))?;
        let connection = nix::sys::stat::minor(device.st_dev());
        let tracing = work.join("tracing");
        fs::create_dir_all(&tracing).context(|| format!("cannot make {}", tracing.display()))?;
        mount(Some("tracefs"), &tracing, Some("tracefs"), MsFlags::empty(), None::<&str>)
            .context(|| "cannot mount tracefs".into())?;
        let buffer = tracing.join(format!("instances/bench-{}", std::process::id()));
        let requests = Self { tracing, buffer };
        fs::create_dir(&requests.buffer).context(|| "cannot make a trace buffer".into())?;
        requests.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        requests.set(&event("filter"), &format!("connection=={connection}"))?;
        requests.set(&event("enable"), "1")?;
        Ok(requests)
    }

    /// Ends counting.
    pub fn end(self) -> Result<Kinds> {
        self.set(&event("enable"), "0")?;
        for cpu in fs::read_dir(self.buffer.join("per_cpu")).into_iter().flatten().flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap_or_default();
            let lost = stats.lines().find_map(|line| line.strip_prefix("overrun: "));
            if lost.is_some_and(|lost| lost.trim() != "0") {
                return Err("the trace buffer was too small for all requests".into());
            }
        }
        let path = self.buffer.join("trace");
        let text =
            fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
        let mut kinds = Kinds::new();
        for kind in text.lines().filter_map(kind) {
            *kinds.entry(kind).or_default() += 1;
        }
        Ok(kinds)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.buffer.join(file);
        fs::write(&path, value).context(|| format!("cannot write {value} to {}", path.display()))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.buffer);
        let _ = umount2(&self.tracing, MntFlags::MNT_DETACH);
    }
}

fn event(file: &str) -> String {
    format!("events/fuse/fuse_request_send/{file}")
}

/// The kind in a line of the trace.
fn kind(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("(FUSE_")?;
    Some(rest.split_once(')')?.0.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_read_from_a_line_of_the_trace() {
        let line = " touch-30680   [001] ...1.  3818.235110: fuse_request_send: connection 42 req 14 \
                    opcode 1 (FUSE_LOOKUP) len 42 ";
        assert_eq!(kind(line).as_deref(), Some("lookup"));
        assert_eq!(kind("# tracer: nop"), None);
    }
}
