//! `ogive profile`: samples stacks or reads a recording, and writes flame graphs and tables.

pub(crate) mod args;
pub(crate) mod progress;
pub(crate) mod tables;

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use ogive_profile::live::{self, LiveError, Request, Target};
use ogive_profile::read::{self, Options};
use ogive_profile::roles::Roles;
use ogive_profile::symbols::{SymbolOptions, advice};
use ogive_profile::write::{self, Output, Page};
use ogive_profile::{Profile, View};

use crate::exit::{self, Refusal};
use args::ProfileArgs;
use progress::Progress;

/// Runs the subcommand.
pub(crate) fn run(args: &ProfileArgs) -> Result<()> {
    let outputs = outputs(args)?;
    if args.baseline.is_some() && !outputs.iter().any(|(_, output)| compares(*output)) {
        return Err(Refusal::new(
            exit::USAGE,
            "a baseline can only be shown in a flame graph; add -o FILE.html or -o FILE.svg",
        )
        .into());
    }
    let roles = roles(args.roles.as_deref())?;
    let options = Options { symbols: symbols(args)? };
    let baseline = match &args.baseline {
        Some(path) => Some(read_file(path, &options)?),
        None => None,
    };
    let profile = match &args.file {
        Some(path) => read_file(path, &options)?,
        None => sample(args)?,
    };
    let view = chosen(&profile, args);
    let before = baseline.as_ref().map(|profile| chosen(profile, args));
    let title = title(args, &profile);
    let page = Page { title: &title, view: &view, baseline: before.as_ref(), roles: &roles };
    for (path, output) in &outputs {
        write_one(path, *output, &page)?;
    }
    if args.json {
        write_one(Path::new("-"), Output::Json, &page)?;
    } else if outputs.is_empty() {
        let text = tables::text(&view, &roles, args.top);
        io::stdout().lock().write_all(text.as_bytes()).context("cannot write the tables")?;
    }
    if !outputs.is_empty() || args.json {
        for note in &profile.meta.notes {
            log_line(note);
        }
    }
    for line in advice(&profile) {
        log_line(&line);
    }
    Ok(())
}

fn log_line(text: &str) {
    // If standard error is closed, there is no place to report to.
    let _ = writeln!(io::stderr().lock(), "ogive: {}", tables::printable(text));
}

fn compares(output: Output) -> bool {
    matches!(output, Output::Html | Output::Svg)
}

fn outputs(args: &ProfileArgs) -> Result<Vec<(PathBuf, Output)>, Refusal> {
    let mut outputs = Vec::new();
    if args.output.is_empty()
        && let Some(format) = args.format
    {
        outputs.push((PathBuf::from("-"), format));
    }
    for path in &args.output {
        let output = args.format.or_else(|| Output::of_path(path));
        let output = output.ok_or_else(|| {
            Refusal::new(
                exit::USAGE,
                format!("cannot write {}: its name ends in no known format", path.display()),
            )
            .hint(format!("end it in {}, or add --format", endings().join(", ")))
        })?;
        outputs.push((path.clone(), output));
    }
    Ok(outputs)
}

/// The usual ending of each output.
fn endings() -> Vec<&'static str> {
    Output::ALL.into_iter().filter_map(|(_, endings, _)| endings.first().copied()).collect()
}

/// The dictionary of thread roles, with the user's own entries first.
pub(crate) fn roles(own: Option<&Path>) -> Result<Roles> {
    let bundled = Roles::bundled();
    let Some(path) = own else { return Ok(bundled) };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the roles in {name}"))?;
    Ok(Roles::parse(&name, &text)?.before(bundled))
}

fn symbols(args: &ProfileArgs) -> Result<SymbolOptions> {
    let kallsyms = match &args.kallsyms {
        Some(path) => Some(
            std::fs::read(path)
                .with_context(|| format!("cannot read the symbols in {}", path.display()))?,
        ),
        None => None,
    };
    Ok(SymbolOptions { kallsyms, local: !args.foreign, live: false, roots: args.symbols.clone() })
}

fn read_file(path: &Path, options: &Options) -> Result<Profile> {
    let size = std::fs::metadata(path).ok().filter(|data| data.is_file()).map(|data| data.len());
    let mut progress = Progress::bytes(&path.display().to_string(), size);
    let profile = read::open(path, options, &mut |bytes| progress.add(bytes));
    progress.end();
    Ok(profile?)
}

fn sample(args: &ProfileArgs) -> Result<Profile> {
    let target = if !args.pid.is_empty() {
        Target::Processes(args.pid.clone())
    } else if let Some(name) = &args.thread {
        Target::Threads(name.clone())
    } else {
        Target::System
    };
    let request = Request {
        target,
        hertz: args.frequency,
        duration: args.duration,
        call_graph: args.call_graph,
        ..Request::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    let mut progress = Progress::time("sampling", args.duration);
    let profile = live::sample(&request, &stop, &mut |elapsed, samples| {
        progress.at(elapsed, samples);
    });
    progress.end();
    let profile = profile.map_err(|error| {
        let code =
            if matches!(error, LiveError::InvalidRequest(_)) { exit::USAGE } else { exit::FAILURE };
        Refusal::new(code, error.to_string())
    })?;
    if profile.samples().is_empty() {
        let message = match &args.thread {
            Some(name) => format!("no thread whose name matches \"{name}\" was on a CPU"),
            None if !args.pid.is_empty() => "the chosen processes were not on a CPU".to_owned(),
            None => "no sample was taken".to_owned(),
        };
        return Err(Refusal::new(exit::FAILURE, message)
            .hint("sample for longer, or more often, or everything (-a)")
            .into());
    }
    Ok(profile)
}

/// Sets the flag at Ctrl-C; a second one ends the program at once.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .context("cannot wait for Ctrl-C")?;
    }
    Ok(())
}

/// The samples that the options select.
fn chosen<'p>(profile: &'p Profile, args: &ProfileArgs) -> View<'p> {
    let mut view = if args.idle { profile.view() } else { profile.busy() };
    if !args.pid.is_empty() {
        view = view.threads(|thread| args.pid.contains(&thread.pid));
    }
    if let Some(name) = &args.thread {
        view = view.thread_names(name);
    }
    view
}

fn title(args: &ProfileArgs, profile: &Profile) -> String {
    match &args.file {
        Some(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        None => format!("CPU of {}", profile.meta.host.as_deref().unwrap_or("this machine")),
    }
}

/// A profile shows the programs of every user, so files are for their owner only, and a link is not
/// followed.
fn write_one(path: &Path, output: Output, page: &Page<'_>) -> Result<()> {
    if path.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        write::write(&mut out, output, page).context("cannot write to standard output")?;
        return out.flush().context("cannot write to standard output");
    }
    let place = || format!("cannot write {}", path.display());
    let file = ogive_private::options()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .with_context(place)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, file);
    write::write(&mut out, output, page).with_context(place)?;
    out.flush().with_context(place)
}
