//! `--metrics ADDR`: the counters of a mount for Prometheus.
//!
//! The address is bound before the mount, so an unusable address is refused like any other option.
//! The figures are computed for each request; between requests the only thread sleeps in accept(2).
//! Only addresses of this host are accepted. The gate of `ogive-watch` then decides which requests
//! to answer; other hosts need a proxy with its own access control.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::{Context as _, Result};
use ogive_fs::Kstats;
use ogive_kstat::{Kstat, ParseError, named};
use ogive_metrics::process::Clock;
use ogive_metrics::{Exposition, Figures, Format, families, path_label};
use ogive_watch::http::{Access, Gate, Limits, Request, Response, Routes, Server, Token};

use super::pprof::{self, Sampler};
use crate::exit::{self, Refusal};

/// The endpoint of a mount, bound and not yet served.
pub(super) struct Endpoint {
    server: Server,
    kstats: Arc<OnceLock<Kstats>>,
}

impl Endpoint {
    /// Binds an address of this host. With `pprof` it serves profiles, too.
    pub(super) fn bind(address: SocketAddr, mount_point: &Path, pprof: bool) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(Refusal::new(
                exit::USAGE,
                format!("cannot mount: --metrics {address} is not an address of this host alone"),
            )
            .hint("give 127.0.0.1:PORT, and let a proxy with TLS and passwords answer for others")
            .into());
        }
        let kstats = Arc::new(OnceLock::<Kstats>::new());
        let mount = path_label(mount_point);
        let clock = std::sync::Mutex::new(Clock::default());
        let known = Arc::clone(&kstats);
        let routes = Routes::new().get("/metrics", Access::Look, move |request| {
            known.get().map_or_else(
                || Response::error(503, "the mount does not answer yet"),
                |kstats| answer(kstats, &mount, &clock, request),
            )
        });
        // No route here needs the token, so it is not printed.
        let token = Token::random().context("cannot draw random bytes")?;
        let routes = if pprof {
            let sampler = Sampler::default();
            routes.get(pprof::PATH, Access::Look, move |request| sampler.answer(request))
        } else {
            routes
        };
        let gate = Gate::new(address.ip(), token);
        let server = Server::bind(address, gate, routes, Limits::default()).map_err(|error| {
            Refusal::new(exit::FAILURE, format!("cannot serve metrics at {address}: {error}"))
                .hint("give another port; 0 lets the system choose one")
        })?;
        Ok(Self { server, kstats })
    }

    /// Serves for as long as the process lives.
    pub(super) fn serve(self, kstats: Kstats) -> io::Result<()> {
        let _ = self.kstats.set(kstats);
        log::info!("metrics are at http://{}/metrics", self.server.address()?);
        thread::Builder::new().name("metrics".into()).spawn(move || self.server.serve())?;
        Ok(())
    }
}

fn answer(
    kstats: &Kstats,
    mount: &str,
    clock: &std::sync::Mutex<Clock>,
    request: &Request,
) -> Response {
    let format = Format::accepted(request.field("accept"));
    let mut exposition = Exposition::new(format);
    match figures(kstats, mount) {
        Ok(Some(figures)) => families::tell(&mut exposition, &[figures]),
        Ok(None) => return Response::error(503, "the mount has ended"),
        Err(error) => return Response::error(500, &error.to_string()),
    }
    // After a panic of another thread, the clock has at worst counted a look twice.
    let mut clock = clock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(error) = clock.tell(&mut exposition, mount) {
        return Response::error(500, &format!("cannot read /proc: {error}"));
    }
    Response::new(format.media_type(), exposition.finish())
}

/// The figures of the mount, if it is still there.
pub(super) fn figures(kstats: &Kstats, mount: &str) -> Result<Option<Figures>, ParseError> {
    let kstat = |name: &str| -> Result<Option<Kstat>, ParseError> {
        kstats.read(name).map(|text| named::parse("zfs", name, text.as_bytes())).transpose()
    };
    let all = (kstat("arcstats")?, kstat("zfetchstats")?, kstat("ogivestats")?);
    let (Some(arcstats), Some(zfetchstats), Some(ogivestats)) = all else { return Ok(None) };
    Ok(Some(Figures { mount: mount.to_owned(), arcstats, zfetchstats, ogivestats }))
}
