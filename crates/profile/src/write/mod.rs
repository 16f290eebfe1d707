//! Writers: from a profile to formats for people and for other tools.

pub mod html;

mod firefox;
mod folded;
mod named_stacks;
mod pprof;
mod summary;
mod svg;

use std::io::{self, Write};
use std::path::Path;

pub use html::Page;
pub use summary::{Summary, summary};

/// The format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// An interactive flame graph in one HTML file.
    Html,
    /// A flame graph as SVG.
    Svg,
    /// Folded stacks.
    Folded,
    /// A gzipped protocol buffer for `pprof`.
    Pprof,
    /// JSON for the Firefox Profiler.
    Firefox,
    /// A summary as JSON.
    Json,
}

impl Output {
    /// Every output with its name and the endings of file names that choose it.
    pub const ALL: [(&'static str, &'static [&'static str], Self); 6] = [
        ("html", &[".html", ".htm"], Self::Html),
        ("svg", &[".svg"], Self::Svg),
        ("folded", &[".folded", ".collapsed"], Self::Folded),
        ("pprof", &[".pb.gz", ".pprof"], Self::Pprof),
        ("firefox", &[".firefox.json"], Self::Firefox),
        ("json", &[".json"], Self::Json),
    ];

    /// Chooses the output by the end of a file's name; `None` if no output has this ending.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let chooses = |ending: &&str| name.ends_with(*ending);
        let found = Self::ALL.into_iter().find(|(_, endings, _)| endings.iter().any(chooses));
        found.map(|(_, _, output)| output)
    }
}

/// Writes a [`Page`] as `output`. Only HTML and SVG use its baseline.
///
/// # Errors
///
/// The error of `out`.
pub fn write(out: &mut dyn Write, output: Output, page: &Page<'_>) -> io::Result<()> {
    match output {
        Output::Html => html::write(out, page),
        Output::Svg => svg::write(out, page),
        Output::Folded => folded::write(out, page.view),
        Output::Pprof => pprof::write(out, page.view),
        Output::Firefox => firefox::write(out, page),
        Output::Json => {
            serde_json::to_writer_pretty(&mut *out, &summary(page.view, page.roles))?;
            out.write_all(b"\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::Roles;

    const TEXT: &str = "z_rd_int 316/317 [001] 10.5:  100 cpu-clock:\n\
        \tffffffffc0a88b8d kfpu_end+0x1d ([icp])\n\
        \tffffffffc0a7825e aes_encrypt_block+0x4e ([icp])\n\n\
        cat 5774 [000] 10.6: 250 cpu-clock:\n\
        \t           3309d [unknown] (/usr/lib/libc.so.6)\n\
        \t           3309e main (/usr/bin/cat)\n\n\
        cat 5774 [000] 10.7: 50 cpu-clock:\n\n";

    #[test]
    fn every_output_keeps_the_sum_of_weights() {
        let profile = crate::read::bytes("t", TEXT.as_bytes(), &Default::default()).unwrap();
        let (view, roles) = (profile.view(), Roles::bundled());
        let page = Page { title: "t", view: &view, baseline: None, roles: &roles };
        let written = |output| {
            let mut out = Vec::new();
            write(&mut out, output, &page).unwrap();
            out
        };
        let again = |output| {
            let profile = crate::read::bytes("again", &written(output), &Default::default());
            profile.unwrap()
        };
        for output in [Output::Folded, Output::Pprof] {
            let read = again(output);
            assert_eq!(read.view().weight(), 400, "{output:?}");
            let threads = |p: &crate::Profile| {
                let all = p.view().by_thread_name();
                all.into_iter().map(|share| (share.name, share.weight)).collect::<Vec<_>>()
            };
            assert_eq!(threads(&read), threads(&profile), "{output:?}");
        }
        let pprof = again(Output::Pprof);
        assert_eq!(pprof.meta.unit, crate::WeightUnit::Nanoseconds);
        assert_eq!(pprof.view().count(), 3);
        let json = |output| serde_json::from_slice::<serde_json::Value>(&written(output)).unwrap();
        assert_eq!(json(Output::Json)["weight"], 400);
        let firefox = json(Output::Firefox);
        assert_eq!(firefox["threads"].as_array().unwrap().len(), 2);
        let svg = String::from_utf8(written(Output::Svg)).unwrap();
        assert!(svg.contains("kfpu_end") && svg.contains("</svg>"));
    }

    #[test]
    fn file_names_choose_the_output() {
        let of = |name: &str| Output::of_path(Path::new(name));
        assert_eq!(of("a/b.HTML"), Some(Output::Html));
        assert_eq!(of("cpu.pb.gz"), Some(Output::Pprof));
        assert_eq!(of("x.firefox.json"), Some(Output::Firefox));
        for plain in ["x.json", "x.2026-05-01.json", ".x.json", "run.after.json"] {
            assert_eq!(of(plain), Some(Output::Json), "{plain}");
        }
        for unknown in ["x", "x.json.gz", "x.perfetto"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
