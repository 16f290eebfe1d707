//! Making a device ours, finding it ours, and changing its size.

use crate::cipher::{Cipher, DeviceKeys, MasterKey, SecretError, derive_from_passphrase};
use crate::device::{AlignedBuffer, Device, foreign_contents};
use crate::format::{
    DEVICE_MIN_BYTES, FormatError, KdfParameters, SEGMENTS_START, SUPERBLOCK_BYTES,
    SUPERBLOCK_PLACES, Superblock, segment_bytes_for, segments_in,
};
use std::io;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Why a device cannot be used. None of these loses anything but a cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The system failed to read, write or resize it.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// Something else is on it.
    #[error("it holds {0}; to overwrite that, run `ogive l2 format --force` on it")]
    Foreign(&'static str),
    /// It was made by another version.
    #[error("{0}; to make it anew, run `ogive l2 format --force` on it")]
    Format(FormatError),
    /// It is sealed with another key.
    #[error("it is sealed with another key; give that key, or run `ogive l2 format --force` on it")]
    WrongKey,
    /// It is sealed with another cipher than the one asked for.
    #[error(
        "it is sealed with {found}, not with {wanted}; leave --cipher out, or run `ogive l2 format --force` on it"
    )]
    WrongCipher {
        /// What it has.
        found: Cipher,
        /// What was asked for.
        wanted: Cipher,
    },
    /// A passphrase was given for a device with a key, or the other way round.
    #[error("it was formatted with {0}; give that")]
    WrongKind(&'static str),
    /// Nothing says how large it should be.
    #[error("it is empty; say with --l2-size how large it shall be")]
    NoSize,
    /// No log fits on it.
    #[error("{0} bytes are too few; the least is {DEVICE_MIN_BYTES} bytes (5 MiB)")]
    TooSmall(u64),
    /// There is no key.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// Where the master key comes from.
#[derive(Clone)]
pub enum KeySource {
    /// There is none: for [`Cipher::Off`].
    None,
    /// It is this.
    Master(MasterKey),
    /// argon2id makes it of a passphrase, with parameters that the device remembers.
    Passphrase(Zeroizing<Vec<u8>>, KdfParameters),
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "KeySource::None",
            Self::Master(_) => "KeySource::Master([redacted])",
            Self::Passphrase(..) => "KeySource::Passphrase([redacted])",
        })
    }
}

/// When a device may be formatted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatPolicy {
    /// If it is empty, or was ours and is damaged beyond use.
    #[default]
    IfEmpty,
    /// Whatever is on it.
    Force,
    /// Never.
    Never,
}

/// How to open a device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Size it shall have, in bytes; `None`: what it has.
    pub size_bytes: Option<u64>,
    /// How it shall be sealed; `None`: as it is, or GCM for a new one.
    pub cipher: Option<Cipher>,
    /// The key.
    pub key: KeySource,
    /// Whether to format it.
    pub format: FormatPolicy,
}

fn system(action: &'static str) -> impl FnOnce(io::Error) -> DeviceError {
    move |error| DeviceError::System { action, error }
}

/// The valid copy of the superblock that counts, with its bytes.
///
/// # Errors
/// [`FormatError::Foreign`] if neither copy has our magic.
pub fn read_superblock(
    device: &dyn Device,
) -> io::Result<Result<(Superblock, Vec<u8>), FormatError>> {
    let length = device.len_bytes()?;
    let mut best = Err(FormatError::Foreign);
    for place in SUPERBLOCK_PLACES {
        if place + SUPERBLOCK_BYTES as u64 > length {
            continue;
        }
        let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
        if device.read_at(place, buffer.bytes_mut()).is_err() {
            continue;
        }
        match (Superblock::parse(buffer.bytes()), &best) {
            (Ok(found), Ok((known, _))) if found.generation <= Superblock::generation(known) => {}
            (Ok(found), _) => best = Ok((found, buffer.bytes().to_vec())),
            (Err(error), Err(FormatError::Foreign)) => best = Err(error),
            (Err(_), _) => {}
        }
    }
    Ok(best)
}

impl Superblock {
    fn generation(&self) -> u64 {
        self.generation
    }
}

/// Opens a device, formatting or resizing it where that is asked for.
pub(crate) fn open(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
) -> Result<(Superblock, DeviceKeys), DeviceError> {
    let found = read_superblock(&**device).map_err(system("read the superblock"))?;
    let (found, bytes) = match (found, options.format) {
        (_, FormatPolicy::Force) => return make(device, options),
        (Ok(found), _) => found,
        (Err(error), FormatPolicy::Never) => return Err(DeviceError::Format(error)),
        (Err(error @ FormatError::Version(_)), _) => return Err(DeviceError::Format(error)),
        (Err(FormatError::Damaged), _) => {
            log::warn!("the second level's superblock is damaged; it begins anew");
            return make(device, options);
        }
        (Err(_), FormatPolicy::IfEmpty) => {
            let contents = foreign_contents(&**device).map_err(system("read it"))?;
            return match contents {
                Some(contents) => Err(DeviceError::Foreign(contents)),
                None => make(device, options),
            };
        }
    };
    if let Some(wanted) = options.cipher.filter(|wanted| *wanted != found.cipher) {
        return Err(DeviceError::WrongCipher { found: found.cipher, wanted });
    }
    let master = master_key(&options.key, found.cipher, found.kdf, &found.salt)?;
    if !DeviceKeys::is_right(&master, &found) {
        return Err(DeviceError::WrongKey);
    }
    let keys = DeviceKeys::new(&master, found.cipher, found.device, &found.salt);
    let authentic = Superblock::mac_of(&bytes)
        .is_some_and(|(covered, mac)| keys.superblock_mac(covered) == mac);
    if !authentic {
        if options.format == FormatPolicy::Never {
            return Err(DeviceError::Format(FormatError::Damaged));
        }
        log::warn!("the second level's superblock was changed by somebody; it begins anew");
        return make(device, options);
    }
    resize(device, &found, options, keys)
}

/// Makes a device ours and empty, whatever is on it.
///
/// # Errors
/// See [`DeviceError`].
pub fn format_device(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
) -> Result<Superblock, DeviceError> {
    make(device, options).map(|(superblock, _)| superblock)
}

fn make(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
) -> Result<(Superblock, DeviceKeys), DeviceError> {
    let now = device.len_bytes().map_err(system("find out its size"))?;
    let size_bytes = match options.size_bytes {
        Some(size_bytes) => size_bytes,
        None if now > 0 => now,
        None => return Err(DeviceError::NoSize),
    };
    if size_bytes < DEVICE_MIN_BYTES {
        return Err(DeviceError::TooSmall(size_bytes));
    }
    device.set_len_bytes(size_bytes).map_err(system("give it its size"))?;
    if let Err(error) = device.discard() {
        log::debug!("what is there is overwritten, not discarded: {error}");
    }
    let size_bytes = size_bytes.min(device.len_bytes().map_err(system("find out its size"))?);
    let cipher = options.cipher.unwrap_or_default();
    let kdf = match &options.key {
        KeySource::Passphrase(_, parameters) if cipher != Cipher::Off => Some(*parameters),
        _ => None,
    };
    let salt = *MasterKey::random()?.expose();
    let device_id = MasterKey::random()?.expose()[..16].try_into().expect("16 of 32 bytes");
    let master = master_key(&options.key, cipher, kdf, &salt)?;
    let segment_bytes = segment_bytes_for(size_bytes);
    let superblock = Superblock {
        cipher,
        device: device_id,
        generation: 1,
        segment_bytes,
        segments: segments_in(size_bytes, segment_bytes),
        kdf,
        salt,
        key_check: DeviceKeys::check(&master, &device_id, &salt),
    };
    let keys = DeviceKeys::new(&master, cipher, device_id, &salt);
    write_superblock(&**device, &superblock, &keys).map_err(system("write the superblock"))?;
    Ok((superblock, keys))
}

/// Writes both copies, so that one is valid at any moment.
fn write_superblock(
    device: &dyn Device,
    superblock: &Superblock,
    keys: &DeviceKeys,
) -> io::Result<()> {
    let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
    let bytes = superblock.to_bytes(|covered| keys.superblock_mac(covered));
    buffer.bytes_mut().copy_from_slice(&bytes);
    for place in SUPERBLOCK_PLACES.into_iter().rev() {
        device.write_at(place, buffer.bytes())?;
        device.flush()?;
    }
    Ok(())
}

/// Gives a device that is ours the size that is wanted, keeping all segments that stay on it; one
/// that was truncated gets its length back.
fn resize(
    device: &Arc<dyn Device>,
    found: &Superblock,
    options: &OpenOptions,
    keys: DeviceKeys,
) -> Result<(Superblock, DeviceKeys), DeviceError> {
    let mut wanted = *found;
    if let Some(size_bytes) = options.size_bytes {
        if size_bytes < SEGMENTS_START + 4 * found.segment_bytes {
            let least = SEGMENTS_START + 4 * found.segment_bytes;
            return if size_bytes < DEVICE_MIN_BYTES {
                Err(DeviceError::TooSmall(size_bytes))
            } else {
                log::info!("a log of large segments does not fit into less than {least} bytes");
                make(device, options)
            };
        }
        wanted.segments = segments_in(size_bytes, found.segment_bytes);
    }
    let length = device.len_bytes().map_err(system("find out its size"))?;
    if wanted.segments < found.segments {
        wanted.generation += 1;
        write_superblock(&**device, &wanted, &keys).map_err(system("write the superblock"))?;
        device.set_len_bytes(wanted.device_bytes()).map_err(system("make it smaller"))?;
        return Ok((wanted, keys));
    }
    if length < wanted.device_bytes() {
        device.set_len_bytes(wanted.device_bytes()).map_err(system("make it larger"))?;
        let length = device.len_bytes().map_err(system("find out its size"))?;
        wanted.segments = wanted.segments.min(segments_in(length, found.segment_bytes));
    }
    if wanted.segments != found.segments {
        wanted.generation += 1;
        write_superblock(&**device, &wanted, &keys).map_err(system("write the superblock"))?;
    }
    Ok((wanted, keys))
}

/// The master key of a device that was or is to be formatted so.
fn master_key(
    source: &KeySource,
    cipher: Cipher,
    kdf: Option<KdfParameters>,
    salt: &[u8; 32],
) -> Result<MasterKey, DeviceError> {
    if cipher == Cipher::Off {
        // Nothing is secret; the derivations are the same, so that there is one way through.
        return Ok(MasterKey::from_material(&[0; 32])?);
    }
    match (source, kdf) {
        (KeySource::Master(master), None) => Ok(master.clone()),
        (KeySource::Passphrase(phrase, _), Some(kdf)) => {
            Ok(derive_from_passphrase(phrase, salt, kdf)?)
        }
        (KeySource::Passphrase(..), None) => Err(DeviceError::WrongKind("a key")),
        (_, Some(_)) => Err(DeviceError::WrongKind("a passphrase")),
        (KeySource::None, None) => Err(DeviceError::WrongKind("a key")),
    }
}
