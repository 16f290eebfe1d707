//! Reads the header of perf.data: magic, sections, event attributes and features.
//!
//! Layout: Linux `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`. Every size in it is outside input: sections are bounded and
//! may lie beyond the end, and no allocation trusts a count.

use std::io::{self, Read, Seek, SeekFrom};

use byteorder::{BigEndian, ByteOrder, LittleEndian};
use linux_perf_event_reader::{Endianness, PerfEventAttr};

/// Bytes of one feature section at most; the sections used here are far smaller.
const SECTION_BYTES_MAX: u64 = 32 << 20;
/// Event attributes at most.
const ATTRIBUTES_MAX: usize = 4096;
/// Numbers of events in all at most.
const IDS_MAX: usize = 1 << 20;

/// Feature numbers, as `enum` in Linux `tools/perf/util/header.h`.
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OS_RELEASE: u32 = 4;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const CPUS: u32 = 7;
    pub(crate) const COMMAND: u32 = 11;
    pub(crate) const EVENT_DESCRIPTION: u32 = 12;
}

/// A recorded event.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    /// The form that the record decoder needs.
    pub(crate) attr: PerfEventAttr,
    /// `PERF_TYPE_*`.
    pub(crate) kind: u32,
    /// `PERF_COUNT_*`.
    pub(crate) config: u64,
    /// Period or frequency, by `frequency`.
    pub(crate) period: u64,
    /// Whether `period` is a frequency in hertz.
    pub(crate) frequency: bool,
    /// `PERF_FORMAT_*`, including bits that the record decoder does not know.
    pub(crate) read_format: u64,
    /// The name that the recorder gave it, if there is one.
    pub(crate) name: Option<String>,
    /// Numbers of its events.
    pub(crate) ids: Vec<u64>,
}

/// Reads numbers in the byte order of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) endian: Endianness,
}

impl<'b> Bytes<'b> {
    pub(crate) fn new(bytes: &'b [u8], endian: Endianness) -> Self {
        Self { bytes, endian }
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(match self.endian {
            Endianness::LittleEndian => LittleEndian::read_u16(bytes),
            Endianness::BigEndian => BigEndian::read_u16(bytes),
        })
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(match self.endian {
            Endianness::LittleEndian => LittleEndian::read_u32(bytes),
            Endianness::BigEndian => BigEndian::read_u32(bytes),
        })
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.u32().map(u32::cast_signed)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(match self.endian {
            Endianness::LittleEndian => LittleEndian::read_u64(bytes),
            Endianness::BigEndian => BigEndian::read_u64(bytes),
        })
    }

    /// A string up to its NUL, or to the end.
    pub(crate) fn text(&self) -> String {
        let end = memchr::memchr(0, self.bytes).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    /// A `perf_header_string`: a length, then that many bytes, which contain a NUL.
    pub(crate) fn header_string(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        Some(Bytes::new(self.take(len)?, self.endian).text())
    }
}

/// A part of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The header of a perf.data file.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) endian: Endianness,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) data: Section,
    /// Feature sections by number.
    pub(crate) features: Vec<(u32, Vec<u8>)>,
    /// The parts of the header that could not be read.
    pub(crate) notes: Vec<String>,
}

/// The byte order by the magic, of today's perf or of perf before Linux 3.7; `None` if it is not
/// perf.data.
pub(crate) fn endian(magic: &[u8]) -> Option<Endianness> {
    match magic.get(..8)? {
        b"PERFILE2" | b"PERFFILE" => Some(Endianness::LittleEndian),
        b"2ELIFREP" => Some(Endianness::BigEndian),
        _ => None,
    }
}

/// Whether these are the first bytes of perf.data from a pipe, whose header is 16 bytes long.
pub(crate) fn is_pipe(prefix: &[u8]) -> bool {
    let Some(endian) = endian(prefix) else { return false };
    Bytes::new(&prefix[8..], endian).u64() == Some(16)
}

impl Header {
    /// Reads the header of a file.
    pub(crate) fn read(source: &mut (impl Read + Seek)) -> io::Result<Self> {
        let len = source.seek(SeekFrom::End(0))?;
        let head = section(source, Section { offset: 0, size: 104 }, len)?;
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        let endian = endian(&head).ok_or_else(|| invalid("the perf.data magic is missing"))?;
        let mut bytes = Bytes::new(&head[8..], endian);
        let mut next = || bytes.u64().ok_or_else(|| invalid("the header is truncated"));
        let _head_size = next()?;
        let attribute_size = next()?;
        let attributes = Section { offset: next()?, size: next()? };
        let mut data = Section { offset: next()?, size: next()? };
        let _event_types = Section { offset: next()?, size: next()? };
        let features = [next()?, next()?, next()?, next()?];
        let mut notes = Vec::new();
        if data.offset > len {
            return Err(invalid("the file ends before the first record"));
        }
        let complete = data.size > 0 && data.offset.saturating_add(data.size) <= len;
        if !complete {
            notes.push(if data.size == 0 {
                "the recording was never completed (perf was killed?): its records are used as far \
                 as they go, without the description at its end"
                    .to_owned()
            } else {
                format!(
                    "the file ends after {len} bytes of {}: its records are used as far as they go",
                    data.offset.saturating_add(data.size)
                )
            });
            data.size = len - data.offset;
        }
        let mut header = Self { endian, attributes: Vec::new(), data, features: Vec::new(), notes };
        header.read_attributes(source, attributes, attribute_size, len)?;
        if complete {
            header.read_features(source, &features, len)?;
        }
        header.name_events();
        if header.attributes.is_empty() {
            return Err(invalid("the header describes no event"));
        }
        Ok(header)
    }

    fn read_attributes(
        &mut self,
        source: &mut (impl Read + Seek),
        at: Section,
        size: u64,
        len: u64,
    ) -> io::Result<()> {
        let table = section(source, at, len)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size < 64 + 16 {
            return Ok(());
        }
        let mut ids_left = IDS_MAX;
        for entry in table.chunks_exact(size).take(ATTRIBUTES_MAX) {
            let (attr, ids) = entry.split_at(size - 16);
            let mut ids = Bytes::new(ids, self.endian);
            let (Some(offset), Some(ids_size)) = (ids.u64(), ids.u64()) else { continue };
            let Some(mut attribute) = Attribute::parse(attr, self.endian) else { continue };
            let numbers = section(source, Section { offset, size: ids_size }, len)?;
            let mut numbers = Bytes::new(&numbers, self.endian);
            while let Some(id) = numbers.u64()
                && ids_left > 0
            {
                attribute.ids.push(id);
                ids_left -= 1;
            }
            self.attributes.push(attribute);
        }
        Ok(())
    }

    fn read_features(
        &mut self,
        source: &mut (impl Read + Seek),
        bits: &[u64; 4],
        len: u64,
    ) -> io::Result<()> {
        let present: Vec<u32> =
            (0..256u32).filter(|bit| bits[*bit as usize / 64] >> (bit % 64) & 1 == 1).collect();
        let table_at = self.data.offset.saturating_add(self.data.size);
        let table = Section { offset: table_at, size: present.len() as u64 * 16 };
        let table = section(source, table, len)?;
        let mut table = Bytes::new(&table, self.endian);
        for number in present {
            let (Some(offset), Some(size)) = (table.u64(), table.u64()) else { break };
            let is_used = matches!(
                number,
                feature::BUILD_ID
                    ..=feature::OS_RELEASE
                        | feature::ARCH
                        | feature::CPUS
                        | feature::COMMAND
                        | feature::EVENT_DESCRIPTION
            );
            if is_used {
                self.features.push((number, section(source, Section { offset, size }, len)?));
            }
        }
        Ok(())
    }

    fn name_events(&mut self) {
        let described =
            self.features.iter().find(|(number, _)| *number == feature::EVENT_DESCRIPTION);
        if let Some((_, bytes)) = described {
            name_attributes(&mut self.attributes, bytes, self.endian);
        }
    }
}

/// Gives attributes the names of a `HEADER_EVENT_DESC` section.
pub(crate) fn name_attributes(attributes: &mut [Attribute], bytes: &[u8], endian: Endianness) {
    let mut bytes = Bytes::new(bytes, endian);
    let (Some(number), Some(size)) = (bytes.u32(), bytes.u32()) else { return };
    for index in 0..(number as usize).min(ATTRIBUTES_MAX) {
        let Some(_attr) = bytes.take(size as usize) else { return };
        let Some(ids) = bytes.u32() else { return };
        let Some(name) = bytes.header_string() else { return };
        let Some(ids) = bytes.take((ids as usize).saturating_mul(8)) else { return };
        let first = Bytes::new(ids, endian).u64();
        let by_id =
            attributes.iter().position(|a| first.is_some() && a.ids.first() == first.as_ref());
        if let Some(attribute) = attributes.get_mut(by_id.unwrap_or(index)) {
            attribute.name = Some(name);
        }
    }
}

impl Attribute {
    /// Parses a `perf_event_attr`.
    pub(crate) fn parse(bytes: &[u8], endian: Endianness) -> Option<Self> {
        let mut raw = Bytes::new(bytes, endian);
        let kind = raw.u32()?;
        let _size = raw.u32()?;
        let config = raw.u64()?;
        let period = raw.u64()?;
        let _sample_type = raw.u64()?;
        let read_format = raw.u64()?;
        let mut patched = bytes.to_vec();
        // The decoder refuses unknown events, but the layout of records depends on neither kind nor
        // config. Zeros mean cycles and are the same in either byte order.
        patched[..4].fill(0);
        patched[8..16].fill(0);
        let (attr, _) = match endian {
            Endianness::LittleEndian => {
                PerfEventAttr::parse::<_, LittleEndian>(&patched[..]).ok()?
            }
            Endianness::BigEndian => PerfEventAttr::parse::<_, BigEndian>(&patched[..]).ok()?,
        };
        let frequency = attr.flags.contains(linux_perf_event_reader::AttrFlags::FREQ);
        let (name, ids) = (None, Vec::new());
        Some(Self { attr, kind, config, period, frequency, read_format, name, ids })
    }

    /// Parses the body of a `PERF_RECORD_HEADER_ATTR`.
    pub(crate) fn parse_record(body: &[u8], endian: Endianness) -> Option<Self> {
        let mut attribute = Self::parse(body, endian)?;
        let mut raw = Bytes::new(body, endian);
        raw.u32()?;
        let size = raw.u32()? as usize;
        let mut ids = Bytes::new(body.get(size..)?, endian);
        while let Some(id) = ids.u64() {
            attribute.ids.push(id);
        }
        Some(attribute)
    }
}

/// The bytes of a section, as far as the file contains them.
fn section(source: &mut (impl Read + Seek), at: Section, len: u64) -> io::Result<Vec<u8>> {
    let size = at.size.min(SECTION_BYTES_MAX).min(len.saturating_sub(at.offset));
    let mut bytes = Vec::new();
    if size > 0 {
        source.seek(SeekFrom::Start(at.offset))?;
        source.take(size).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
