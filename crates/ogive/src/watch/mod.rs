//! `ogive watch`: the live view, on a page in a browser.
//!
//! `ogive-watch` has the page, its server and its gate. This module has the options, the access
//! tokens, and the privileges that the process gives up before it answers requests.

pub(crate) mod args;
mod browser;
mod history;
mod host_jobs;
mod hour_comparison;
mod privileges;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use ogive_doctor::rule::RuleSet;
use ogive_watch::http::{Gate, Limits, Routes, Server, Token};
use ogive_watch::sample::Watched;
use ogive_watch::sampler::Sampler;
use ogive_watch::{cached_files, curve, jobs, page, scrape};

use self::args::WatchArgs;
use self::host_jobs::Host;
use crate::exit::{self, Refusal};
use crate::mount::paths;
use crate::{logger, mountinfo};

/// A token is read out of so many bytes at most.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Runs the subcommand. It ends with the process.
pub(crate) fn run(args: &WatchArgs) -> Result<()> {
    let gate = gate(args)?;
    let mounts = watched(&args.mount_points)?;
    let token = gate.1;
    let week = args.history.as_ref().map(|file| history::open(file.as_deref())).transpose()?;
    // Before there is a thread: rights are a thread's, and new ones have their parent's.
    privileges::drop_unneeded().context("cannot drop unneeded privileges")?;
    let sampler =
        Sampler::start(mounts.clone(), week).context("cannot start the thread that measures")?;
    let rules = RuleSet::bundled().context("cannot use the built-in rules")?;
    let routes = page::routes(Routes::new(), sampler.clone());
    let routes = scrape::routes(routes, mounts);
    let routes = cached_files::routes(routes, sampler.clone());
    let routes = curve::routes(routes, sampler.clone());
    let routes = jobs::routes(routes, &sampler, Arc::new(Host::new(rules)));
    let server = Server::bind(args.listen, gate.0, routes, Limits::default());
    let server = server.map_err(|error| cannot_listen(args.listen, &error))?;
    let address = server.address().context("cannot tell the address of the server")?;
    let link = link(address, &token);
    tell(&link)?;
    if args.open {
        // The port is bound, so requests that come before it serves wait in the kernel.
        if let Err(reason) = browser::open(std::env::var_os("BROWSER").as_deref(), &link) {
            logger::print(&format!("{reason}; open the link above in a browser"));
        }
    }
    server.serve()
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Refusal {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        "another \"ogive watch\" may be running; --listen 127.0.0.1:0 takes any free port"
    } else {
        "--listen ADDRESS:PORT names another address of this host"
    };
    Refusal::new(exit::FAILURE, format!("cannot listen on {address}: {error}")).hint(hint)
}

/// The gate, with its token.
fn gate(args: &WatchArgs) -> Result<(Gate, Token)> {
    let address = args.listen.ip();
    let token = match &args.token {
        Some(path) => chosen_token(path)?,
        None if !address.is_loopback() => {
            return Err(Refusal::new(
                exit::USAGE,
                format!("cannot listen on {}: other hosts reach it", args.listen),
            )
            .hint("name a file with a token: --token FILE; or listen on 127.0.0.1")
            .into());
        }
        None => Token::random().context("cannot make a token")?,
    };
    let mut gate = Gate::new(address, token.clone());
    if args.token.is_some() {
        gate = gate.closed();
    }
    for name in &args.host {
        gate = gate.name(name);
    }
    Ok((gate, token))
}

fn chosen_token(path: &Path) -> Result<Token> {
    let refuse = |reason: String| {
        Refusal::new(exit::USAGE, format!("cannot use the token in {}: {reason}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mode = file.metadata().map_err(|error| refuse(error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(refuse("users other than its owner may read or write it".to_owned())
            .hint(format!("chmod 600 {}", ogive_text::ShellWord(path.as_os_str())))
            .into());
    }
    let mut text = String::new();
    file.take(TOKEN_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    Ok(Token::chosen(&text)
        .map_err(|reason| refuse(reason).hint("\"openssl rand -hex 16\" makes a good one"))?)
}

/// The mounts that were named, by the paths that the kernel lists.
///
/// The mounts themselves are not accessed, because one may hang.
pub(crate) fn watched(named: &[PathBuf]) -> Result<Watched> {
    if named.is_empty() {
        return Ok(Watched::All);
    }
    let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
    let mut found = Vec::new();
    for path in named {
        let refuse = |reason: &str| {
            Refusal::new(exit::MOUNT_POINT, format!("cannot watch {}: {reason}", path.display()))
        };
        let real = paths::resolve(&mounts, path).map_err(|error| refuse(&paths::reason(&error)))?;
        let mount = mountinfo::topmost_at(&mounts, &real).filter(|mount| mount.is_ogive());
        let mount = mount.ok_or_else(|| {
            refuse("it is not a mount of ogive").hint("\"findmnt --types fuse.ogive\" lists them")
        })?;
        found.push(mount.mount_point.clone());
    }
    Ok(Watched::These(found))
}

/// The address of the page. The part after "#" stays in the browser.
fn link(mut address: SocketAddr, token: &Token) -> String {
    // A server on every address is reached at one that a browser on this host can use.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}/#token={}", token.text())
}

fn tell(link: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{link}")
        .and_then(|()| out.flush())
        .context("cannot print the address of the page")
}
