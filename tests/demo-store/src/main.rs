//! Serves a directory as an S3 store on loopback until it gets SIGINT or SIGTERM.
//!
//! The first line of its output is the address of the store, for scripts; the next lines show how
//! to mount it.

use anyhow::{Context as _, Result};
use clap::Parser;
use ogive_demo_store::DemoStore;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::path::PathBuf;

/// Serve a directory as an S3 store on loopback, to try buckets without an account
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Directory of the objects: an empty or new one, or that of an earlier run
    directory: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { directory } = Arguments::parse();
    let directory = std::path::absolute(&directory)
        .with_context(|| format!("cannot serve {}", directory.display()))?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot catch signals")?;
    let store = DemoStore::start(&directory)
        .with_context(|| format!("cannot serve {}", directory.display()))?;
    let quoted = |name: &str| {
        let path = directory.join(name).display().to_string();
        shlex::try_quote(&path).map(|quoted| quoted.into_owned())
    };
    let text = format!(
        "{}\nmount it: . {}; ogive mount --stage {} s3://{} MNT\nend it: Ctrl-C\n",
        store.endpoint(),
        quoted("client.env")?,
        quoted("stage")?,
        store.bucket(),
    );
    // A reader that needs only the first line may have closed the pipe.
    let _ = std::io::stdout().write_all(text.as_bytes());
    signals.forever().next();
    Ok(())
}
