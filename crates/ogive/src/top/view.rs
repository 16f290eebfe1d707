//! The state of the screen, and how measurements and keys change it.
//!
//! A view knows nothing of terminals: [`super::draw`] makes a frame of it. All names in it have
//! passed [`format::harmless`].
//!
//! Invariant: a place stays when its mount goes away, so that the screen can report that. Only when
//! there are too many places are those without a mount forgotten.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ogive_watch::history::History;
use serde_json::Value;

use super::format;
use crate::stat::cached_files::Order as By;

/// Places at most, including those whose mounts are gone.
const PLACES_MAX: usize = 32;
/// Intervals that the keys choose from, in seconds.
const INTERVALS: [u64; 6] = [1, 2, 5, 10, 30, 60];

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Mount,
    Zfs,
}

/// The state of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Answers,
    /// Why its figures are missing or doubtful.
    Troubled(String),
    Gone,
}

/// A mount of ogive, or OpenZFS.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// The mount point; only of a mount.
    pub(super) path: PathBuf,
    pub(super) state: State,
}

/// A key's order to the thread that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Measure in steps of this.
    Interval(Duration),
    /// Stop measuring, or go on.
    Pause(bool),
}

/// The part of a place that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Figures,
    Files,
    Directories,
}

/// The view.
#[derive(Debug)]
pub(super) struct View {
    shown: Shown,
    order: By,
    /// The last answer about files in a cache, and its mount.
    objects: Option<(PathBuf, Result<Value, String>)>,
    pub(super) host: String,
    pub(super) history: History,
    pub(super) places: Vec<Place>,
    pub(super) interval: Duration,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    pub(super) has_colour: bool,
    chosen: usize,
}

impl View {
    pub(super) fn new(interval: Duration, has_colour: bool) -> Self {
        Self {
            shown: Shown::Figures,
            order: By::Bytes,
            objects: None,
            host: String::new(),
            history: History::default(),
            places: Vec::new(),
            interval,
            is_paused: false,
            shows_help: false,
            has_colour,
            chosen: 0,
        }
    }

    /// Takes the list of `ogive_watch::sample::Sources::describe`.
    pub(super) fn describe(&mut self, sources: &Value) {
        let mut described = Vec::new();
        for source in sources.as_array().into_iter().flatten() {
            let text = |name: &str| source[name].as_str().unwrap_or_default();
            let kind = match text("kind") {
                "mount" => Kind::Mount,
                "zfs" => Kind::Zfs,
                _ => {
                    self.host = format::harmless(text("name"));
                    continue;
                }
            };
            let state = match text("state") {
                "answers" => State::Answers,
                state => State::Troubled(format::harmless(state)),
            };
            let (id, name) = (text("id").to_owned(), format::harmless(text("name")));
            described.push(Place { id, kind, name, path: PathBuf::from(text("name")), state });
        }
        for place in &mut self.places {
            if !described.iter().any(|other| other.id == place.id) {
                place.state = State::Gone;
            }
        }
        for place in described {
            match self.places.iter_mut().find(|other| other.id == place.id) {
                Some(known) => *known = place,
                None => self.places.push(place),
            }
        }
        self.forget_gone();
    }

    fn forget_gone(&mut self) {
        while self.places.len() > PLACES_MAX {
            let is_gone =
                |(at, place): &(usize, &Place)| *at != self.chosen && place.state == State::Gone;
            let Some((at, _)) = self.places.iter().enumerate().find(is_gone) else { return };
            self.places.remove(at);
            if at < self.chosen {
                self.chosen -= 1;
            }
        }
    }

    /// Adds a step.
    pub(super) fn measured(&mut self, time_ms: u64, values: &[(String, f64)]) {
        self.history.push(time_ms, values);
    }

    /// The place that is shown, and its number from 1.
    pub(super) fn chosen(&self) -> Option<(usize, &Place)> {
        self.places.get(self.chosen).map(|place| (self.chosen + 1, place))
    }

    /// Shows the next place.
    pub(super) fn next(&mut self) {
        self.chosen = (self.chosen + 1) % self.places.len().max(1);
    }

    /// Shows the place before.
    pub(super) fn previous(&mut self) {
        let count = self.places.len().max(1);
        self.chosen = (self.chosen + count - 1) % count;
    }

    /// Switches from figures to files in the cache, to directories, and back.
    pub(super) fn show_next(&mut self) {
        self.shown = match self.shown {
            Shown::Figures => Shown::Files,
            Shown::Files => Shown::Directories,
            Shown::Directories => Shown::Figures,
        };
    }

    /// Chooses the next order of files and directories.
    pub(super) fn order_next(&mut self) {
        self.order = match self.order {
            By::Bytes => By::Reads,
            By::Reads => By::Misses,
            By::Misses => By::Origin,
            By::Origin => By::Bytes,
        };
    }

    /// Whether files or directories are shown.
    pub(super) fn shows_objects(&self) -> bool {
        self.shown != Shown::Figures
    }

    /// Files or directories, by their name in the mount's answer, and their order.
    pub(super) fn shown_objects(&self) -> (&'static str, By) {
        (if self.shown == Shown::Directories { "directories" } else { "files" }, self.order)
    }

    /// The mount whose files are shown.
    pub(super) fn mount_of_objects(&self) -> Option<&Path> {
        let (_, place) = self.chosen()?;
        let is_there = place.kind == Kind::Mount && place.state == State::Answers;
        (is_there && self.shows_objects() && !self.is_paused).then_some(&*place.path)
    }

    /// Takes a mount's answer.
    pub(super) fn take_objects(&mut self, mount: PathBuf, answer: Result<Value, String>) {
        self.objects = Some((mount, answer));
    }

    /// The last answer of a mount.
    pub(super) fn objects_of(&self, place: &Place) -> Option<Result<&Value, &str>> {
        let (mount, answer) = self.objects.as_ref()?;
        (*mount == place.path).then(|| answer.as_ref().map_err(String::as_str))
    }

    /// Pauses, or goes on.
    pub(super) fn pause(&mut self) -> Order {
        self.is_paused = !self.is_paused;
        Order::Pause(self.is_paused)
    }

    /// Chooses the next longer or the next shorter interval. The lines start again, because steps
    /// of different lengths in one line would mislead.
    pub(super) fn change_interval(&mut self, longer: bool) -> Option<Order> {
        let now = self.interval.as_secs();
        let chosen = if longer {
            INTERVALS.into_iter().find(|other| *other > now)
        } else {
            INTERVALS.into_iter().rev().find(|other| *other < now)
        };
        self.interval = Duration::from_secs(chosen?);
        self.history = History::default();
        Some(Order::Interval(self.interval))
    }

    /// The last value of a series.
    pub(super) fn last(&self, source: &str, series: &str) -> Option<f64> {
        self.history.last(&format!("{source}.{series}")).map(f64::from)
    }

    /// The values of a series in the last steps.
    pub(super) fn recent(&self, source: &str, series: &str, count: usize) -> Vec<Option<f64>> {
        let values = self.history.recent(&format!("{source}.{series}"), count);
        values.into_iter().map(|value| value.map(f64::from)).collect()
    }

    /// The last values of all series with this prefix, the greatest first. Names come harmless and
    /// without the prefix.
    pub(super) fn ranked(&self, source: &str, prefix: &str) -> Vec<(String, f64)> {
        let begin = format!("{source}.{prefix}");
        let names = self.history.names().iter().filter(|name| name.starts_with(&begin));
        let mut found: Vec<(String, f64)> = names
            .filter_map(|name| {
                let value = self.history.last(name)?;
                Some((format::harmless(&name[begin.len()..]), f64::from(value)))
            })
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sources(mounts: &[(&str, &str)]) -> Value {
        let mut all = vec![json!({"id": "host", "kind": "host", "name": "h", "state": "answers"})];
        all.extend(
            mounts
                .iter()
                .map(|(id, state)| json!({"id": id, "kind": "mount", "name": id, "state": state})),
        );
        Value::Array(all)
    }

    #[test]
    fn a_mount_that_went_away_is_kept_and_comes_back_in_its_place() {
        let mut view = View::new(Duration::from_secs(1), false);
        view.describe(&sources(&[("m1", "answers"), ("m2", "does not answer")]));
        assert_eq!(view.places[1].state, State::Troubled("does not answer".to_owned()));
        view.describe(&sources(&[("m2", "answers")]));
        let states: Vec<_> = view.places.iter().map(|place| place.state.clone()).collect();
        assert_eq!(states, [State::Gone, State::Answers]);
        view.describe(&sources(&[("m1", "answers"), ("m2", "answers")]));
        assert_eq!(
            view.chosen().map(|(number, place)| (number, place.id.as_str())),
            Some((1, "m1"))
        );
        assert_eq!(view.places[0].state, State::Answers);
    }

    #[test]
    fn the_number_of_places_is_bounded() {
        let mut view = View::new(Duration::from_secs(1), false);
        for number in 0..1000 {
            view.describe(&sources(&[(&format!("m{number}"), "answers")]));
            view.next();
        }
        assert!(view.places.len() <= PLACES_MAX);
        assert!(view.chosen().is_some());
    }

    #[test]
    fn keys_cycle_through_the_mounts_and_the_intervals() {
        let mut view = View::new(Duration::from_secs(3), false);
        view.next();
        view.previous();
        assert!(view.chosen().is_none());
        view.describe(&sources(&[("m1", "answers"), ("m2", "answers")]));
        view.previous();
        assert_eq!(view.chosen().map(|(number, _)| number), Some(2));
        view.next();
        assert_eq!(view.chosen().map(|(number, _)| number), Some(1));
        let five = Order::Interval(Duration::from_secs(5));
        assert_eq!(view.change_interval(true), Some(five));
        while view.change_interval(false).is_some() {}
        assert_eq!(view.interval, Duration::from_secs(1));
    }
}
