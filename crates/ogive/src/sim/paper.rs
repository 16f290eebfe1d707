//! `ogive sim --paper`: the tables of the ARC paper next to ogive's results.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ogive_sim::paper::{self, Cell, TOLERANCE_POINTS};
use serde_json::json;

use super::args::SimArgs;
use super::watch::Watch;
use crate::exit::{self, Refusal};

/// Prints the tables; [`exit::FAILURE`] if a cell differs.
pub(super) fn run(args: &SimArgs) -> Result<u8> {
    let directory = args.paper_traces.clone().unwrap_or_else(|| PathBuf::from("."));
    let (mut cells, mut absent) = (Vec::new(), Vec::new());
    for trace in paper::traces() {
        let Some(path) = paper::find(&directory, trace) else {
            absent.push(trace);
            continue;
        };
        let watch = Watch::new(std::slice::from_ref(&path), args.quiet);
        let made = paper::cells(trace, &path, super::threads(args), &mut |at| watch.show(at));
        watch.finish();
        cells.extend(made.context("cannot replay")?);
    }
    if cells.is_empty() {
        let text = format!("there are no traces of the paper in {}", directory.display());
        let hint = "name the directory that has OLTP.lis, P3.lis... with --traces or OGIVE_TRACES";
        return Err(Refusal::new(exit::USAGE, text).hint(hint).into());
    }
    let differing = cells.iter().filter(|cell| !cell.agrees()).count();
    let text = if args.json { as_json(&cells, &absent)? } else { as_table(&cells, &absent) };
    io::stdout().lock().write_all(text.as_bytes()).context("cannot write the tables")?;
    Ok(if differing == 0 { exit::SUCCESS } else { exit::FAILURE })
}

fn as_json(cells: &[Cell], absent: &[&str]) -> Result<String> {
    let rows: Vec<_> = cells
        .iter()
        .map(|cell| {
            json!({
                "trace": cell.trace,
                "entries": cell.entries,
                "policy": cell.policy,
                "printed_percent": cell.printed_percent,
                "percent": cell.percent(),
                "hits": cell.hits,
                "requests": cell.requests,
                "agrees": cell.agrees(),
            })
        })
        .collect();
    let whole = json!({ "cells": rows, "absent_traces": absent });
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

fn as_table(cells: &[Cell], absent: &[&str]) -> String {
    let mut lines = vec![
        "Megiddo and Modha, \"ARC: A Self-Tuning, Low Overhead Replacement Cache\", FAST '03; \
         hit ratio in percent"
            .to_owned(),
        String::new(),
        "trace  pages   policy  printed   ours  difference       hits".to_owned(),
    ];
    for cell in cells {
        lines.push(format!(
            "{:<5} {:>6}   {:<6} {:>8.2} {:>6.2} {:>+11.3} {:>10}{}",
            cell.trace,
            cell.entries,
            cell.policy,
            cell.printed_percent,
            cell.percent(),
            cell.percent() - cell.printed_percent,
            cell.hits,
            if cell.agrees() { "" } else { "  differs" }
        ));
    }
    let agreeing = cells.iter().filter(|cell| cell.agrees()).count();
    lines.push(String::new());
    lines.push(format!(
        "{agreeing} of {} cells are as printed, within {TOLERANCE_POINTS} percentage points.",
        cells.len()
    ));
    if !absent.is_empty() {
        lines.push(format!("Missing traces: {}.", absent.join(", ")));
    }
    lines.join("\n") + "\n"
}
