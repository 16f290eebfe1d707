//! `--history`: the place of the history file, and the warnings if it cannot be used.

use std::path::{Path, PathBuf};

use anyhow::Result;
use ogive_watch::week::{Unusable, Week};

use crate::exit::{self, Refusal};
use crate::{logger, state_directory};

/// Name of the file in the state directory.
const NAME: &str = "watch.history";

/// Opens the file that was named, or the usual one.
pub(super) fn open(named: Option<&Path>) -> Result<Week> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => usual()?,
    };
    let opened = Week::open(&path).map_err(|unusable| refusal(&path, &unusable))?;
    if let Some((why, there)) = opened.set_aside {
        logger::print(&format!(
            "the history in {} is damaged ({why}); it was renamed to {}, and a new one begins",
            path.display(),
            there.display()
        ));
    }
    Ok(opened.week)
}

fn usual() -> Result<PathBuf> {
    let directory = state_directory::path("the history", "--history=FILE")?;
    ogive_private::create_directories(&directory).map_err(|error| {
        let text = format!("cannot make {}: {error}", directory.display());
        Refusal::new(exit::FAILURE, text).hint("--history=FILE keeps the history elsewhere")
    })?;
    Ok(directory.join(NAME))
}

fn refusal(path: &Path, unusable: &Unusable) -> Refusal {
    let text = format!("cannot keep a history in {}: {unusable}", path.display());
    match unusable {
        Unusable::InUse => Refusal::new(exit::BUSY, text).hint(
            "another \"ogive watch\" keeps it already: open its page, or give --history=FILE",
        ),
        Unusable::Foreign => Refusal::new(exit::USAGE, text)
            .hint("the file stays as it is; --history=FILE names another"),
        Unusable::Failed(_) => Refusal::new(exit::FAILURE, text)
            .hint("--history=FILE names a file that can be written to"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        format!("{:#}", open(Some(path)).unwrap_err())
    }

    #[test]
    fn an_unusable_file_is_refused_with_its_path_and_the_next_step() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("history");
        std::fs::write(&path, "something else").unwrap();
        let text = refusal(&path);
        assert!(text.contains("a file of something else"), "{text}");
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        std::fs::remove_file(&path).unwrap();
        let _week = open(Some(&path)).unwrap();
        assert!(refusal(&path).contains("another process writes to it"));
        assert!(refusal(&place.path().join("no/where")).contains("No such file"));
    }
}
