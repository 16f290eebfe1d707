//! `ogive top`: the overview of the live view, in the terminal.
//!
//! Four threads send events to the main thread ([`events`]). These are keys, signals, the
//! measurements of `ogive watch`, and the files in a cache while they are shown ([`cached_files`]).
//! The main thread keeps the state of the screen ([`view`]) and draws it ([`draw`]); neither knows a
//! terminal.
//!
//! The screen never waits for a mount: other threads read its files, and a step goes on without
//! their answer (`ogive_watch::sample`).

mod cached_files;
mod draw;
mod events;
pub(crate) mod format;
mod view;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueHint};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::cached_files::ObjectsReader;
use self::events::{Event, Events};
use self::view::{Order, View};
use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::value::Span;

/// The shortest and the longest step.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Show this host and its caches live in the terminal
///
/// Of the host, it shows CPU by kind, by number and by role of threads, memory and pressure. Of a
/// mount of ogive, or of OpenZFS, it shows lookups and hit ratios; MRU, MFU, window and ghosts with
/// their targets; the second level; evictions and prunes; the latency of the source; and the
/// daemon's CPU by stage. Lines show the last sixty steps. The key "o" lists the files and
/// directories in the cache. "ogive watch" shows the last hour in a browser.
///
/// It measures only while it runs and is not paused. A mount that does not answer is marked, and
/// holds up nothing. It needs a terminal of at least 48 columns and 12 rows. Without a terminal it
/// ends with exit code 1; for programs and logs, "ogive stat" prints lines.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct TopArgs {
    /// Mounts to show; without any, all of this host, including later ones
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_points: Vec<PathBuf>,

    /// How often to measure, from 1s to 1m
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = Span::between(INTERVAL_MIN, INTERVAL_MAX))]
    pub(crate) interval: Duration,
}

/// The help's sections after the options.
pub(crate) fn sections() -> Vec<Section> {
    vec![
        help::examples(&[
            ("ogive top", "This host and all of its mounts."),
            ("ogive top /mnt/fast --interval 5s", "One mount, every five seconds."),
            ("ssh -t HOST ogive top", "Another host."),
        ]),
        help::terms(
            "Keys",
            &[
                ("q, Ctrl-C", "Quit."),
                ("p, Space", "Pause, and go on."),
                ("Tab, Right, Down", "The next mount."),
                ("Shift-Tab, Left, Up", "The previous mount."),
                ("o", "Files in the cache, then directories, then the figures again."),
                ("s", "Order files by bytes, reads, misses, or bytes from the source."),
                ("+, -", "Longer and shorter steps; the lines over time start again."),
                ("Ctrl-L", "Redraw the screen."),
                ("?", "Explain the words on the screen."),
            ],
        ),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[("NO_COLOR", "If set and not empty, the screen has no colours.")],
        ),
        help::terms(
            "Files",
            &[
                ("/proc/stat, /proc/meminfo, /proc/pressure", "The host's figures."),
                ("MNT/.ogive/arcstats, ogivestats", "A mount's figures."),
                (
                    "MNT/.ogive/objects",
                    "The files in a cache; read every five seconds while they are shown.",
                ),
            ],
        ),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() || is_dumb {
        return Err(Refusal::new(exit::FAILURE, "cannot show a live view: this is not a terminal")
            .hint("\"ogive stat MNT 1\" prints a line every second")
            .into());
    }
    let mounts = crate::watch::watched(&args.mount_points)?;
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let view = View::new(args.interval, has_colour);
    // Before the screen changes, so that errors appear on the ordinary screen.
    let (orders, events) = events::start(mounts, args.interval)?;
    // From here on, a panic of any thread restores the terminal, too.
    let terminal = ratatui::try_init();
    let ended = terminal
        .context("cannot change the mode of the terminal")
        .and_then(|terminal| show(terminal, view, &orders, &events));
    let restored = ratatui::try_restore().context("cannot restore the terminal");
    ended.and(restored)
}

/// Draws after each event, until one ends it.
fn show(
    mut terminal: DefaultTerminal,
    mut view: View,
    orders: &Sender<Order>,
    events: &Events,
) -> Result<()> {
    events.read_keys()?;
    let mut objects = ObjectsReader::start(events.sender())?;
    loop {
        objects.request(&view, Instant::now());
        terminal.draw(|frame| draw::draw(&view, frame)).context("cannot draw")?;
        let order = match events.next()? {
            Event::Described(sources) => {
                view.describe(&sources);
                None
            }
            Event::Measured { time_ms, values, sources } => {
                view.describe(&sources);
                view.measured(time_ms, &values);
                None
            }
            Event::Key(key) => match act(&mut view, key) {
                Act::Nothing => None,
                Act::Order(order) => Some(order),
                Act::Redraw => {
                    terminal.clear().context("cannot clear the screen")?;
                    None
                }
                Act::Quit => return Ok(()),
            },
            Event::Objects { mount, answer } => {
                objects.answered();
                view.take_objects(mount, answer);
                None
            }
            Event::Resized => None,
            Event::Stopped => return Ok(()),
            Event::Failed(why) => return Err(Refusal::new(exit::FAILURE, why).into()),
        };
        if let Some(order) = order {
            orders.send(order).context("the thread that measures has ended")?;
        }
    }
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    Order(Order),
    Redraw,
    Quit,
}

fn act(view: &mut View, key: KeyEvent) -> Act {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Act::Quit,
            KeyCode::Char('l') => Act::Redraw,
            _ => Act::Nothing,
        };
    }
    match key.code {
        KeyCode::Char('q') => return Act::Quit,
        KeyCode::Char('p' | ' ') => return Act::Order(view.pause()),
        KeyCode::Char('+' | '=') => {
            return view.change_interval(true).map_or(Act::Nothing, Act::Order);
        }
        KeyCode::Char('-') => return view.change_interval(false).map_or(Act::Nothing, Act::Order),
        KeyCode::Char('o') => view.show_next(),
        KeyCode::Char('s') => view.order_next(),
        KeyCode::Char('?') => view.shows_help = !view.shows_help,
        KeyCode::Esc => view.shows_help = false,
        KeyCode::Tab | KeyCode::Right | KeyCode::Down => view.next(),
        KeyCode::BackTab | KeyCode::Left | KeyCode::Up => view.previous(),
        _ => {}
    }
    Act::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode) -> Act {
        act(view, KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_do_what_the_help_says() {
        let mut view = View::new(INTERVAL_MIN, false);
        assert_eq!(press(&mut view, KeyCode::Char('q')), Act::Quit);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert_eq!(act(&mut view, control('c')), Act::Quit);
        assert_eq!(act(&mut view, control('l')), Act::Redraw);
        assert_eq!(press(&mut view, KeyCode::Char('p')), Act::Order(Order::Pause(true)));
        assert_eq!(press(&mut view, KeyCode::Char('p')), Act::Order(Order::Pause(false)));
        let two = Act::Order(Order::Interval(Duration::from_secs(2)));
        assert_eq!(press(&mut view, KeyCode::Char('+')), two);
        assert_eq!(press(&mut view, KeyCode::Char('?')), Act::Nothing);
        assert!(view.shows_help);
        press(&mut view, KeyCode::Esc);
        assert!(!view.shows_help);
        let mut shown = Vec::new();
        for _ in 0..3 {
            press(&mut view, KeyCode::Char('o'));
            press(&mut view, KeyCode::Char('s'));
            let (kind, order) = view.shown_objects();
            shown.push((view.shows_objects(), kind, order.member()));
        }
        let expected = [
            (true, "files", "reads"),
            (true, "directories", "misses"),
            (false, "files", "origin_bytes"),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn intervals_are_from_a_second_to_a_minute() {
        let interval = Span::between(INTERVAL_MIN, INTERVAL_MAX);
        assert_eq!(interval("5"), Ok(Duration::from_secs(5)));
        assert_eq!(interval("1m"), Ok(INTERVAL_MAX));
        assert!(interval("0.5").is_err() && interval("61s").is_err() && interval("x").is_err());
    }
}
