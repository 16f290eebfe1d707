//! `ogive top`: the overview of the live view, in the terminal.
//!
//! Four threads tell one what happens ([`events`]): keys, signals, measurements, which are those of
//! `ogive watch`, and what is in a cache by file ([`cached_files`]), while that is shown. [`view`] is
//! what they make of it and [`draw`] a frame of that; neither knows a terminal. Nothing here waits
//! for a mount: whoever reads its files is a thread of its own, and a step goes on without an
//! answer (`ogive_watch::sample`).

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

use self::cached_files::Asker;
use self::events::{Event, Events};
use self::view::{Order, View};
use crate::exit::{self, Refusal};
use crate::help::{self, Section};
use crate::value::Span;

/// Steps are not shorter and not longer than this.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Show live in the terminal what this host and its caches do
///
/// Shows CPU by kind, by number and by what threads do, memory and pressure; of a mount of ogive,
/// or of OpenZFS, lookups and hit ratios, MRU, MFU, window and ghosts against their targets, the
/// second level, what is evicted and pruned, the latency of the source, and the daemon's CPU by
/// stage; and lines over the last sixty steps. What is in the cache by file and directory is a key
/// away ("o"). "ogive watch" shows an hour of the same in a browser.
///
/// Nothing is measured before it starts, after it ends, or while it is paused. A mount that does
/// not answer is told and holds up nothing. It needs a terminal of 48 columns and 12 rows, and
/// refuses with exit code 1 where there is none: "ogive stat" prints lines for programs and logs.
#[derive(Debug, Args)]
#[command(after_long_help = help::render(&sections()))]
pub(crate) struct TopArgs {
    /// Mounts to show; without any, all of this host, those that come later too
    #[arg(value_name = "MNT", value_hint = ValueHint::DirPath)]
    pub(crate) mount_points: Vec<PathBuf>,

    /// How often to measure, from 1s to 1m
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = Span::between(INTERVAL_MIN, INTERVAL_MAX))]
    pub(crate) interval: Duration,
}

/// What follows the options.
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
                ("Shift-Tab, Left, Up", "The mount before."),
                ("o", "Files in the cache, its directories, and back to the figures."),
                ("s", "Order files by bytes, reads, misses, or bytes from the source."),
                ("+, -", "Longer and shorter steps; the lines over time begin anew."),
                ("Ctrl-L", "Draw the screen anew."),
                ("?", "What the words on the screen mean."),
            ],
        ),
        help::exit_codes(),
        help::terms(
            "Environment",
            &[("NO_COLOR", "When set and not empty, nothing is shown in colour.")],
        ),
        help::terms(
            "Files",
            &[
                ("/proc/stat, /proc/meminfo, /proc/pressure", "Where the host's figures are read."),
                ("MNT/.ogive/arcstats, ogivestats", "Where a mount's figures are read."),
                (
                    "MNT/.ogive/objects",
                    "Where files are read, every five seconds while they are shown.",
                ),
            ],
        ),
    ]
}

/// Runs the subcommand.
pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() || is_dumb {
        return Err(Refusal::new(exit::FAILURE, "cannot show a live view: this is no terminal")
            .hint("\"ogive stat MNT 1\" prints a line every second")
            .into());
    }
    let wanted = crate::watch::wanted(&args.mount_points)?;
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let view = View::new(args.interval, has_colour);
    // Before the screen changes, so that what goes wrong is said on the ordinary one.
    let (orders, events) = events::start(wanted, args.interval)?;
    // From here on a panic restores the terminal, too, in whatever thread.
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
    let mut asker = Asker::start(events.sender())?;
    loop {
        asker.ask(&view, Instant::now());
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
                asker.answered();
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

/// What a key does.
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
        let wanted = [
            (true, "files", "reads"),
            (true, "directories", "misses"),
            (false, "files", "origin_bytes"),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn intervals_are_from_a_second_to_a_minute() {
        let interval = Span::between(INTERVAL_MIN, INTERVAL_MAX);
        assert_eq!(interval("5"), Ok(Duration::from_secs(5)));
        assert_eq!(interval("1m"), Ok(INTERVAL_MAX));
        assert!(interval("0.5").is_err() && interval("61s").is_err() && interval("x").is_err());
    }
}
