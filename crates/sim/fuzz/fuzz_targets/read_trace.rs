//! Any bytes, in any named or detected format: requests or an error, in bounded memory. The first
//! byte chooses the format; 255 means detection.
#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use ogive_sim::{Format, ReadOptions, TraceReader};

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let options = ReadOptions {
        format: Format::all().nth(usize::from(*choice)).map(|(format, _, _)| format),
        skip_bad: choice & 0x80 != 0,
        requests_max: Some(1 << 16),
        ..ReadOptions::default()
    };
    let source = Cursor::new(bytes.to_vec());
    let Ok(mut reader) = TraceReader::from_reader(Path::new("fuzz"), source, &options) else {
        return;
    };
    let mut requests = Vec::new();
    while let Ok(false) = reader.read(&mut requests, 1 << 16) {
        if requests.len() >= 1 << 16 {
            break;
        }
    }
    assert!(requests.iter().all(|request| request.bytes > 0));
});
