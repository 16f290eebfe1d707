//! HTTP clients: their proxies, and the certificates that they trust.
//!
//! The proxy comes from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, minus the hosts
//! in `NO_PROXY`). Addresses on loopback never use a proxy: no proxy can reach them.

use crate::BucketError;
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Certificate, Client, ClientBuilder};
use std::net::IpAddr;
use std::path::Path;

/// Whether a host is this machine, by a loopback address or by name.
pub(crate) fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let name = host.trim_end_matches('.');
    is_address || name.eq_ignore_ascii_case("localhost")
}

/// The proxy for requests to a store, without its password; `None` if there is none.
#[derive(Debug)]
pub(crate) struct Proxy(Option<String>);

impl Proxy {
    /// The proxy for an address.
    pub(crate) fn of(address: &str) -> Self {
        Self(proxy_by(&Matcher::from_env(), address))
    }

    /// Names the proxy in an error, because it may be the cause.
    pub(crate) fn named_in(&self, error: BucketError) -> BucketError {
        let Some(proxy) = &self.0 else { return error };
        error.with(&format!(
            " (the request went through the proxy {proxy}; NO_PROXY excludes hosts)"
        ))
    }
}

fn proxy_by(matcher: &Matcher, address: &str) -> Option<String> {
    let address: Uri = address.parse().ok()?;
    if is_here(address.host()?) {
        return None;
    }
    let proxy = matcher.intercept(&address)?;
    let (uri, port) = (proxy.uri(), proxy.uri().port_u16());
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{}{port}", uri.scheme_str().unwrap_or("http"), uri.host()?))
}

/// The certificates in a file.
///
/// # Errors
/// If the file cannot be read or has no certificate.
pub(crate) fn certificates(named_by: &str, path: &Path) -> Result<Vec<Certificate>, String> {
    let wrong = |why: &str| {
        format!("{named_by} names {}: {why}; correct or remove the setting", path.display())
    };
    let text = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
    let found = Certificate::from_pem_bundle(&text).map_err(|error| wrong(&error.to_string()))?;
    if found.is_empty() { Err(wrong("it has no certificate")) } else { Ok(found) }
}

/// A client for other hosts, and one for this machine. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Clients {
    elsewhere: Client,
    here: Client,
}

impl Clients {
    /// Builds both with the same options.
    ///
    /// # Errors
    /// If the certificates are invalid.
    pub(crate) fn new(build: impl Fn() -> ClientBuilder) -> Result<Self, String> {
        let made = |built: ClientBuilder| built.build().map_err(|error| error.to_string());
        Ok(Self { elsewhere: made(build())?, here: made(build().no_proxy())? })
    }

    /// The client for a host.
    pub(crate) fn of(&self, host: Option<&str>) -> &Client {
        if host.is_some_and(is_here) { &self.here } else { &self.elsewhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_bypasses_the_proxy_and_no_proxy_is_respected() {
        let matcher = Matcher::builder()
            .all("http://user:secret@proxy.house:3128")
            .no("inside.house,10.0.0.0/8")
            .build();
        let by = |address| proxy_by(&matcher, address);
        for here in ["http://127.0.0.1:9000/b", "http://127.8.9.1/", "https://[::1]:1/"] {
            assert_eq!(by(here), None, "{here}");
        }
        assert_eq!(by("http://localhost:9000/"), None);
        assert_eq!(by("https://inside.house/b"), None);
        assert_eq!(by("https://10.1.2.3/b"), None);
        let proxy = by("https://s3.amazonaws.com").unwrap();
        assert_eq!(proxy, "http://proxy.house:3128", "without its password");
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let error = certificates("AWS_CA_BUNDLE", &path).unwrap_err();
        assert!(error.contains("AWS_CA_BUNDLE") && error.contains("ca.pem"), "{error}");
        std::fs::write(&path, "nothing").unwrap();
        let error = certificates("AWS_CA_BUNDLE", &path).unwrap_err();
        assert!(error.contains("no certificate"), "{error}");
    }
}
