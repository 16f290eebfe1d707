//! Events of the screen: keys, signals and measurements, each sent by its own thread to one channel.
//!
//! No thread polls: the process sleeps between two steps. If a thread ends, even by a panic, its
//! last event ends the view. So the screen never freezes without a message.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use ogive_watch::sample::{Sources, Watched};
use ratatui::crossterm::event::{self, Event as Input, KeyEvent, KeyEventKind};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::view::Order;

/// An event.
#[derive(Debug)]
pub(super) enum Event {
    /// The host and its mounts, before there are figures.
    Described(Value),
    Measured {
        /// Since the Unix epoch.
        time_ms: u64,
        values: Vec<(String, f64)>,
        sources: Value,
    },
    /// The files in a mount's cache, or why they are unknown.
    Objects {
        mount: PathBuf,
        answer: Result<Value, String>,
    },
    Key(KeyEvent),
    Resized,
    /// By a signal.
    Stopped,
    /// Why the view cannot go on.
    Failed(String),
}

/// Reports the end of its thread, by a panic too.
struct EndNotice {
    events: Sender<Event>,
    task: &'static str,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        // Without a receiver, the view has ended already.
        let _ = self.events.send(Event::Failed(format!("the thread that {} has ended", self.task)));
    }
}

/// The channel of events.
#[derive(Debug)]
pub(super) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

/// Starts the threads that wait for signals and that measure.
pub(super) fn start(mounts: Watched, interval: Duration) -> Result<(Sender<Order>, Events)> {
    let (sender, receiver) = mpsc::channel();
    let (order, orders) = mpsc::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("cannot catch signals")?;
    let own = sender.clone();
    thread::Builder::new()
        .name("top_signals".into())
        .spawn(move || signals.forever().try_for_each(|_| own.send(Event::Stopped)))
        .context("cannot start the thread that waits for signals")?;
    let own = sender.clone();
    thread::Builder::new()
        .name("top_sample".into())
        .spawn(move || {
            let _notice = EndNotice { events: own.clone(), task: "measures" };
            measure(mounts, interval, &orders, &own);
        })
        .context("cannot start the thread that measures")?;
    Ok((order, Events { sender, receiver }))
}

impl Events {
    /// The next event.
    pub(super) fn next(&self) -> Result<Event> {
        self.receiver.recv().context("all threads that send events have ended")
    }

    /// For another thread that sends events.
    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Starts the thread that reads keys. The terminal must be in raw mode by then.
    pub(super) fn read_keys(&self) -> Result<()> {
        let own = self.sender.clone();
        thread::Builder::new()
            .name("top_keys".into())
            .spawn(move || {
                let _notice = EndNotice { events: own.clone(), task: "reads keys" };
                if let Err(error) = keys(&own) {
                    let why = format!("cannot read from the terminal: {error}");
                    let _ = own.send(Event::Failed(why));
                }
            })
            .context("cannot start the thread that reads keys")?;
        Ok(())
    }
}

fn keys(events: &Sender<Event>) -> io::Result<()> {
    loop {
        let event = match event::read()? {
            Input::Key(key) if key.kind != KeyEventKind::Release => Event::Key(key),
            Input::Resize(..) => Event::Resized,
            _ => continue,
        };
        if events.send(event).is_err() {
            return Ok(());
        }
    }
}

/// Measures until the sender of the orders is gone.
fn measure(
    mounts: Watched,
    mut interval: Duration,
    orders: &Receiver<Order>,
    events: &Sender<Event>,
) {
    let mut sources = Sources::new(mounts);
    // The first step has no rates: it is only the base of the second.
    sources.step();
    if events.send(Event::Described(sources.describe())).is_err() {
        return;
    }
    let mut due = Instant::now() + interval;
    let mut is_paused = false;
    loop {
        let order = if is_paused {
            orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            orders.recv_timeout(due.saturating_duration_since(Instant::now()))
        };
        match order {
            Ok(Order::Interval(chosen)) => {
                interval = chosen;
                due = Instant::now() + interval;
                continue;
            }
            Ok(Order::Pause(paused)) => {
                is_paused = paused;
                if !is_paused {
                    // Otherwise the first rate would be an average over the whole pause.
                    sources.forget();
                    sources.step();
                    due = Instant::now() + interval;
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let values = sources.step().values().to_vec();
        let event = Event::Measured { time_ms: now_ms(), values, sources: sources.describe() };
        if events.send(event).is_err() {
            return;
        }
        // Steps that a slow one has delayed are skipped.
        due = (due + interval).max(Instant::now() + interval / 2);
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
