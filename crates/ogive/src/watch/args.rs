//! The options of `ogive watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::help::{self, Section};

/// Show this host and its caches live, on a page in a browser
///
/// Serves a page with charts of the CPUs, the memory, each ogive mount, and OpenZFS if this host
/// has it. Prints the address of the page and serves until SIGINT or SIGTERM. (In a script, a
/// command that ends in "&" ignores SIGINT.) The address ends in a token, which gives access to
/// everything the page can do; without it, users of this host can only read counters. The host is
/// measured only while a page is open, unless --history keeps the last week. /metrics serves the
/// counters of all mounts to Prometheus.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct WatchArgs {
    /// Mounts to show; without any, all of this host, including later ones
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_points: Vec<PathBuf>,

    /// Where to listen
    ///
    /// Any address but loopback needs --token. With port 0 the system chooses a free port.
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7380")]
    pub(crate) listen: SocketAddr,

    /// Require the token in this file for every request, even to read counters
    ///
    /// The file has one line of 16 or more letters and digits, and only its owner can read it.
    /// Required for an address that other hosts can reach.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token: Option<PathBuf>,

    /// Another host name that browsers may use, such as that of a proxy; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// Keep the last week in a file, and measure even while no page is open
    ///
    /// While no page is open, ogive measures every ten seconds. The file keeps the mean, minimum
    /// and maximum of each figure for every minute. The page can then show six hours, a day and the
    /// week. The file takes at most 100 MiB, usually a tenth of that. Without FILE it is
    /// watch.history in /var/lib/ogive for root, in $XDG_STATE_HOME/ogive or ~/.local/state/ogive
    /// for others.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, num_args = 0..=1,
          require_equals = true)]
    pub(crate) history: Option<Option<PathBuf>>,

    /// Also open the page in a browser
    ///
    /// Runs the first command of $BROWSER that starts, or xdg-open, as the user who started ogive.
    /// The token is not on the command line, which other users can read. It is in a file that only
    /// this user can read, and that is removed a minute later.
    #[arg(long)]
    pub(crate) open: bool,
}

/// The sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("sudo ogive watch", "Watch this host; open the printed address."),
            ("ogive watch /mnt/fast --listen 127.0.0.1:0", "One mount, at a free port."),
            ("sudo ogive watch --history", "Keep the last week from now on."),
            ("ogive watch --open", "Without root: everything this user may see, in a browser."),
            (
                "ogive watch > link & watch=$!; ...; kill $watch",
                "In a script: write the address to a file, and end with SIGTERM.",
            ),
            (
                "ogive watch --listen 192.0.2.1:7380 --token /etc/ogive/token",
                "For other hosts, with your own token.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("/proc/stat, /proc/meminfo, /proc/pressure", "The host's figures."),
                ("MNT/.ogive/arcstats, ogivestats", "A mount's figures."),
                ("MNT/.ogive/objects, reads", "A mount's cached files and recent reads."),
                ("/var/lib/ogive/watch.history", "The last week, with --history, as root."),
            ],
        ),
    ]
}
