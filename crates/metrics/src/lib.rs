//! What a mount counts, as Prometheus and its kin read it.
//!
//! Names and units are those of the conventions of Prometheus: one base unit, seconds and bytes,
//! in the name; counters end in `_total`. Every sample of a mount has the label `mount`, its mount
//! point ([`path_label`]), and otherwise labels of a few fixed values only: no path, object or program of anybody
//! becomes a label, so a mount has as many series whatever is read through it.
//!
//! [`exposition`] writes the two texts, [`otlp`] what OpenTelemetry takes, [`families`] says
//! which row of which kstat is told under which name, [`process`] what the process itself uses.
//! Nothing here keeps or counts anything by itself but [`process::Clock`]; what is not asked for
//! costs nothing.
//!
//! The formats: <https://prometheus.io/docs/instrumenting/exposition_formats/> and OpenMetrics 1.0.
//! The libraries for it write one of the two only, and `promtool check metrics` reads the other.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod exposition;
pub mod families;
mod label;
pub mod otlp;
pub mod process;

pub use exposition::{Exposition, Format};
pub use families::Figures;
pub use label::path_label;
