//! An answer on paper: for a terminal, short or whole, for programs, for a browser; and a rule for
//! people.

mod compare;
mod explain;
mod fleet;
mod html;
mod json;
mod reading;
mod short;
mod style;
mod text;

pub use compare::{COMPARISON_VERSION, comparison, comparison_json};
pub use explain::{explain, list};
pub use fleet::{FLEET_VERSION, fleet, fleet_html, fleet_json};
pub use html::html;
pub use json::{JSON_VERSION, json};
pub(crate) use short::headline;
pub use short::{SHORT_LINES, short};
pub use style::Style;
pub use text::text;
