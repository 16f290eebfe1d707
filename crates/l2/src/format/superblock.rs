//! The superblock: what a device is, and by which key.
//!
//! The key of a device opens its *keyring*: two secrets that stay until the device is formatted. So
//! the key can be changed, and the records stay.

use super::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::cipher::Cipher;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of a copy, in bytes.
pub const SUPERBLOCK_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"OGIVEL2\n";
const VERSION: u32 = 2;
/// Length of the keyring: the volume key and the secret of versions.
pub const KEYRING_BYTES: usize = 64;
/// Where the keyring is, and the lengths that the message authentication code and the checksum
/// cover.
const KEYRING_AT: usize = 120;
const MAC_COVERS: usize = 200;
const CHECKSUM_COVERS: usize = 216;
/// argon2id's parameters beyond these are an attack on the reader.
const KDF_MEMORY_KIB_MAX: u32 = 4 << 20;
const KDF_PASSES_MAX: u32 = 64;
const KDF_LANES_MAX: u32 = 64;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Layout {
    magic: [u8; 8],
    version: U32,
    cipher: U32,
    device: [u8; 16],
    generation: U64,
    segment_bytes: U64,
    segments: U64,
    kdf: U32,
    kdf_memory_kib: U32,
    kdf_passes: U32,
    kdf_lanes: U32,
    salt: [u8; 32],
    key_check: [u8; 16],
    keyring: [u8; KEYRING_BYTES],
    keyring_tag: [u8; 16],
    mac: [u8; 16],
    checksum: U32,
    zero: [u8; SUPERBLOCK_BYTES - 220],
}

const _: () = assert!(size_of::<Layout>() == SUPERBLOCK_BYTES);
const _: () = assert!(std::mem::offset_of!(Layout, keyring) == KEYRING_AT);
const _: () = assert!(std::mem::offset_of!(Layout, mac) == MAC_COVERS);
const _: () = assert!(std::mem::offset_of!(Layout, checksum) == CHECKSUM_COVERS);

/// Parameters of argon2id (RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdfParameters {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for KdfParameters {
    /// The second recommended option of RFC 9106 §4: 64 MiB, three passes, four lanes.
    fn default() -> Self {
        Self { memory_kib: 64 << 10, passes: 3, lanes: 4 }
    }
}

/// Why bytes are no superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Nothing of ours is there.
    #[error("this is no second level of ogive")]
    Foreign,
    /// It was ours and is damaged.
    #[error("the superblock is damaged")]
    Damaged,
    /// It was made by another version of ogive.
    #[error("the format is version {0}, and only version {VERSION} is known here")]
    Version(u32),
    /// Its records are sealed with a cipher that this version has not.
    #[error("its records are sealed with {}, which this ogive does not have", sealed_with(*.0))]
    Cipher(u32),
}

/// The cipher of a number that no [`Cipher`] has.
fn sealed_with(number: u32) -> String {
    match number {
        2 => "AES-256-CCM".to_owned(),
        _ => format!("cipher number {number}"),
    }
}

/// The description of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// How records are sealed.
    pub cipher: Cipher,
    /// Names the device.
    pub device: [u8; 16],
    /// Of two valid copies the one with the larger generation counts.
    pub generation: u64,
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// How the key comes from a passphrase, if it does.
    pub kdf: Option<KdfParameters>,
    /// Salt of the derivations that concern the whole device.
    pub salt: [u8; 32],
    /// Shows whether a key is wrong.
    pub key_check: [u8; 16],
    /// The secrets that all other keys are derived from, sealed.
    pub keyring: [u8; KEYRING_BYTES],
    /// Seal of the keyring.
    pub keyring_tag: [u8; 16],
}

impl Superblock {
    /// The bytes of a copy; `mac` gets the bytes to authenticate.
    pub fn to_bytes(&self, mac: impl FnOnce(&[u8]) -> [u8; 16]) -> [u8; SUPERBLOCK_BYTES] {
        let kdf = self.kdf.unwrap_or(KdfParameters { memory_kib: 0, passes: 0, lanes: 0 });
        let mut layout = Layout {
            magic: MAGIC,
            version: VERSION.into(),
            cipher: self.cipher.number().into(),
            device: self.device,
            generation: self.generation.into(),
            segment_bytes: self.segment_bytes.into(),
            segments: self.segments.into(),
            kdf: u32::from(self.kdf.is_some()).into(),
            kdf_memory_kib: kdf.memory_kib.into(),
            kdf_passes: kdf.passes.into(),
            kdf_lanes: kdf.lanes.into(),
            salt: self.salt,
            key_check: self.key_check,
            keyring: self.keyring,
            keyring_tag: self.keyring_tag,
            mac: [0; 16],
            checksum: 0.into(),
            zero: [0; _],
        };
        layout.mac = mac(&layout.as_bytes()[..MAC_COVERS]);
        layout.checksum = crc32c::crc32c(&layout.as_bytes()[..CHECKSUM_COVERS]).into();
        zerocopy::transmute!(layout)
    }

    /// Reads a copy. The checksum is right and all numbers are possible; what the device's key
    /// has to say is for [`Superblock::mac_of`].
    ///
    /// # Errors
    /// See [`FormatError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let (layout, _) = Layout::read_from_prefix(bytes).map_err(|_| FormatError::Foreign)?;
        if layout.magic != MAGIC {
            return Err(FormatError::Foreign);
        }
        // Another version may have its checksum elsewhere, and never counts as a damaged one.
        if layout.version.get() != VERSION {
            return Err(FormatError::Version(layout.version.get()));
        }
        if crc32c::crc32c(&bytes[..CHECKSUM_COVERS]) != layout.checksum.get() {
            return Err(FormatError::Damaged);
        }
        let kdf = KdfParameters {
            memory_kib: layout.kdf_memory_kib.get(),
            passes: layout.kdf_passes.get(),
            lanes: layout.kdf_lanes.get(),
        };
        let kdf = match layout.kdf.get() {
            0 => None,
            1 if kdf.is_possible() => Some(kdf),
            _ => return Err(FormatError::Damaged),
        };
        let segment_bytes = layout.segment_bytes.get();
        let segments = layout.segments.get();
        let sizes = SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX;
        if !sizes.contains(&segment_bytes)
            || !segment_bytes.is_multiple_of(1 << 20)
            || segments == 0
            || segments > super::segments_in(u64::MAX, segment_bytes)
        {
            return Err(FormatError::Damaged);
        }
        // It is whole, and another version of ogive may read it: never formatted unasked.
        let number = layout.cipher.get();
        let cipher = Cipher::from_number(number).ok_or(FormatError::Cipher(number))?;
        Ok(Self {
            cipher,
            device: layout.device,
            generation: layout.generation.get(),
            segment_bytes,
            segments,
            kdf,
            salt: layout.salt,
            key_check: layout.key_check,
            keyring: layout.keyring,
            keyring_tag: layout.keyring_tag,
        })
    }

    /// The other bytes that the keyring's seal covers: the device, and its cipher.
    pub fn keyring_covers(&self) -> [u8; 20] {
        let mut covered = [0; 20];
        covered[..16].copy_from_slice(&self.device);
        covered[16..].copy_from_slice(&self.cipher.number().to_le_bytes());
        covered
    }

    /// The bytes that the code of a copy covers, and the code. `bytes` have been parsed.
    pub fn mac_of(bytes: &[u8]) -> Option<(&[u8], [u8; 16])> {
        let code = bytes.get(MAC_COVERS..CHECKSUM_COVERS)?.try_into().ok()?;
        Some((&bytes[..MAC_COVERS], code))
    }

    /// Length of a device that has all segments, in bytes.
    pub fn device_bytes(&self) -> u64 {
        super::SEGMENTS_START + self.segments * self.segment_bytes
    }
}

impl KdfParameters {
    fn is_possible(self) -> bool {
        (8..=KDF_MEMORY_KIB_MAX).contains(&self.memory_kib)
            && (1..=KDF_PASSES_MAX).contains(&self.passes)
            && (1..=KDF_LANES_MAX).contains(&self.lanes)
            && self.memory_kib >= 8 * self.lanes
    }
}
