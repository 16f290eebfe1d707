//! What happens: keys, signals, measurements, each told by a thread of its own into one channel.
//!
//! Nobody polls: between two steps the process sleeps. A thread that ends, even by a panic, is
//! told as the end of the view, so that the screen never stands still without a word.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use ogive_watch::sample::{Sources, Wanted};
use ratatui::crossterm::event::{self, Event as Input, KeyEvent, KeyEventKind};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::view::Order;

/// What happened.
#[derive(Debug)]
pub(super) enum Event {
    /// What there is, before there are figures.
    Described(Value),
    Measured {
        /// Since the Unix epoch.
        time_ms: u64,
        values: Vec<(String, f64)>,
        sources: Value,
    },
    /// What is in a mount's cache by file, or why that is not known.
    Objects {
        mount: PathBuf,
        answer: Result<Value, String>,
    },
    Key(KeyEvent),
    Resized,
    /// By a signal.
    Stopped,
    /// Why it cannot go on.
    Failed(String),
}

/// Tells that its thread has ended, however it did.
struct EndNotice {
    events: Sender<Event>,
    what: &'static str,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        // Whoever does not listen any more has ended already.
        let _ = self.events.send(Event::Failed(format!("the thread that {} has ended", self.what)));
    }
}

/// Where keys and signals are told, and measurements of what is wanted.
#[derive(Debug)]
pub(super) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

/// Starts to wait for signals and to measure.
pub(super) fn start(wanted: Wanted, interval: Duration) -> Result<(Sender<Order>, Events)> {
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
            let _farewell = EndNotice { events: own.clone(), what: "measures" };
            measure(wanted, interval, &orders, &own);
        })
        .context("cannot start the thread that measures")?;
    Ok((order, Events { sender, receiver }))
}

impl Events {
    /// The next event.
    pub(super) fn next(&self) -> Result<Event> {
        self.receiver.recv().context("nothing happens any more")
    }

    /// Where another thread tells what happens.
    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Starts to read keys; to be called once the terminal tells them one by one.
    pub(super) fn read_keys(&self) -> Result<()> {
        let own = self.sender.clone();
        thread::Builder::new()
            .name("top_keys".into())
            .spawn(move || {
                let _farewell = EndNotice { events: own.clone(), what: "reads keys" };
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

/// Measures until nobody gives orders any more.
fn measure(
    wanted: Wanted,
    mut interval: Duration,
    orders: &Receiver<Order>,
    events: &Sender<Event>,
) {
    let mut sources = Sources::new(wanted);
    // What is seen first is only compared with.
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
                    // A rate since the pause began would be an average of it all.
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
        // A step that took too long is not made up for.
        due = (due + interval).max(Instant::now() + interval / 2);
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
