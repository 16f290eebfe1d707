//! An answer on paper: for a terminal, for programs, for a browser; and a rule for people.

mod explain;
mod html;
mod json;
mod text;

pub use explain::{explain, list};
pub use html::html;
pub use json::{JSON_VERSION, json};
pub use text::{Style, text};
