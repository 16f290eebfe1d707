//! What can be typed after `ogive watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::help::{self, Section};

/// Show live what this host and its caches do, on a page in a browser
///
/// Serves a page with charts of the CPUs, the memory and each mount of ogive, and of OpenZFS where
/// it is. Prints the page's address and serves until interrupted (SIGINT) or told to end (SIGTERM;
/// a shell's script starts what ends in "&" deaf to SIGINT). The address ends in a token, which the
/// browser keeps to itself; whoever has it may do what the page can do, others of this host may
/// only look at counters. Nothing is measured while no page is open, unless --history keeps the
/// last week. /metrics has the counters of all mounts for Prometheus.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct WatchArgs {
    /// Mounts to show; without any, all of this host, those that come later too
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_points: Vec<PathBuf>,

    /// Where to listen
    ///
    /// Only the loopback addresses need no --token. Port 0 takes any that is free.
    #[arg(short, long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7380")]
    pub(crate) listen: SocketAddr,

    /// Want the token in this file of everybody, also of those who only look
    ///
    /// A line of 16 or more letters and digits, in a file that only its owner can read. Needed
    /// for an address that other hosts reach.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token: Option<PathBuf>,

    /// Another name that browsers may ask for, such as that of a proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// Keep the last week in a file, and measure while no page is open, too
    ///
    /// Every ten seconds while no page is open; a minute is kept as mean, least and greatest of
    /// each figure. The page can then show six hours, a day and the week. The file has at most some
    /// 100 MiB, mostly a tenth of that. Without FILE it is watch.history in /var/lib/ogive for
    /// root, in $XDG_STATE_HOME/ogive or ~/.local/state/ogive for others.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, num_args = 0..=1,
          require_equals = true)]
    pub(crate) history: Option<Option<PathBuf>>,

    /// Open the page in a browser, too
    ///
    /// The first command of $BROWSER that can be started, or xdg-open, as the user who started
    /// ogive. The token is not on its command line, which others can read: it is in a file that
    /// only this user can, removed a minute later.
    #[arg(long)]
    pub(crate) open: bool,
}

/// What follows the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("sudo ogive watch", "Watch this host; open the address that is printed."),
            ("ogive watch /mnt/fast --listen 127.0.0.1:0", "One mount, at any free port."),
            ("sudo ogive watch --history", "With the last week, from now on."),
            ("ogive watch --open", "Without root: what this user may see, in a browser."),
            (
                "ogive watch > link & watch=$!; ...; kill $watch",
                "In a script: the address is in a file, and kill(1) sends SIGTERM.",
            ),
            (
                "ogive watch --listen 192.0.2.1:7380 --token /etc/ogive/token",
                "For other hosts, with a token of your own.",
            ),
        ]),
        help::exit_codes(),
        help::terms(
            "Files",
            &[
                ("/proc/stat, /proc/meminfo, /proc/pressure", "Where the host's figures are read."),
                ("MNT/.ogive/arcstats, ogivestats", "Where a mount's figures are read."),
                ("MNT/.ogive/objects, reads", "Where it tells what is in its cache and is read."),
                ("/var/lib/ogive/watch.history", "The last week, with --history, as root."),
            ],
        ),
    ]
}
