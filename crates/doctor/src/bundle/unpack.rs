//! Unpacks compressed files and tar archives within bounds.
//!
//! The first bytes of a file identify its format. At most two layers of compression and one of tar
//! are unpacked; an archive in an archive stays packed.

use std::io::{self, BufReader, Read};

use crate::evidence::Input;

/// Layers of compression that are removed, at most.
const MAX_LAYERS: usize = 2;
/// Files of an archive that are read, at most.
const MAX_ENTRIES: usize = 20_000;

/// The unpacked files.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Name and content.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// The parts that were left out.
    pub(super) left_out: Vec<Input>,
}

/// An input that was not read at all.
pub(super) fn whole(name: &str, why: impl Into<String>) -> Input {
    Input { name: name.into(), trouble: Some(why.into()), ..Input::default() }
}

/// An input that ends early.
fn rest(name: &str, why: impl Into<String>) -> Input {
    Input { in_part: true, ..whole(name, why) }
}

/// Unpacks one input; the result has at most `room` bytes in total.
pub(super) fn unpack(name: &str, source: impl Read, room: u64) -> io::Result<Unpacked> {
    let mut bytes = Vec::new();
    let mut out = Unpacked::default();
    source.take(room + 1).read_to_end(&mut bytes)?;
    cut(&mut bytes, room, name, &mut out);
    let mut name = name.to_owned();
    for _ in 0..MAX_LAYERS {
        let Some(plain) = peeled(&name, &bytes, room, &mut out) else { break };
        (name, bytes) = plain;
    }
    if is_tar(&bytes) {
        entries(&name, &bytes, room, &mut out);
    } else {
        out.files.push((name, bytes));
    }
    Ok(out)
}

/// The unpacked beginning of these bytes; at most 4 KiB if they are packed.
pub(super) fn beginning(mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..MAX_LAYERS {
        let mut plain = vec![0; 4096];
        let mut length = 0;
        // The bytes end in the middle; the output before the end is enough.
        match decoder(&bytes) {
            None => break,
            Some(Err(_)) => {}
            Some(Ok(mut reader)) => {
                while let Ok(more @ 1..) = reader.read(&mut plain[length..]) {
                    length += more;
                }
            }
        }
        plain.truncate(length);
        bytes = plain;
    }
    bytes
}

/// Cuts an input that is larger than allowed, and reports it.
fn cut(bytes: &mut Vec<u8>, room: u64, name: &str, out: &mut Unpacked) {
    if bytes.len() as u64 > room {
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        let why = format!("only its first {} MiB were read", room >> 20);
        out.left_out.push(rest(name, why));
    }
}

fn entries(archive: &str, bytes: &[u8], room: u64, out: &mut Unpacked) {
    let mut left = room;
    let mut archive_reader = tar::Archive::new(bytes);
    let entries = match archive_reader.entries() {
        Ok(entries) => entries,
        Err(error) => {
            out.left_out.push(whole(archive, format!("not an archive: {error}")));
            return;
        }
    };
    for (number, entry) in entries.enumerate() {
        if number >= MAX_ENTRIES || left == 0 {
            let why = "the rest of the archive was left out: it is too large";
            out.left_out.push(rest(archive, why));
            return;
        }
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                out.left_out.push(rest(archive, format!("it ends early: {error}")));
                return;
            }
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        let mut content = Vec::new();
        let read = (&mut entry).take(left).read_to_end(&mut content);
        let missing = entry.size().min(left).saturating_sub(content.len() as u64);
        if let Err(error) = read {
            out.left_out.push(rest(&name, format!("it ends early: {error}")));
        } else if missing > 0 {
            let why = format!("it ends early: {missing} bytes of it are missing");
            out.left_out.push(rest(&name, why));
        }
        left -= content.len() as u64;
        // A compressed file inside keeps its position; an archive inside stays packed.
        let plain = peeled(&name, &content, left, out);
        let (name, content) = plain.unwrap_or((name, content));
        left = left.saturating_sub(content.len() as u64);
        out.files.push((name, content));
    }
}

/// Removes one layer of compression; `None` if there is none.
fn peeled(name: &str, bytes: &[u8], room: u64, out: &mut Unpacked) -> Option<(String, Vec<u8>)> {
    let mut plain = Vec::new();
    let reader = decoder(bytes)?;
    let read = reader.and_then(|reader| reader.take(room + 1).read_to_end(&mut plain));
    if let Err(error) = read {
        out.left_out.push(rest(name, format!("it ends early: {error}")));
    }
    let name = stem(name).to_owned();
    cut(&mut plain, room, &name, out);
    Some((name, plain))
}

/// The decoder for the compression of these bytes. pprof is gzip by definition; the profiler also
/// unpacks it and accepts unpacked input.
fn decoder<'a>(bytes: &'a [u8]) -> Option<io::Result<Box<dyn Read + 'a>>> {
    Some(Ok(match bytes {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match zstd::Decoder::new(BufReader::new(bytes)) {
            Ok(decoder) => Box::new(decoder),
            Err(error) => return Some(Err(error)),
        },
        [0x1f, 0x8b, 0x08, ..] => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Box::new(xz2::read::XzDecoder::new_multi_decoder(bytes))
        }
        _ => return None,
    }))
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
    fn a_decompression_bomb_is_cut_and_reported() {
        let zeroes = vec![0_u8; 4 << 20];
        let packed = zstd::encode_all(&zeroes[..], 3).unwrap();
        let out = unpack("bomb.zst", &packed[..], 1 << 20).unwrap();
        assert_eq!(out.files[0].1.len(), 1 << 20);
        assert!(
            out.left_out[0].trouble.as_ref().is_some_and(|why| why.contains("first 1 MiB")),
            "{:?}",
            out.left_out
        );
    }

    #[test]
    fn a_truncated_stream_gives_its_beginning() {
        let text = "hits 4 1\n".repeat(20_000);
        let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
        let out = unpack("a.zst", &packed[..packed.len() - 3], 1 << 20).unwrap();
        assert_eq!(out.files[0].0, "a");
        assert!(out.left_out[0].in_part, "{:?}", out.left_out);
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_reported() {
        let mut builder = tar::Builder::new(Vec::new());
        for name in ["top.txt", "arcstats"] {
            let mut header = tar::Header::new_ustar();
            header.set_size(600);
            builder.append_data(&mut header, name, &[b'x'; 600][..]).unwrap();
        }
        let whole = builder.into_inner().unwrap();
        assert!(unpack("a.tar", &whole[..], 1 << 20).unwrap().left_out.is_empty());
        // Cut within the content of a file, and within a header.
        for length in [800, 1700, 2300] {
            let out = unpack("a.tar", &whole[..length], 1 << 20).unwrap();
            assert!(out.left_out.iter().any(|one| one.in_part), "{length}: {:?}", out.left_out);
        }
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2000), magic in 0..4_usize) {
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
