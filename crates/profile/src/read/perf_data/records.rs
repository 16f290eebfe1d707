//! Reads the records of perf.data in sequence: their kinds, their events, and the few that describe
//! the recording itself.
//!
//! A recording may have several parallel streams (`perf record --threads`). The stream that is
//! furthest behind in time is read next, so at most one window of records waits.
//!
//! Compressed records (`PERF_RECORD_COMPRESSED`, `COMPRESSED2`) hold one Zstandard stream cut into
//! pieces. It is decompressed in small steps, so a decompression bomb takes time but no memory.

use std::io::{self, BufRead, Read as _};

use hashbrown::HashMap;
use linux_perf_event_reader::{
    AttrFlags, Endianness, RawData, RecordParseInfo, RecordType, SampleFormat, get_record_id,
    get_record_identifier, get_record_timestamp,
};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

use super::hardware_trace::HardwareTrace;
use super::header::{Attribute, Bytes, feature, name_attributes};
use super::time_order::{Record, TimeOrder};
use super::{apply_feature, build_id, settle_release};
use crate::assemble::Assembler;

/// Kinds of records that perf itself writes: `enum perf_user_event_type` of Linux
/// `tools/lib/perf/include/perf/event.h`.
mod kind {
    pub(super) const FIRST: u32 = 64;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const HEADER_TRACING_DATA: u32 = 66;
    pub(super) const HEADER_BUILD_ID: u32 = 67;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE_INFO: u32 = 70;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const EVENT_UPDATE: u32 = 78;
    pub(super) const HEADER_FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// Events in a stream at most.
const EVENTS_MAX: usize = 4096;
/// Bytes between two reports of progress.
const PROGRESS_BYTES: u64 = 16 << 20;

/// How to find the event of a record.
#[derive(Debug)]
enum Belonging {
    /// The recording has one event only, or the records have no number.
    First,
    /// The number has the same place in all records.
    Same(RecordParseInfo),
    /// Every record begins or ends with the number.
    Identifier(bool),
}

/// Reads records.
pub(super) struct Records {
    endian: Endianness,
    attributes: Vec<Attribute>,
    parse: Vec<RecordParseInfo>,
    by_id: HashMap<u64, u16>,
    belonging: Belonging,
    rounds: TimeOrder,
    trace: HardwareTrace,
    /// Whether the streams' round marks are valid. With several streams they are not, because the
    /// marks of one do not cover the others.
    has_rounds: bool,
    settled: bool,
}

/// A stream of records.
struct Stream<R> {
    source: R,
    unpacked: Unpacked,
    is_over: bool,
}

/// The state of a stream.
#[derive(Default)]
struct Unpacked {
    decoder: Option<Decoder<'static>>,
    /// Decompressed bytes of an incomplete record.
    rest: Vec<u8>,
    /// The latest time of a record so far.
    latest_ns: u64,
}

impl Records {
    /// `attributes` are those of a file's header; a stream from a pipe contains its own.
    pub(super) fn new(endian: Endianness, attributes: Vec<Attribute>) -> Self {
        let mut records = Self {
            endian,
            attributes: Vec::new(),
            parse: Vec::new(),
            by_id: HashMap::new(),
            belonging: Belonging::First,
            rounds: TimeOrder::default(),
            trace: HardwareTrace::default(),
            has_rounds: true,
            settled: !attributes.is_empty(),
        };
        for attribute in attributes {
            records.add_attribute(attribute);
        }
        records
    }

    fn add_attribute(&mut self, attribute: Attribute) {
        let Ok(index) = u16::try_from(self.attributes.len()) else { return };
        for id in &attribute.ids {
            self.by_id.insert(*id, index);
        }
        self.parse.push(RecordParseInfo::new(&attribute.attr, self.endian));
        self.attributes.push(attribute);
        let first = self.parse[0];
        let attr = &self.attributes[0].attr;
        self.belonging = if self.attributes.len() == 1 {
            Belonging::First
        } else if self.parse.iter().all(|info| info.id_parse_info == first.id_parse_info) {
            Belonging::Same(first)
        } else if self
            .attributes
            .iter()
            .all(|a| a.attr.sample_format.contains(SampleFormat::IDENTIFIER))
        {
            Belonging::Identifier(attr.flags.contains(AttrFlags::SAMPLE_ID_ALL))
        } else {
            Belonging::First
        };
    }

    /// Reads all streams into a profile. Errors that end one early become notes.
    pub(super) fn read<R: BufRead>(
        &mut self,
        sources: Vec<R>,
        assembler: &mut Assembler,
        progress: &mut dyn FnMut(u64),
    ) {
        self.has_rounds = sources.len() == 1;
        let mut streams: Vec<Stream<R>> = sources.into_iter().map(Stream::new).collect();
        let (mut done, mut reported) = (0u64, 0u64);
        let mut body = Vec::new();
        let behind = |streams: &mut Vec<Stream<R>>| {
            let open = (0..streams.len()).filter(|at| !streams[*at].is_over);
            open.min_by_key(|at| streams[*at].unpacked.latest_ns)
        };
        while let Some(at) = behind(&mut streams) {
            let stream = &mut streams[at];
            match self.read_one(stream, &mut body, assembler) {
                Ok(0) => stream.is_over = true,
                Ok(size) => done += size,
                Err(error) => {
                    stream.is_over = true;
                    note_end(assembler, &error, done);
                }
            }
            if done - reported >= PROGRESS_BYTES {
                progress(done - reported);
                reported = done;
            }
        }
        progress(done - reported);
        self.rounds.end(&mut |record| assembler.record(record));
        if let Some(note) = self.trace.note(done) {
            assembler.profile_mut().meta.note(note);
        }
    }

    /// Reads one record with the data that follows it; 0 at the end.
    fn read_one<R: BufRead>(
        &mut self,
        stream: &mut Stream<R>,
        body: &mut Vec<u8>,
        assembler: &mut Assembler,
    ) -> io::Result<u64> {
        let source = &mut stream.source;
        if source.fill_buf()?.is_empty() {
            return Ok(0);
        }
        let mut head = [0; 8];
        source.read_exact(&mut head)?;
        let (kind, misc, size) = parse_head(&head, self.endian);
        let len = usize::from(size).checked_sub(8).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "a record has an impossible size")
        })?;
        body.resize(len, 0);
        source.read_exact(body)?;
        let mut total = u64::from(size);
        // Two kinds of records are followed by more bytes than their size covers.
        let follows = match kind {
            kind::AUXTRACE => Bytes::new(body, self.endian).u64().unwrap_or(0),
            kind::HEADER_TRACING_DATA => {
                let size = Bytes::new(body, self.endian).u32().unwrap_or(0);
                u64::from(size).next_multiple_of(8)
            }
            _ => 0,
        };
        if follows > 0 {
            let skipped = io::copy(&mut source.by_ref().take(follows), &mut io::sink())?;
            total += skipped;
            if kind == kind::AUXTRACE {
                self.trace.add(skipped);
            }
        }
        self.take(kind, misc, body, &mut stream.unpacked, assembler)?;
        Ok(total)
    }

    fn take(
        &mut self,
        kind: u32,
        misc: u16,
        body: &[u8],
        unpacked: &mut Unpacked,
        assembler: &mut Assembler,
    ) -> io::Result<()> {
        if kind < kind::FIRST {
            if !self.settled {
                self.settled = true;
                settle_release(assembler);
            }
            let time_ns = self.take_event(kind, misc, body, assembler);
            unpacked.latest_ns = unpacked.latest_ns.max(time_ns.unwrap_or(0));
            return Ok(());
        }
        let mut bytes = Bytes::new(body, self.endian);
        match kind {
            kind::AUXTRACE_INFO => self.trace.describe(bytes),
            kind::FINISHED_ROUND if self.has_rounds => {
                self.rounds.end_round(&mut |record| assembler.record(record));
            }
            kind::COMPRESSED => self.decompress(body, unpacked, assembler)?,
            kind::COMPRESSED2 => {
                let len = bytes.u64().and_then(|len| usize::try_from(len).ok());
                if let Some(piece) = len.and_then(|len| bytes.take(len)) {
                    self.decompress(piece, unpacked, assembler)?;
                }
            }
            kind::HEADER_ATTR if self.attributes.len() < EVENTS_MAX => {
                if let Some(attribute) = Attribute::parse_record(body, self.endian) {
                    assembler.add_event(&attribute);
                    self.add_attribute(attribute);
                }
            }
            kind::HEADER_FEATURE => {
                let number = bytes.u64().unwrap_or(0);
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                if number == feature::EVENT_DESCRIPTION {
                    name_attributes(&mut self.attributes, bytes.bytes, self.endian);
                    for (index, attribute) in self.attributes.iter().enumerate() {
                        if let Some(name) = &attribute.name {
                            assembler.rename_event(index, name);
                        }
                    }
                }
                apply_feature(assembler, number, bytes.bytes, self.endian);
            }
            kind::HEADER_BUILD_ID => build_id(assembler, bytes, misc & (1 << 15) != 0),
            kind::EVENT_UPDATE => self.rename(bytes, assembler),
            _ => {}
        }
        Ok(())
    }

    /// `PERF_RECORD_EVENT_UPDATE`: kind (2 is the name), id, text.
    fn rename(&mut self, mut bytes: Bytes<'_>, assembler: &mut Assembler) {
        let (Some(what), Some(id)) = (bytes.u64(), bytes.u64()) else { return };
        if let (2, Some(&index)) = (what, self.by_id.get(&id)) {
            assembler.rename_event(usize::from(index), &bytes.text());
        }
    }

    /// Processes a record of the kernel and returns its time.
    fn take_event(
        &mut self,
        kind: u32,
        misc: u16,
        body: &[u8],
        assembler: &mut Assembler,
    ) -> Option<u64> {
        if self.parse.is_empty() {
            return None;
        }
        let event = match self.endian {
            Endianness::LittleEndian => self.event::<byteorder::LittleEndian>(kind, body),
            Endianness::BigEndian => self.event::<byteorder::BigEndian>(kind, body),
        };
        if event.is_none() && kind == RecordType::SAMPLE.0 {
            assembler.unknown_sample();
            return None;
        }
        // Only the layout of the end of a record about tasks matters, so any event will do.
        let event = event.unwrap_or(0);
        let record = Record { kind, misc, event, body };
        let time_ns = self.time_ns(&record);
        self.rounds.add(record, time_ns, &mut |record| assembler.record(record));
        time_ns
    }

    fn time_ns(&self, record: &Record<'_>) -> Option<u64> {
        let parse = &self.parse[usize::from(record.event)];
        let (kind, data) = (RecordType(record.kind), RawData::Single(record.body));
        match self.endian {
            Endianness::LittleEndian => {
                get_record_timestamp::<byteorder::LittleEndian>(kind, data, parse)
            }
            Endianness::BigEndian => {
                get_record_timestamp::<byteorder::BigEndian>(kind, data, parse)
            }
        }
    }

    /// The event of a record; the first if it is the only one or the record has no number.
    fn event<T: byteorder::ByteOrder>(&self, kind: u32, body: &[u8]) -> Option<u16> {
        let (kind, data) = (RecordType(kind), RawData::Single(body));
        let id = match &self.belonging {
            Belonging::First => return Some(0),
            Belonging::Same(info) => get_record_id::<T>(kind, data, &info.id_parse_info),
            Belonging::Identifier(all) => get_record_identifier::<T>(kind, data, *all),
        };
        match id {
            // Records that the recorder writes itself have the number 0.
            None | Some(0) => Some(0),
            Some(_) if self.by_id.is_empty() => Some(0),
            Some(id) => self.by_id.get(&id).copied(),
        }
    }

    fn decompress(
        &mut self,
        piece: &[u8],
        unpacked: &mut Unpacked,
        assembler: &mut Assembler,
    ) -> io::Result<()> {
        let mut decoder = match unpacked.decoder.take() {
            Some(decoder) => decoder,
            None => Decoder::new()?,
        };
        let mut out = vec![0; 256 << 10];
        let mut input = InBuffer::around(piece);
        loop {
            let mut output = OutBuffer::around(&mut out[..]);
            decoder.run(&mut input, &mut output)?;
            let written = output.pos();
            unpacked.rest.extend_from_slice(&out[..written]);
            self.take_decompressed(unpacked, assembler)?;
            if written < out.len() && input.pos() >= piece.len() {
                break;
            }
        }
        unpacked.decoder = Some(decoder);
        Ok(())
    }

    fn take_decompressed(
        &mut self,
        unpacked: &mut Unpacked,
        assembler: &mut Assembler,
    ) -> io::Result<()> {
        let rest = std::mem::take(&mut unpacked.rest);
        let mut at = 0;
        while let Some(head) = rest.get(at..at + 8) {
            let (kind, misc, size) = parse_head(head, self.endian);
            if size < 8 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a compressed record has an impossible size",
                ));
            }
            let Some(body) = rest.get(at + 8..at + usize::from(size)) else { break };
            // Compressed records may not contain further ones.
            if !matches!(kind, kind::COMPRESSED | kind::COMPRESSED2) {
                self.take(kind, misc, body, unpacked, assembler)?;
            }
            at += usize::from(size);
        }
        unpacked.rest = rest;
        unpacked.rest.drain(..at);
        Ok(())
    }
}

impl<R> Stream<R> {
    fn new(source: R) -> Self {
        Self { source, unpacked: Unpacked::default(), is_over: false }
    }
}

/// Notes the error that ended a stream early and the number of bytes read before it.
fn note_end(assembler: &mut Assembler, error: &io::Error, done: u64) {
    let what = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the recording ends in the middle of a record".to_owned()
    } else {
        format!("reading stopped: {error}")
    };
    assembler
        .profile_mut()
        .meta
        .note(format!("{what}, {done} bytes after its first; what came before is used"));
}

fn parse_head(head: &[u8], endian: Endianness) -> (u32, u16, u16) {
    let mut bytes = Bytes::new(head, endian);
    (bytes.u32().unwrap_or(0), bytes.u16().unwrap_or(0), bytes.u16().unwrap_or(0))
}
