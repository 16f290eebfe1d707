//! `--otlp URL`: the counters of a mount, sent to a receiver of OpenTelemetry's protocol.
//!
//! A thread of its own sends all counters once a minute, even if none changed: a receiver treats a
//! silent sender as gone. This is the only wake-up of a mount without an event, and only with this
//! option. If a receiver does not answer, each try takes at most ten seconds. The log has one line
//! then, and one when the receiver is back. Nothing is queued, because counters are cumulative.
//!
//! Header fields for the receiver, such as a token, come from the environment
//! (`OTEL_EXPORTER_OTLP_HEADERS`): every user can read a command line.

use std::str::FromStr;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use ogive_fs::Kstats;
use ogive_metrics::process::Clock;
use ogive_metrics::{Exposition, Format, families, otlp};
use percent_encoding::percent_decode_str;
use reqwest::blocking::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url, redirect};

use super::metrics::figures;
use crate::exit::{self, Refusal};

/// Between two requests.
const PERIOD: Duration = Duration::from_secs(60);
/// A request takes no longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where metrics are taken, if the URL names no path.
const PATH: &str = "/v1/metrics";
const MEDIA_TYPE: &str = "application/x-protobuf";
/// Header fields, in the form of other OTLP senders: `name=value,name=value`.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Where counters are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receiver(Url);

impl FromStr for Receiver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut url = Url::parse(text).map_err(|error| format!("it is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("it must begin with http:// or https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!(
                "every user can read a command line: put the password into {HEADERS}"
            ));
        }
        if matches!(url.path(), "" | "/") {
            url.set_path(PATH);
        }
        Ok(Self(url))
    }
}

/// The sender, created before the mount.
pub(super) struct Sender {
    client: Client,
    url: Url,
    mount: String,
    clock: Clock,
    begin_ns: u64,
    /// The last request failed, and the log says so.
    is_failing: bool,
}

impl Sender {
    pub(super) fn new(receiver: &Receiver, mount: String) -> Result<Self> {
        let given = std::env::var(HEADERS).unwrap_or_default();
        let mut headers = headers(&given).map_err(|why| {
            Refusal::new(exit::USAGE, format!("cannot use {HEADERS}: {why}"))
                .hint("it is a list such as authorization=Bearer%20TOKEN,x-scope=team")
        })?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        // No redirects: another receiver would get the header fields, too.
        let client = Client::builder()
            .default_headers(headers)
            .timeout(PATIENCE)
            .redirect(redirect::Policy::none())
            .build()
            .context("cannot make a client for --otlp")?;
        let url = receiver.0.clone();
        let begin_ns = now_ns();
        Ok(Self { client, url, mount, clock: Clock::default(), begin_ns, is_failing: false })
    }

    /// Sends for as long as the mount is there.
    pub(super) fn start(mut self, kstats: Kstats) -> std::io::Result<()> {
        thread::Builder::new().name("otlp".into()).spawn(move || {
            while let Some(body) = self.body(&kstats) {
                let sent = self.send(body);
                self.say(sent);
                thread::sleep(PERIOD);
            }
        })?;
        Ok(())
    }

    /// The request body; `None` once the mount has ended.
    fn body(&mut self, kstats: &Kstats) -> Option<Vec<u8>> {
        let mut figures_told = Exposition::new(Format::OpenMetrics);
        let all = figures(kstats, &self.mount).ok().flatten()?;
        families::tell(&mut figures_told, &[all]);
        // Without /proc only the figures of threads are missing.
        let _ = self.clock.tell(&mut figures_told, &self.mount);
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        let instance = format!("{host}:{}", self.mount);
        let resource = [
            ("service.name", "ogive"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", &instance),
            ("host.name", &host),
        ];
        let span = otlp::Span { begin_ns: self.begin_ns, now_ns: now_ns() };
        Some(otlp::request(&figures_told, &resource, span))
    }

    fn send(&self, body: Vec<u8>) -> Result<(), String> {
        let answer = self.client.post(self.url.clone()).body(body).send();
        match answer.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
                Err(format!("it answers {status}; set its header fields in {HEADERS}"))
            }
            Ok(status) => Err(format!("it answers {status}")),
            // Without the URL, which may have a secret in its query.
            Err(error) => Err(format!("{:#}", anyhow::Error::from(error.without_url()))),
        }
    }

    /// Logs when sending fails, and when it works again.
    fn say(&mut self, sent: Result<(), String>) {
        let to = self.url.host_str().unwrap_or_default();
        match sent {
            Err(why) if !self.is_failing => {
                self.is_failing = true;
                log::warn!("cannot send counters to {to}: {why}; trying again every minute");
            }
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                log::warn!("counters are sent to {to} again");
            }
            _ => {}
        }
    }
}

/// Header fields from `name=value,name=value`, with values encoded as in URLs.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').ok_or("a part of it has no \"=\"; values are not shown here")?;
        let name = HeaderName::from_str(name.trim())
            .map_err(|_| format!("\"{}\" is not a name of a header field", name.escape_debug()))?;
        let bytes: Vec<u8> = percent_decode_str(value.trim()).collect();
        let mut value = HeaderValue::from_bytes(&bytes)
            .map_err(|_| format!("the value of {name} cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_the_usual_one_and_has_no_secret() {
        let parsed = |text: &str| text.parse::<Receiver>().map(|own| own.0.to_string());
        assert_eq!(parsed("http://localhost:4318").unwrap(), "http://localhost:4318/v1/metrics");
        assert_eq!(parsed("https://a.example/otlp/").unwrap(), "https://a.example/otlp/");
        for wrong in ["localhost:4318", "grpc://a:1", "", "http://", "http://u:p@a.example"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn header_fields_have_the_form_of_other_programs() {
        let found = headers("authorization=Bearer%20a%2Cb, x-scope = team%zz,").unwrap();
        assert_eq!(found["authorization"], "Bearer a,b");
        assert_eq!(found["x-scope"], "team%zz");
        assert!(found["authorization"].is_sensitive());
        for wrong in ["secret", "a b=c", "a=x%0ay"] {
            let why = headers(wrong).unwrap_err();
            assert!(!why.contains("secret") && !why.contains("%0a"), "{why}");
        }
    }
}
