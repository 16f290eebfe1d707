//! Background reads: one request with its retries and its hedge, and no thread that waits.
//!
//! A read waits for its turn ([`super::throttle`]) and is hedged if its first byte is late
//! ([`super::hedge`]). If its body breaks off, it resumes there, provided that an ETag pins the
//! object. Retries back off with full jitter: the pause is random below a bound that doubles. The
//! rate of the bytes is measured ([`super::window`]).
//!
//! # Timeouts The first byte has to arrive within the timeout, which includes waiting and retries.
//! So does each further piece.
//!
//! # Threads
//! Threads of the executor call the sinks, but only one at a time for each sink.

use super::errors::translate;
use super::hedge::Hedge;
use super::throttle::Gate;
use super::window::Window;
use super::{RETRIES, RETRY_AFTER, Shared, StoreKind};
use crate::{BucketError, Fetch, FetchSink, Result};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use opendal::{ErrorKind, FuturesBytesStream, Operator};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// Shared by all background reads.
pub(super) struct BackgroundReads {
    kind: StoreKind,
    /// Sends each request once.
    pub(super) operator: Operator,
    gate: Arc<Gate>,
    hedging: Hedge,
    pub(super) window: Window,
    /// How many requests were sent again.
    retried: AtomicU64,
}

/// A body with its first piece; `None` for an empty one.
type Begun = (FuturesBytesStream, Option<Bytes>);

/// Why an attempt ended.
#[derive(Debug)]
enum Stopped {
    /// The timeout is over.
    Late,
    /// It was over before the request was sent.
    NoTurn,
    Failed(opendal::Error),
}

impl From<opendal::Error> for Stopped {
    fn from(error: opendal::Error) -> Self {
        Self::Failed(error)
    }
}

/// Unwraps the library's error in the error of a body stream.
pub(super) fn unwrapped(error: std::io::Error) -> opendal::Error {
    let kind = error.kind();
    match error.into_inner().map(|inner| inner.downcast::<opendal::Error>()) {
        Some(Ok(error)) => *error,
        Some(Err(other)) => opendal::Error::new(ErrorKind::Unexpected, other.to_string()),
        None => opendal::Error::new(ErrorKind::Unexpected, kind.to_string()),
    }
}

/// The pause before retry number `tries`: random, up to a bound that doubles each time.
pub(super) fn pause(tries: usize) -> Duration {
    let bound = RETRY_AFTER * 2_u32.saturating_pow(u32::try_from(tries).unwrap_or(u32::MAX));
    // Without random numbers any value will do.
    let chance = getrandom::u32().unwrap_or(u32::MAX / 2);
    bound.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

impl BackgroundReads {
    /// The operator must not retry.
    pub(super) fn new(kind: StoreKind, operator: Operator) -> Self {
        Self {
            kind,
            operator,
            gate: Gate::new(),
            hedging: Hedge::default(),
            window: Window::default(),
            retried: AtomicU64::new(0),
        }
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&str, u64)) {
        let (at_once, slow_downs) = self.gate.standing();
        let (window, rate) = self.window.standing();
        report("origin_retried", self.retried.load(Relaxed));
        report("origin_reads_at_once", at_once);
        report("origin_slow_downs", slow_downs);
        report("origin_window_bytes", window);
        report("origin_bytes_per_second", rate);
        self.hedging.report(report);
    }

    /// Records the first byte of the answer to a request that was sent at `sent`.
    pub(super) fn first_byte(&self, sent: Instant) {
        let now = Instant::now();
        self.hedging.first_byte(now - sent);
        self.window.first_byte(now - sent, now);
    }

    /// Sends one request and waits for its first piece.
    async fn begin(&self, fetch: &Fetch, from: u64) -> opendal::Result<Begun> {
        let options = self.kind.reading(fetch.expected.as_ref());
        let reader = self.operator.reader_options(&fetch.key, options).await?;
        let mut stream = reader.into_bytes_stream(from..fetch.range.end).await?;
        let first = stream.next().await.transpose().map_err(unwrapped)?;
        Ok((stream, first))
    }

    /// The same, with a hedge if the first byte is late.
    async fn begin_twice(&self, fetch: &Fetch, from: u64) -> opendal::Result<Begun> {
        let patience = self.hedging.begin();
        let mut first = pin!(self.begin(fetch, from));
        if let Some(patience) = patience {
            match tokio::time::timeout(patience, &mut first).await {
                Ok(answer) => return answer,
                Err(_) if !self.hedging.take() => {}
                Err(_) => {
                    let second = pin!(self.begin(fetch, from));
                    return match select(first, second).await {
                        Either::Left((Err(error), second)) if error.is_temporary() => second.await,
                        Either::Right((Err(error), first)) if error.is_temporary() => first.await,
                        Either::Left((answer, _)) => answer,
                        Either::Right((answer, _)) => {
                            self.hedging.won();
                            answer
                        }
                    };
                }
            }
        }
        first.await
    }

    /// One attempt: reads from where the last one ended, as far as it gets.
    async fn attempt(
        &self,
        fetch: &Fetch,
        taker: &mut dyn FetchSink,
        given: &mut u64,
        deadline: Instant,
        allowed: Duration,
    ) -> std::result::Result<(), Stopped> {
        let enter = self.gate.enter(fetch.is_demanded);
        let _pass = timeout_at(deadline.into(), enter).await.map_err(|_| Stopped::NoTurn)?;
        let sent = Instant::now();
        let begun = self.begin_twice(fetch, fetch.range.start + *given);
        let (mut stream, mut piece) = match timeout_at(deadline.into(), begun).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => {
                if is_slow_down(&error) {
                    self.gate.slow_down(sent);
                    self.window.slow_down();
                }
                return Err(error.into());
            }
            Err(_) => return Err(Stopped::Late),
        };
        self.first_byte(sent);
        while let Some(bytes) = piece {
            *given += bytes.len() as u64;
            self.window.received(bytes.len() as u64, Instant::now());
            if taker.piece(bytes).is_break() {
                break;
            }
            let next = tokio::time::timeout(allowed, stream.next()).await;
            piece = next.map_err(|_| Stopped::Late)?.transpose().map_err(unwrapped)?;
        }
        self.gate.went_well();
        Ok(())
    }
}

/// Whether the store throttles.
fn is_slow_down(error: &opendal::Error) -> bool {
    matches!(translate("", error), BucketError::Busy { .. })
}

impl Shared {
    /// Begins a background read.
    pub(super) fn spawn_fetch(self: &Arc<Self>, fetch: Fetch, mut taker: Box<dyn FetchSink>) {
        let (shared, runtime) = (Arc::clone(self), self.runtime.as_ref());
        runtime.expect("until the drop").spawn(async move {
            let result = shared.fetch(&fetch, &mut *taker).await;
            taker.end(result);
        });
    }

    async fn fetch(&self, fetch: &Fetch, taker: &mut dyn FetchSink) -> Result<u64> {
        self.sendable(&fetch.key)?;
        let (reading, allowed) = (&self.reading, self.timeout);
        let (key, seconds) = (|| fetch.key.clone(), allowed.as_secs());
        let (mut given, mut tries, mut deadline) = (0, 0, Instant::now() + allowed);
        loop {
            let before = given;
            let attempt = reading.attempt(fetch, taker, &mut given, deadline, allowed).await;
            let error = match attempt {
                Ok(()) => return Ok(given),
                Err(Stopped::Late) => return Err(BucketError::TimedOut { key: key(), seconds }),
                Err(Stopped::NoTurn) => return Err(BucketError::NoTurn { key: key(), seconds }),
                Err(Stopped::Failed(error)) => error,
            };
            if given > before {
                (tries, deadline) = (0, Instant::now() + allowed);
            }
            // Without an ETag the rest could belong to another object.
            let may_go_on = given == 0 || fetch.expected.is_some();
            let pause = pause(tries);
            let in_time = Instant::now() + pause < deadline;
            if !error.is_temporary() || !may_go_on || tries == RETRIES || !in_time {
                return Err(self.translated(&fetch.key, &error));
            }
            log::info!("repeating a request: {}", error.message());
            reading.retried.fetch_add(1, Relaxed);
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_full_jitter_below_a_bound_that_doubles() {
        for tries in 0..RETRIES {
            let bound = RETRY_AFTER * (1 << tries);
            let pauses: Vec<Duration> = (0..64).map(|_| pause(tries)).collect();
            assert!(pauses.iter().all(|pause| *pause <= bound));
            let (least, most) = (pauses.iter().min(), pauses.iter().max());
            assert!(least < most, "{tries}: all are {least:?}");
        }
    }

    #[test]
    fn a_read_without_a_turn_has_not_asked_the_store() {
        struct Nobody;
        impl FetchSink for Nobody {
            fn piece(&mut self, _: Bytes) -> std::ops::ControlFlow<()> {
                std::ops::ControlFlow::Continue(())
            }
            fn end(self: Box<Self>, _: Result<u64>) {}
        }
        let builder = opendal::services::S3::default().bucket("b").region("here");
        let operator = Operator::new(builder.endpoint("http://127.0.0.1:9")).expect("it is one");
        let reading = BackgroundReads::new(StoreKind::S3, operator);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let stopped = runtime.expect("a runtime").block_on(async {
            let mut passes = Vec::new();
            for _ in 0..reading.gate.standing().0 {
                passes.push(reading.gate.enter(true).await);
            }
            let fetch = Fetch { key: "k".into(), range: 0..1, expected: None, is_demanded: true };
            let (now, allowed) = (Instant::now(), Duration::ZERO);
            reading.attempt(&fetch, &mut Nobody, &mut 0, now, allowed).await
        });
        assert!(matches!(stopped, Err(Stopped::NoTurn)), "{stopped:?}");
    }
}
