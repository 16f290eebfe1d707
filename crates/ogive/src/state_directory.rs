//! The state directory: the default place for files that must outlive the process.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The path of `what`; `option` names another place.
pub(crate) fn path(what: &str, option: &str) -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directory) = variable("STATE_DIRECTORY") {
        return Ok(PathBuf::from(directory));
    }
    if crate::fuse::is_root() {
        return Ok(PathBuf::from("/var/lib/ogive"));
    }
    if let Some(directory) = variable("XDG_STATE_HOME") {
        return Ok(Path::new(&directory).join("ogive"));
    }
    let home = variable("HOME")
        .with_context(|| format!("no place to keep {what}: HOME is not set; give {option}"))?;
    Ok(Path::new(&home).join(".local/state/ogive"))
}
