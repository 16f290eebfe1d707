//! Compressed files and tar archives, unpacked within bounds.
//!
//! What something is, is told by its first bytes. At most two layers of compression and one of tar
//! are taken off; an archive in an archive stays what it is.

use std::io::{self, BufReader, Read};

/// Layers of compression that are taken off.
const MAX_LAYERS: usize = 2;
/// Files of an archive that are looked at.
const MAX_ENTRIES: usize = 20_000;

/// What came out.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Name and content.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Name and reason of what was not taken.
    pub(super) left_out: Vec<(String, String)>,
}

/// Unpacks one input; nothing larger than `room` bytes comes out, all together.
pub(super) fn unpack(name: &str, source: impl Read, room: u64) -> io::Result<Unpacked> {
    let mut bytes = Vec::new();
    let mut out = Unpacked::default();
    source.take(room + 1).read_to_end(&mut bytes)?;
    cut(&mut bytes, room, name, &mut out);
    let mut name = name.to_owned();
    for _ in 0..MAX_LAYERS {
        let Some(packing) = packing(&bytes) else { break };
        let mut plain = Vec::new();
        let result = decoder(packing, &bytes)
            .and_then(|reader| reader.take(room + 1).read_to_end(&mut plain));
        if let Err(error) = result {
            out.left_out.push((name.clone(), format!("only partly unpacked: {error}")));
        }
        name = stem(&name).to_owned();
        cut(&mut plain, room, &name, &mut out);
        bytes = plain;
    }
    if is_tar(&bytes) {
        entries(&name, &bytes, room, &mut out);
    } else {
        out.files.push((name, bytes));
    }
    Ok(out)
}

/// The beginning of what a beginning unpacks to, 4 KiB at most if it is packed.
pub(super) fn beginning(mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..MAX_LAYERS {
        let Some(packing) = packing(&bytes) else { break };
        let mut plain = vec![0; 4096];
        let mut length = 0;
        // It ends in the middle, of course; what came out before is what is asked for.
        if let Ok(mut reader) = decoder(packing, &bytes) {
            while let Ok(more @ 1..) = reader.read(&mut plain[length..]) {
                length += more;
            }
        }
        plain.truncate(length);
        bytes = plain;
    }
    bytes
}

/// Cuts what is larger than allowed, and says so.
fn cut(bytes: &mut Vec<u8>, room: u64, name: &str, out: &mut Unpacked) {
    if bytes.len() as u64 > room {
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        out.left_out
            .push((name.to_owned(), format!("only its first {} MiB were read", room >> 20)));
    }
}

fn entries(archive: &str, bytes: &[u8], room: u64, out: &mut Unpacked) {
    let mut left = room;
    let mut archive_reader = tar::Archive::new(bytes);
    let entries = match archive_reader.entries() {
        Ok(entries) => entries,
        Err(error) => {
            out.left_out.push((archive.to_owned(), format!("no archive: {error}")));
            return;
        }
    };
    for (number, entry) in entries.enumerate() {
        if number >= MAX_ENTRIES || left == 0 {
            out.left_out.push((
                archive.to_owned(),
                "the rest of the archive was left out: it is too large".to_owned(),
            ));
            return;
        }
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                out.left_out.push((archive.to_owned(), format!("the archive is damaged: {error}")));
                return;
            }
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        let mut content = Vec::new();
        if let Err(error) = (&mut entry).take(left).read_to_end(&mut content) {
            out.left_out.push((name.clone(), format!("cut short: {error}")));
        }
        left -= content.len() as u64;
        // A compressed file inside keeps its place; an archive inside stays as it is.
        let (name, content) = inner(&name, content, left, out);
        left = left.saturating_sub(content.len() as u64);
        out.files.push((name, content));
    }
}

/// Takes one layer of compression off a file of an archive.
fn inner(name: &str, content: Vec<u8>, room: u64, out: &mut Unpacked) -> (String, Vec<u8>) {
    let Some(packing) = packing(&content) else { return (name.to_owned(), content) };
    let mut plain = Vec::new();
    let result =
        decoder(packing, &content).and_then(|reader| reader.take(room).read_to_end(&mut plain));
    if let Err(error) = result {
        out.left_out.push((name.to_owned(), format!("only partly unpacked: {error}")));
    }
    (stem(name).to_owned(), plain)
}

#[derive(Clone, Copy)]
enum Packing {
    Zstd,
    Gzip,
    Xz,
}

fn packing(bytes: &[u8]) -> Option<Packing> {
    match bytes {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
        // pprof is gzip by definition; the profiler takes it off itself, and a second time does no
        // harm.
        [0x1f, 0x8b, 0x08, ..] => Some(Packing::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
        _ => None,
    }
}

fn decoder<'a>(packing: Packing, bytes: &'a [u8]) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match packing {
        Packing::Zstd => Box::new(zstd::Decoder::new(BufReader::new(bytes))?),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Packing::Xz => Box::new(xz2::read::XzDecoder::new_multi_decoder(bytes)),
    })
}

fn stem(name: &str) -> &str {
    [".zst", ".gz", ".xz", ".tgz"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name)
}

pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.len() >= 512 && &bytes[257..262] == b"ustar"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bomb_is_cut_and_named() {
        let zeroes = vec![0_u8; 4 << 20];
        let packed = zstd::encode_all(&zeroes[..], 3).unwrap();
        let out = unpack("bomb.zst", &packed[..], 1 << 20).unwrap();
        assert_eq!(out.files[0].1.len(), 1 << 20);
        assert!(out.left_out[0].1.contains("first 1 MiB"), "{:?}", out.left_out);
    }

    #[test]
    fn a_truncated_stream_gives_what_it_has() {
        let text = "hits 4 1\n".repeat(20_000);
        let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
        let out = unpack("a.zst", &packed[..packed.len() - 3], 1 << 20).unwrap();
        assert_eq!(out.files[0].0, "a");
        assert!(!out.left_out.is_empty());
    }

    proptest! {
        #[test]
        fn nothing_outside_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), magic in 0..4_usize) {
            let mut input = match magic {
                0 => vec![0x28, 0xb5, 0x2f, 0xfd],
                1 => vec![0x1f, 0x8b, 8],
                2 => vec![0xfd, b'7', b'z', b'X', b'Z', 0],
                _ => Vec::new(),
            };
            input.extend(bytes);
            prop_assert!(unpack("x", &input[..], 1 << 16).is_ok());
        }
    }
}
