//! Traces and what was published or counted for them.
//!
//! The small ones (block references collected by the authors of LIRS, Jiang and Zhang, SIGMETRICS
//! 2002, as ben-manes/caffeine carries them) lie in `tests/data`. The large ones, such as those of
//! the ARC paper, are read from the folder that `OGIVE_TRACES` names. By default it is
//! `../shared/traces` next to the workspace, if it is there.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Rings of a cache whose hits have to be the same on every machine, whatever processors it has.
pub const RINGS: usize = 2;

/// One row of `golden.csv`: ARC's hits at one cache size.
#[derive(Clone, Debug)]
pub struct Golden {
    pub trace: String,
    pub entries: u64,
    pub hits: u64,
    pub requests: u64,
}

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The folder with all traces, where there is one.
pub fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("OGIVE_TRACES").map(PathBuf::from);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    named.or(Some(default)).filter(|folder| folder.join("golden.csv").is_file())
}

/// Rows of ARC by trace, of traces with at most `requests_max` requests. Says on stderr what
/// is left out.
pub fn golden(requests_max: u64) -> Vec<(String, Vec<Golden>)> {
    let file = folder().unwrap_or_else(bundled).join("golden.csv");
    eprintln!("golden counts: {}", file.display());
    let text = fs::read_to_string(file).unwrap();
    let mut traces: Vec<(String, Vec<Golden>)> = Vec::new();
    for line in text.lines().skip(1) {
        let mut columns = line.split(',');
        let mut next = || columns.next().unwrap();
        let trace = next().to_owned();
        let entries = next().parse().unwrap();
        if next() != "arc" {
            continue;
        }
        let (hits, requests) = (next().parse().unwrap(), next().parse().unwrap());
        let row = Golden { trace: trace.clone(), entries, hits, requests };
        match traces.last_mut() {
            Some((name, rows)) if *name == trace => rows.push(row),
            _ => traces.push((trace, vec![row])),
        }
    }
    assert!(traces.iter().map(|(_, rows)| rows.len()).sum::<usize>() >= 60);
    traces.retain(|(name, rows)| {
        let keep = rows[0].requests <= requests_max;
        if !keep {
            eprintln!("left out: {name}, {} requests (run with --release)", rows[0].requests);
        }
        keep
    });
    traces
}

/// The keys of a trace, in order.
pub fn keys(trace: &str) -> Vec<u64> {
    let (family, name) = trace.split_once('-').unwrap_or((trace, ""));
    let folder = folder().unwrap_or_else(bundled);
    let read = |path: &str| unpack(&folder.join(path));
    match (family, name) {
        ("lirs", name) => lines(&read(&format!("lirs/{name}.trace.gz"))),
        ("arc", name) => lis(&read(&format!("arc/{name}.lis.zst"))),
        ("c2k", name) => be32(&read(&format!("cache2k/{name}.trace.xz"))),
        ("cp", name) => be32(&read(&format!("cloudphysics/{name}.trace.xz"))),
        ("scarab", _) => be64(&read("scarab/scarab-recs.trace.xz")),
        ("adaptsize", _) => second_column(&read("adaptsize/request.trace.xz")),
        ("mq", _) => mq(&read("block/mqsim-tpcc-small.trace.xz")),
        ("msr", _) => msr(&read("block/msr-cambridge1-sample.csv.xz")),
        _ => panic!("no trace {trace}"),
    }
}

fn unpack(path: &Path) -> Vec<u8> {
    let packed = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => {
            flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        }
        Some("xz") => lzma_rs::xz_decompress(&mut &packed[..], &mut bytes).unwrap(),
        Some("zst") => bytes = zstd::decode_all(&packed[..]).unwrap(),
        _ => panic!("{}", path.display()),
    }
    bytes
}

fn text(bytes: &[u8]) -> impl Iterator<Item = &str> {
    std::str::from_utf8(bytes).unwrap().lines()
}

fn lines(bytes: &[u8]) -> Vec<u64> {
    text(bytes).filter_map(|line| line.trim().parse().ok()).collect()
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn lis(bytes: &[u8]) -> Vec<u64> {
    text(bytes)
        .flat_map(|line| {
            let columns = numbers(line);
            columns[0]..columns[0] + columns[1]
        })
        .collect()
}

fn be32(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(4).map(|b| u64::from(u32::from_be_bytes(b.try_into().unwrap()))).collect()
}

fn be64(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|b| u64::from_be_bytes(b.try_into().unwrap())).collect()
}

fn second_column(bytes: &[u8]) -> Vec<u64> {
    text(bytes).map(|line| numbers(line)[1]).collect()
}

/// Arrival, device, first sector, sectors, type; 8 sectors a block.
fn mq(bytes: &[u8]) -> Vec<u64> {
    text(bytes)
        .flat_map(|line| {
            let c = numbers(line);
            (c[2] / 8..=(c[2] + c[3] - 1) / 8).map(move |block| c[1] << 40 | block)
        })
        .collect()
}

/// Time, host, disk, type, offset, bytes, latency.
fn msr(bytes: &[u8]) -> Vec<u64> {
    text(bytes)
        .flat_map(|line| {
            let column = |n| line.split(',').nth(n).unwrap().trim();
            let number = |n| column(n).parse::<u64>().unwrap();
            let (disk, offset, len) = (number(2), number(4), number(5));
            (offset / 4096..=(offset + len.max(1) - 1) / 4096).map(move |block| disk << 52 | block)
        })
        .collect()
}

/// A pseudo-random sequence that is the same everywhere (splitmix64).
pub struct Sequence(pub u64);

impl Sequence {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
