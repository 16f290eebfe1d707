//! Colours and their meaning. A colour only repeats a letter, a word or a figure.

use ratatui::style::{Color, Modifier, Style};

/// The styles of one view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    has_colour: bool,
}

impl Paint {
    pub(super) fn new(has_colour: bool) -> Self {
        Self { has_colour }
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Titles.
    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The head and the foot.
    pub(super) fn edge(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Lines and labels that only guide the eye.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Errors.
    pub(super) fn trouble(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Programs' CPU, MRU, hits.
    pub(super) fn first(self) -> Style {
        self.colour(Color::Blue)
    }

    /// The kernel's CPU, MFU, misses.
    pub(super) fn second(self) -> Style {
        self.colour(Color::Red)
    }

    /// I/O, the window.
    pub(super) fn third(self) -> Style {
        self.colour(Color::Green)
    }

    /// Stolen CPU, ghosts.
    pub(super) fn fourth(self) -> Style {
        self.colour(Color::Magenta)
    }

    /// Interrupts, the second level.
    pub(super) fn fifth(self) -> Style {
        self.colour(Color::Cyan)
    }
}
