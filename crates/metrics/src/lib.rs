//! The counters of a mount, as Prometheus and OpenTelemetry read them.
//!
//! Names and units follow Prometheus's conventions: one base unit, seconds or bytes, in the name;
//! counters end in `_total`. Every sample of a mount has the label `mount`, its mount point
//! ([`path_label`]). All other labels have a few fixed values. No path, object or program becomes a
//! label, so the number of series does not depend on what is read through the mount.
//!
//! [`exposition`] writes the two text formats, [`otlp`] OpenTelemetry's. [`families`] makes
//! families of the rows of kstats, and [`process`] those of the process itself. Only
//! [`process::Clock`] has state. All work is done on request.
//!
//! The formats: <https://prometheus.io/docs/instrumenting/exposition_formats/> and OpenMetrics 1.0.
//! The available libraries write only one of the two, and `promtool check metrics` reads the other.
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
