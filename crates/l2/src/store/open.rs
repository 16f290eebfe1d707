//! Making a device ours, finding it ours, and changing its size.
//!
//! An attacker who can write to a device can write any superblock. So only three fields are used
//! before the code of a copy has been checked under the key. One is the format's version, which can
//! only be refused. One is how the key comes from a passphrase, within bounds. One is whether it is
//! sealed at all, which must be as the owner asked for.

use crate::cipher::{Cipher, DeviceKeys, HolderKeys, Keyring, MasterKey, Passphrase, SecretError};
use crate::device::{AlignedBuffer, Device, foreign_contents};
use crate::format::{
    DEVICE_MIN_BYTES, FormatError, KdfParameters, SEGMENTS_START, SUPERBLOCK_BYTES,
    SUPERBLOCK_PLACES, Superblock, segment_bytes_for, segments_in,
};
use std::io;
use std::sync::Arc;

/// Why a device cannot be used. None of these loses anything but a cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The system failed to read, write or resize it.
    #[error("cannot {action}: {error}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// It cannot be made as large as was asked for.
    #[error("cannot give it its size, {size_bytes} bytes: {error}")]
    Size {
        /// The value that was asked for.
        size_bytes: u64,
        /// The system's error.
        error: io::Error,
    },
    /// Something else is on it.
    #[error("it holds {0}; to overwrite that, run `ogive l2 format --force` on it")]
    Foreign(&'static str),
    /// It was made by another version.
    #[error("{0}; to make it anew, run `ogive l2 format --force` on it")]
    Format(FormatError),
    /// Nothing on it is sealed, and the owner did not allow that.
    #[error(
        "nothing on it is sealed (cipher off), but a sealed device was asked for; if it was formatted \
         by mistake, run `ogive l2 format --force` on it; if it is meant to be unsealed, give \
         --cipher off"
    )]
    Unsealed,
    /// Its superblock was changed without the key.
    #[error(
        "its superblock was changed without its key; to make it anew, run `ogive l2 format --force` \
         on it"
    )]
    Changed,
    /// It asks for more work than a derivation may be.
    #[error(
        "the key of it would take {passes} passes over {memory_kib} KiB, more than is allowed; \
         somebody may have changed it; if it was formatted so, allow it with --l2-kdf-max \
         {}M", u64::from(*memory_kib) * u64::from(*passes) / 1024 + 1
    )]
    Costly {
        /// Memory of the derivation, in KiB.
        memory_kib: u32,
        /// Passes over it.
        passes: u32,
    },
    /// It is sealed with another key.
    #[error(
        "it is sealed with another key; give that key with --key-file or --passphrase \
         (docs/l2.md), or run `ogive l2 format --force` on it, which empties it"
    )]
    WrongKey,
    /// It is sealed with another cipher than the one asked for.
    #[error(
        "it is sealed with {found}, not with {wanted}; leave --cipher out, or run `ogive l2 format \
         --force` on it"
    )]
    WrongCipher {
        /// The cipher that it has.
        found: Cipher,
        /// The value that was asked for.
        wanted: Cipher,
    },
    /// A passphrase was given for a device with a key, or the other way round.
    #[error("it was formatted with {0}; give that")]
    WrongKind(&'static str),
    /// Its size is not given.
    #[error("it is empty; say with --l2-size how large it shall be")]
    NoSize,
    /// A device of this name is in use.
    #[error(
        "it is a copy of a device that is in use; to make it another one, run `ogive l2 \
         format --force` on it"
    )]
    Twin,
    /// The mount that would use it is ending.
    #[error("the mount is being unmounted")]
    Ended,
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
    Passphrase(Passphrase, KdfParameters),
}

impl KeySource {
    /// Forgets a passphrase, in all clones: to be called when all devices have been opened.
    pub fn forget(&self) {
        if let Self::Passphrase(phrase, _) = self {
            phrase.forget();
        }
    }
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
    /// Its new size in bytes; `None`: the present one.
    pub size_bytes: Option<u64>,
    /// Its cipher; `None`: the present one, or GCM for a new device. Only `Some(Cipher::Off)`
    /// accepts a device that is not sealed.
    pub cipher: Option<Cipher>,
    /// The key.
    pub key: KeySource,
    /// Whether to format it.
    pub format: FormatPolicy,
    /// Most KiB that making the key from a passphrase may fill, over all passes.
    pub kdf_work_max_kib: u64,
}

/// A derivation over this many KiB, passes counted, needs no consent: five times the default.
pub const KDF_WORK_MAX_KIB: u64 = 1 << 20;

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            size_bytes: None,
            cipher: None,
            key: KeySource::None,
            format: FormatPolicy::default(),
            kdf_work_max_kib: KDF_WORK_MAX_KIB,
        }
    }
}

/// A device that was taken into use.
pub(crate) struct Opened {
    pub(crate) superblock: Superblock,
    pub(crate) keys: DeviceKeys,
    /// It was formatted just now.
    pub(crate) is_new: bool,
    holder: HolderKeys,
    keyring: Keyring,
}

impl Opened {
    fn new(superblock: Superblock, holder: HolderKeys, keyring: Keyring, is_new: bool) -> Self {
        let keys = DeviceKeys::new(keyring.clone(), superblock.cipher, superblock.device);
        Self { superblock, keys, is_new, holder, keyring }
    }

    /// Has the device make versions with the secret of others, so that they are used together.
    /// Records that were kept under its own are not found any more.
    pub(crate) fn adopt_versions(
        &mut self,
        device: &dyn Device,
        secret: &[u8; 32],
    ) -> Result<(), DeviceError> {
        if self.keys.versions() == secret {
            return Ok(());
        }
        self.keyring = self.keyring.with_versions(secret);
        let Superblock { cipher, device: id, .. } = self.superblock;
        self.keys = DeviceKeys::new(self.keyring.clone(), cipher, id);
        self.superblock.generation += 1;
        self.holder.lock_up(&self.keyring, &mut self.superblock);
        write_superblock(device, &self.superblock, &self.holder)
            .map_err(system("write the superblock"))
    }
}

fn system(action: &'static str) -> impl FnOnce(io::Error) -> DeviceError {
    move |error| DeviceError::System { action, error }
}

/// A copy of the superblock, and its bytes.
type Copied = (Superblock, Vec<u8>);

/// The copies of the superblock with a valid shape, the youngest first, with their bytes. Nothing
/// in them is authenticated yet. Without a copy, the reason.
fn read_copies(device: &dyn Device) -> io::Result<Result<Vec<Copied>, FormatError>> {
    let length = device.len_bytes()?;
    let (mut copies, mut reason) = (Vec::<Copied>::new(), FormatError::Foreign);
    for place in SUPERBLOCK_PLACES {
        if place + SUPERBLOCK_BYTES as u64 > length {
            continue;
        }
        let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
        if device.read_at(place, buffer.bytes_mut()).is_err() {
            continue;
        }
        match Superblock::parse(buffer.bytes()) {
            Ok(found) => copies.push((found, buffer.bytes().to_vec())),
            Err(error) if reason == FormatError::Foreign => reason = error,
            Err(_) => {}
        }
    }
    copies.sort_by_key(|(copy, _)| std::cmp::Reverse(copy.generation));
    Ok(if copies.is_empty() { Err(reason) } else { Ok(copies) })
}

/// The youngest copy of the superblock, for people to look at: no key has vouched for it.
///
/// # Errors
/// [`FormatError::Foreign`] if neither copy has our magic.
pub fn read_superblock(device: &dyn Device) -> io::Result<Result<Superblock, FormatError>> {
    Ok(read_copies(device)?.map(|copies| copies[0].0))
}

/// The youngest copy that the key vouches for, opened.
fn authenticate(copies: &[Copied], options: &OpenOptions) -> Result<Opened, DeviceError> {
    let mut refusal = None;
    for (copy, bytes) in copies {
        match vouch(copy, bytes, options) {
            Ok(opened) => {
                if refusal.is_some() {
                    log::warn!("a copy of the superblock was changed; the other one is used");
                }
                return Ok(opened);
            }
            Err(error) => _ = refusal.get_or_insert(error),
        }
    }
    Err(refusal.unwrap_or(DeviceError::Format(FormatError::Foreign)))
}

/// Opens a copy of the superblock that the key vouches for.
fn vouch(found: &Superblock, bytes: &[u8], options: &OpenOptions) -> Result<Opened, DeviceError> {
    match (found.cipher, options.cipher) {
        (Cipher::Off, Some(Cipher::Off)) => {}
        (Cipher::Off, _) => return Err(DeviceError::Unsealed),
        (found, Some(wanted @ Cipher::Off)) => {
            return Err(DeviceError::WrongCipher { found, wanted });
        }
        _ => {}
    }
    let master = master_key(options, found.cipher, found.kdf, &found.salt)?;
    let holder = HolderKeys::new(&master, &found.device, &found.salt);
    if !holder.are_right(found) {
        return Err(DeviceError::WrongKey);
    }
    if !holder.vouch_for(bytes) {
        return Err(DeviceError::Changed);
    }
    let keyring = holder.unlock(found).ok_or(DeviceError::Changed)?;
    // From here on the keyring has authenticated everything.
    if let Some(wanted) = options.cipher.filter(|wanted| *wanted != found.cipher) {
        return Err(DeviceError::WrongCipher { found: found.cipher, wanted });
    }
    Ok(Opened::new(*found, holder, keyring, false))
}

/// Opens a device, formatting or resizing it where that is asked for.
pub(crate) fn open(device: &Arc<dyn Device>, options: &OpenOptions) -> Result<Opened, DeviceError> {
    if options.format == FormatPolicy::Force {
        return make(device, options);
    }
    match read_copies(&**device).map_err(system("read the superblock"))? {
        Ok(copies) => resize(device, authenticate(&copies, options)?, options),
        Err(error @ (FormatError::Version(_) | FormatError::Cipher(_))) => {
            Err(DeviceError::Format(error))
        }
        Err(error) if options.format == FormatPolicy::Never => Err(DeviceError::Format(error)),
        Err(FormatError::Damaged) => {
            log::warn!("the second level's superblock is damaged; it begins anew");
            make(device, options)
        }
        Err(FormatError::Foreign) => {
            match foreign_contents(&**device).map_err(system("read it"))? {
                Some(contents) => Err(DeviceError::Foreign(contents)),
                None => make(device, options),
            }
        }
    }
}

/// Opens a device to be looked at: nothing is written to it, and it has no segments behind its end.
pub(crate) fn open_to_look(
    device: &dyn Device,
    options: &OpenOptions,
) -> Result<Opened, DeviceError> {
    let copies = read_copies(device).map_err(system("read the superblock"))?;
    let mut opened = authenticate(&copies.map_err(DeviceError::Format)?, options)?;
    let length = device.len_bytes().map_err(system("find out its size"))?;
    let superblock = &mut opened.superblock;
    superblock.segments = superblock.segments.min(segments_in(length, superblock.segment_bytes));
    Ok(opened)
}

/// Gives a device another key. Its records stay, because the keyring stays. So the old key with a
/// copy of the old superblock still opens it. A cut of the power leaves one copy of the superblock
/// under each key, so that both open it.
///
/// # Errors
/// See [`DeviceError`]; with `key` being none, or the device without seals, too.
pub fn change_key(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
    key: &KeySource,
) -> Result<Superblock, DeviceError> {
    let copies = read_copies(&**device).map_err(system("read the superblock"))?;
    let Opened { mut superblock, keyring, .. } =
        authenticate(&copies.map_err(DeviceError::Format)?, options)?;
    if superblock.cipher == Cipher::Off {
        return Err(DeviceError::Unsealed);
    }
    superblock.kdf = match key {
        KeySource::Passphrase(_, parameters) => Some(*parameters),
        _ => None,
    };
    getrandom::fill(&mut superblock.salt).map_err(SecretError::Random)?;
    let with = OpenOptions { key: key.clone(), ..options.clone() };
    let master = master_key(&with, superblock.cipher, superblock.kdf, &superblock.salt)?;
    let holder = HolderKeys::new(&master, &superblock.device, &superblock.salt);
    superblock.key_check = holder.check();
    superblock.generation += 1;
    holder.lock_up(&keyring, &mut superblock);
    write_superblock(&**device, &superblock, &holder).map_err(system("write the superblock"))?;
    Ok(superblock)
}

/// Makes a device ours and empty, whatever is on it.
///
/// # Errors
/// See [`DeviceError`].
pub fn format_device(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
) -> Result<Superblock, DeviceError> {
    make(device, options).map(|opened| opened.superblock)
}

/// The same with random bytes from a seed, which is then as secret as the key. It is for tests,
/// whose records then have the same places in the index every time.
///
/// # Errors
/// See [`DeviceError`].
#[doc(hidden)]
pub fn format_device_from(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
    seed: u64,
) -> Result<Superblock, DeviceError> {
    make_of(device, options, Drawn::from_seed(seed)).map(|opened| opened.superblock)
}

/// The random bytes of a newly formatted device.
struct Drawn {
    salt: [u8; 32],
    device: [u8; 16],
    keyring: Keyring,
}

impl Drawn {
    fn at_random() -> Result<Self, DeviceError> {
        let (mut salt, mut device) = ([0; 32], [0; 16]);
        getrandom::fill(&mut salt).map_err(SecretError::Random)?;
        getrandom::fill(&mut device).map_err(SecretError::Random)?;
        Ok(Self { salt, device, keyring: Keyring::random()? })
    }

    fn from_seed(seed: u64) -> Self {
        let (mut salt, mut device) = ([0; 32], [0; 16]);
        let mut bytes = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
        bytes.fill(&mut salt);
        bytes.fill(&mut device);
        Self { salt, device, keyring: Keyring::filled(|keyring| bytes.fill(keyring)) }
    }
}

fn make(device: &Arc<dyn Device>, options: &OpenOptions) -> Result<Opened, DeviceError> {
    make_of(device, options, Drawn::at_random()?)
}

fn make_of(
    device: &Arc<dyn Device>,
    options: &OpenOptions,
    drawn: Drawn,
) -> Result<Opened, DeviceError> {
    let now = device.len_bytes().map_err(system("find out its size"))?;
    let size_bytes = match options.size_bytes {
        Some(size_bytes) => size_bytes,
        None if now > 0 => now,
        None => return Err(DeviceError::NoSize),
    };
    if size_bytes < DEVICE_MIN_BYTES {
        return Err(DeviceError::TooSmall(size_bytes));
    }
    let cipher = options.cipher.unwrap_or_default();
    let kdf = match &options.key {
        KeySource::Passphrase(_, parameters) if cipher != Cipher::Off => Some(*parameters),
        _ => None,
    };
    let Drawn { salt, device: device_id, keyring } = drawn;
    // Before anything is overwritten: there may be no key.
    let master = master_key(options, cipher, kdf, &salt)?;
    device.set_len_bytes(size_bytes).map_err(|error| DeviceError::Size { size_bytes, error })?;
    if let Err(error) = device.discard() {
        log::debug!("what is there is overwritten, not discarded: {error}");
    }
    let size_bytes = size_bytes.min(device.len_bytes().map_err(system("find out its size"))?);
    let segment_bytes = segment_bytes_for(size_bytes);
    let holder = HolderKeys::new(&master, &device_id, &salt);
    let mut superblock = Superblock {
        cipher,
        device: device_id,
        generation: 1,
        segment_bytes,
        segments: segments_in(size_bytes, segment_bytes),
        kdf,
        salt,
        key_check: holder.check(),
        keyring: [0; _],
        keyring_tag: [0; _],
    };
    holder.lock_up(&keyring, &mut superblock);
    write_superblock(&**device, &superblock, &holder).map_err(system("write the superblock"))?;
    Ok(Opened::new(superblock, holder, keyring, true))
}

/// Writes both copies, so that one is valid at any moment.
fn write_superblock(
    device: &dyn Device,
    superblock: &Superblock,
    holder: &HolderKeys,
) -> io::Result<()> {
    let mut buffer = AlignedBuffer::zeroed(SUPERBLOCK_BYTES);
    let bytes = superblock.to_bytes(|covered| holder.mac(covered));
    buffer.bytes_mut().copy_from_slice(&bytes);
    for place in SUPERBLOCK_PLACES.into_iter().rev() {
        device.write_at(place, buffer.bytes())?;
        device.flush()?;
    }
    Ok(())
}

/// Gives our device the size that was asked for, and keeps all segments that fit. A truncated one
/// gets its length back.
fn resize(
    device: &Arc<dyn Device>,
    mut opened: Opened,
    options: &OpenOptions,
) -> Result<Opened, DeviceError> {
    let found = opened.superblock;
    let wanted = &mut opened.superblock;
    if let Some(size_bytes) = options.size_bytes {
        let least = SEGMENTS_START + 4 * found.segment_bytes;
        if size_bytes < least {
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
    let is_smaller = wanted.segments < found.segments;
    if !is_smaller && length < wanted.device_bytes() {
        device.set_len_bytes(wanted.device_bytes()).map_err(system("make it larger"))?;
        let length = device.len_bytes().map_err(system("find out its size"))?;
        wanted.segments = wanted.segments.min(segments_in(length, found.segment_bytes));
    }
    if wanted.segments != found.segments {
        wanted.generation += 1;
        let Opened { superblock, holder, .. } = &opened;
        write_superblock(&**device, superblock, holder).map_err(system("write the superblock"))?;
    }
    if is_smaller {
        let device_bytes = opened.superblock.device_bytes();
        device.set_len_bytes(device_bytes).map_err(system("make it smaller"))?;
    }
    Ok(opened)
}

/// The master key of a device with these parameters.
fn master_key(
    options: &OpenOptions,
    cipher: Cipher,
    kdf: Option<KdfParameters>,
    salt: &[u8; 32],
) -> Result<MasterKey, DeviceError> {
    if cipher == Cipher::Off {
        // Nothing is secret; the derivations are the same, so that there is one way through.
        return Ok(MasterKey::from_material(&[0; 32])?);
    }
    match (&options.key, kdf) {
        (KeySource::Master(master), None) => Ok(master.clone()),
        (KeySource::Passphrase(phrase, _), Some(kdf)) => {
            let KdfParameters { memory_kib, passes, .. } = kdf;
            if u64::from(memory_kib) * u64::from(passes) > options.kdf_work_max_kib {
                return Err(DeviceError::Costly { memory_kib, passes });
            }
            Ok(phrase.derive(salt, kdf)?)
        }
        (KeySource::Passphrase(..), None) => Err(DeviceError::WrongKind("a key")),
        (_, Some(_)) => Err(DeviceError::WrongKind("a passphrase")),
        (KeySource::None, None) => Err(DeviceError::WrongKind("a key")),
    }
}
