//! A device with pieces that the fuzzer has overwritten, with cipher off. Only checksums stand
//! between its bytes and the reader, so every line behind the checks is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_l2::device::MemoryDevice;
use ogive_l2::{Admission, Cipher, Offered, OpenOptions, Padding, StoreOptions, Tier, TierOptions};
use std::sync::Arc;

fn open(device: &Arc<MemoryDevice>, padding: Padding) -> Option<Tier> {
    let how = OpenOptions { cipher: Some(Cipher::Off), ..OpenOptions::default() };
    let store = StoreOptions { admission: Admission::All, padding, ..StoreOptions::default() };
    let options = TierOptions { store, ..TierOptions::default() };
    let tier = Tier::open(vec![(device.clone(), how)], options).ok()?;
    tier.settle();
    Some(tier)
}

fuzz_target!(|bytes: &[u8]| {
    let device = Arc::new(MemoryDevice::new(5 << 20));
    let kinds = [Padding::Off, Padding::Step(512), Padding::PowerOfTwo];
    let padding = kinds[bytes.len() % kinds.len()];
    if let Some(tier) = open(&device, padding) {
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
    if let Some(tier) = open(&device, Padding::Off) {
        for number in 0..20_u8 {
            if let Some(found) = tier.read(&[number]) {
                assert_eq!(found, vec![number; 3000]);
            }
        }
    }
});
