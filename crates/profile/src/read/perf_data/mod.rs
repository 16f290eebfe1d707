//! Reads perf.data, as a file and as a stream from a pipe.
//!
//! `linux-perf-event-reader` decodes the kernel's records. The container around them is read here,
//! because a recording is hostile input. Every section, count and length is bounded, and a
//! truncated file is used up to its end. Memory holds one window of records ([`time_order`]) and
//! the functions and stacks so far, however long the recording is.

mod directory;
mod hardware_trace;
mod header;
mod records;
mod time_order;

use std::io::{self, Read, Seek, SeekFrom};

pub(crate) use directory::Directory;
pub(crate) use header::{Attribute, Bytes, is_pipe};
pub(crate) use time_order::{Record, TimeOrder};

use crate::assemble::Assembler;
use crate::model::{Format, Meta, Profile};
use crate::symbols::Symbols;
use header::{Header, feature};
use linux_perf_event_reader::Endianness;
use records::Records;

/// Whether these are the first bytes of perf.data in either form.
pub(crate) fn is_perf_data(prefix: &[u8]) -> bool {
    header::endian(prefix).is_some()
}

/// Reads a file. `others` are further streams of the same recording, which have no header.
pub(crate) fn read_file<S: Read + Seek>(
    mut source: S,
    others: Vec<S>,
    symbols: Symbols,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Profile> {
    let header = Header::read(&mut source)?;
    let meta = Meta { format: Format::PerfData, notes: header.notes, ..Meta::default() };
    let mut assembler = Assembler::new(Profile::new(meta), symbols, header.endian);
    for (number, bytes) in &header.features {
        apply_feature(&mut assembler, *number, bytes, header.endian);
    }
    settle_release(&mut assembler);
    for attribute in &header.attributes {
        assembler.add_event(attribute);
    }
    source.seek(SeekFrom::Start(header.data.offset))?;
    let mut records = Records::new(header.endian, header.attributes);
    let window = |source: S, size| io::BufReader::with_capacity(1 << 20, source.take(size));
    let mut streams = vec![window(source, header.data.size)];
    streams.extend(others.into_iter().map(|source| window(source, u64::MAX)));
    records.read(streams, &mut assembler, progress);
    Ok(assembler.finish())
}

/// Reads a stream from a pipe.
pub(crate) fn read_pipe(
    mut source: impl Read,
    symbols: Symbols,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Profile> {
    let mut head = [0; 16];
    source.read_exact(&mut head)?;
    let endian = header::endian(&head).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "the perf.data magic is missing")
    })?;
    let meta = Meta { format: Format::PerfPipe, ..Meta::default() };
    let assembler = &mut Assembler::new(Profile::new(meta), symbols, endian);
    let mut records = Records::new(endian, Vec::new());
    let data = io::BufReader::with_capacity(1 << 20, source);
    records.read(vec![data], assembler, progress);
    let empty = Assembler::new(Profile::default(), Symbols::new(Default::default()), endian);
    Ok(std::mem::replace(assembler, empty).finish())
}

/// Applies a feature section. In a stream from a pipe, features precede the samples.
fn apply_feature(assembler: &mut Assembler, number: u32, bytes: &[u8], endian: Endianness) {
    let mut reader = Bytes::new(bytes, endian);
    match number {
        feature::BUILD_ID => build_ids(assembler, reader),
        feature::HOSTNAME => assembler.profile_mut().meta.host = reader.header_string(),
        feature::OS_RELEASE => assembler.profile_mut().meta.os_release = reader.header_string(),
        feature::ARCH => assembler.profile_mut().meta.arch = reader.header_string(),
        feature::CPUS => {
            let _available = reader.u32();
            assembler.profile_mut().meta.cpus_online = reader.u32();
        }
        feature::COMMAND => {
            let words = reader.u32().unwrap_or(0).min(1024);
            let words: Vec<String> = (0..words).map_while(|_| reader.header_string()).collect();
            assembler.profile_mut().meta.command = Some(words.join(" "));
        }
        _ => {}
    }
}

fn settle_release(assembler: &mut Assembler) {
    let release = assembler.profile_mut().meta.os_release.clone().unwrap_or_default();
    assembler.symbols_mut().set_release(&release);
}

/// `HEADER_BUILD_ID`: records of header, process, 20 bytes and their number, path.
fn build_ids(assembler: &mut Assembler, mut bytes: Bytes<'_>) {
    const MISC_SIZE: u16 = 1 << 15;
    while let (Some(_kind), Some(misc), Some(size)) = (bytes.u32(), bytes.u16(), bytes.u16()) {
        let Some(body) = bytes.take(usize::from(size).saturating_sub(8)) else { return };
        build_id(assembler, Bytes::new(body, bytes.endian), misc & MISC_SIZE != 0);
    }
}

/// The body of one such record, or of a `PERF_RECORD_HEADER_BUILD_ID` in a stream.
fn build_id(assembler: &mut Assembler, mut body: Bytes<'_>, sized: bool) {
    let Some(_process) = body.u32() else { return };
    let Some(id) = body.take(24) else { return };
    let len = if sized { usize::from(id[20]).min(20) } else { 20 };
    let path = body.text();
    assembler.symbols_mut().add_build_id(&path, &id[..len]);
}
