//! JSON for speedscope (<https://www.speedscope.app/file-format-schema.json>): one profile a name
//! of thread, samples in the order of time.

use std::io::{self, Write};

use serde::Serialize;

use super::html::Page;
use crate::model::WeightUnit;

#[derive(Serialize)]
struct File<'d> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'d str,
    exporter: String,
    shared: Shared,
    profiles: Vec<Profile<'d>>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    file: String,
}

#[derive(Serialize)]
struct Profile<'d> {
    r#type: &'static str,
    name: &'d str,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start_value: u64,
    #[serde(rename = "endValue")]
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes the file.
pub(super) fn write(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let profile = page.view.profile();
    let frames = profile
        .frames()
        .map(|(_, frame)| Frame { name: frame.name().into_owned(), file: frame.module.to_owned() })
        .collect();
    let unit = match profile.meta.unit {
        WeightUnit::Nanoseconds => "nanoseconds",
        _ => "none",
    };
    let profiles = page
        .view
        .by_thread_name()
        .iter()
        .map(|share| {
            let of_name = page.view.threads(|thread| thread.name == share.name);
            let mut samples: Vec<_> = of_name.samples().collect();
            samples.sort_by_key(|sample| sample.time_ns);
            let name = profile.thread(samples[0].thread).name;
            Profile {
                r#type: "sampled",
                name: if name.is_empty() { "[unknown]" } else { name },
                unit,
                start_value: 0,
                end_value: share.weight,
                samples: samples
                    .iter()
                    .map(|sample| {
                        let mut stack: Vec<usize> =
                            profile.stack(sample.stack).map(|frame| frame.index()).collect();
                        stack.reverse();
                        stack
                    })
                    .collect(),
                weights: samples.iter().map(|sample| sample.weight).collect(),
            }
        })
        .collect();
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: page.title,
        exporter: format!("ogive {}", env!("CARGO_PKG_VERSION")),
        shared: Shared { frames },
        profiles,
    };
    serde_json::to_writer(io::BufWriter::new(out), &file)?;
    Ok(())
}
