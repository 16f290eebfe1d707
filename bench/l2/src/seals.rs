//! The bare cipher, in CPU time of this thread, and what the writer and the readers spend on it.

use crate::measure::{Rounds, thread_cpu_ns};
use crate::{RECORD, ROUNDS};
use ogive_l2::{Cipher, Seal, nonce};

/// Records of a round.
const RECORDS: u32 = 256;
/// Length of the additional data of a record, in bytes.
const ADDITIONAL: [u8; 72] = [0; 72];

pub(crate) fn run() {
    println!();
    for length in [8 << 10, RECORD] {
        for cipher in Cipher::ALL {
            let (sealing, opening) = rates(cipher, length);
            let kib = length >> 10;
            sealing.show(&format!("{cipher}: seal {kib} KiB"), "GB/s");
            opening.show(&format!("{cipher}: open {kib} KiB"), "GB/s");
        }
        let (sealing, opening) = bare_rates(length);
        sealing.show(&format!("the library alone, GCM: seal {} KiB", length >> 10), "GB/s");
        opening.show(&format!("the library alone, GCM: open {} KiB", length >> 10), "GB/s");
    }
}

fn rates(cipher: Cipher, length: usize) -> (Rounds, Rounds) {
    let seal = Seal::new(cipher, &[7; 32]);
    let (mut bytes, mut plain) = (vec![3; length], vec![0; length]);
    let (mut sealing, mut opening) = (Rounds::new(), Rounds::new());
    for round in 1..=ROUNDS as u64 {
        let (mut sealed_ns, mut opened_ns) = (0, 0);
        for number in 0..RECORDS {
            let nonce = nonce(round.to_le_bytes(), number);
            let start = thread_cpu_ns();
            let tag = seal.seal(nonce, &ADDITIONAL, &mut bytes);
            let middle = thread_cpu_ns();
            assert!(seal.open(nonce, &ADDITIONAL, tag, &bytes, &mut plain), "it opens");
            sealed_ns += middle - start;
            opened_ns += thread_cpu_ns() - middle;
        }
        let bytes = f64::from(RECORDS) * length as f64;
        sealing.push(bytes / sealed_ns as f64);
        opening.push(bytes / opened_ns as f64);
    }
    (sealing, opening)
}

/// The same by the library's own calls.
fn bare_rates(length: usize) -> (Rounds, Rounds) {
    use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("the key has 32 bytes");
    let key = LessSafeKey::new(key);
    let (mut bytes, mut plain) = (vec![3; length], vec![0; length]);
    let (mut sealing, mut opening) = (Rounds::new(), Rounds::new());
    for round in 1..=ROUNDS as u64 {
        let (mut sealed_ns, mut opened_ns) = (0, 0);
        for number in 0..RECORDS {
            let nonce = || Nonce::assume_unique_for_key(nonce(round.to_le_bytes(), number));
            let aad = || Aad::from(ADDITIONAL);
            let start = thread_cpu_ns();
            let tag = key.seal_in_place_separate_tag(nonce(), aad(), &mut bytes);
            let middle = thread_cpu_ns();
            let tag = tag.expect("the message is short enough");
            key.open_separate_gather(nonce(), aad(), &bytes, tag.as_ref(), &mut plain)
                .expect("it opens");
            sealed_ns += middle - start;
            opened_ns += thread_cpu_ns() - middle;
        }
        let bytes = f64::from(RECORDS) * length as f64;
        sealing.push(bytes / sealed_ns as f64);
        opening.push(bytes / opened_ns as f64);
    }
    (sealing, opening)
}
