//! A device of which the fuzzer has overwritten pieces, with cipher off: nothing but checksums stands
//! between its bytes and the reader, so every line behind the checks is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_l2::device::MemoryDevice;
use ogive_l2::{
    Admission, Cipher, FormatPolicy, KeySource, Offered, OpenOptions, StoreOptions, Tier,
    TierOptions,
};
use std::sync::Arc;

fn open(device: &Arc<MemoryDevice>) -> Option<Tier> {
    let how = OpenOptions {
        size_bytes: None,
        cipher: Some(Cipher::Off),
        key: KeySource::None,
        format: FormatPolicy::IfEmpty,
    };
    let store = StoreOptions { admission: Admission::All, ..StoreOptions::default() };
    let options = TierOptions { store, ..TierOptions::default() };
    let tier = Tier::open(vec![(device.clone(), how)], options).ok()?;
    tier.settle();
    Some(tier)
}

fuzz_target!(|bytes: &[u8]| {
    let device = Arc::new(MemoryDevice::new(5 << 20));
    if let Some(tier) = open(&device) {
        for number in 0..20_u8 {
            tier.offer(&[number], Arc::new(vec![number; 3000]), Offered::default());
        }
    }
    device.tamper(|image| {
        // Four bytes of place, one of length, and so on.
        let mut rest = bytes;
        while let [a, b, c, d, length, tail @ ..] = rest {
            let place = u32::from_le_bytes([*a, *b, *c, *d]) as usize % image.len();
            let length = usize::from(*length).min(tail.len()).min(image.len() - place);
            image[place..place + length].copy_from_slice(&tail[..length]);
            rest = &tail[length..];
        }
    });
    if let Some(tier) = open(&device) {
        for number in 0..20_u8 {
            if let Some(found) = tier.read(&[number]) {
                assert_eq!(found, vec![number; 3000]);
            }
        }
    }
});
